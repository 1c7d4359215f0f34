// Node's own https, through an agent that honours HTTPS_PROXY, as the usual proxy agents do.
import http from "node:http";
import https from "node:https";
import tls from "node:tls";

class ProxyAgent extends https.Agent {
  createConnection(options, callback) {
    const proxy = new URL(process.env.HTTPS_PROXY);
    const authority = `${options.host}:${options.port}`;
    http
      .request({ host: proxy.hostname, port: proxy.port, method: "CONNECT", path: authority, agent: false })
      .on("connect", (_, socket) => callback(null, tls.connect({ ...options, socket, servername: options.host })))
      .on("error", callback)
      .end();
  }
}

const agent = new ProxyAgent({ keepAlive: true });
function call(url, options = {}, body = undefined) {
  return new Promise((resolve, reject) => {
    const request = https.request(url, { agent, ...options }, (reply) => {
      const chunks = [];
      reply.on("data", (chunk) => chunks.push(chunk.toString()));
      reply.on("end", () => resolve([reply.statusCode, chunks.join("")]));
      reply.on("error", reject);
    });
    request.on("error", reject);
    request.end(body);
  });
}

console.log(...(await call("https://search.example.com/search?q=tide&q=moon")));
console.log(...(await call("https://search.example.com/search?q=tide&q=moon")));
console.log(...(await call("https://search.example.com/pages/no-such-page")));
const body = JSON.stringify({ model: "gpt-4o", stream: true, messages: [{ role: "user", content: "Count to five." }] });
const headers = { "content-type": "application/json", authorization: `Bearer ${process.env.OPENAI_API_KEY}` };
console.log(...(await call("https://api.openai.com/v1/chat/completions", { method: "POST", headers }, body)));
agent.destroy();
