/* What all scripts of the page share: the namespace, formats, and text that can't act. No build step: plain scripts. */
'use strict';
var tp = { html: htmPreact.html, render: htmPreact.render, hooks: htmPreact, views: Object.create(null), tabViews: Object.create(null) };

/* Everything from a tape is put on the page as text nodes (preact) or on a canvas. These characters would hide, turn
   the writing direction or act in a terminal: they are spelled out. The same set as tapes/invisible.py. */
tp.INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?:[^\ud800-\udbff]|^)[\udc00-\udfff]|[\u{e0000}-\u{e0fff}]/gu;
tp.spelled = function (text) {
  return String(text).replace(tp.INVISIBLE, function (found) {
    return Array.from(found, function (one) {
      var code = one.codePointAt(0);
      return one.length === 1 && code > 0x1f && !one.match(tp.INVISIBLE) ? one : '\\u{' + code.toString(16) + '}';
    }).join('');
  });
};

/* Microseconds, for people. */
tp.duration = function (us) {
  if (us === null || us === undefined) return '';
  if (us < 1000) return us + ' µs';
  if (us < 1e6) return (us / 1000).toFixed(us < 1e4 ? 1 : 0) + ' ms';
  if (us < 6e7) return (us / 1e6).toFixed(us < 1e7 ? 2 : 1) + ' s';
  return Math.floor(us / 6e7) + ' min ' + Math.round((us % 6e7) / 1e6) + ' s';
};
tp.size = function (bytes) {
  if (bytes < 1000) return bytes + ' B';
  if (bytes < 1e6) return (bytes / 1e3).toFixed(1) + ' kB';
  return (bytes / 1e6).toFixed(1) + ' MB';
};
tp.count = function (n, word) { return n + ' ' + word + (n === 1 ? '' : 's'); };
tp.tokens = function (call) {
  var given = call.tokens_in, made = call.tokens_out;
  var among = [call.tokens_cached ? call.tokens_cached.toLocaleString('en') + ' cached' : '', call.tokens_written ? call.tokens_written.toLocaleString('en') + ' written to the cache' : ''].filter(Boolean).join(', ');
  return [given === null ? '' : given.toLocaleString('en') + ' tokens in' + (among && ' (' + among + ')'), made === null ? '' : made.toLocaleString('en') + ' out'].filter(Boolean).join(', ');
};

/* Prices are the user's own: none are built in, for they change. A line a model: name or its beginning, and the prices
   of a million tokens in and out, then of those that were read from the provider's cache and of those written to it.
   Kept in this browser. */
tp.prices = function (text) {
  var found = [];
  for (var line of String(text || '').split('\n')) {
    var words = line.trim().split(/[\s,;]+/), numbers = words.slice(1).map(Number);
    if (words[0] && numbers.length >= 2 && numbers.length <= 4 && numbers.every(isFinite)) found.push([words[0]].concat(numbers));
  }
  return found.sort(function (a, b) { return b[0].length - a[0].length; });
};
tp.stored = function (name, value) {
  try {
    if (value !== undefined) localStorage.setItem(name, value);
    return localStorage.getItem(name) || '';
  } catch (error) { return ''; }
};
tp.table = tp.prices(tp.stored('tapeproxy-prices'));
/* What a call costs. It is rough where cached tokens, or those written to a cache, count as others for want of a price. */
tp.cost = function (call) {
  var row = call.model === null ? null : tp.table.find(function (one) { return call.model.startsWith(one[0]); });
  if (!row || (call.tokens_in === null && call.tokens_out === null)) return null;
  var cached = call.tokens_cached || 0, written = call.tokens_written || 0, given = call.tokens_in || 0;
  var read = row[3] === undefined ? row[1] : row[3], write = row[4] === undefined ? row[1] : row[4];
  var plain = Math.max(0, given - cached - written);
  return {
    money: (plain * row[1] + cached * read + written * write + (call.tokens_out || 0) * row[2]) / 1e6,
    rough: (cached > 0 && row[3] === undefined) || (written > 0 && row[4] === undefined),
  };
};
tp.costs = function (cost) { return cost === null ? '' : 'costs ' + (cost.rough ? 'about ' : '') + tp.money(cost.money); };
tp.money = function (cost) { return cost < 0.01 ? cost.toFixed(5) : cost.toFixed(2); };
tp.clip = function (text, most) { return text.length > most ? text.slice(0, most - 1) + '…' : text; };

/* First place in a sorted array that is not below `value`. */
tp.bisect = function (array, value, at) {
  var low = 0, high = array.length;
  while (low < high) {
    var middle = (low + high) >> 1;
    if ((at ? at(array[middle]) : array[middle]) < value) low = middle + 1; else high = middle;
  }
  return low;
};

/* base64 to bytes, and bytes of gzip to bytes. */
tp.unbase64 = function (text) {
  var raw = atob(text), bytes = new Uint8Array(raw.length);
  for (var at = 0; at < raw.length; at++) bytes[at] = raw.charCodeAt(at);
  return bytes;
};
tp.gunzip = async function (bytes) {
  var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
};

/* A store: `get()`, `set(changes)`, `watch(fn)`. Watchers are called once for all changes of a turn. */
tp.store = function (state) {
  var watchers = [], due = false;
  return {
    get: function () { return state; },
    set: function (changes) {
      state = Object.assign({}, state, changes);
      if (due) return;
      due = true;
      queueMicrotask(function () { due = false; watchers.slice().forEach(function (fn) { fn(state); }); });
    },
    watch: function (fn) { watchers.push(fn); return function () { watchers = watchers.filter(function (one) { return one !== fn; }); }; },
  };
};
tp.useStore = function (store) {
  var pair = htmPreact.useState(store.get());
  htmPreact.useEffect(function () { return store.watch(pair[1]); }, [store]);
  return pair[0];
};
