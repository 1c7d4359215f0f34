/* Whether an exchange of the single file says a text: the rule of web/searching.py, over the documents of exchanges. */
'use strict';
(function () {
  var STANDS_FOR = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }, DEEP = 3;

  function* body(one) {
    if (one) yield one.text !== undefined ? one.text : new TextDecoder().decode(tp.unbase64(one.b64 || ''));
  }
  function* values(pairs) { for (var pair of pairs) yield pair[1]; }

  function* texts(found) {
    var call = found.call, end = found.end;
    yield found.request.url;
    yield* values(found.request.headers);
    yield* body(found.request.body);
    if (found.response) { yield* values(found.response.headers); yield* body(found.response.body); }
    if (end) { yield* values(end.trailers); yield end.error || ''; }
    for (var message of found.messages) yield* body(message);
    if (!call) return;
    for (var one of call.messages.concat(call.answer || [])) for (var part of one.parts) {
      if (part.kind === 'tool-call') { yield part.name; yield part.arguments; } else if (part.text) yield part.text;
    }
    yield call.error || '';
  }

  function flat(text) { return text.toLowerCase().replace(/\s+/g, ' '); }

  tp.says = function (found, text) {
    var wanted = flat(text).trim();
    for (var one of texts(found)) {
      for (var turn = 0; turn < DEEP; turn++) {
        if (flat(one).includes(wanted)) return true;
        if (!one.includes('\\')) break;
        one = one.replace(/\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))/g, function (_, code, letter) { return code ? String.fromCharCode(parseInt(code, 16)) : STANDS_FOR[letter] || letter; });
      }
    }
    return false;
  };
})();
