'use strict';
// Randomness of each lane, derived from the run's seed: Math.random, and what node:crypto and Web Crypto give.
//
// The bytes of a lane are those that the Python shim gives a lane of that id: SHAKE-128 in counter mode, under a key
// from BLAKE2b. Math.random has a stream of its own, made alike.

const crypto = require('crypto');
const { blake2b } = require('./blake2b.cjs');
const { current } = require('./jobs.cjs');
const { resemble } = require('./likeness.cjs');
const settings = require('./settings.cjs');

const { createHash } = crypto;
const FIRST_BLOCK = 168; // SHAKE-128 makes so many bytes a step; most lanes draw an id or two
const BLOCK = 8 * 168;
const EMPTY = Buffer.alloc(0);
const FLOATS = 64; // that are made at a time
const LARGEST = 2 ** 48 - 1; // range of randomInt
const MOST_BYTES = 2 ** 31 - 1;
const MOST_VALUES = 65536; // bytes that getRandomValues gives at most

function laneKey(lane, purpose) {
  const text = Buffer.concat([Buffer.from(lane.id), Buffer.from([0]), Buffer.from(purpose)]);
  return blake2b(text, newSeed(lane), 32);
}

// What the lane's streams are made of since its last new seed; the run's where it has none yet.
function newSeed(lane) {
  const seeds = settings.SEEDS.get(lane.id);
  const begun = seeds ? [...seeds.keys()].filter((asked) => asked <= lane.tally.requests) : [];
  return begun.length ? blake2b(seeds.get(Math.max(...begun)), settings.SEED, 32) : settings.SEED;
}

// The lane has made a request: its streams begin anew if that is where it gets a new seed.
function reseed(lane) {
  const seeds = settings.SEEDS.get(lane.id);
  if (seeds === undefined || !seeds.has(lane.tally.requests)) return;
  lane.key = lane.pool = lane.floats = null;
  lane.blocks = 0;
}

function shake(key, number, size) {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64LE(BigInt(number));
  return createHash('shake128', { outputLength: size }).update(key).update(counter).digest();
}

// The next `size` bytes of the current lane's stream.
function draw(size) {
  const lane = current();
  let data = lane.pool === null ? EMPTY : lane.pool.subarray(lane.drawnTo, lane.drawnTo + size);
  lane.drawnTo += data.length;
  if (data.length === size) return data;
  if (lane.key === null) lane.key = laneKey(lane, 'bytes');
  if (size > BLOCK) return Buffer.concat([data, shake(lane.key, lane.blocks++, size - data.length)]);
  while (data.length < size) {
    const block = shake(lane.key, lane.blocks, lane.blocks ? BLOCK : FIRST_BLOCK);
    lane.blocks++;
    const missing = size - data.length;
    data = Buffer.concat([data, block.subarray(0, missing)]);
    lane.pool = block;
    lane.drawnTo = Math.min(missing, block.length);
  }
  return data;
}

function random() {
  const lane = current();
  if (lane.floats === null || lane.drawn === FLOATS) {
    lane.floats = lane.floats || { key: laneKey(lane, 'Math.random'), blocks: 0, values: null };
    lane.floats.values = shake(lane.floats.key, lane.floats.blocks++, 8 * FLOATS);
    lane.drawn = 0;
  }
  const { values } = lane.floats;
  const at = 8 * lane.drawn++;
  // 53 bits: 27 and 26.
  return ((values.readUInt32LE(at) >>> 5) * 67108864 + (values.readUInt32LE(at + 4) >>> 6)) / 9007199254740992;
}

// What is wrong with arguments, the original says itself.
const isSize = (value) => Number.isInteger(value) && value >= 0 && value <= MOST_BYTES;

function patchCrypto() {
  const { randomBytes, randomFillSync, randomFill, randomInt, randomUUID } = crypto;
  replace(crypto, 'randomBytes', function randomBytes_(size, callback) {
    if (!isSize(size) || (callback !== undefined && typeof callback !== 'function')) {
      return randomBytes.call(this, ...arguments);
    }
    return deliver(callback, Buffer.from(draw(size)));
  }, randomBytes);
  crypto.pseudoRandomBytes = crypto.prng = crypto.rng = crypto.randomBytes;
  replace(crypto, 'randomFillSync', function randomFillSync_(buffer, offset, size) {
    randomFillSync.apply(this, arguments); // judges its arguments
    return fill(buffer, offset, size);
  }, randomFillSync);
  replace(crypto, 'randomFill', function randomFill_(buffer, ...rest) {
    const callback = rest.pop();
    if (typeof callback !== 'function') return randomFill.apply(this, arguments);
    randomFillSync.call(this, buffer, ...rest);
    deliver(callback, fill(buffer, ...rest));
  }, randomFill);
  replace(crypto, 'randomInt', function randomInt_(min, max, callback) {
    const [low, high, done] = max === undefined || typeof max === 'function' ? [0, min, max] : [min, max, callback];
    const isRight = Number.isSafeInteger(low) && Number.isSafeInteger(high) && high > low && high - low <= LARGEST;
    if (!isRight || (done !== undefined && typeof done !== 'function')) return randomInt.apply(this, arguments);
    return deliver(done, low + below(high - low));
  }, randomInt);
  replace(crypto, 'randomUUID', function randomUUID_(options) {
    if (options !== undefined) randomUUID.call(this, options);
    return uuid(draw(16));
  }, randomUUID);
}

// A value at once, or to a callback as it would come: later, and in the same flow.
function deliver(callback, value) {
  if (callback === undefined) return value;
  setImmediate(callback, null, value);
  return undefined;
}

function fill(buffer, offset = 0, size = undefined) {
  const isView = ArrayBuffer.isView(buffer);
  const width = buffer.BYTES_PER_ELEMENT || 1;
  const bytes = isView ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength) : new Uint8Array(buffer);
  const from = offset * width;
  const count = size === undefined ? bytes.length - from : size * width;
  bytes.set(draw(count), from);
  return buffer;
}

// A whole number from 0 to `range` - 1, each as likely.
function below(range) {
  const limit = LARGEST - (LARGEST % range);
  for (;;) {
    const value = draw(6).readUIntBE(0, 6);
    if (value < limit) return value % range;
  }
}

function uuid(data) {
  const bytes = Buffer.from(data);
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

function patchWebCrypto() {
  const { webcrypto } = crypto;
  const prototype = Object.getPrototypeOf(webcrypto);
  const { getRandomValues, randomUUID } = prototype;
  replace(prototype, 'getRandomValues', function getRandomValues_(array) {
    getRandomValues.apply(this, arguments); // judges its arguments
    return array.byteLength <= MOST_VALUES ? fill(array) : array;
  }, getRandomValues);
  replace(prototype, 'randomUUID', function randomUUID_() {
    randomUUID.apply(this, arguments);
    return uuid(draw(16));
  }, randomUUID);
  const own = Object.getOwnPropertyDescriptor(crypto, 'getRandomValues');
  if (own && own.writable) {
    replace(crypto, 'getRandomValues', function getRandomValues_(array) {
      return webcrypto.getRandomValues(array);
    }, crypto.getRandomValues);
  }
}

function replace(owner, name, made, original) {
  const found = Object.getOwnPropertyDescriptor(owner, name);
  Object.defineProperty(owner, name, { ...found, value: resemble(made, original) });
}

function install() {
  replace(Math, 'random', random, Math.random);
  patchCrypto();
  patchWebCrypto();
}

module.exports = { install, reseed };
