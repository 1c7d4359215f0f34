'use strict';
// Leads what Node's HTTP clients connect to by way of the wire: http, https, and undici, which fetch is.
//
// Only connections that an HTTP client makes are led: the agents of http and https say so by calling createConnection,
// undici by its diagnostics channel. Each gets a socket that has spoken to the wire - CONNECT - before it says that it
// is connected; TLS, where there is any, goes on top of it. Hosts are looked up by the wire. Other connections (a
// database's) are left as they are. Where Node itself uses the wire (NODE_USE_ENV_PROXY), or the agent's client does,
// the connection goes to the wire already and is only marked.

const fs = require('fs');
const net = require('net');
const tls = require('tls');
const http = require('http');
const https = require('https');
const diagnostics = require('diagnostics_channel');
const { bookmark, quietly, stepAside, stepBack } = require('./jobs.cjs');
const { resemble } = require('./likeness.cjs');
const settings = require('./settings.cjs');

const LOOPBACK = new Set(['127.0.0.1', 'localhost', '::1']);
const MOST_HEAD = 65536; // bytes of the wire's answer to CONNECT
const END = '\r\n\r\n';

const { connect: connectNet } = net;
const { connect: connectTls } = tls;
const led = new WeakSet(); // the sockets that lead to the wire
let asked = null; // true: an HTTP client is about to connect
let certificate; // our authority's

const normal = (host) => (LOOPBACK.has(host) ? '127.0.0.1' : String(host).replace(/^\[|\]$/g, '').toLowerCase());
const isWire = (host, port) =>
  settings.PROXY !== null && Number(port) === settings.PROXY.port && normal(host) === normal(settings.PROXY.host);

// Whether a socket leads to the wire.
const isLed = (socket) => led.has(socket);

// A socket to HOST:PORT by way of the wire. It is connected once the wire says so.
function tunnel(host, port, options) {
  const socket = new net.Socket({ allowHalfOpen: options.allowHalfOpen, signal: options.signal });
  led.add(socket);
  const own = { emit: socket.emit, push: socket.push };
  let head = '';
  const opened = () => {
    socket.connecting = false;
    delete socket.emit;
    delete socket.push;
    own.emit.call(socket, 'connect');
    own.emit.call(socket, 'ready');
  };
  // Until then nobody is told, and what is written waits.
  socket.emit = function emit(event, ...args) {
    if (event === 'ready') return true;
    if (event !== 'connect') return own.emit.call(this, event, ...args);
    const name = net.isIPv6(host) ? `[${host}]` : host;
    socket._write(`CONNECT ${name}:${port} HTTP/1.1\r\nHost: ${name}:${port}${END}`, 'latin1', () => {});
    socket.connecting = true;
    socket._handle.reading = true; // as read() would have it, which waits while it connects
    socket._handle.readStart();
    return true;
  };
  socket.push = function push(chunk, ...args) {
    if (chunk === null) {
      socket.destroy(refused(host, port, 'the wire closed the connection'));
      return false;
    }
    head += chunk.toString('latin1');
    const end = head.indexOf(END);
    if (end < 0) {
      if (head.length > MOST_HEAD) socket.destroy(refused(host, port, 'the wire gave no answer'));
      return true;
    }
    if (!/^HTTP\/1\.[01] 2/.test(head)) {
      socket.destroy(refused(host, port, head.slice(0, head.indexOf('\r\n'))));
      return false;
    }
    const rest = Buffer.from(head.slice(end + END.length), 'latin1');
    opened();
    return rest.length ? own.push.call(socket, rest, ...args) : true;
  };
  return socket;
}

function begin(socket) {
  quietly(() => socket.connect({ host: settings.PROXY.host, port: settings.PROXY.port, noDelay: true }));
}

function refused(host, port, why) {
  const error = new Error(`connect ECONNREFUSED ${host}:${port} (${why})`);
  return Object.assign(error, { code: 'ECONNREFUSED', errno: -111, syscall: 'connect', address: host, port });
}

