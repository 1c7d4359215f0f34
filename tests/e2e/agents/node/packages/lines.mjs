// What ends late or never, by HTTP/1.1 and by HTTP/2 of undici: lines of JSON as they come, long polls, server-sent
// events; by the clients of Node, and by undici, axios and eventsource from npm.
import http from 'node:http';
import { once } from 'node:events';
import { randomUUID } from 'node:crypto';
import axios from 'axios';
import { Agent, EventSource as UndiciEvents, fetch as undiciFetch, request } from 'undici';
import { EventSource } from 'eventsource';

const [, , base, secure] = process.argv;
const values = () => [Date.now(), Math.random(), randomUUID(), performance.now()];
const url = (path, where = base) => `${where}/${path}?v=${encodeURIComponent(values().join(' '))}`;

async function lines(chunks) {
  const found = [];
  let rest = '';
  for await (const chunk of chunks) {
    rest += Buffer.from(chunk);
    const whole = rest.split('\n');
    rest = whole.pop();
    for (const line of whole) found.push(JSON.parse(line), ...values());
  }
  return found;
}

const byFetch = async (path) => lines((await fetch(url(path))).body);
const byAxios = async (path) => lines((await axios.get(url(path), { responseType: 'stream' })).data);
const byUndici = async (path) => lines((await request(url(path))).body);
const byHttp = async (path) => lines((await once(http.get(url(path)), 'response'))[0]);
const dispatcher = new Agent({ allowH2: true });
const bySecond = async (path) => lines((await undiciFetch(url(path, secure), { dispatcher })).body);

function events(Source, path) {
  return new Promise((resolve) => {
    const source = new Source(url(path));
    const found = [];
    source.addEventListener('message', ({ data, lastEventId }) => {
      found.push(data, lastEventId, values());
      if (found.length < 9) return;
      source.close();
      resolve(found);
    });
  });
}

// One waits for what another one brings about.
const poll = async (ask, n) => Promise.all([ask(`poll${n}`), ask(`do${n}`)]);

const ways = { byFetch, byAxios, byUndici, byHttp, bySecond };
for (const [number, [name, ask]] of Object.entries(ways).entries()) {
  console.log(name, JSON.stringify([await ask('lines'), await poll(ask, number)]));
}
console.log('at once', JSON.stringify(await Promise.all(Object.values(ways).map((ask) => ask('lines')))));
console.log('events', JSON.stringify([await events(EventSource, 'events'), await events(UndiciEvents, 'events')]));
await dispatcher.close();
console.log('end', ...values());
