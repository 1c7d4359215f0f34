'use strict';
// Sessions of http2, a client's: each request says which lane made it, and what comes of it happens in a flow of the
// request's own, though the session that it comes by is shared.
//
// http2 is large and most programs have no need of it, so it is not loaded for this. The class of its sessions is met
// when the first one is made, for each is an EventEmitter.

const { AsyncResource } = require('async_hooks');
const { EventEmitter } = require('events');
const { HEADER, attempt, tag } = require('./attribution.cjs');
const { current, inLane } = require('./jobs.cjs');
const { resemble } = require('./likeness.cjs');
const { isLed, reveal, use } = require('./routing.cjs');
const settings = require('./settings.cjs');

const SESSION = 'ClientHttp2Session';

const waiting = new Map(); // sessions that lead to the wire: how many of their requests are not over

// Call `patch` with the prototype of the first session, before anybody has it.
function whenMet(patch) {
  const { init } = EventEmitter;
  EventEmitter.init = function initAndMeet(...args) {
    const { constructor } = this;
    if (constructor !== undefined && constructor.name === SESSION && 'goaway' in constructor.prototype) {
      if (EventEmitter.init === initAndMeet) EventEmitter.init = init;
      attempt(() => patch(constructor.prototype));
    }
    return init.apply(this, args);
  };
}

function patchSession(prototype) {
  const { request } = prototype;
  prototype.request = resemble(function requestTagged(headers, ...rest) {
    if (!leads(this)) return request.call(this, headers, ...rest);
    use(this.socket);
    // undici says of its requests itself who made them.
    if (isTagged(headers)) return request.call(this, headers, ...rest);
    const lane = current();
    let given = headers;
    attempt(() => {
      given = withTag(headers, tag(lane));
    });
    return inLane(lane.child('r'), () => {
      const stream = request.call(this, given, ...rest);
      attempt(() => {
        delete stream.sentHeaders[HEADER]; // what was sent is known to Node by now
        keepFlow(this, stream);
      });
      return stream;
    });
  }, request);
}

function leads(session) {
  try {
    return isLed(session.socket);
  } catch {
    return false; // it has none any more
  }
}

function isTagged(headers) {
  const names = Array.isArray(headers) ? headers : Object.keys(headers || {});
  return names.some((one) => String(one).toLowerCase() === HEADER);
}

const withTag = (headers, value) =>
  Array.isArray(headers) ? [...headers, HEADER, value] : { ...headers, [HEADER]: value };

// Call `fn` after an event, with no listener that the agent could count.
function onEvent(stream, awaited, fn) {
  const { emit } = stream;
  hide(stream, 'emit', function emitThen(event, ...args) {
    const found = emit.call(this, event, ...args);
    if (event === awaited) attempt(fn);
    return found;
  });
}

const hide = (owner, name, value) => Object.defineProperty(owner, name, { value, writable: true, configurable: true });

// What comes on a stream comes by its session, whose job is that of who opened it.
function keepFlow(session, stream) {
  const scope = new AsyncResource('TAPEPROXY');
  waiting.set(session, (waiting.get(session) || 0) + 1);
  onEvent(stream, 'close', () => waiting.set(session, waiting.get(session) - 1));
  const { emit } = stream;
  hide(stream, 'emit', function emitInFlow(...args) {
    return scope.runInAsyncScope(emit, this, ...args);
  });
}

// Whether a request of theirs is not over.
const areAtWork = () => [...waiting.values()].some((requests) => requests > 0);

// The sockets of sessions that wait for nothing, and what those lie on: they keep the process alive, and nothing is at
// work on them.
function restingSockets() {
  const found = new Set();
  for (const [session, requests] of waiting) {
    if (session.destroyed) waiting.delete(session);
    else if (requests === 0) {
      const socket = reveal(session.socket);
      found.add(socket).add(socket._parent);
    }
  }
  return found;
}

function install() {
  if (settings.PROXY === null) return;
  whenMet(patchSession);
}

module.exports = { areAtWork, install, restingSockets };
