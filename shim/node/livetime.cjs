'use strict';
// Time while recording: the real clock, told to the agent so that a replay needs only its jumps. Patches nothing.
//
// A read gives the lane's previous value plus 100 ns. Only where real time has run further ahead than that does the
// read jump to it, and is taped. No value is ever ahead of the real clock, so a lane that reads after another one has
// read jumps to real time, and time never goes back in the thread. Times are ns since the run's origin, as numbers:
// since 1970 they would be more than a number holds exactly.

const channel = require('./channel.cjs');
const { ORIGIN } = require('./settings.cjs');

const TICK = 100; // ns between two reads that did not jump
const NEAR = 100_000; // ns that real time may run ahead before a read jumps
const FAR = 5_000_000; // the same in a thread that jumps all the time: it must not fill the disk
const FINE = 1_000; // ns that real time may run ahead of a fine read
const BURST = 1_000_000_000; // ns of credit for jumps, spent before FAR is in force
const PRICE = 1_000_000; // ns of credit a jump costs: 1000 at once, and 1000 a second in the long run
const STEP = 1_000_000_000; // ns that the wall clock has to be ahead for the machine to have slept
const BELOW_MS = 1_000_000; // ns that Date.now() leaves out

const { performance } = require('perf_hooks');
const { hrtime } = process;
const wallNow = Date.now;

const monotonic = () => {
  const [seconds, rest] = hrtime();
  return seconds * 1e9 + rest;
};
const sinceOrigin = (ms) => Number(BigInt(Math.floor(ms * 1000)) * 1000n - ORIGIN);

let base = sinceOrigin(performance.timeOrigin + performance.now()) - monotonic();
let offset = 0; // ns that a fork has set the clock ahead
let last = null; // the lane that jumped last: only it may tick on
let debt = 0; // monotonic ns at which all jumps so far are paid for

// Read a lane's clock.
const read = (lane) => look(lane, NEAR);

// Read like read(), but let small real differences through: what a stopwatch is for.
const readFine = (lane) => look(lane, FINE);

function look(lane, quantum) {
  const now = monotonic();
  if (lane === last && lane.rest === null) {
    const ahead = now + base - lane.time - TICK;
    if (ahead <= quantum || (ahead <= FAR && debt - now > BURST)) {
      lane.tally.reads += 1;
      lane.time += TICK;
      return lane.time;
    }
  }
  return jump(lane, now);
}

// Give the real time, and tape it.
function jump(lane, now) {
  const wall = sinceOrigin(wallNow()) + offset;
  if (wall - now - base > STEP) base = wall + BELOW_MS - now; // one that was set back is left to catch up
  let value = now + base;
  if (last !== null && value < last.time) value = last.time;
  if (lane.time !== null && value < lane.time + TICK) value = lane.time + TICK;
  const n = lane.tally.reads++;
  lane.time = value;
  tell(lane, n, value, lane.rest !== null);
  lane.rest = null;
  last = lane;
  debt = Math.max(debt, now) + PRICE;
  return value;
}

function tell(lane, n, value, slept) {
  lane.tell();
  const line = { lane: lane.id, n, ns: ORIGIN + BigInt(value) };
  channel.emit('clock', slept ? { ...line, slept: true } : line);
}

// The lane has slept. Its next read is taped and marked: there a replay finds its place again.
function rest(lane) {
  if (lane.sleeps++ === 0) lane.awake = lane.tally.reads;
  lane.rest = 0;
}

// The lane makes a request: how many reads it has made.
function ask(lane) {
  lane.rest = null;
  return lane.tally.reads;
}

// Have the clock stand at this instant now, and go on from there.
function setTo(value) {
  const now = monotonic();
  offset += value - (now + base);
  base = value - now;
}

// Timers leap in replays alone.
function skip() {}

module.exports = { TICK, ask, monotonic, read, readFine, rest, setTo, skip, tell };
