/* Two runs in one picture: which exchanges stand for each other, which differ and how. The lanes are drawn as always;
   this rings what differs, and has the tab that tells of it. */
'use strict';
(function () {
  var html = tp.html, hooks = tp.hooks;
  var KIND_WORDS = { same: 'the same in both runs', moved: 'the same, elsewhere', changed: 'changed', missing: 'only A has it', extra: 'only B has it' };

  /* The events by the numbers of their exchanges. */
  tp.diffOf = function (model) {
    if (!model.diff.byNumber) {
      model.diff.byNumber = new Map();
      model.diff.events.forEach(function (event, at) {
        var found = { at: at, kind: event[0], a: event[1], b: event[2], changes: event[3], branch: at === model.diff.branch };
        for (var number of [event[1], event[2]]) if (number !== null) model.diff.byNumber.set(number, found);
      });
    }
    return model.diff.byNumber;
  };
  tp.differs = function (row, model) {
    var event = model.diff && tp.diffOf(model).get(row.number);
    return Boolean(event) && event.kind !== 'same';
  };

  /* Rings: what differs, and the branch point above all. */
  tp.ringDiff = function (model, lanes) {
    if (!model.diff) return;
    lanes.ringed = new Set(model.rows.filter(function (row) { return tp.differs(row, model); }).map(function (row) { return row.number; }));
    lanes.branch = new Set();
    var branch = model.diff.branch === null ? null : model.diff.events[model.diff.branch];
    if (branch) for (var number of [branch[1], branch[2]]) if (number !== null) lanes.branch.add(number);
  };

  function Verdict(props) {
    var model = props.model, diff = model.diff, branch = diff.branch === null ? null : diff.events[diff.branch];
    var words = ['changed', 'missing', 'extra', 'moved', 'same'].filter(function (kind) { return diff.counts[kind]; }).map(function (kind) { return diff.counts[kind] + ' ' + kind; });
    return html`<span class="verdict"><b class=${diff.same ? 'good' : 'bad'}>${diff.same ? 'nothing differs that counts' : 'different'}</b> <span class="dim">${words.join(' · ')}${diff.relation && ' · ' + tp.spelled(diff.relation)}</span>
      ${branch && html` <button onClick=${function () { props.store.set({ number: branch[1] !== null ? branch[1] : branch[2], tab: 'difference', view: '' }); }} title="b">branch point</button>`}
      ${!diff.same && html` <button onClick=${function () { props.store.set({ query: props.state.query === 'is:different' ? '' : 'is:different' }); }} aria-pressed=${props.state.query === 'is:different'}>only what differs</button>`}</span>`;
  }
  tp.DiffVerdict = Verdict;

  function Places(props) {
    if (!props.rows.length) return null;
    return html`<h4>${props.title}</h4><table class="headers two"><tr><th>where</th><th>A</th><th>B</th></tr>${props.rows.map(function (row) {
      var was = row[1] === null ? '(absent)' : row[1], now = row[2] === null ? '(absent)' : row[2];
      return html`<tr><th>${tp.spelled(row[0])}</th><td class="was">${tp.spelled(tp.clip(was, 4000))}</td><td class="now">${tp.spelled(tp.clip(now, 4000))}</td></tr>`;
    })}</table>`;
  }

  function answerText(document_) {
    var call = document_ && document_.call;
    if (!call || !call.answer) return null;
    return call.answer.parts.map(function (part) { return part.kind === 'tool-call' ? (part.name || '') + '(' + part.arguments + ')' : part.text || ''; }).join('\n');
  }

  tp.tabViews.difference = function (props) {
    var model = props.model, number = props.document.exchange.number, event = tp.diffOf(model).get(number);
    var pair = hooks.useState({}), state = pair[0];
    hooks.useEffect(function () {
      var gone = false;
      if (!event || event.a === null || event.b === null) return undefined;
      var told = event.kind === 'changed' ? model.source.differences(event.at) : Promise.resolve(null);
      Promise.all([model.source.exchange(event.a), model.source.exchange(event.b), told]).then(function (found) { if (!gone) pair[1]({ found: found }); }, function (error) { if (!gone) pair[1]({ error: error.message }); });
      return function () { gone = true; };
    }, [number]);
    if (!event) return html`<p class="dim">This exchange was not compared.</p>`;
    function link(one) { return html`<button onClick=${function () { tp.state.set({ number: one }); }}>${model.byNumber.get(one).label}</button>`; }
    var found = state.found, a = found && found[0], b = found && found[1], told = found && found[2], calls = a && a.call && b.call;
    var said = calls ? [answerText(a), answerText(b)] : [null, null];
    return html`<div class="difference">
      <p>${event.branch && html`<span class="chip bad">branch point</span> `}<b>${KIND_WORDS[event.kind]}</b>${event.changes.length > 0 && ': ' + event.changes.join(', ')} ${event.a !== null && event.b !== null && html` · ${link(event.a)} and ${link(event.b)}`}</p>
      ${state.error && html`<p class="bad">${tp.spelled(state.error)}</p>`}
      ${calls && event.changes.includes('request') && html`<h4>context</h4><${tp.ContextRows} a=${a.call.messages} b=${b.call.messages} />`}
      ${said[0] !== null && said[1] !== null && said[0] !== said[1] && html`<h4>answer</h4><${tp.Runs} was=${said[0]} now=${said[1]} />`}
      ${told && html`<${Places} title="request" rows=${told.request} /><${Places} title="response" rows=${told.response} />`}
      ${found && event.kind === 'changed' && !told && html`<p class="dim">Place by place it is told by <code>tapeproxy diff --context</code>: this page would be too long.</p>`}
      ${event.branch && model.diff.reads.length > 0 && html`<${Places} title="read otherwise before" rows=${model.diff.reads.slice(0, 200).map(function (read) { return [read[0] + ' ' + read[1] + (read[2] ? ' at ' + read[2] : ''), read[3], read[4]]; })} />`}
      ${(event.branch || model.diff.branch === null) && html`<${Places} title="what hints told" rows=${model.diff.hints.slice(0, 200)} /><${Places} title="how the runs ended" rows=${model.diff.outcome} />`}
    </div>`;
  };
})();
