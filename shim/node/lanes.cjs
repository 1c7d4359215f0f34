'use strict';
// Lanes: one for each flow of control that may run beside others, with an id that is the same in every run.
//
// JavaScript runs one job at a time: a script, or what goes on when a promise settles or a timer is due. A job makes
// others: each `await`, timer, callback. What a job does depends on nothing but what it was given, so its place in the
// tree of jobs - child number `index` of its parent - is the same in every run, in whatever order jobs come to run.
// Of a job's children the last one goes on in its parent's *flow*: nobody else does, so a flow is sequential. Every
// other one begins a flow of its own. A flow that reads a clock or makes a request becomes a lane, with the id
// `PARENT/aREADS.INDEX`: what its parent lane had read and asked when the job was made, and the child's number.
// Flows below a flow that is no lane add `-INDEX`. Equal ids, which only jobs of one lane between the same two reads
// can have, are told apart by `+N` in the order in which they become lanes.
//
// Jobs that Node itself makes for a request of the agent are *quiet*: how many there are depends on which connections
// are open. They belong to the flow that made the request. What a job puts off with process.nextTick or queueMicrotask
// is done in its flow, and its children have numbers of their own, `NqM`: streams do so, as timing wants it. So have
// timers, `sN`, which libraries share between their requests.

const { createHook, executionAsyncResource, AsyncResource } = require('async_hooks');
const fs = require('fs');
const path = require('path');
const { isMainThread, threadId, getEnvironmentData } = require('worker_threads');
const { blake2b } = require('./blake2b.cjs');
const { isRunning } = require('./callers.cjs');
const channel = require('./channel.cjs');
const settings = require('./settings.cjs');

const MARK = '/js'; // in the id of each lane of Node: tapes/lanes.py knows by it that no edges are told of them
const HANDED = 'tapeproxy lane'; // environment data by which a worker thread gets its lane
const LONGEST = 120; // the header that carries an id takes 200 characters of it, and nesting makes long ones
const LONGEST_PATH = 48;
const MOST_CLAIMS = 10000;
const ONCE = new Set(['PROMISE', 'Timeout', 'Immediate', 'FSREQCALLBACK', 'FSREQPROMISE']);
const PUT_OFF = new Set(['TickObject', 'Microtask']);

class Lane {
  constructor(id, parent, kind) {
    this.id = id;
    this.parent = parent;
    this.kind = kind;
    this.tally = { id, reads: 0, ahead: 0, requests: 0, written: -1 }; // what the end line needs, and outlives the lane
    this.time = null; // clock: ns since the origin
    this.rest = null; // clock: ns slept since the last read; null: not at all
    this.sleeps = 0; // since the last request
    this.awake = 0; // reads before the first of those
    this.course = null; // clock, replay
    this.stop = -1; // clock, replay: number of the next read that does not simply tick
    this.end = null;
    this.free = false; // clock, replay: past the end of the tape
    this.live = false; // clock, fork: it has left the tape
    this.cut = null;
    this.key = null; // randomness
    this.blocks = 0;
    this.pool = null;
    this.drawnTo = 0; // bytes of the pool
    this.floats = null;
    this.drawn = 0; // of the floats
    this.kids = null; // children by kind, or flows by path: how many
    this.told = false;
    tallies.add(this.tally);
    registry.register(this, this.tally);
  }

  // The number of the next child of this kind or path.
  next(kind) {
    if (this.kids === null) this.kids = new Map();
    const number = this.kids.get(kind) || 0;
    this.kids.set(kind, number + 1);
    return number;
  }

  child(kind) {
    return new Lane(shorten(`${this.id}/${kind}${this.next(kind)}`), this.id, kind);
  }

  // Write the lane line, once. Most flows read nothing and ask nothing: those never need one.
  tell() {
    if (this.told) return;
    this.told = true;
    channel.emit('lane', { id: this.id, parent: this.parent, kind: this.kind, name: '' });
  }
}

// A flow: its lane, or what one would be called: the lane above it and the path from there.
class Flow {
  constructor(base, path, lane = null) {
    this.base = base;
    this.path = path;
    this.lane = lane;
  }

