// Every way to draw, by name; prints a value of each.
import assert from 'node:assert';
import * as all from 'node:crypto';
import crypto, { randomBytes, randomFill, randomFillSync, randomInt, randomUUID } from 'node:crypto';
import { promisify } from 'node:util';

const out = {
  random: Math.random(),
  randomBytes: randomBytes(8).toString('hex'),
  randomBytesLater: (await promisify(randomBytes)(8)).toString('hex'),
  pseudo: crypto.pseudoRandomBytes(4).toString('hex'),
  star: all.randomBytes(4).toString('hex'),
  none: randomBytes(0).length,
  large: randomBytes(5000).subarray(-8).toString('hex'),
  fill: randomFillSync(Buffer.alloc(12), 4, 6).toString('hex'),
  fillWords: [...randomFillSync(new Uint32Array(3), 1)],
  fillBuffer: [...new Uint8Array(randomFillSync(new ArrayBuffer(4)))],
  fillLater: (await promisify(randomFill)(Buffer.alloc(6))).toString('hex'),
  int: [randomInt(6), randomInt(10, 20), randomInt(2 ** 48 - 1)],
  intLater: await new Promise((resolve) => randomInt(3, 9, (_, n) => resolve(n))),
  uuid: randomUUID(),
  uuidFresh: randomUUID({ disableEntropyCache: true }),
  web: globalThis.crypto.randomUUID(),
  values: [...globalThis.crypto.getRandomValues(new Uint16Array(4))],
  webcrypto: [...crypto.webcrypto.getRandomValues(new BigInt64Array(1))].map(String),
  shortcut: [...crypto.getRandomValues(new Uint8Array(4))],
};
assert.match(out.uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
assert(out.fill.startsWith('00000000') && out.fill.endsWith('0000') && out.fillWords[0] === 0);
for (const wrong of [() => randomBytes(-1), () => randomBytes('a'), () => randomInt(5, 5), () => randomUUID(5)]) {
  assert.throws(wrong, (error) => /^ERR_/.test(error.code));
}
assert.throws(() => crypto.getRandomValues(new Uint8Array(70000)), { name: 'QuotaExceededError' });
assert.throws(() => crypto.getRandomValues(new Float32Array(1)), { name: 'TypeMismatchError' });
const drawn = Array.from({ length: 10000 }, Math.random);
assert(drawn.every((n) => n >= 0 && n < 1) && new Set(drawn).size === drawn.length);
const mean = drawn.reduce((sum, n) => sum + n) / drawn.length;
assert(mean > 0.45 && mean < 0.55);
console.log(JSON.stringify(out));
