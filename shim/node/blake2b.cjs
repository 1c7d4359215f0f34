'use strict';
// BLAKE2b (RFC 7693) with a key and any length of digest, which node:crypto has not. For short texts: a lane needs
// two or three blocks, and everything longer is drawn from SHAKE-128.

const IV = [
  0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
];
const SIGMA = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
  [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
  [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
  [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
  [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
  [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
  [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
  [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
  [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];
const COLUMNS = [
  [0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15],
  [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14],
];
const BLOCK = 128;
const ROUNDS = 12;

const wrap = (value) => BigInt.asUintN(64, value);
const rotate = (value, bits) => wrap((value >> bits) | (value << (64n - bits)));

function mix(v, [a, b, c, d], x, y) {
  v[a] = wrap(v[a] + v[b] + x);
  v[d] = rotate(v[d] ^ v[a], 32n);
  v[c] = wrap(v[c] + v[d]);
  v[b] = rotate(v[b] ^ v[c], 24n);
  v[a] = wrap(v[a] + v[b] + y);
  v[d] = rotate(v[d] ^ v[a], 16n);
  v[c] = wrap(v[c] + v[d]);
  v[b] = rotate(v[b] ^ v[c], 63n);
}

function compress(h, block, total, final) {
  const v = [...h, ...IV];
  v[12] ^= total;
  if (final) v[14] = wrap(~v[14]);
  const m = Array.from({ length: 16 }, (_, at) => block.readBigUInt64LE(8 * at));
  for (let round = 0; round < ROUNDS; round++) {
    const order = SIGMA[round % 10];
    COLUMNS.forEach((column, at) => mix(v, column, m[order[2 * at]], m[order[2 * at + 1]]));
  }
  for (let at = 0; at < 8; at++) h[at] ^= v[at] ^ v[at + 8];
}

// The digest of `text`, a Buffer: `size` bytes, at most 64. `key` has at most 64, and may be empty.
function blake2b(text, key, size) {
  const h = [...IV];
  h[0] ^= 0x01010000n ^ (BigInt(key.length) << 8n) ^ BigInt(size);
  const padded = Buffer.alloc(key.length ? BLOCK : 0);
  key.copy(padded);
  const data = Buffer.concat([padded, text]);
  let at = 0;
  for (; data.length - at > BLOCK; at += BLOCK) compress(h, data.subarray(at, at + BLOCK), BigInt(at + BLOCK), false);
  const last = Buffer.alloc(BLOCK);
  data.copy(last, 0, at);
  compress(h, last, BigInt(data.length), true);
  const out = Buffer.alloc(64);
  h.forEach((word, place) => out.writeBigUInt64LE(word, 8 * place));
  return out.subarray(0, size);
}

module.exports = { blake2b };
