/* The chain, checked in the browser: each line's hash is BLAKE3 over the previous hash and the line up to it; then the
   seal, which has the hash of the file before it. docs/FORMAT.md is the specification. Works in slices, so that the page
   stays alive. */
'use strict';
/* What of a tape's bytes is proved: {records, hashes} and one of `why` (it was changed), `sealed` (its seal as it
   stands there; `canonical`: and each byte of the file is as written), or neither (no seal; `lost`: bytes of a last line
   that is not whole). */
tp.verify = async function (bytes, progress) {
  var found = await tp.gunzipAll(bytes), plain = found.plain, hashes = [], before = new Uint8Array(32), start = 0, seal = null, sealAt = 0, took = performance.now();
  var mark = new TextEncoder().encode(',"h":"'), tail = mark.length + 64 + 2;
  function changed(why) { return { why: why, records: hashes.length, hashes: hashes }; }
  async function rest(share) {
    if (performance.now() - took <= 8) return;
    if (progress) progress(share);
    await new Promise(function (go) { setTimeout(go, 0); });
    took = performance.now();
  }
  while (start < plain.length) {
    var stop = plain.indexOf(10, start);
    if (seal !== null) return changed('there is something after the seal');
    if (stop < 0) break;
    var cut = stop - tail;
    for (var at = 0; at < mark.length; at++) if (cut < start || plain[cut + at] !== mark[at]) return changed('record ' + hashes.length + ' has no hash');
    var hasher = nobleBlake3.blake3.create();
    hasher.update(before);
    hasher.update(plain.subarray(start, cut));
    before = hasher.digest();
    if (tp.hex(before) !== new TextDecoder().decode(plain.subarray(cut + mark.length, stop - 2))) return changed('record ' + hashes.length + ' is not what was written');
    hashes.push(before);
    if (/^\{"k":"seal"/.test(new TextDecoder().decode(plain.subarray(start, Math.min(stop, start + 12))))) { seal = plain.subarray(start, stop + 1); sealAt = start; }
    start = stop + 1;
    await rest(start / plain.length);
  }
  if (found.damaged) return changed('what is compressed is damaged, or something was appended');
  if (!hashes.length) return changed('there is no record in it');
  if (seal === null) return { records: hashes.length, hashes: hashes, lost: plain.length - start };
  var told = JSON.parse(new TextDecoder().decode(seal)), from = found.members.filter(function (one) { return one.at <= sealAt; }).pop().from, whole = nobleBlake3.blake3.create();
  for (var place = 0; place < from; place += 1 << 18) {
    whole.update(bytes.subarray(place, Math.min(from, place + (1 << 18))));
    await rest(1);
  }
  return { records: hashes.length, hashes: hashes, sealed: told, canonical: tp.hex(whole.digest()) === told.file && !found.cut && isStored(bytes.subarray(from), seal) };

  /* Whether a member of gzip is the only one possible for `data`: stored blocks. Its checksum was found right before. */
  function isStored(member, data) {
    var head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255], at = head.length;
    if (head.some(function (byte, place) { return member[place] !== byte; })) return false;
    for (var done = 0; done < data.length; ) {
      var size = Math.min(65535, data.length - done), other = size ^ 65535, last = done + size === data.length ? 1 : 0;
      if ([last, size & 255, size >> 8, other & 255, other >> 8].some(function (byte, place) { return member[at + place] !== byte; })) return false;
      at += 5 + size;
      done += size;
    }
    return member.length === at + 8;
  }
};

/* How that is said: {good}, {bad} or neither of both, and `text`, in the words of `tapeproxy verify`. `growing`: the tape
   was still recorded as its bytes were asked for. */
tp.judged = function (found, growing) {
  var records = tp.count(found.records, 'record');
  if (found.why) return { bad: true, text: 'CHANGED: ' + found.why };
  if (found.sealed && !found.canonical) return { text: 'not canonical: the content is intact (' + records + ', sealed), but the file is not, byte for byte, what was written' };
  if (found.sealed) return { good: true, text: 'chain intact: ' + records + (found.sealed.outcome === 'repaired' ? ', sealed by `repair`: the recording was interrupted' : ', sealed') };
  if (growing) return { text: 'still recorded: the first ' + records + ' are intact' };
  return { text: 'interrupted: no seal; what is there is intact (' + records + (found.lost ? ', ' + tp.count(found.lost, 'byte') + ' of an unfinished line dropped' : '') + ')' };
};

tp.hex = function (bytes) {
  var out = '';
  for (var byte of bytes) out += (byte < 16 ? '0' : '') + byte.toString(16);
  return out;
};

/* A tape is several members of gzip one after another, and its last one may be cut: what of it can be read is given, as
   `plain`; `cut` where it is, `damaged` where what follows can't be read though it is there. A browser undoes one member
   at a time and refuses what comes after it, so the members are looked for by the bytes that each begins with; a false
   find does not end a member, and is passed over. `members`: where each begins, in the file (from) and in `plain` (at). */
tp.gunzipAll = async function (bytes) {
  var starts = [0], parts = [], size = 0, members = [], end = null;
  for (var at = 1; at < bytes.length; at++) {
    // The last one may be cut within its first bytes.
    if (bytes[at] === 0x1f && (at + 1 >= bytes.length || bytes[at + 1] === 0x8b) && (at + 2 >= bytes.length || bytes[at + 2] === 8)) starts.push(at);
  }
  starts.push(bytes.length);
  for (var from = 0; from < starts.length - 1; ) {
    var to = from + 1, member = null;
    for (; to < starts.length; to++) {
      member = await tp.member(bytes.subarray(starts[from], starts[to]));
      if (member.end === 'whole') break;
    }
    members.push({ from: starts[from], at: size });
    for (var part of member.parts) { parts.push(part); size += part.length; }
    end = member.end;
    if (end !== 'whole') break;
    from = to;
  }
  var whole = new Uint8Array(size), place = 0;
  for (var piece of parts) { whole.set(piece, place); place += piece.length; }
  return { plain: whole, members: members, cut: end === 'cut', damaged: end === 'damaged' };
};

/* One member: its text, and whether it is `whole`, `cut` (more would have to come) or `damaged` (what is there is wrong). */
tp.member = async function (bytes) {
  var stream = new DecompressionStream('gzip'), writer = stream.writable.getWriter(), reader = stream.readable.getReader(), parts = [], end = 'damaged';
  async function write() {
    for (var at = 0; at < bytes.length; at += 1 << 16) await writer.write(bytes.subarray(at, at + (1 << 16)));
    end = 'cut';
    await writer.close();
    end = 'whole';
  }
  var written = write().catch(function () {});
  try {
    for (var step = await reader.read(); !step.done; step = await reader.read()) parts.push(step.value);
  } catch (error) { /* what there was is in `parts` */ }
  await written;
  return { end: end, parts: parts };
};
