'use strict';
// Timers. Recording, they take their time; in a replay time leaps to the next one when nothing else is at work.
//
// In both, the lane that set a timer is told of it when it goes off: who polls may go another number of rounds in a
// replay, and the first read after a sleep is where the lane's clock finds its place on the tape again. A timer that is
// cancelled, as most timeouts are, is none of that. Node's own timers, and those that keep no process alive, are left
// alone.

const timers = require('timers');
const promises = require('timers/promises');
const { promisify } = require('util');
const { currentFlow, isQuiet, quietly } = require('./jobs.cjs');
const clock = require('./clock.cjs');
const { monotonic } = require('./livetime.cjs');
const { resemble } = require('./likeness.cjs');
const { areConnecting } = require('./routing.cjs');
const sessions = require('./sessions.cjs');
const settings = require('./settings.cjs');

const { setTimeout: setReal, setInterval: setRealInterval } = timers;
const LONGEST = 2 ** 31 - 1; // ms; longer ones go off at once
const NS_PER_MS = 1e6;
const LOOK = 1; // ms between two looks at what else is at work
const LONGEST_LOOK = 20;
const CALM = 2; // looks in a row that found nothing
const LEAST = 2; // ms that are worth a leap

// What may go on for as long as the process lives, and is at work only when something comes in.
const PASSIVE = new Set(['Timeout', 'Immediate', 'TCPServerWrap', 'PipeServerWrap', 'SignalWrap', 'UDPWrap']);
const SOCKET = 'TCPSocketWrap';
const STREAMS = new Set(['PipeWrap', 'TTYWrap']);

const pending = new Map(); // of a replay, timers that have not gone off: when they are due, on the line below
let skipped = 0; // ms that were leapt over
let looking = false;
let calm = 0;
let pause = LOOK;

// This thread's place on the line on which all its waits lie: real time, and what was leapt over. In ms.
const place = () => monotonic() / NS_PER_MS + skipped;

function patch(real, repeats) {
  return function set(callback, delay, ...args) {
    if (typeof callback !== 'function' || isQuiet()) return real.call(this, callback, delay, ...args);
    const flow = currentFlow();
    function goOff(...given) {
      if (!repeats) pending.delete(timer);
      else if (pending.has(timer)) pending.set(timer, place() + ms);
      if (ms > 1 && flow.lane !== null && timer.hasRef()) clock.rest(flow.lane, ms * NS_PER_MS);
      return callback.apply(this, given);
    }
    const timer = real.call(this, goOff, delay, ...args); // judges the delay
    const ms = delay >= 1 && delay <= LONGEST ? Math.trunc(delay) : 1;
    if (settings.REPLAY && ms >= LEAST) watch(timer, ms);
    return timer;
  };
}

function watch(timer, ms) {
  pending.set(timer, place() + ms);
  calm = 0;
  pause = LOOK;
  if (!looking) {
    looking = true;
    quietly(again);
  }
}

function again() {
  setReal(look, pause).unref();
}

// Look whether everything waits for the next timer, and if so have it go off.
function look() {
  for (const timer of pending.keys()) if (timer._destroyed) pending.delete(timer);
  if (pending.size === 0) {
    looking = false;
    return;
  }
  calm = isAtWork() ? 0 : calm + 1;
  if (calm > 0) pause = LOOK;
  else pause = Math.min(pause * 1.5, LONGEST_LOOK);
  if (calm >= CALM) {
    calm = 0;
    leap();
  }
  again();
}

function isAtWork() {
  if (areConnecting() || sessions.areAtWork()) return true;
  const busy = process.getActiveResourcesInfo().filter((name) => !PASSIVE.has(name));
  if (busy.length === 0) return false;
  dropResting(busy);
  if (!busy.every((name) => STREAMS.has(name))) return true;
  // Pipes and terminals: those that only take what the process prints are at rest.
  const outputs = process._getActiveHandles().filter((handle) => handle.fd === 1 || handle.fd === 2);
  return outputs.some((handle) => handle.writableLength > 0) || busy.length > outputs.length;
}

// Of the sockets at work, those are not on which a session of http2 waits for nothing.
function dropResting(busy) {
  const resting = busy.includes(SOCKET) ? sessions.restingSockets() : null;
  if (!resting || resting.size === 0) return;
  for (const handle of process._getActiveHandles()) {
    if (resting.has(handle)) busy.splice(busy.indexOf(SOCKET), 1);
  }
}

function leap() {
  let [next, due] = [null, Infinity];
  for (const [timer, at] of pending) {
    if (at < due && timer.hasRef()) [next, due] = [timer, at];
  }
  const left = due - place();
  if (next === null || left < LEAST) return;
  skipped += left;
  clock.skip(left * NS_PER_MS);
  // The timer goes off in its own context, and knows its own delay again if it repeats.
  const { _idleTimeout } = next;
  next._idleTimeout = 1;
  next.refresh();
  next._idleTimeout = _idleTimeout;
}

function patchPromises(setTimeout_) {
  const { setTimeout: original } = promises;
  function sleep(delay, value, options = {}) {
    const isPlain = options && typeof options === 'object' && options.signal === undefined && options.ref !== false;
    if (!isPlain || (delay !== undefined && typeof delay !== 'number')) return original(delay, value, options);
    return new Promise((resolve) => {
      setTimeout_(resolve, delay, value);
    });
  }
  resemble(sleep, original);
  promises.setTimeout = sleep;
  promises.scheduler.wait = resemble((delay, options) => sleep(delay, undefined, options), promises.scheduler.wait);
  Object.defineProperty(setTimeout_, promisify.custom, { get: () => sleep, enumerable: true });
}

function install() {
  const made = patch(setReal, false);
  const interval = resemble(patch(setRealInterval, true), setRealInterval);
  patchPromises(made);
  resemble(made, setReal);
  for (const owner of [globalThis, timers]) {
    owner.setTimeout = made;
    owner.setInterval = interval;
  }
}

module.exports = { install };
