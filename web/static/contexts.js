/* What happened to the context between two calls of models: messages injected, dropped, changed, truncated. Computed in
   the page, so that a single file can compare any two calls. The rules are those of tapes/contexts.py; a test holds the
   two against each other. */
'use strict';
(function () {
  var html = tp.html, hooks = tp.hooks;
  var CUTS = ['…', '...', '[truncated]'], LEAST = 8, WORDS = 1500, ALIKE = 0.3;

  /* How one sequence becomes the other, as [what, a0, a1, b0, b1]: the longest common run first, then left and right of
     it. The algorithm of Python's difflib without its junk. */
  function opcodes(a, b) {
    var places = new Map(), blocks = [], queue = [[0, a.length, 0, b.length]];
    b.forEach(function (one, at) { if (places.has(one)) places.get(one).push(at); else places.set(one, [at]); });
    while (queue.length) {
      var job = queue.pop(), best = [job[0], job[2], 0], lengths = new Map();
      for (var i = job[0]; i < job[1]; i++) {
        var next = new Map();
        for (var j of places.get(a[i]) || []) {
          if (j < job[2]) continue;
          if (j >= job[3]) break;
          var size = (lengths.get(j - 1) || 0) + 1;
          next.set(j, size);
          if (size > best[2]) best = [i - size + 1, j - size + 1, size];
        }
        lengths = next;
      }
      if (!best[2]) continue;
      blocks.push(best);
      queue.push([job[0], best[0], job[2], best[1]], [best[0] + best[2], job[1], best[1] + best[2], job[3]]);
    }
    blocks.sort(function (x, y) { return x[0] - y[0]; });
    blocks.push([a.length, b.length, 0]);
    var out = [], at = 0, to = 0;
    for (var block of blocks) {
      if (at < block[0] || to < block[1]) out.push([at === block[0] ? 'insert' : to === block[1] ? 'delete' : 'replace', at, block[0], to, block[1]]);
      if (block[2]) out.push(['equal', block[0], block[0] + block[2], block[1], block[1] + block[2]]);
      at = block[0] + block[2];
      to = block[1] + block[2];
    }
    // Blocks that touch are one.
    return out.reduce(function (all, one) {
      var last = all[all.length - 1];
      if (last && one[0] === 'equal' && last[0] === 'equal') { last[2] = one[2]; last[4] = one[4]; } else all.push(one);
      return all;
    }, []);
  }

  function partText(part) {
    if (part.kind === 'text') return part.text;
    if (part.kind === 'thought') return '(thinking) ' + part.text;
    if (part.kind === 'tool-call') return part.name + '(' + part.arguments + ')';
    if (part.kind === 'tool-result') return 'result' + (part.error ? ' (error)' : '') + ': ' + part.text;
    return '[' + part.kind + ' ' + (part.detail || '') + ']';
  }
  function messageText(message) { return message.parts.map(partText).join('\n'); }

  /* Whether `now` is `was` without its end, its beginning or its middle. */
  function cutShort(was, now) {
    if (Array.from(now).length >= Array.from(was).length) return false;
    var kept = 0;
    while (kept < now.length && was[kept] === now[kept]) kept++;
    var rest = now.slice(kept);
    if (!rest.trim()) return kept >= LEAST || !now;
    var mark = CUTS.find(function (one) { return rest.includes(one); });
    if (!mark) return rest.length >= LEAST && kept === 0 && was.endsWith(rest);
    return kept + rest.length >= LEAST && was.endsWith(rest.slice(rest.indexOf(mark) + mark.length).trimStart());
  }

  /* Every message of both, in order: [kind, number in a or null, number in b or null]; kind `same` for what both have. */
  tp.contextRows = function (a, b) {
    var keys = [a, b].map(function (side) { return side.map(function (message) { return JSON.stringify(message); }); }), rows = [];
    function same(a0, a1, b0) { for (var at = a0; at < a1; at++) rows.push(['same', at, b0 + at - a0]); }
    function pair(was, now) {
      if (was === null || now === null || a[was].role !== b[now].role) {
        if (was !== null) rows.push(['dropped', was, null]);
        if (now !== null) rows.push(['injected', null, now]);
      } else rows.push([cutShort(messageText(a[was]), messageText(b[now])) ? 'truncated' : 'changed', was, now]);
    }
    function block(a0, a1, b0, b1) {
      if (a1 - a0 === b1 - b0) { for (var at = a0; at < a1; at++) pair(at, b0 + at - a0); return; }
      var roles = [a.slice(a0, a1), b.slice(b0, b1)].map(function (side) { return side.map(function (message) { return message.role; }); });
      for (var step of opcodes(roles[0], roles[1])) {
        if (step[0] === 'equal') for (var k = step[1]; k < step[2]; k++) pair(a0 + k, b0 + step[3] + k - step[1]);
        else {
          for (var i = step[1]; i < step[2]; i++) pair(a0 + i, null);
          for (var j = step[3]; j < step[4]; j++) pair(null, b0 + j);
        }
      }
    }
    if (a.length === b.length) {
      for (var at = 0; at < a.length; at++) { if (keys[0][at] === keys[1][at]) same(at, at + 1, at); else block(at, at + 1, at, at + 1); }
      return rows;
    }
    for (var step of opcodes(keys[0], keys[1])) {
      if (step[0] === 'equal') same(step[1], step[2], step[3]); else block(step[1], step[2], step[3], step[4]);
    }
    return rows;
  };

  function solid(words) { return words.reduce(function (sum, word) { return sum + (word.trim() ? word.length : 0); }, 0); }

  /* Two texts in runs: [what, text], what being same, out (only the first has it) or in. By words; where very much
     differs, one run goes and another comes. */
  tp.wordRuns = function (was, now) {
    var words = [was, now].map(function (text) { return text.match(/\s+|[\p{L}\p{N}_]+|[^]/gu) || []; }), start = 0, end = 0;
    while (start < words[0].length && start < words[1].length && words[0][start] === words[1][start]) start++;
    while (end < words[0].length - start && end < words[1].length - start && words[0][words[0].length - 1 - end] === words[1][words[1].length - 1 - end]) end++;
    var middles = words.map(function (side) { return side.slice(start, side.length - end); }), runs = [['same', words[0].slice(0, start).join('')]];
    if (Math.max(middles[0].length, middles[1].length) > WORDS) runs.push(['out', middles[0].join('')], ['in', middles[1].join('')]);
    else {
      var steps = opcodes(middles[0], middles[1]), letters = middles.map(solid);
      var kept = steps.reduce(function (sum, step) { return sum + (step[0] === 'equal' ? solid(middles[0].slice(step[1], step[2])) : 0); }, 0);
      // Two texts that have no more than a few words and the spaces in common are not one that was changed.
      if (kept < ALIKE * Math.min(letters[0], letters[1])) steps = [['replace', 0, middles[0].length, 0, middles[1].length]];
      for (var step of steps) {
        if (step[0] === 'equal') runs.push(['same', middles[0].slice(step[1], step[2]).join('')]);
        else runs.push(['out', middles[0].slice(step[1], step[2]).join('')], ['in', middles[1].slice(step[3], step[4]).join('')]);
      }
    }
    runs.push(['same', end ? words[0].slice(words[0].length - end).join('') : '']);
    return runs.filter(function (run) { return run[1]; });
  };

  function Runs(props) {
    return html`<pre>${tp.wordRuns(props.was, props.now).map(function (run) {
      // Of a long run that both have, the ends say where one is.
      var text = run[0] === 'same' && run[1].length > 600 ? run[1].slice(0, 300) + '\n … ' + (run[1].length - 600) + ' characters the same … \n' + run[1].slice(-300) : run[1];
      return run[0] === 'out' ? html`<del>${tp.spelled(text)}</del>` : run[0] === 'in' ? html`<ins>${tp.spelled(text)}</ins>` : html`<span>${tp.spelled(text)}</span>`;
    })}</pre>`;
  }
  tp.Runs = Runs;

  function Row(props) {
    var row = props.row, kind = row[0], was = row[1] === null ? null : props.a[row[1]], now = row[2] === null ? null : props.b[row[2]];
    var where = row[1] === null ? 'message ' + row[2] : row[2] === null || row[1] === row[2] ? 'message ' + row[1] : 'message ' + row[1] + ' → ' + row[2];
    if (kind === 'same') return html`<${tp.Message} message=${now} place=${row[2]} note=${where} />`;
    return html`<section class=${'message kind-' + kind}><h4><span class="chip">${kind}</span> ${tp.spelled((now || was).role)} <span class="dim">${where}</span></h4>
      ${was !== null && now !== null ? html`<${Runs} was=${messageText(was)} now=${messageText(now)} />` : html`<${tp.Text} text=${messageText(now || was)} />`}</section>`;
  }

  /* Rows, with what is the same folded away. */
  tp.ContextRows = function (props) {
    var rows = tp.contextRows(props.a, props.b), groups = [];
    for (var row of rows) {
      var last = groups[groups.length - 1];
      if (last && last[0][0] === 'same' && row[0] === 'same') last.push(row); else groups.push([row]);
    }
    return html`<div>${groups.map(function (group, at) {
      if (group[0][0] !== 'same') return html`<${Row} key=${at} row=${group[0]} a=${props.a} b=${props.b} />`;
      return html`<details key=${at} class="same"><summary>${tp.count(group.length, 'message')} the same</summary>${group.map(function (one) { return html`<${Row} row=${one} a=${props.a} b=${props.b} />`; })}</details>`;
    })}</div>`;
  };

  tp.views.context = function (props) {
    var model = props.model, number = props.state.number, other = props.state.other;
    if (other === null && number !== null) other = model.callBefore(number);
    var pair = hooks.useState({}), state = pair[0], missing = [other, number].find(function (one) { return one !== null && !model.byNumber.has(one); });
    hooks.useEffect(function () {
      if (number === null || other === null || missing !== undefined) return undefined;
      var gone = false;
      Promise.all([model.source.exchange(other), model.source.exchange(number)]).then(function (both) { if (!gone) pair[1]({ key: other + ' ' + number, calls: both.map(function (one) { return one.call; }) }); }, function (error) { if (!gone) pair[1]({ key: other + ' ' + number, error: error.message }); });
      return function () { gone = true; };
    }, [number, other, missing]);
    function close() { props.store.set({ view: '', other: null }); }
    function name(one) { return (model.byNumber.get(one) || {}).label; }
    var calls = state.calls, ready = state.key === other + ' ' + number;
    return html`<div class="lower single context" tabindex="0">
      <p><b>${other === null || number === null || missing !== undefined ? 'Contexts' : 'From the context of ' + name(other) + ' to that of ' + name(number)}</b> <button onClick=${close}>close</button></p>
      ${missing !== undefined && html`<p class="bad">There is no exchange ${missing} here.</p>`}
      ${number === null && html`<p class="dim">Choose a call of a model first.</p>`}
      ${number !== null && other === null && html`<p class="dim">No call of a model came before this one in its lane. Press m on another one, then c on this.</p>`}
      ${ready && state.error && html`<p class="bad">${tp.spelled(state.error)}</p>`}
      ${ready && calls && (calls[0] && calls[1] ? html`<${Facts} a=${calls[0]} b=${calls[1]} /><${tp.ContextRows} a=${calls[0].messages} b=${calls[1].messages} />` : html`<p class="dim">Only calls of models have a context: exchange ${name(calls[0] ? number : other)} is none.</p>`)}
    </div>`;
  };

  function Facts(props) {
    var counts = {};
    for (var row of tp.contextRows(props.a.messages, props.b.messages)) counts[row[0]] = (counts[row[0]] || 0) + 1;
    var words = ['same', 'injected', 'dropped', 'changed', 'truncated'].filter(function (kind) { return counts[kind]; }).map(function (kind) { return counts[kind] + ' ' + kind; });
    if (props.a.model !== props.b.model) words.push('model ' + props.a.model + ' → ' + props.b.model);
    if (props.a.tokens_in !== null && props.b.tokens_in !== null) words.push('tokens in ' + props.a.tokens_in + ' → ' + props.b.tokens_in);
    return html`<p class="facts">${tp.spelled(words.join(' · '))}</p>`;
  }
})();
