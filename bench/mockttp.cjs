// mockttp as an HTTPS proxy with the benchmark's answers:
//   node mockttp.cjs PACKAGE_FOLDER CA_FILE rules|table PAIRS
// CA_FILE is written: who vouches for it. PAIRS: a JSON array [request body, answer body] a line. Says its port, and serves until it is ended.
"use strict";
const fs = require("node:fs");

const [folder, authority, how, file] = process.argv.slice(2);
const mockttp = require(folder);
const pairs = fs.readFileSync(file, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
// Without a length it would close the connection after each answer.
const headers = (answer) => ({ "Content-Type": "application/json", "Content-Length": Buffer.byteLength(answer) });

async function main() {
  // Its own authority: it reads no keys but RSA.
  const https = await mockttp.generateCACertificate();
  fs.writeFileSync(authority, https.cert);
  const server = mockttp.getLocal({ https, http2: false, recordTraffic: false });
  await server.start();
  if (how === "rules") {
    for (const [request, answer] of pairs) {
      const rule = server.forPost("https://api.example.com/v1/chat/completions").withBody(request);
      await rule.once().thenReply(200, answer, headers(answer));
    }
  } else {
    const answers = new Map(pairs);
    await server.forAnyRequest().thenCallback(async (request) => {
      const body = await request.body.getText();
      const answer = answers.get(body);
      answers.delete(body);
      return answer === undefined ? { statusCode: 502 } : { statusCode: 200, headers: headers(answer), body: answer };
    });
  }
  console.log(`listening at 127.0.0.1:${server.port}`);
}

main();
