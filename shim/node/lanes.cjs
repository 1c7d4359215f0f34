'use strict';
// Lanes: what each flow of control that reads or asks has of its own, and its id. Knows ids, not which flow runs: that
// is `jobs.cjs`'s.

const fs = require('fs');
const path = require('path');
const { isMainThread, threadId, getEnvironmentData } = require('worker_threads');
const { blake2b } = require('./blake2b.cjs');
const channel = require('./channel.cjs');
const settings = require('./settings.cjs');

const MARK = '/js'; // in the id of each lane of Node: tapes/lanes.py knows by it that no edges are told of them
const HANDED = 'tapeproxy lane'; // environment data by which a worker thread gets its lane
const LONGEST = 120; // the header that carries an id takes 200 characters of it, and nesting makes long ones
const MOST_CLAIMS = 10000;

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

const tallies = new Set();
const registry = new FinalizationRegistry((tally) => {
  close(tally);
  tallies.delete(tally);
});
let rootLane = null;

// The main lane of this thread.
const root = () => rootLane;

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

// Make the main lane of this thread.
function install() {
  const id = begin();
  rootLane = new Lane(id, id.slice(0, id.lastIndexOf('/')), 'js');
}

module.exports = { HANDED, MARK, Lane, closeAll, digest, install, root, shorten };
