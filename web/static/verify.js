/* The chain, checked in the browser: each line's hash is BLAKE3 over the previous hash and the line up to it.
   docs/FORMAT.md is the specification. Works in slices, so that the page stays alive. */
'use strict';
tp.verify = async function (bytes, progress) {
  var plain = await tp.gunzipAll(bytes);
  var before = new Uint8Array(32), start = 0, count = 0, hashes = [], sealed = null, began = performance.now();
  var mark = new TextEncoder().encode(',"h":"'), tail = mark.length + 64 + 2;
  while (start < plain.length) {
    var stop = plain.indexOf(10, start);
    if (stop < 0) return { ok: false, why: 'the last line is not whole', records: count };
    var cut = stop - tail;
    for (var at = 0; at < mark.length; at++) if (cut < start || plain[cut + at] !== mark[at]) return { ok: false, why: 'record ' + count + ' has no hash', records: count };
    var hasher = nobleBlake3.blake3.create();
    hasher.update(before);
    hasher.update(plain.subarray(start, cut));
    var digest = hasher.digest(), text = new TextDecoder().decode(plain.subarray(cut + mark.length, stop - 2));
    if (tp.hex(digest) !== text) return { ok: false, why: 'record ' + count + ' is not what was written', records: count };
    before = digest;
    hashes.push(digest);
    count++;
    if (plain[start] === 123) sealed = stop - start < 4e6 && /^\{"k":"seal"/.test(new TextDecoder().decode(plain.subarray(start, Math.min(stop, start + 12)))) ? 'sealed' : null;
    start = stop + 1;
    if (performance.now() - began > 8) {
      if (progress) progress(start / plain.length);
      await new Promise(function (go) { setTimeout(go, 0); });
      began = performance.now();
    }
  }
  if (!count) return { ok: false, why: 'there is no record in it', records: 0 };
  return { ok: true, sealed: sealed !== null, records: count, hash: tp.hex(before), hashes: hashes };
};

tp.hex = function (bytes) {
  var out = '';
  for (var byte of bytes) out += (byte < 16 ? '0' : '') + byte.toString(16);
  return out;
};

/* A tape is several members of gzip one after another, and its last one may be cut: what of it can be read is given.
   A browser undoes one member at a time and refuses what comes after it, so the members are looked for by the ten bytes
   that each begins with; a false find does not end a member, and is passed over. */
tp.gunzipAll = async function (bytes) {
  var starts = [0], parts = [], size = 0;
  for (var at = 1; at + 10 < bytes.length; at++) {
    if (bytes[at] === 0x1f && bytes[at + 1] === 0x8b && bytes[at + 2] === 8) starts.push(at);
  }
  starts.push(bytes.length);
  for (var from = 0; from < starts.length - 1; ) {
    var to = from + 1, member = null;
    for (; to < starts.length; to++) {
      member = await tp.member(bytes.subarray(starts[from], starts[to]));
      if (member.whole) break;
    }
    parts.push.apply(parts, member.parts);
    if (!member.whole) break;
    from = to;
  }
  for (var part of parts) size += part.length;
  var whole = new Uint8Array(size), place = 0;
  for (var piece of parts) { whole.set(piece, place); place += piece.length; }
  return whole;
};
tp.member = async function (bytes) {
  var reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip')).getReader(), parts = [];
  try {
    for (;;) {
      var step = await reader.read();
      if (step.done) return { whole: true, parts: parts };
      parts.push(step.value);
    }
  } catch (error) {
    return { whole: false, parts: parts };
  }
};