  become() {
    if (this.lane === null) {
      const again = this.base.next(`a${this.path}`);
      const id = `${this.base.id}/a${this.path}${again ? `+${again}` : ''}`;
      this.lane = new Lane(shorten(id), this.base.id, 'a');
    }
    return this.lane;
  }
}

// A job. `from` is the one that made it until its `flow` is known; `at` is -1 where that one's flow was no lane yet.
class Job {
  constructor(from, flow, at, index, once) {
    this.from = from;
    this.flow = flow;
    this.at = at;
    this.index = index;
    this.once = once; // runs once: then its last child goes on in its flow
    this.count = 0; // promises
    this.others = 0; // timers and the like
    this.putOff = 0; // how often it has put something off
    this.label = ''; // of a job that was put off: in front of its children's numbers
    this.last = null;
    this.quiet = false;
    this.early = false; // made by Node before any of the agent's lines ran
  }

  settle() {
    const { from } = this;
    if (from !== null) {
      this.from = null;
      const above = from.flow;
      if (from.once && from.last === this) {
        from.once = false;
        this.flow = above;
      } else if (this.at >= 0) {
        this.flow = new Flow(above.lane, `${this.at}.${this.index}`);
      } else {
        this.flow = new Flow(above.base, shorter(`${above.path}-${this.index}`));
      }
    }
    return this.flow;
  }
}

class Given {
  constructor(resource) {
    return resource;
  }
}

// The job of an async resource, in a private field that the agent does not see.
class Tagged extends Given {
  #job;

