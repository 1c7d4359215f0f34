// Branches that run side by side, and draw. Their waits are the arguments, so that they end in any order.
import { readFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

const waits = process.argv.slice(2).map(Number);
const out = {};
const draw = () => [Math.random(), randomUUID()];

async function deeper(name, ms) {
  await sleep(ms);
  out[`${name} deeper`] = draw();
  return Promise.all([1, 2].map(async (n) => {
    await sleep(n === 1 ? ms : 1);
    out[`${name} deeper ${n}`] = draw();
  }));
}

async function branch(name, ms) {
  const first = draw();
  await sleep(ms);
  out[name] = [first, draw()];
  await deeper(name, ms);
  await readFile(process.argv[1]);
  out[`${name} end`] = draw();
}

out.start = draw();
await Promise.all(waits.map((ms, n) => branch(`branch ${n}`, ms)));
out.between = draw();
await Promise.allSettled(waits.map((ms, n) => branch(`again ${n}`, ms)));
await new Promise((resolve) => {
  let left = waits.length;
  waits.forEach((ms, n) => setTimeout(() => {
    out[`timer ${n}`] = draw();
    Promise.resolve().then(() => {
      out[`timer ${n} then`] = draw();
      left -= 1;
      if (left === 0) resolve();
    });
  }, ms));
});
for (const [n, ms] of waits.entries()) {
  await sleep(ms);
  out[`loop ${n}`] = draw();
}
out.end = draw();
console.log(JSON.stringify(Object.fromEntries(Object.entries(out).sort())));
