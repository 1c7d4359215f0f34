'use strict';
// Leads what Node's HTTP clients connect to by way of the wire: http, https, http2, and undici, which fetch is.
//
// Only connections that an HTTP client makes are led: the agents of http and https say so by calling createConnection,
// undici by its diagnostics channel, and http2, which is not loaded for this, is known by the stack. Each gets a socket that has spoken to the wire - CONNECT - before it says that it
// is connected; TLS, where there is any, goes on top of it. Hosts are looked up by the wire. Other connections (a
// database's) are left as they are. Where Node itself uses the wire (NODE_USE_ENV_PROXY), or the agent's client does,
// the connection goes to the wire already and is only marked.

const fs = require('fs');
const net = require('net');
const tls = require('tls');
const http = require('http');
const https = require('https');
const diagnostics = require('diagnostics_channel');
const { isUnder } = require('./callers.cjs');
const { bookmark, quietly, stepAside, stepBack } = require('./jobs.cjs');
const { resemble } = require('./likeness.cjs');
const { monotonic } = require('./livetime.cjs');
const settings = require('./settings.cjs');

const LOOPBACK = new Set(['127.0.0.1', 'localhost', '::1']);
const MOST_HEAD = 65536; // bytes of the wire's answer to CONNECT
const MOST_CONNECTING = 5e9; // ns from connecting to the first request, of a client that is about to ask
const REINITIALIZE = Object.getOwnPropertySymbols(tls.TLSSocket.prototype).find(
  (one) => one.description === 'kReinitializeHandle',
);
const END = '\r\n\r\n';
// The property of the sockets that lead to the wire: the socket itself, for http2 shows its sockets through a Proxy only.
const LED = Symbol('tapeproxy');
const HTTP2 = 'node:internal/http2/core';

const { connect: connectNet } = net;
const { connect: connectTls } = tls;
let asked = null; // true: an HTTP client is about to connect
const fresh = new Map(); // sockets that lead to the wire, and by which nothing was asked: since when
const trusting = new WeakSet(); // contexts of tls that have been told of it
let http2Loaded = false;
let certificate; // our authority's

const normal = (host) => (LOOPBACK.has(host) ? '127.0.0.1' : String(host).replace(/^\[|\]$/g, '').toLowerCase());

// Whether these mean the wire, or a port of it in front of a base URL.
function isWire(host, port) {
  const { FRONTS, PROXY } = settings;
  if (FRONTS.has(Number(port)) && normal(host) === '127.0.0.1') return true;
  return PROXY !== null && Number(port) === PROXY.port && normal(host) === normal(PROXY.host);
}

// Whether a socket leads to the wire.
const isLed = (socket) => Boolean(socket && socket[LED]);

// The socket, of what shows one that does.
const reveal = (socket) => socket[LED];

function led(socket) {
  Object.defineProperty(socket, LED, { value: socket, configurable: true });
  if (settings.REPLAY) fresh.set(socket, monotonic());
}

// A client asks by this socket from here on.
const use = (socket) => fresh.delete(reveal(socket));

// Whether a client has connected, or is about to, and not asked yet: it may have let go of its socket all the same.
function areConnecting() {
  const now = monotonic();
  for (const [socket, since] of fresh) {
    if (socket.destroyed || now - since > MOST_CONNECTING) fresh.delete(socket);
  }
  return fresh.size > 0;
}

