'use strict';
// Date, Temporal.Now, what Intl formats by itself, performance, process.hrtime and process.uptime, on the lanes' clocks.
// Knows what each counts from, not what time it is.
//
// Date is a Proxy of the real one, whose prototype it shares: what is a Date to one is a Date to the other. Node's own
// code keeps the originals: timers and timeouts run on real time. `performance` is a Proxy, too, and the real one is
// what fetch's own bookkeeping goes on to read.

const perfHooks = require('perf_hooks');
const { current, reader } = require('./jobs.cjs');
const { resemble } = require('./likeness.cjs');
const settings = require('./settings.cjs');

const clock = settings.FORK
  ? require('./forkedtime.cjs')
  : settings.REPLAY
    ? require('./tapedtime.cjs')
    : require('./livetime.cjs');

const NS_PER_MS = 1_000_000;
const ORIGIN_MS = Number(settings.ORIGIN / 1_000_000n);
const ORIGIN_REST = Number(settings.ORIGIN % 1_000_000n);
const realDate = Date;
const realNow = Date.now;

// What Node does for itself, in a request of the agent's, is none of its reads.
function milliseconds() {
  const lane = reader();
  return lane === null ? realNow() : ORIGIN_MS + Math.floor((clock.read(lane) + ORIGIN_REST) / NS_PER_MS);
}

function patchDate() {
  const date = new Proxy(realDate, {
    apply: () => new realDate(milliseconds()).toString(),
    construct(target, given, made) {
      return Reflect.construct(target, given.length ? given : [milliseconds()], made === date ? target : made);
    },
  });
  realDate.now = resemble({ now: () => milliseconds() }.now, realNow);
  Object.defineProperty(realDate.prototype, 'constructor', { value: date, writable: true, configurable: true });
  Object.defineProperty(globalThis, 'Date', { value: date, writable: true, configurable: true });
}

// Formatters take the present time where they are given none, and read it in C++.
function patchIntl() {
  const prototype = Intl.DateTimeFormat.prototype;
  const { get } = Object.getOwnPropertyDescriptor(prototype, 'format');
  const { formatToParts } = prototype;
  const formats = new WeakMap(); // a formatter has one, whoever asks
  const accessor = {
    get format() {
      const real = get.call(this);
      if (!formats.has(real)) {
        const format = { '': (date) => real(date === undefined ? milliseconds() : date) }[''];
        formats.set(real, resemble(format, real));
      }
      return formats.get(real);
    },
  };
  const parts = {
    formatToParts(date) {
      return formatToParts.call(this, date === undefined ? milliseconds() : date);
    },
  };
  const getter = Object.getOwnPropertyDescriptor(accessor, 'format').get;
  Object.defineProperty(prototype, 'format', { get: resemble(getter, get), configurable: true });
  Object.defineProperty(prototype, 'formatToParts', {
    value: resemble(parts.formatToParts, formatToParts),
    writable: true,
    configurable: true,
  });
}

// From Node 26 on, and behind a flag before.
function patchTemporal() {
  if (typeof Temporal === 'undefined') return;
  const { Now, Instant } = Temporal;
  const { instant: realInstant, timeZoneId } = Now;
  const instant = () => {
    const lane = reader();
    return lane === null ? realInstant() : Instant.fromEpochNanoseconds(settings.ORIGIN + BigInt(clock.read(lane)));
  };
  const zoned = (zone = timeZoneId()) => instant().toZonedDateTimeISO(zone);
  const own = {
    instant,
    zonedDateTimeISO: zoned,
    plainDateTimeISO: (zone) => zoned(zone).toPlainDateTime(),
    plainDateISO: (zone) => zoned(zone).toPlainDate(),
    plainTimeISO: (zone) => zoned(zone).toPlainTime(),
  };
  for (const name of Object.keys(own)) {
    if (name in Now) Now[name] = resemble(own[name], Now[name]);
  }
}

function patchPerformance() {
  const real = perfHooks.performance;
  const prototype = Object.getPrototypeOf(real);
  const now = () => {
    const lane = reader();
    return lane === null ? real.now() : clock.readFine(lane) / NS_PER_MS;
  };
  const mark = (name, options) => real.mark(name, { startTime: now(), ...options });
  const timeOrigin = ORIGIN_MS + ORIGIN_REST / NS_PER_MS;
  const own = {
    now: resemble(now, prototype.now),
    mark: resemble(mark, prototype.mark),
    timeOrigin,
    toJSON: () => ({ ...real.toJSON(), timeOrigin }),
  };
  const standIn = new Proxy(real, {
    get(target, key) {
      if (Object.hasOwn(own, key)) return own[key];
      const found = Reflect.get(target, key, target);
      if (typeof found !== 'function' || key === 'constructor') return found;
      own[key] = found.bind(target); // these look whether they are called on the real one
      return own[key];
    },
  });
  Object.defineProperty(perfHooks, 'performance', { value: standIn, writable: true, enumerable: true });
  Object.defineProperty(globalThis, 'performance', {
    value: standIn,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

function patchProcess() {
  const { hrtime, uptime } = process;
  const pair = (past) => {
    if (past !== undefined) hrtime(past); // judges its argument
    const ns = clock.readFine(current());
    const found = [Math.floor(ns / 1e9), ns % 1e9];
    if (past === undefined) return found;
    const [seconds, rest] = [found[0] - past[0], found[1] - past[1]];
    return rest < 0 ? [seconds - 1, rest + 1e9] : [seconds, rest];
  };
  const bigint = () => BigInt(clock.readFine(current()));
  const made = resemble(pair, hrtime);
  made.bigint = resemble(bigint, hrtime.bigint);
  process.hrtime = made;
  process.uptime = resemble(() => clock.readFine(current()) / 1e9, uptime);
}

function install() {
  patchDate();
  patchIntl();
  patchTemporal();
  patchPerformance();
  patchProcess();
}

module.exports = { ask: clock.ask, install, rest: clock.rest, skip: clock.skip };
