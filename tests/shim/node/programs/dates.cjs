// What must hold of Date and its kin as it does without the shim; prints what does not.
const assert = require('node:assert');
const util = require('node:util');
const vm = require('node:vm');
const fs = require('node:fs');
const perfHooks = require('node:perf_hooks');

class Day extends Date {
  weekday() {
    return this.getUTCDay();
  }
}

const CHECKS = {
  instanceof: () => assert(new Date() instanceof Date && new Date(5) instanceof Date),
  constructor: () => assert.strictEqual(new Date().constructor, Date),
  name: () => assert.deepStrictEqual([Date.name, Date.length, Date.now.name, Date.now.length], ['Date', 7, 'now', 0]),
  isDate: () => assert(util.types.isDate(new Date())),
  tag: () => assert.strictEqual(Object.prototype.toString.call(new Date()), '[object Date]'),
  called: () => assert.match(Date(), /^\w{3} \w{3} \d\d \d{4} /),
  calledWithArguments: () => assert.strictEqual(Date(0).slice(0, 15), Date().slice(0, 15)),
  given: () => assert.deepStrictEqual([new Date(7).getTime(), new Date(undefined).getTime()], [7, NaN]),
  parts: () => assert.strictEqual(new Date(2020, 1, 2, 3).getFullYear(), 2020),
  subclass: () => assert(new Day() instanceof Day && new Day() instanceof Date && new Day(0).weekday() === 4),
  reflect: () => assert(Reflect.construct(Date, [], Day) instanceof Day),
  clone: () => assert(structuredClone(new Date(5)).getTime() === 5 && util.types.isDate(structuredClone(new Date()))),
  json: () => assert.strictEqual(JSON.stringify({ at: new Date(0) }), '{"at":"1970-01-01T00:00:00.000Z"}'),
  intl: () => assert.strictEqual(new Intl.DateTimeFormat('en', { timeZone: 'UTC' }).format(new Date(0)), '1/1/1970'),
  intlNow: () => {
    const day = new Intl.DateTimeFormat('en', { timeZone: 'UTC' });
    const { format } = day;
    assert(format === day.format && format !== new Intl.DateTimeFormat('en').format);
    assert.deepStrictEqual([format.name, format.length, day.formatToParts.name, day.formatToParts.length], ['', 1, 'formatToParts', 1]);
    const today = day.format(new Date());
    assert.deepStrictEqual([format(), day.format(undefined), day.formatToParts().map((one) => one.value).join('')], [today, today, today]);
    assert.deepStrictEqual([day.format(null), day.format(5)], ['1/1/1970', '1/1/1970']);
    assert.throws(() => day.format(NaN), RangeError);
    assert.throws(() => Intl.DateTimeFormat.prototype.format, TypeError);
    assert.throws(() => day.formatToParts.call({}), TypeError);
  },
  temporal: () => {
    if (typeof Temporal === 'undefined') return;
    const { Now } = Temporal;
    assert(Now.instant() instanceof Temporal.Instant && Math.abs(Now.instant().epochMilliseconds - Date.now()) < 1000);
    assert.strictEqual(Now.zonedDateTimeISO('Asia/Tokyo').timeZoneId, 'Asia/Tokyo');
    assert.strictEqual(Now.zonedDateTimeISO().timeZoneId, Now.timeZoneId());
    assert.strictEqual(Now.plainDateISO().toString(), Now.plainDateTimeISO().toPlainDate().toString());
    assert(Now.plainTimeISO() instanceof Temporal.PlainTime);
    assert.throws(() => Now.plainDateISO('nowhere'), RangeError);
    assert.deepStrictEqual([Now.instant.name, Now.plainDateISO.length], ['instant', 0]);
  },
  inspect: () => assert.strictEqual(util.inspect(new Date(0)), '1970-01-01T00:00:00.000Z'),
  statics: () => assert.deepStrictEqual([Date.UTC(1970, 0), Date.parse('1970-01-01')], [0, 0]),
  fileTimes: () => assert(fs.statSync(__filename).mtime instanceof Date),
  equal: () => assert.deepStrictEqual(new Date(5), new Date(5)),
  otherRealm: () => assert(util.types.isDate(vm.runInNewContext('new Date()'))),
  fakeTimers: () => {
    const real = globalThis.Date;
    globalThis.Date = class extends real {};
    assert(new Date() instanceof real);
    globalThis.Date = real;
  },
  performance: () => {
    assert(performance instanceof perfHooks.constructor || performance instanceof Performance);
    assert.strictEqual(performance, perfHooks.performance);
    performance.mark('a');
    assert.strictEqual(performance.getEntriesByName('a').length, 1);
    assert(performance.timeOrigin > 0 && performance.toJSON().timeOrigin === performance.timeOrigin);
    assert.strictEqual(typeof performance.eventLoopUtilization().idle, 'number');
  },
  forward: () => {
    const read = [() => Date.now() * 1e6, () => performance.timeOrigin * 1e6 + performance.now() * 1e6];
    for (let last = 0, n = 0; n < 2000; n++) {
      const now = read[n % 2]() + (n % 2 ? 0 : 1e6);
      assert(now >= last - 1e6);
      last = now;
    }
  },
  hrtime: () => {
    const begun = process.hrtime();
    const [seconds, rest] = process.hrtime(begun);
    assert(seconds === 0 && rest > 0 && process.hrtime.bigint() > 0n && process.uptime() > 0);
    assert.throws(() => process.hrtime(5), { code: 'ERR_INVALID_ARG_TYPE' });
  },
  timers: () => {
    assert.deepStrictEqual([setTimeout.name, typeof setTimeout[util.promisify.custom]], ['setTimeout', 'function']);
    const timer = setTimeout(() => {}, 1000);
    assert(timer.hasRef() && timer === timer.refresh() && Number(timer) > 0);
    clearTimeout(timer);
    clearTimeout(Number(setTimeout(() => {}, 1000)));
    assert.throws(() => setTimeout('x'), { code: 'ERR_INVALID_ARG_TYPE' });
  },
};

const failed = {};
for (const [name, check] of Object.entries(CHECKS)) {
  try {
    check();
  } catch (error) {
    failed[name] = String(error.message);
  }
}
console.log(JSON.stringify(failed));
