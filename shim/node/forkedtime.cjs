'use strict';
// Time in a fork: a lane's clock is the tape's up to its cut, then real; all of it is taped anew. Patches nothing.
//
// The launcher says after how many requests and reads each lane of the causal future leaves the tape. A lane that is
// not on the tape goes by the nearest one above it that is.

const fs = require('fs');
const live = require('./livetime.cjs');
const settings = require('./settings.cjs');
const taped = require('./tapedtime.cjs');

const NOWHERE = { requests: Infinity, reads: 0 };

let cuts = null;
let jump = null; // what the clock jumps to, in place of the real time
let isSet = false;

const read = (lane) => readAs(lane, live.read);
const readFine = (lane) => readAs(lane, live.readFine);

function readAs(lane, readLive) {
  if (isLive(lane)) return readLive(lane);
  const { tally } = lane;
  const [before, made, slept] = [lane.time, tally.reads + tally.ahead, lane.rest !== null];
  const value = taped.read(lane);
  tally.ahead = made + 1 - tally.reads;
  if (slept || before === null || value !== before + live.TICK) live.tell(lane, made, value, slept);
  return value;
}

function rest(lane, ns) {
  if (isLive(lane)) live.rest(lane);
  else taped.rest(lane, ns);
}

function ask(lane) {
  if (isLive(lane)) return live.ask(lane);
  const { tally } = lane;
  const made = tally.reads + tally.ahead;
  taped.ask(lane);
  tally.ahead = made - tally.reads;
  return made;
}

function isLive(lane) {
  if (lane.live) return true;
  if (lane.cut === null) lane.cut = find(lane.id);
  if (lane.tally.requests < lane.cut.requests || lane.tally.reads < lane.cut.reads) return false;
  goLive(lane);
  return true;
}

function goLive(lane) {
  lane.live = true;
  lane.tally.reads += lane.tally.ahead;
  lane.tally.ahead = 0;
  if (lane.rest !== null) lane.rest = 0;
  if (jump === null || isSet) return;
  isSet = true;
  const here = lane.time === null ? taped.instant() : lane.time;
  const ns = BigInt(jump.clock);
  live.setTo(jump.absolute ? Number(ns - settings.ORIGIN) : here + Number(ns));
}

function find(id) {
  const known = load();
  for (let name = id; name; name = name.slice(0, Math.max(name.lastIndexOf('/'), 0))) {
    if (known.has(name)) return name === id ? known.get(name) : { requests: 0, reads: 0 };
    if (taped.knows(name)) return NOWHERE;
  }
  return NOWHERE;
}

function load() {
  if (cuts !== null) return cuts;
  cuts = new Map();
  const text = settings.FORK_FILE ? fs.readFileSync(settings.FORK_FILE, 'utf8') : '';
  for (const line of text.split('\n').filter(Boolean)) {
    const found = JSON.parse(line);
    if ('clock' in found) jump = { ...found, clock: /"clock":\s*(-?\d+)/.exec(line)[1] };
    else cuts.set(found.lane, found);
  }
  return cuts;
}

module.exports = { ask, read, readFine, rest, skip: taped.skip };
