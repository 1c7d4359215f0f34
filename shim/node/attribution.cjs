'use strict';
// Says on every request that goes to the wire which lane made it: `x-tapeproxy-lane: LANE#n@reads`, with
// `~SLEEPS.AWAKE` where the lane has slept since its last request.
//
// The lane is the one that made the request; the header is added when its connection is known to lead to the wire,
// below what the agent can see, once, never on CONNECT.

const http = require('http');
const https = require('https');
const diagnostics = require('diagnostics_channel');
const channel = require('./channel.cjs');
const clock = require('./clock.cjs');
const { current, inLane, quietly } = require('./jobs.cjs');
const { resemble } = require('./likeness.cjs');
const { reseed } = require('./randomness.cjs');
const routing = require('./routing.cjs');
const settings = require('./settings.cjs');

const HEADER = 'x-tapeproxy-lane';
const led = new WeakSet(); // requests whose connection leads to the wire
const tags = new WeakMap(); // of requests of http, what their header says

// The value for the next request of a lane.
function tag(lane) {
  lane.tell();
  const text = `${lane.id}#${lane.tally.requests}@${clock.ask(lane)}`;
  lane.tally.requests += 1;
  reseed(lane);
  if (!lane.sleeps) return text;
  const slept = `~${lane.sleeps}.${lane.awake}`;
  lane.sleeps = 0;
  return text + slept;
}

// The agent's request goes without a header rather than not at all.
function attempt(fn) {
  try {
    fn();
  } catch (error) {
    channel.emit('note', { what: 'request-without-lane', text: String(error), data: null });
  }
}

let making = null; // the lane of the request that is being made

function patchRequest(original) {
  return resemble(function request(...args) {
    const lane = current();
    const options = args.find((one) => one !== null && typeof one === 'object' && !(one instanceof URL));
    const given = options ? args.map((one) => (one === options ? routing.withOwnConnection(one) : one)) : args;
    const outer = making;
    making = lane;
    try {
      const made = inLane(lane.child('r'), () => original.apply(this, given));
      // Now, and not when a connection is there: that may come in any order. A client that opens a tunnel asks nothing.
      if (!made.socketPath && made.method !== 'CONNECT') tagOf(made);
      return made;
    } finally {
      making = outer;
    }
  }, original);
}

// What the header of a request says.
function tagOf(request) {
  if (!tags.has(request)) tags.set(request, tag(making || current()));
  return tags.get(request);
}

function patchClientRequest() {
  const { prototype } = http.ClientRequest;
  const { onSocket, _storeHeader } = prototype;
  prototype.onSocket = resemble(function onSocketLed(socket, ...rest) {
    attempt(() => {
      if (!socket || !routing.isLed(socket) || this.method === 'CONNECT') return;
      led.add(this);
      routing.use(socket);
      if (this._header) addToSent(this);
    });
    return onSocket.call(this, socket, ...rest);
  }, onSocket);
  prototype._storeHeader = function storeHeader(...args) {
    const found = _storeHeader.apply(this, args);
    attempt(() => {
      if (led.has(this)) this._header = withTag(this._header, this);
    });
    return found;
  };
}

// The head may wait already, in front of what was written.
function addToSent(request) {
  const { _header, outputData } = request;
  const made = withTag(_header, request);
  const first = outputData && outputData[0];
  if (request._headerSent && first && typeof first.data === 'string' && first.data.startsWith(_header)) {
    first.data = made + first.data.slice(_header.length);
  }
  request._header = made;
}

function withTag(header, request) {
  if (header.toLowerCase().includes(`\r\n${HEADER}:`)) return header;
  return `${header.slice(0, -2)}${HEADER}: ${tagOf(request)}\r\n\r\n`;
}

function patchHttp() {
  for (const module of [http, https]) {
    module.request = patchRequest(module.request);
    module.get = resemble(function get(...args) {
      const request = module.request(...args);
      request.end();
      return request;
    }, module.get);
  }
  patchClientRequest();
}

function patchFetch() {
  const { fetch } = globalThis;
  if (typeof fetch !== 'function') return;
  globalThis.fetch = resemble(function fetch_(...args) {
    return quietly(() => fetch.apply(this, args));
  }, fetch);
  diagnostics.subscribe('undici:request:create', ({ request }) => {
    attempt(() => {
      if (request.method !== 'CONNECT') request.addHeader(HEADER, tag(current()));
    });
  });
  diagnostics.subscribe('undici:client:sendHeaders', ({ socket }) => {
    attempt(() => routing.use(socket));
  });
}

function install() {
  if (settings.PROXY === null) return;
  patchHttp();
  patchFetch();
}

module.exports = { HEADER, attempt, install, tag };
