// An agent on node:http2, with TLS at the first URL and without at the second: in turn, at once on one session, with
// what it asks for holding times, random numbers and ids; it sleeps while its sessions are open.
import { connect } from 'node:http2';
import { once } from 'node:events';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

const [, , secure, plain] = process.argv;
const values = () => [Date.now(), Math.random(), randomUUID(), performance.now()];

// By events, which all come by the one session.
function byEvents(session, path, body) {
  return new Promise((resolve, reject) => {
    const heard = [];
    const stream = session.request({ ':method': 'POST', ':path': path, 'x-values': values().join(' ') });
    stream.setEncoding('utf8');
    stream.on('response', (headers) => heard.push(headers[':status'], ...values()));
    stream.on('trailers', (headers) => heard.push(headers['x-after']));
    stream.on('data', (data) => heard.push(data));
    stream.on('end', () => heard.push(...values()));
    stream.on('error', reject);
    stream.on('close', () => resolve([...heard, ...Object.keys(stream.sentHeaders)]));
    stream.end(body);
  });
}

async function byIteration(session, path) {
  const stream = session.request({ ':path': path, 'x-values': values().join(' ') });
  const [headers] = await once(stream, 'response');
  let text = '';
  for await (const data of stream) text += data;
  return [headers[':status'], text, ...values()];
}

async function each(url) {
  const session = connect(url); // asked before it is connected
  console.log('early', ...(await Promise.all([byEvents(session, '/early', 'one'), byIteration(session, '/also')])));
  console.log('large', ...(await byEvents(session, '/upload', 'x'.repeat(300_000))));
  const began = Date.now();
  await sleep(1500);
  console.log('slept', Date.now() - began >= 1500);
  const paths = ['/late', '/three', '/two', '/soon'];
  console.log('at once', JSON.stringify(await Promise.all([
    ...paths.map((path) => byEvents(session, path, path)),
    (async () => [await byIteration(session, '/then'), await byEvents(session, '/after', ''), values()])(),
  ])));
  session.close();
  await once(session, 'close');
}

await each(secure);
await each(plain);
console.log('end', ...values());