function plain(options) {
  const socket = tunnel(options.host || 'localhost', options.port, options);
  if (options.timeout) socket.setTimeout(options.timeout);
  begin(socket);
  return socket;
}

function secure(options, callback) {
  const under = tunnel(options.host || 'localhost', options.port, {});
  const extra = { socket: under };
  if (options.ca) extra.ca = [].concat(options.ca, ours());
  // With a socket of somebody else's, Node has no host to compare the certificate's with.
  if (options.servername === undefined && !net.isIP(options.host || '')) extra.servername = options.host || 'localhost';
  const socket = connectTls.call(tls, { ...options, ...extra }, callback);
  led.add(socket);
  // What lies on a stream of JavaScript's has no handle of its own to hold or free the process.
  for (const name of ['ref', 'unref']) {
    const original = socket[name];
    socket[name] = function both() {
      under[name]();
      return original.call(this);
    };
  }
  begin(under);
  return socket;
}

function ours() {
  if (certificate === undefined) certificate = fs.readFileSync(settings.CERTIFICATE, 'utf8');
  return certificate;
}

// Whether these options mean a host that is reached by way of the wire.
function leads({ host, port, path, socketPath, socket }) {
  return settings.PROXY !== null && !path && !socketPath && !socket && port && !isWire(host || 'localhost', port);
}

// The options of net.connect and tls.connect in their many forms; null for a form that no HTTP client uses.
function read(args) {
  const [first, second, third] = args;
  if (first !== null && typeof first === 'object') return { ...first };
  if (typeof first !== 'number') return null;
  const rest = [second, third].find((one) => one !== null && typeof one === 'object') || {};
  return { ...rest, port: first, ...(typeof second === 'string' ? { host: second } : {}) };
}

// Call `fn`, in which an HTTP client connects.
function asking(fn) {
  const outer = asked;
  asked = true;
  try {
    return fn();
  } finally {
    asked = outer;
  }
}

function patchConnects() {
  const patched = (original, lead) =>
    resemble(function connect(...args) {
      const expected = asked;
      asked = null;
      stepBack();
      const options = expected ? read(args) : null;
      const callback = args.find((one) => typeof one === 'function');
      if (options !== null && leads(options)) {
        const socket = lead(options, callback);
        if (lead === plain && callback) socket.once('connect', callback);
        return socket;
      }
      const socket = original.apply(this, args);
      mark(socket, args);
      return socket;
    }, original);
  net.connect = net.createConnection = patched(connectNet, plain);
  tls.connect = patched(connectTls, secure);
}

// A socket of the agent's client that goes to the wire, or lies on one that does.
function mark(socket, args) {
  const options = read(args);
  if (options === null) return;
  const under = options.socket;
  if (under ? led.has(under) : options.port && isWire(options.host || 'localhost', options.port)) led.add(socket);
}

function patchAgents() {
  // https asks tls.connect, and http has net.connect kept.
  http.Agent.prototype.createConnection = resemble(function createConnection(...args) {
    return asking(() => net.createConnection(...args));
  }, http.Agent.prototype.createConnection);
  const { createConnection } = https.Agent.prototype;
  https.Agent.prototype.createConnection = resemble(function createConnectionLed(...args) {
    return asking(() => createConnection.apply(this, args));
  }, createConnection);
}

// A client with a createConnection of its own (ws) calls net.connect or tls.connect in it.
function withOwnConnection(options) {
  const { createConnection, agent } = options;
  if (typeof createConnection !== 'function' || agent) return options;
  return { ...options, createConnection: (...args) => asking(() => createConnection(...args)) };
}

function stop() {
  asked = null;
  stepBack();
}

function install() {
  if (settings.PROXY === null) return;
  patchConnects();
  patchAgents();
  let mark = null;
  diagnostics.subscribe('undici:request:create', () => {
    mark = bookmark();
  });
  diagnostics.subscribe('undici:client:beforeConnect', () => {
    // The connector is called next, in the same breath; it connects at once or not at all.
    stepAside(mark);
    asked = true;
    quietly(() => queueMicrotask(stop));
  });
}

module.exports = { install, isLed, isWire, normal, withOwnConnection };