  static set(resource, job) {
    if (#job in resource) resource.#job = job;
    else new Tagged(resource).#job = job;
  }

  static get(resource) {
    return #job in resource ? resource.#job : undefined;
  }
}

const tallies = new Set();
const registry = new FinalizationRegistry((tally) => {
  close(tally);
  tallies.delete(tally);
});
let rootLane = null;
let rootFlow = null;
const aside = new Set(); // the ids of those promises
let asideJob = null;
let booting = true; // none of the agent's code has run yet: all that Node does is the main lane's

const root = () => rootLane;

// The flow of the code that runs now; its `lane` is null as long as it is none.
function currentFlow() {
  const job = Tagged.get(executionAsyncResource());
  if (job === undefined) return rootFlow;
  return job.from === null ? job.flow : job.settle();
}

// The lane of the code that runs now.
const current = () => currentFlow().become();

// The same; null where Node itself is at work for a request.
function reader() {
  const job = Tagged.get(executionAsyncResource());
  if (job === undefined) return rootLane;
  if (job.quiet) return null;
  const flow = job.from === null ? job.flow : job.settle();
  return flow.lane === null ? flow.become() : flow.lane;
}

function firstJob() {
  const job = new Job(null, rootFlow, 0, 0, true);
  job.early = true;
  return job;
}

function init(id, type, trigger, resource) {
  const running = executionAsyncResource();
  let job = Tagged.get(running);
  if (booting && (booting = !isRunning())) {
    Tagged.set(resource, firstJob());
    return;
  }
  if (job === undefined) {
    job = firstJob();
    Tagged.set(running, job);
  }
  // What loads modules goes on around the agent's first lines.
  if (job.early && !isRunning()) {
    Tagged.set(resource, job);
    return;
  }
  if (job.quiet) {
    Tagged.set(resource, job);
    return;
  }
  const flow = job.from === null ? job.flow : job.settle();
  if (PUT_OFF.has(type)) {
    const later = new Job(null, flow, 0, 0, false);
    later.label = `${job.label}${job.putOff++}q`;
    Tagged.set(resource, later);
    return;
  }
  if (type === 'PROMISE' && (job === asideJob || aside.has(trigger))) {
    if (job === asideJob) aside.add(id);
    Tagged.set(resource, quietJob(flow));
    return;
  }
  if (!ONCE.has(type)) {
    Tagged.set(resource, new Job(null, flow, 0, 0, false));
    return;
  }
  const { lane } = flow;
  const at = lane === null ? -1 : lane.tally.reads + lane.tally.requests;
  const number = type === 'PROMISE' ? job.count++ : `s${job.others++}`;
  const made = new Job(job, null, at, job.label === '' ? number : job.label + number, true);
  job.last = made;
  Tagged.set(resource, made);
}

// Call `fn` so that what it makes belongs to the current flow and is not counted.
function quietly(fn) {
  const running = Tagged.get(executionAsyncResource());
  if (running !== undefined && running.quiet) return fn();
  const flow = running === undefined ? rootFlow : running.settle();
  return within(flow, true, fn);
}

// Call `fn` in the flow of a lane: of a callback that may run beside what the current one does.
function inLane(lane, fn) {
  return within(new Flow(null, '', lane), false, fn);
}

function within(flow, quiet, fn) {
  const scope = new AsyncResource('TAPEPROXY');
  Tagged.set(scope, quiet ? quietJob(flow) : new Job(null, flow, 0, 0, false));
  return scope.runInAsyncScope(fn);
}

function quietJob(flow) {
  const job = new Job(null, flow, 0, 0, false);
  job.quiet = true;
  return job;
}

// Where the running job stands, for `stepAside`.
function bookmark() {
  const job = Tagged.get(executionAsyncResource());
  return job === undefined ? null : { job, count: job.count };
}

// A library connects, because no connection is free, within a job of the agent's. What it has made since the bookmark
// counts for nothing, nor do the promises up to `stepBack`, and who waits for those.
function stepAside(mark) {
  const job = Tagged.get(executionAsyncResource());
  aside.clear();
  if (mark === null || job !== mark.job || job.quiet) return;
  job.count = mark.count;
  asideJob = job;
}

function stepBack() {
  asideJob = null;
}

// Whether what runs now is Node's own doing for a request.
function isQuiet() {
  const job = Tagged.get(executionAsyncResource());
  return job !== undefined && job.quiet;
}

function close(tally) {
  if ((tally.reads || tally.requests) && tally.written !== tally.reads) {
    tally.written = tally.reads;
    channel.emit('end', { lane: tally.id, reads: tally.reads + tally.ahead });
  }
}

// Write the end of every lane: the thread is about to go.
function closeAll() {
  tallies.forEach(close);
}

function shorten(id) {
  return id.length <= LONGEST ? id : `~${digest(id, 16)}`;
}

function shorter(text) {
  return text.length <= LONGEST_PATH ? text : `0x${digest(text, 8)}`;
}

function digest(text, size) {
  return blake2b(Buffer.from(text), Buffer.alloc(0), size).toString('hex');
}

// How many processes took this lane before us; null where it can't be told. A shell hands its whole environment to
// every program it runs, so each leaves an empty file next to the sidecar files, and the first has the lane.
function claim(id) {
  if (!settings.SIDECAR) return 0;
  const stem = path.join(settings.SIDECAR, `lane-${digest(id, 8)}`);
  for (let number = 0; number < MOST_CLAIMS; number++) {
    try {
      fs.closeSync(fs.openSync(`${stem}.${number}`, 'wx', 0o600));
      return number;
    } catch (error) {
      if (error.code !== 'EEXIST') break;
    }
  }
  return null;
}

function begin() {
  if (!isMainThread) return getEnvironmentData(HANDED) || `?p${process.pid}/t${threadId}${MARK}`;
  const given = settings.LANE || `?p${process.pid}`;
  const number = claim(given);
  if (number === null) return `?p${process.pid}/${Date.now().toString(16)}${MARK}`;
  return shorten(number === 0 ? given + MARK : `${given}/x${number}${MARK}`);
}

function install() {
  const id = begin();
  rootLane = new Lane(id, id.slice(0, id.lastIndexOf('/')), 'js');
  rootFlow = new Flow(null, '', rootLane);
  createHook({ init }).enable();
}

module.exports = {
  HANDED,
  MARK,
  bookmark,
  closeAll,
  current,
  currentFlow,
  inLane,
  install,
  isQuiet,
  quietly,
  reader,
  root,
  stepAside,
  stepBack,
};
