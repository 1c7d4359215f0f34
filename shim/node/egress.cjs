'use strict';
// Knows which connections of this process leave the run past the wire: reports each, and in a replay refuses it.
//
// It sees net and dgram, and so all that is built on them. Addons in C are contained by the launcher, where the kernel
// lets it.

const dgram = require('dgram');
const fs = require('fs');
const net = require('net');
const { agentsLine } = require('./callers.cjs');
const channel = require('./channel.cjs');
const { resemble } = require('./likeness.cjs');
const { isWire, normal } = require('./routing.cjs');
const settings = require('./settings.cjs');

const MOST_LINES = 200; // that one process writes: a loop that retries at once must not fill the disk
const LOOPBACK = /^(127\.\d+\.\d+\.\d+|::1|localhost)$/;

const refuses = settings.REPLAY && settings.GUARD !== 'none';
const reported = new Set();
let lines = 0;

// Whether an address is the wire's, this machine's, or one that may be reached in a replay. On the loopback of a replay
// in a namespace is nobody but the run: a port that somebody serves on the loopback outside is past the tape there.
function isWithin(host, port) {
  if (isWire(host, port)) return true;
  if (LOOPBACK.test(normal(host))) {
    const elsewhere = refuses && settings.GUARD === 'namespace' && settings.OUTSIDE.has(Number(port));
    return !elsewhere || isAnybodyAt(Number(port));
  }
  return settings.ALLOW.some((one) => one.port === Number(port) && normal(one.host) === normal(host));
}

// Whether somebody of the run listens at a port of our loopback. https://docs.kernel.org/networking/proc_net_tcp.html
function isAnybodyAt(port) {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return ['/proc/net/tcp', '/proc/net/tcp6'].some((table) => {
    let text = '';
    try {
      text = fs.readFileSync(table, 'latin1');
    } catch {
      return false; // no such protocol here
    }
    return text.split('\n').some((line) => {
      const [, local = '', , state] = line.trim().split(/\s+/);
      return state === '0A' && local.endsWith(wanted);
    });
  });
}

// Report what leaves; the error with which it fails, or null where it is let go.
function judge(what, host, port) {
  if (settings.LED && (what === 'connect' || Number(port) === 53) && !LOOPBACK.test(normal(host))) return null;
  if (isWithin(host, port)) return null;
  const address = net.isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
  tell(what, address);
  if (!refuses) return null;
  const text = `connect ECONNREFUSED ${address}: refused by tapeproxy, for it is past the tape`;
  return Object.assign(new Error(text), { code: 'ECONNREFUSED', errno: -111, syscall: what, address: host, port });
}

function tell(what, address, where = agentsLine()) {
  const key = `${what} ${address} ${where}`;
  if (!refuses && reported.has(key)) return;
  reported.add(key);
  if (lines >= MOST_LINES) return;
  channel.emit(refuses ? 'violation' : 'bypass', { what, address, where });
  lines += 1;
  if (lines < MOST_LINES) return;
  const text = `after ${MOST_LINES} connections of one process, further ones are not listed`;
  channel.emit('note', { what: 'egress', text, data: null });
}

function patchNet() {
  const { prototype } = net.Socket;
  const { connect } = prototype;
  prototype.connect = resemble(function connectJudged(...args) {
    const options = target(args);
    const host = options && (options.host || 'localhost');
    const error = options && attempt(() => judge('connect', host, options.port));
    if (!error) {
      if (refuses && options && LOOPBACK.test(normal(host)) && !isWire(host, options.port)) tellRefusals(this, host, options.port);
      return connect.apply(this, args);
    }
    this.connecting = true;
    process.nextTick(() => this.destroy(error));
    return this;
  }, connect);
}

// Where the kernel lets a replay reach the wire alone (Landlock), it refuses by an error that nobody else gives.
function tellRefusals(socket, host, port) {
  const where = attempt(agentsLine);
  socket.prependOnceListener('error', (error) => {
    if (error.code !== 'EACCES' && error.code !== 'EPERM') return;
    attempt(() => tell('connect', net.isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`, where));
  });
}

// What is connected to; null for what is no host and port.
function target(args) {
  // net's own calls hand over their arguments in an array.
  const [first, second] = Array.isArray(args[0]) ? args[0] : args;
  if (first !== null && typeof first === 'object') return first.path || !first.port ? null : first;
  const port = Number(first);
  return Number.isInteger(port) && first !== '' ? { port, host: typeof second === 'string' ? second : undefined } : null;
}

function patchDatagrams() {
  const { prototype } = dgram.Socket;
  const { connect, send } = prototype;
  prototype.connect = resemble(function connectJudged(port, host, ...rest) {
    const error = attempt(() => judge('connect', typeof host === 'string' ? host : 'localhost', port));
    if (error) throw error;
    return connect.call(this, port, host, ...rest);
  }, connect);
  prototype.send = resemble(function sendJudged(...args) {
    // send(msg[, offset, length][, port][, address][, callback]): the address is the one text behind the message.
    const at = args.findIndex((one, place) => place > 0 && typeof one === 'string');
    const error = at > 0 ? attempt(() => judge('send', args[at], args[at - 1])) : null;
    if (!error) return send.apply(this, args);
    const callback = args.find((one) => typeof one === 'function');
    process.nextTick(() => (callback ? callback.call(this, error) : this.emit('error', error)));
    return undefined;
  }, send);
}

// What goes wrong in a check harms no agent that is being recorded; a replay it fails.
function attempt(fn) {
  try {
    return fn();
  } catch (error) {
    if (refuses) return error;
    return null;
  }
}

function install() {
  patchNet();
  patchDatagrams();
}

module.exports = { install };
