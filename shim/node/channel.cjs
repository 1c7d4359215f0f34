'use strict';
// This thread's sidecar file: one JSON line and one write() an event. Knows the file, not what events mean.
//
// Nothing is held back, so a SIGKILL loses nothing, and nothing here throws: a full disk costs events, which are
// counted and told once writing works again, never the agent.

const fs = require('fs');
const path = require('path');
const settings = require('./settings.cjs');

const { writeSync, openSync, closeSync, fstatSync } = fs;
const now = Date.now;
const RETRY_AFTER = 64; // events that are lost after a failed attempt to open, before the next one

let file = null; // { fd, ino, name }
let lost = 0;
let wait = 0;
let torn = false;

// Append one event. `fields` must go into JSON; integers beyond 2^53 are given as BigInt.
function emit(kind, fields) {
  if (!settings.SIDECAR) return;
  try {
    if (!ready()) {
      lost += 1;
      return;
    }
    let line = text({ k: kind, ...fields });
    if (torn) line = '\n' + line;
    if (lost) line += text({ k: 'note', what: 'lost', text: 'events could not be written', data: { events: lost } });
    const bytes = Buffer.from(line, 'utf8');
    torn = writeSync(file.fd, bytes) < bytes.length;
    lost = torn ? 1 : 0;
  } catch {
    lost += 1;
  }
}

function text(fields) {
  const parts = Object.entries(fields).map(([name, value]) => `"${name}":${json(value)}`);
  return `{${parts.join(',')}}\n`;
}

function json(value) {
  if (typeof value === 'bigint') return value.toString();
  return JSON.stringify(value === undefined ? null : value);
}

// Whether the descriptor is open and still ours: an agent may close it, and get the same number again.
function ready() {
  if (file !== null) {
    try {
      if (fstatSync(file.fd).ino === file.ino) return true;
    } catch {
      // closed
    }
    file = { ...file, fd: -1 };
  }
  if (wait > 0) {
    wait -= 1;
    return false;
  }
  try {
    open();
    return true;
  } catch {
    wait = RETRY_AFTER;
    return false;
  }
}

function open() {
  const { threadId } = require('worker_threads');
  const name = file ? file.name : path.join(settings.SIDECAR, `${process.pid}-${threadId}-${now().toString(16)}.jsonl`);
  const fd = openSync(name, 'a', 0o600);
  try {
    file = { fd, ino: fstatSync(fd).ino, name };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

module.exports = { emit };
