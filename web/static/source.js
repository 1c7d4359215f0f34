/* Where the page gets a tape from: the server that it came from, or the page itself (`tapeproxy view`). One interface:
   outline(), ranks(), labels(from, to), exchange(n), search(text), file(), and `live(changed)` where it can grow. */
'use strict';
tp.httpSource = function (id) {
  var base = '/api/tapes/' + encodeURIComponent(id) + '/';
  function json(path) { return tp.ask(base + path); }
  return {
    embedded: false,
    home: true,
    id: id,
    outline: function () { return json('outline'); },
    ranks: function () { return json('ranks'); },
    labels: function (from, to) { return json('labels?from=' + from + '&to=' + to); },
    exchange: function (n) { return json('exchanges/' + n); },
    why: function (n, text) { return json('why?event=' + n + (text ? '&text=' + encodeURIComponent(text) : '')); },
    search: async function (text) { return (await json('search?q=' + encodeURIComponent(text))).numbers; },
    file: async function () { return new Uint8Array(await (await tp.fetched(base + 'file')).arrayBuffer()); },
  };
};

/* Exchanges, and what is told of their words, in blocks of gzip: opened when one is looked at, what was looked at lately
   stays. */
tp.blocks = function (name) {
  var opened = [], blocks = Array.prototype.map.call(document.querySelectorAll('script[data-' + name + ']'), function (element) {
    return { from: Number(element.dataset.from), to: Number(element.dataset.to), element: element, made: null };
  });
  function open(block) {
    if (!block.made) {
      block.made = tp.gunzip(tp.unbase64(block.element.textContent.trim())).then(function (bytes) {
        return JSON.parse(new TextDecoder().decode(bytes));
      });
    }
    opened = opened.filter(function (one) { return one !== block; }).concat([block]);
    if (opened.length > 12) opened.shift().made = null;
    return block.made;
  }
  return {
    all: blocks,
    open: open,
    one: async function (n) {
      var block = blocks.find(function (one) { return one.from <= n && n <= one.to; });
      return block ? (await open(block))[n - block.from] : null;
    },
  };
};

/* The single file: `outline`, `ranks` and `labels` as JSON, exchanges in blocks of gzip that are opened when looked at. */
tp.embeddedSource = function () {
  var blocks = tp.blocks('block'), words = tp.blocks('why'), differences = null;
  /* Each is wanted once; its text would only stay in memory. */
  function parsed(id) {
    var element = document.getElementById(id), found = JSON.parse(element.textContent);
    element.remove();
    return found;
  }
  async function exchange(n) {
    var found = await blocks.one(n);
    if (!found) throw new Error('exchange ' + n + ' is not in this file');
    return found;
  }
  /* What is new in a request, or where in it and those before in its row some words stand. */
  async function why(n, text) {
    var found = await words.one(n);
    if (!found) throw new Error('This file tells of the words of its first requests alone, for it would be too long: `tapeproxy why TAPE --event ' + n + '` tells of all.');
    if (!text) return found;
    for (var at = found; at; at = at.previous === null ? null : await words.one(at.previous)) {
      var texts = tp.spansWith(at.texts, text);
      if (texts.length) return { event: n, previous: found.previous, fresh: false, whole: at.whole, texts: texts };
    }
    throw new Error('the request has no such words');
  }
  return {
    embedded: true,
    id: null,
    outline: async function () { return parsed('tp-outline'); },
    ranks: async function () { return parsed('tp-ranks'); },
    labels: async function (from, to) { return from === 1 ? parsed('tp-labels') : { number: [] }; },
    exchange: exchange,
    why: words.all.length ? why : undefined,
    search: async function (text) {
      var found = [];
      for (var block of blocks.all) {
        var all = await blocks.open(block);
        all.forEach(function (one, at) {
          if (tp.says(one, text)) found.push(block.from + at);
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
