'use strict';
// A lane's readings on the tape, and where a replay of the lane stands among them: the Python shim's course.py, in the
// same terms. Pure: no clock, no file, no lane.
//
// Read number n has one value on the tape: that of the last jump up to n, and a tick for each read since. The first
// read after a sleep is a *mark*: a loop that polls may go another number of rounds in a replay, which finds its place
// again at a sleep (the next mark; where there is none, time stands still for a while), where the tape slept on and the
// replay does not, and at each request.

const TICK = 100;
const ROUNDS = 64; // so long time stands still in rounds that the tape does not have
const SLACK = 10_000_000_000;

class Course {
  // `jumps`: [number, value] in order, the first of read 0; `marks`: numbers of reads after a sleep; `asked[n]`: reads
  // before the lane's request n; `end`: reads of the lane in all; `requests` made so far.
  constructor(jumps, marks, asked, end, requests) {
    this.numbers = jumps.map(([n]) => n);
    this.values = jumps.map(([, value]) => value);
    this.marks = marks;
    this.asked = asked;
    this.end = end;
    this.beyond = this.extra = this.slack = this.strayed = this.stop = 0;
    this.start = this.bounds(requests)[0] - 1;
  }

  value(n) {
    const place = Math.max(after(this.numbers, n) - 1, 0);
    return this.values[place] + TICK * (n - this.numbers[place]);
  }

  // Make a read that would be number `n`: its number (-1: the tape has no place for it) and its value. `time`: the
  // lane's last value; `rest`: ns slept since then, null: not at all; `slept`: since the last request.
  read(n, time, rest, slept, requests) {
    const bounds = this.bounds(requests);
    const [number, least] = this.place(n, time, rest, slept, bounds);
    this.strayed += number >= 0 ? n - number : 1;
    const exact = number >= 0 ? this.value(number) : 0;
    const value = Math.max(exact, least);
    if (number < 0) {
      this.stop = n;
      return [number, value];
    }
    this.beyond = 0;
    this.stop = this.nextStop(number, slept || this.extra || this.strayed ? bounds[1] : this.end);
    if (value !== exact) this.stop = number + 1;
    return [number, value];
  }

  // The lane makes its request number `n` after `reads`: how many it has really made, and where it goes on.
  request(n, reads, slept) {
    const made = reads + this.strayed;
    const [low, high] = this.bounds(n);
    const place = n < this.asked.length && (slept || this.marksIn(low, high).length) ? high : reads;
    this.start = place - 1;
    this.stop = place;
    this.beyond = this.extra = this.slack = this.strayed = 0;
    return [made, place];
  }

  place(n, time, rest, slept, [low, high]) {
    const least = time === null ? -Infinity : time + TICK;
    if (!this.marks.length && !this.asked.length) return [n, least + (rest || 0)];
    if (rest !== null) {
      const marks = this.marksIn(Math.max(this.start + 1, low), high);
      if (!marks.length) return this.wait(n, least, rest, [low, high]);
      this.start = marks[0];
      return [marks[0], least];
    }
    if (n !== this.start && low <= n && n < high && this.marksIn(n, n + 1).length) return this.leave(n, least, high, low);
    if (n >= high && (slept || this.strayed) && high < this.end) return this.nowhere(least);
    return [n, this.extra ? least - TICK + 1 : least];
  }

  // Go another round, that the tape does not have.
  wait(n, least, rest, [low, high]) {
    this.extra += 1;
    this.slack += rest;
    if (this.start < low) this.start = Math.max(n - 1, low);
    let value = least - (this.start === high - 1 ? TICK : TICK - 1);
    if (this.extra > ROUNDS || this.slack > SLACK) value += rest;
    return [this.start, value];
  }

  // Leave a loop in a round in which the tape did not: go on after the same reads of the tape's last round.
  leave(n, least, high, low) {
    const marks = this.marksIn(n, high);
    const lengths = [...marks.slice(1), high].map((end, place) => end - marks[place]);
    const own = this.start >= low ? n - this.start : lengths.length > 1 ? lengths[0] : 1;
    for (const [place, length] of lengths.entries()) {
      if (length > own) {
        this.start = marks[place];
        return [this.start + own, least];
      }
    }
    return this.nowhere(least);
  }

  // Ever bigger steps: a loop that does nothing but read must come to its deadline.
  nowhere(least) {
    const value = least + TICK * this.beyond;
    this.beyond += 1;
    return [-1, value];
  }

  nextStop(number, high) {
    const place = after(this.numbers, number);
    return place < this.numbers.length ? Math.min(this.numbers[place], high) : high;
  }

  // The reads between the last request and the next one: the first, and the one after the last.
  bounds(requests) {
    const { asked } = this;
    const low = requests && asked.length ? asked[Math.min(requests, asked.length) - 1] : 0;
    return [low, requests < asked.length ? asked[requests] : this.end];
  }

  marksIn(low, high) {
    return this.marks.slice(before(this.marks, low), before(this.marks, high));
  }
}

// How many of the sorted numbers are less than `n`; and no more than `n`.
function before(sorted, n) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < n) low = middle + 1;
    else high = middle;
  }
  return low;
}

const after = (sorted, n) => before(sorted, n + 1);

module.exports = { Course, TICK };
