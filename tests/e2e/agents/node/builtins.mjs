// An agent on nothing but Node: fetch, https with and without an agent, http, in turn and at once, with a back-off.
// What it asks holds times, random numbers and ids; its calls at once end in another order than they began.
import http from 'node:http';
import https, { request } from 'node:https';
import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { randomUUID } from 'node:crypto';
import { Worker, isMainThread, parentPort } from 'node:worker_threads';
import { fileURLToPath } from 'node:url';

const URL_ = 'https://api.openai.com/v1/chat/completions';
const headers = { 'content-type': 'application/json', authorization: `Bearer ${process.env.OPENAI_API_KEY}` };
const here = fileURLToPath(import.meta.url);

function prompt(text, stream = false) {
  const content = `${text} at ${new Date().toISOString()}, ${Math.random()}, ${randomUUID()}`;
  return JSON.stringify({ model: 'gpt-4o', stream, messages: [{ role: 'user', content }] });
}

async function byFetch(text, stream) {
  const reply = await fetch(URL_, { method: 'POST', headers, body: prompt(text, stream) });
  if (!stream) return (await reply.json()).choices[0].message.content;
  const parts = [];
  for await (const part of reply.body) parts.push(Buffer.from(part).toString());
  return parts.join('').length;
}

function byHttps(text, options = {}) {
  return new Promise((resolve, reject) => {
    const asked = request(URL_, { method: 'POST', headers, ...options }, (reply) => {
      const parts = [];
      reply.on('data', (part) => parts.push(part));
      reply.on('end', () => resolve([reply.statusCode, Buffer.concat(parts).toString(), Date.now(), Math.random()]));
    });
    asked.on('error', reject);
    asked.write(prompt(text));
    asked.end();
  });
}

function byHttp(query) {
  return new Promise((resolve, reject) => {
    http.get(`http://search.example.com/search?q=${query}&n=${Math.random()}`, async (reply) => {
      let text = '';
      for await (const part of reply) text += part;
      resolve([reply.statusCode, text.length, randomUUID()]);
    }).on('error', reject);
  });
}

async function patiently(text) {
  for (let attempt = 0; attempt < 3; attempt++) {
    const reply = await fetch(URL_, { method: 'POST', headers, body: prompt(text) });
    if (reply.ok) return [attempt, await reply.json(), Date.now()];
    await reply.text();
    await new Promise((resolve) => setTimeout(resolve, 1000 * (1 + Math.random() / 10)));
  }
  return null;
}

async function main() {
  console.log('one', await byFetch('first'), await byFetch('second', true));
  const agent = new https.Agent({ keepAlive: true });
  console.log('https', await byHttps('plain'), await byHttps('kept', { agent }), await byHttps('again', { agent }));
  console.log('http', await byHttp('tide'));
  console.log('at once', JSON.stringify(await Promise.all([
    byFetch('slow'), byFetch('quick'), byHttps('middle'), byHttps('other', { agent }), byHttp('moon'), byFetch('quick'),
    (async () => [await byFetch('slow'), await byFetch('quick'), await byHttp('sun')])(),
  ])));
  console.log('patiently', JSON.stringify(await patiently('busy')));
  console.log('child', String(execFileSync(process.execPath, [here, 'child'], { env: { PATH: process.env.PATH } })).trim());
  const child = fork(here, ['forked']);
  console.log('fork', (await once(child, 'message'))[0]);
  const worker = new Worker(here);
  console.log('worker', (await once(worker, 'message'))[0]);
  agent.destroy();
  console.log('end', Date.now(), randomUUID());
}

const role = process.argv[2];
if (!isMainThread) parentPort.postMessage(await byFetch('worker'));
else if (role === 'child') console.log(await byFetch('child'), Math.random());
else if (role === 'forked') process.send(await byFetch('forked'), () => process.disconnect());
else main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
