'use strict';
// Time in a replay: each lane's clock as the tape has it. Patches nothing.
//
// Between the tape's jumps a read gives the lane's previous value plus 100 ns, as it did while recording. A lane that
// reads on past its recorded end is told the real time that passes from there on, so that a loop waiting for a deadline
// comes to its end; it is reported once.

const fs = require('fs');
const { agentsLine } = require('./callers.cjs');
const channel = require('./channel.cjs');
const { Course, TICK } = require('./course.cjs');
const { root } = require('./lanes.cjs');
const { monotonic } = require('./livetime.cjs');
const settings = require('./settings.cjs');

// A lane whose end is not on the tape was killed. It had at most so many reads after its last jump.
const UNENDED = 20_000;

let tape = null;
let latest = null; // the latest instant that any lane of this thread has jumped to
let skipped = 0; // ns that timers have leapt

// Read a lane's clock: ns since the origin.
function read(lane) {
  const { tally } = lane;
  const number = tally.reads++;
  if (number === lane.stop || lane.time === null) return turn(lane, number);
  lane.time += TICK;
  return lane.time;
}

// Make a read that does not simply tick: the lane's first, a jump, the one at the end, or one past it.
function turn(lane, number) {
  if (lane.course === null) begin(lane);
  else if (number === lane.end && lane.rest === null) goFree(lane);
  let value;
  if (lane.free) {
    value = Math.max(monotonic() + skipped + lane.offset, lane.time === null ? -Infinity : lane.time + TICK);
    lane.stop = number + 1;
  } else {
    const asked = lane.tally.requests;
    const [place, found] = lane.course.read(number, lane.time, lane.rest, lane.sleeps > 0, asked);
    value = found;
    lane.tally.reads = place >= 0 ? place + 1 : number;
    lane.stop = lane.course.stop;
  }
  lane.rest = null;
  lane.time = value;
  if (latest === null || value > latest) latest = value;
  return value;
}

// Find the lane on the tape, at its first read.
function begin(lane) {
  const { jumps, marks, asked, ends } = load();
  const found = jumps.get(lane.id);
  if (found !== undefined && found[0][0] === 0) {
    const [last] = found[found.length - 1];
    lane.end = Math.max(ends.has(lane.id) ? ends.get(lane.id) : last + UNENDED, last + 1);
    lane.course = new Course(found, marks.get(lane.id) || [], asked.get(lane.id) || [], lane.end, lane.tally.requests);
  } else {
    lane.end = 0;
    lane.course = false;
    goFree(lane);
  }
}

function goFree(lane) {
  const start = lane.time === null ? instant() : lane.time;
  lane.free = true;
  lane.offset = start + TICK - monotonic() - skipped;
  if (!settings.READS) return;
  const text = `lane ${lane.id} reads the clock more often than on the tape (${lane.end} times)`;
  const data = { lane: lane.id, reads: lane.tally.reads - 1, taped: lane.end, grade: grade(lane), where: agentsLine() };
  channel.emit('note', { what: 'clock-past-end', text, data });
}

// Who polls may read more, and so may a flow that had read nothing on the tape, which its end may have cut off.
function grade(lane) {
  const byChance = lane.id.startsWith('?') || (lane.kind === 'a' && lane.end === 0);
  return settings.STRICT && !byChance && !lane.sleeps ? 'violation' : 'soft';
}

// Where a lane that has no time of its own starts from: the latest instant that this thread knows of.
function instant() {
  if (latest !== null) return latest;
  return load().first === null ? 0 : load().first;
}

// The lane has slept: it finds its place on the tape again at its next read.
function rest(lane, ns) {
  if (lane.sleeps++ === 0) lane.awake = lane.tally.reads + (lane.course ? lane.course.strayed : 0);
  lane.rest = (lane.rest || 0) + ns;
  lane.stop = lane.tally.reads;
}

// The lane makes a request: how many reads it has made. Here it finds its place on the tape again.
function ask(lane) {
  lane.rest = null;
  if (!lane.course || lane.free) return lane.tally.reads;
  const [made, place] = lane.course.request(lane.tally.requests, lane.tally.reads, lane.sleeps > 0);
  lane.tally.reads = place;
  lane.stop = lane.course.stop;
  return made;
}

// Timers have leapt so far.
function skip(ns) {
  skipped += ns;
}

// Whether the lane read its clock on the tape.
const knows = (lane) => load().jumps.has(lane) || load().ends.has(lane);

function load() {
  if (tape === null) tape = readTape();
  return tape;
}

// The tape's clocks, as far as they are of this thread's lanes.
function readTape() {
  const found = { jumps: new Map(), marks: new Map(), asked: new Map(), ends: new Map(), first: null };
  const text = settings.READS ? fs.readFileSync(settings.READS, 'utf8') : '';
  const ours = `"${root().id}`;
  for (const line of text.split('\n')) {
    if (!line || (found.first !== null && !line.includes(ours) && !line.includes('"~'))) continue;
    take(found, line);
  }
  found.jumps.forEach((jumps) => jumps.sort(([a], [b]) => a - b));
  found.marks.forEach((marks) => marks.sort((a, b) => a - b));
  return found;
}

function take(found, text) {
  const line = JSON.parse(text);
  if ('ns' in line) {
    // JSON.parse has rounded it: there are more ns since 1970 than a number holds.
    const value = Number(BigInt(/"ns":\s*(-?\d+)/.exec(text)[1]) - settings.ORIGIN);
    add(found.jumps, line.lane, [line.n, value]);
    if (line.slept) add(found.marks, line.lane, line.n);
    if (found.first === null) found.first = value;
  } else if ('asked' in line) {
    found.asked.set(line.lane, line.asked);
  } else if ('reads' in line) {
    found.ends.set(line.lane, line.reads);
  }
}

function add(map, key, value) {
  if (!map.has(key)) map.set(key, []);
  map.get(key).push(value);
}

module.exports = { ask, instant, knows, read, readFine: read, rest, skip };
