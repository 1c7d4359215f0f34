'use strict';
// Jobs, and the flows that they make: which lane the code that runs now belongs to, the same one in every run.
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
const { isRunning } = require('./callers.cjs');
const { Lane, digest, root, shorten } = require('./lanes.cjs');

const LONGEST_PATH = 48;
const ONCE = new Set(['PROMISE', 'Timeout', 'Immediate', 'FSREQCALLBACK', 'FSREQPROMISE']);
const PUT_OFF = new Set(['TickObject', 'Microtask']);

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

let rootFlow = null;
let booting = true; // none of the agent's code has run yet: all that Node does is the main lane's
const aside = new Set(); // the ids of promises that count for nothing: see `stepAside`
let asideJob = null;
let lastAside = null;

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
  if (job === undefined) return root();
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
  // One that connects by a proxy connects twice, and it is still for the first time when it does for the second.
  if (job !== lastAside) aside.clear();
  if (mark === null || job !== mark.job || job.quiet) return;
  job.count = mark.count;
  asideJob = lastAside = job;
}

function stepBack() {
  asideJob = null;
}

// Whether what runs now is Node's own doing for a request.
function isQuiet() {
  const job = Tagged.get(executionAsyncResource());
  return job !== undefined && job.quiet;
}

function shorter(text) {
  return text.length <= LONGEST_PATH ? text : `0x${digest(text, 8)}`;
}

function install() {
  rootFlow = new Flow(null, '', root());
  // What a hook throws would end the process.
  const attempt = (id, type, trigger, resource) => {
    try {
      init(id, type, trigger, resource);
    } catch {
      // this job is the main lane's, and so are those that it makes
    }
  };
  createHook({ init: attempt }).enable();
}

module.exports = {
  bookmark,
  current,
  currentFlow,
  inLane,
  install,
  isQuiet,
  quietly,
  reader,
  stepAside,
  stepBack,
};
