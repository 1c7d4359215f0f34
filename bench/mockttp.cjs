// mockttp as an HTTPS proxy with the benchmark's answers:
//   node mockttp.cjs PACKAGE_FOLDER AUTHORITY_FOLDER rules|table PAIRS
// PAIRS: a JSON array [request body, answer body] a line. Says its port, and serves until it is ended.
"use strict";
const fs = require("node:fs");
const path = require("node:path");

const [folder, authority, how, file] = process.argv.slice(2);
const mockttp = require(folder);
const pairs = fs.readFileSync(file, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
const headers = { "Content-Type": "application/json" };

async function main() {
  const pem = fs.readFileSync(path.join(authority, "mitmproxy-ca.pem"), "utf8");
  const https = {
    key: pem.match(/-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?-----END [A-Z ]*PRIVATE KEY-----/)[0],
    cert: fs.readFileSync(path.join(authority, "mitmproxy-ca-cert.pem"), "utf8"),
  };
  const server = mockttp.getLocal({ https, http2: false, recordTraffic: false });
  await server.start();
  if (how === "rules") {
    for (const [request, answer] of pairs) {
      await server.forPost("https://api.example.com/v1/chat/completions").withBody(request).once().thenReply(200, answer, headers);
    }
  } else {
    const answers = new Map(pairs);
    await server.forAnyRequest().thenCallback(async (request) => {
      const body = await request.body.getText();
      const answer = answers.get(body);
      answers.delete(body);
      return answer === undefined ? { statusCode: 502 } : { statusCode: 200, headers, body: answer };
    });
  }
  console.log(`listening at 127.0.0.1:${server.port}`);
}

main();