// A socket to HOST:PORT by way of the wire. It is connected once the wire says so.
function tunnel(host, port, options) {
  const socket = new net.Socket({ allowHalfOpen: options.allowHalfOpen, signal: options.signal });
  led(socket);
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

// TLS in a tunnel. It gets the tunnel's handle, as if it had connected itself: on top of another socket it would lie on
// a stream of JavaScript's, where Node tells of frames that come in one read without doing in between what was put off.
function secure(options, callback) {
  const under = tunnel(options.host || 'localhost', options.port, {});
  let start = null;
  tls.TLSSocket.prototype.connect = function connectLater(_, started) {
    start = started;
    this.connecting = true;
    return this;
  };
  let socket;
  try {
    socket = connectTls.call(tls, { ...options, ...trust(options) }, callback);
  } finally {
    delete tls.TLSSocket.prototype.connect;
  }
  led(socket);
  socket.once('connect', start);
  const isHeld = sharing(socket, under);
  under.on('error', (error) => socket.destroy(error));
  socket.once('close', () => under.destroy());
  under.once('connect', () => {
    if (socket.destroyed) return;
    take(socket, under);
    if (!isHeld()) socket.unref();
    socket.connecting = false;
    socket.emit('connect');
    socket.emit('ready');
    if (!socket.isPaused()) socket.read(0);
  });
  begin(under);
  return socket;
}

// Have one socket hold the process as long as another one is to. Returns a function that ends this, and tells.
function sharing(socket, under) {
  let isHeld = true;
  for (const name of ['ref', 'unref']) {
    socket[name] = function remember() {
      isHeld = name === 'ref';
      under[name]();
      return this;
    };
  }
  return () => {
    delete socket.ref;
    delete socket.unref;
    return isHeld;
  };
}

// Give a socket the handle of another one, as Node does where it tries several addresses.
function take(socket, under) {
  const handle = under._handle;
  under._handle = null;
  handle.readStop();
  handle.reading = false;
  const owner = Object.getOwnPropertySymbols(handle).find((one) => one.description === 'owner_symbol');
  if (owner) handle[owner] = socket;
  socket[REINITIALIZE](handle);
  under.destroy();
}

// What has these options of tls.connect trust our authority beside their own.
function trust({ ca, secureContext }) {
  if (secureContext && !trusting.has(secureContext)) {
    trusting.add(secureContext);
    secureContext.context.addCACert(ours());
  }
  return ca ? { ca: [].concat(ca, ours()) } : {};
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
  if (typeof first !== 'number' && !/^\d+$/.test(first)) return null; // http2 has its port as text
  const rest = [second, third].find((one) => one !== null && typeof one === 'object') || {};
  return { ...rest, port: Number(first), ...(typeof second === 'string' ? { host: second } : {}) };
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
      const expected = asked || isHttp2();
      asked = null;
      stepBack();
      const options = expected ? read(args) : null;
      const callback = args.find((one) => typeof one === 'function');
      if (options !== null && leads(options)) {
        const socket = lead(options, callback);
        if (lead === plain && callback) socket.once('connect', callback);
        return socket;
      }
      const socket = original.apply(this, original === connectTls ? overTunnel(args) : args);
      mark(socket, args);
      return socket;
    }, original);
  net.connect = net.createConnection = patched(connectNet, plain);
  tls.connect = patched(connectTls, secure);
}

// The arguments of tls.connect on top of a tunnel that the agent's client has opened.
function overTunnel(args) {
  const [options, ...rest] = args;
  if (options === null || typeof options !== 'object' || !isLed(options.socket)) return args;
  return [{ ...options, ...trust(options) }, ...rest];
}

// Whether http2 is about to connect.
const isHttp2 = () => isHttp2Loaded() && isUnder(HTTP2, 'connect');

function isHttp2Loaded() {
  if (!http2Loaded) http2Loaded = process.moduleLoadList.includes('NativeModule internal/http2/core');
  return http2Loaded;
}

// A socket of the agent's client that goes to the wire, or lies on one that does.
function mark(socket, args) {
  const options = read(args);
  if (options === null) return;
  const under = options.socket;
  if (isLed(under)) {
    use(under);
    led(socket);
  } else if (!under && options.port && isWire(options.host || 'localhost', options.port)) {
    led(socket);
  }
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

// Node 22 warns of its own proxies once, before all else, where they are on: the launcher has done that.
function passWarningOver() {
  if (!process.env.NODE_USE_ENV_PROXY || parseInt(process.versions.node, 10) < 22) return;
  const { emit } = process;
  let isOver = false;
  process.emit = resemble(function emitOthers(event, ...args) {
    if (isOver || event !== 'warning' || !args[0] || args[0].code !== 'UNDICI-EHPA') {
      return emit.call(this, event, ...args);
    }
    isOver = true;
    return true;
  }, emit);
}

function install() {
  if (settings.PROXY === null) return;
  passWarningOver();
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

module.exports = { areConnecting, install, isLed, isWire, normal, reveal, use, withOwnConnection };
