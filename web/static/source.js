/* Where the page gets a tape from: the server that it came from, or the page itself (`tapeproxy view`). One interface:
   outline(), ranks(), labels(from, to), exchange(n), search(text), file(), and `live(changed)` where it can grow. */
'use strict';
tp.httpSource = function (id) {
  var base = '/api/tapes/' + encodeURIComponent(id) + '/';
  async function json(path) {
    var reply = await fetch(base + path, { headers: { accept: 'application/json', 'x-tapeproxy-token': tp.token } });
    var body = await reply.json().catch(function () { return { error: reply.status + ' ' + reply.statusText }; });
    if (!reply.ok) throw new Error(body.error || String(reply.status));
    return body;
  }
  return {
    embedded: false,
    id: id,
    json: json,
    outline: function (first) { return json('outline' + (first > 1 ? '?first=' + first : '')); },
    ranks: function () { return json('ranks'); },
    labels: function (from, to) { return json('labels?from=' + from + '&to=' + to); },
    exchange: function (n) { return json('exchanges/' + n); },
    search: async function (text) { return (await json('search?q=' + encodeURIComponent(text))).numbers; },
    file: async function () { return new Uint8Array(await (await fetch(base + 'file', { headers: { 'x-tapeproxy-token': tp.token } })).arrayBuffer()); },
  };
};

/* The single file: `outline`, `ranks` and `labels` as JSON, exchanges in blocks of gzip that are opened when looked at. */
tp.embeddedSource = function () {
  var blocks = Array.prototype.map.call(document.querySelectorAll('script[data-block]'), function (element) {
    return { from: Number(element.dataset.from), to: Number(element.dataset.to), element: element, made: null };
  });
  /* Each is wanted once; its text would only stay in memory. */
  function parsed(id) {
    var element = document.getElementById(id), found = JSON.parse(element.textContent);
    element.remove();
    return found;
  }
  var differences = null, opened = [];
  function open(block) {
    if (!block.made) {
      block.made = tp.gunzip(tp.unbase64(block.element.textContent.trim())).then(function (bytes) {
        return JSON.parse(new TextDecoder().decode(bytes));
      });
    }
    // What was looked at lately stays.
    opened = opened.filter(function (one) { return one !== block; }).concat([block]);
    if (opened.length > 12) opened.shift().made = null;
    return block.made;
  }
  async function exchange(n) {
    var block = blocks.find(function (one) { return one.from <= n && n <= one.to; });
    if (!block) throw new Error('exchange ' + n + ' is not in this file');
    return (await open(block))[n - block.from];
  }
  return {
    embedded: true,
    id: null,
    outline: async function () { return parsed('tp-outline'); },
    ranks: async function () { return parsed('tp-ranks'); },
    labels: async function (from, to) { return from === 1 ? parsed('tp-labels') : { number: [] }; },
    exchange: exchange,
    search: async function (text) {
      var found = [], wanted = text.toLowerCase();
      for (var block of blocks) {
        var all = await open(block);
        all.forEach(function (one, at) {
          if (JSON.stringify(one).toLowerCase().includes(wanted)) found.push(block.from + at);
        });
        block.made = null;
      }
      return found;
    },
    differences: async function (at) {
      if (!differences) differences = parsed('tp-differences');
      return differences[at];
    },
    file: async function () {
      var element = document.getElementById('tp-file');
      if (!element) throw new Error('the tape itself is not in this file');
      return tp.unbase64(element.textContent.trim());
    },
  };
};
