/* Where the words of a request come from: the view of key w. The server finds out (tapes/why.py); nothing is searched here. */
'use strict';
(function () {
  var html = tp.html, hooks = tp.hooks, selected = '';

  /* The words that are selected on the page are asked about; without any, what the call before did not have. */
  tp.askWhy = function (store) {
    selected = String(getSelection()).trim();
    store.set({ view: 'why' });
  };

  function Jump(props) {
    var told = props.told;
    if (told.event === undefined) return html`<span>${tp.spelled(told.words)}</span>`;
    return html`<button class="jump" onClick=${function () { props.store.set({ number: told.event, view: '', tab: told.kind === 'answer' ? 'response' : 'request' }); }}>${tp.spelled(told.words)}</button>`;
  }

  function Came(props) {
    return html`<ul>${props.spans.map(function (span) {
      return html`<li>← “${tp.spelled(tp.clip(span.text, 120))}”
        ${span.asked_in && html` asked in <${Jump} store=${props.store} told=${{ event: span.asked_in.event, kind: 'request', words: 'event ' + span.asked_in.event + ' at ' + span.asked_in.path }} />`}:
        ${' '}${span.source ? html`<${Jump} store=${props.store} told=${span.source} />` : 'the agent’s own words'}
        ${span.came && span.came.length > 0 && html`<${Came} store=${props.store} spans=${span.came} />`}</li>`;
    })}</ul>`;
  }

  function Text(props) {
    var text = props.text, numbered = text.spans.filter(function (span) { return span.source; });
    return html`<section class="message"><h4>${tp.spelled(text.place)}</h4>
      <pre class="text">${text.spans.map(function (span) {
        var at = numbered.indexOf(span);
        return at < 0 ? tp.spelled(span.text) : html`<mark class=${'why-' + (at % 5)} title=${tp.spelled(span.source.words)}>${tp.spelled(span.text)}<sup>${at + 1}</sup></mark>`;
      })}</pre>
      <ol>${numbered.map(function (span) {
        return html`<li><${Jump} store=${props.store} told=${span.source} /> <span class="dim">characters ${span.source.start} to ${span.source.end}; in the requests since event ${span.since}</span>
          ${span.others.length > 0 && html`<div class="dim">or ${span.others.map(function (told) { return html`<${Jump} store=${props.store} told=${told} /> `; })}</div>`}
          ${span.came.length > 0 && html`<${Came} store=${props.store} spans=${span.came} />`}</li>`;
      })}</ol>
      ${numbered.length === 0 && html`<p class="dim">the agent’s own words</p>`}
    </section>`;
  }

  tp.views.why = function (props) {
    var number = props.state.number, pair = hooks.useState(null), found = pair[0];
    hooks.useEffect(function () {
      var gone = false, query = 'why?event=' + number + (selected ? '&text=' + encodeURIComponent(selected) : '');
      pair[1](null);
      props.model.source.json(query).then(function (document_) { if (!gone) pair[1](document_); }, function (error) { if (!gone) pair[1]({ error: error.message }); });
      return function () { gone = true; };
    }, [number]);
    return html`<div class="lower single why" data-number=${number}>
      <p><button onClick=${function () { props.store.set({ view: '' }); }}>back</button> where the words of event ${number} come from${found && found.fresh ? ': what the call before, event ' + found.previous + ', did not have' : ''}</p>
      ${!found && html`<p class="dim">looking …</p>`}
      ${found && found.error && html`<p class="bad">${tp.spelled(found.error)}</p>`}
      ${found && found.texts && found.texts.map(function (text) { return html`<${Text} store=${props.store} text=${text} />`; })}
      ${found && found.texts && found.texts.length === 0 && html`<p class="dim">Nothing is new in it. Select words on the page, then w.</p>`}
      ${found && found.whole === false && html`<p class="dim">This is much text: not every arrow is followed to its end.</p>`}
    </div>`;
  };
})();
