// Reads every clock, in branches that sleep; prints what they said.
import { setTimeout as sleep } from 'node:timers/promises';
import { performance as clock } from 'node:perf_hooks';

const shown = new Intl.DateTimeFormat('en', { timeStyle: 'medium' });
const parts = new Intl.DateTimeFormat('en', { second: 'numeric', fractionalSecondDigits: 3 });
const temporal = () => (typeof Temporal === 'undefined' ? [] : [
  Temporal.Now.instant(), Temporal.Now.zonedDateTimeISO('UTC'), Temporal.Now.plainDateTimeISO(),
  Temporal.Now.plainDateISO(), Temporal.Now.plainTimeISO('Asia/Tokyo'),
].map(String));
const read = () => [
  Date.now(), new Date().toISOString(), Date(), performance.now(), clock.now(), performance.timeOrigin,
  process.hrtime(), String(process.hrtime.bigint()), process.uptime(),
  shown.format(), parts.format(undefined), parts.formatToParts(), ['a'].map(() => parts.format())[0], temporal(),
];
const out = [read()];
for (let n = 0; n < 3; n++) {
  await sleep(20);
  out.push(read());
}
out.push(await Promise.all([40, 20].map(async (ms) => {
  await sleep(ms);
  const begun = Date.now();
  await new Promise((resolve) => setTimeout(resolve, ms));
  return [begun, Date.now() - begun >= ms - 1, read()];
})));
let reads = 0;
for (const end = Date.now() + 30; Date.now() < end; reads++);
out.push(read(), reads > 0);
console.log(JSON.stringify(out));
