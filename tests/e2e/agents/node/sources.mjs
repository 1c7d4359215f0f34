// Every clock, timer and source of chance of Node, under every name, in the main thread, worker threads, forked children
// and a cluster; each asks with what it has read. What each prints is printed in one order.
import cluster from 'node:cluster';
import crypto, { getRandomValues, randomBytes, randomInt, randomUUID, webcrypto } from 'node:crypto';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { performance as hooks } from 'node:perf_hooks';
import { hrtime, uptime } from 'node:process';
import timers, { setTimeout as later } from 'node:timers';
import { scheduler, setInterval as every, setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Worker, isMainThread, parentPort } from 'node:worker_threads';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(import.meta.url);
const headers = { 'content-type': 'application/json', authorization: `Bearer ${process.env.OPENAI_API_KEY}` };

const READERS = {
  clocks: () => [Date.now(), new Date().toISOString(), Date().length, performance.now(), hooks.now(), hooks.timeOrigin],
  monotonic: () => [String(hrtime.bigint()), String(process.hrtime.bigint()), hrtime(), uptime(), process.uptime()],
  chance: () => [Math.random(), randomUUID(), crypto.randomUUID(), webcrypto.randomUUID(), globalThis.crypto.randomUUID()],
  bytes: () => [randomBytes(5).toString('hex'), randomInt(1e6), getRandomValues(new Uint8Array(3)).join()],
  marks: () => [hooks.mark('m').startTime, webcrypto.getRandomValues(new Uint16Array(2)).join()],
};
const READ = { ...READERS, all: () => Object.values(READERS).map((read) => read()) };

async function ask(text, what) {
  const content = `${text} ${JSON.stringify(READ[what]())}`;
  const body = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content }] });
  const reply = await fetch('https://api.openai.com/v1/chat/completions', { method: 'POST', headers, body });
  return [(await reply.json()).id, READ[what]()];
}

const WAITS = {
  sleep: () => sleep(40),
  scheduler: () => scheduler.wait(30),
  timer: () => new Promise((resolve) => setTimeout(resolve, 70)),
  later: () => new Promise((resolve) => later(resolve, 20)),
  promisified: () => promisify(timers.setTimeout)(60),
  callback: () => promisify(crypto.randomBytes)(4),
  immediate: () => new Promise((resolve) => setImmediate(resolve)),
  async interval() {
    let round = 0;
    for await (const _ of every(15)) if (++round === 3) break;
  },
};

async function work(name) {
  const out = [];
  for (const what of Object.keys(READ)) out.push(await ask(`${name} ${what}`, what));
  for (const [wait, fn] of Object.entries(WAITS)) {
    await fn();
    out.push(wait, READ.clocks(), await ask(`${name} after ${wait}`, 'monotonic'));
  }
  out.push(await Promise.all(Object.entries(WAITS).map(async ([wait, fn]) => {
    await fn();
    return ask(`${name} beside ${wait}`, 'chance');
  })));
  return JSON.stringify(out);
}

async function main() {
  console.log('main', await work('main'));
  const threads = ['left', 'right'].map((name) => new Worker(here, { argv: [name] }));
  console.log('threads', ...(await Promise.all(threads.map((one) => once(one, 'message')))));
  const children = ['one', 'two'].map((name) => fork(here, ['child', name]));
  console.log('children', ...(await Promise.all(children.map((one) => once(one, 'message')))).map(([text]) => text));
  cluster.setupPrimary({ exec: here, args: ['clustered'] });
  const workers = ['a', 'b'].map((name) => cluster.fork({ NAME: name }));
  console.log('cluster', ...(await Promise.all(workers.map((one) => once(one, 'message')))).map(([text]) => text));
  for (const one of workers) one.disconnect();
  console.log('end', JSON.stringify(READ.all()));
}

const [, , role, name] = process.argv;
if (!isMainThread) parentPort.postMessage(await work(`thread ${role}`));
else if (role === 'child') process.send(await work(`child ${name}`), () => process.disconnect());
else if (role === 'clustered') process.send(await work(`cluster ${process.env.NAME}`));
else await main();
