/* Where the words of a request come from: below the words that were clicked on, or of all that is new (key w). What is
   found comes from the server, or stands in the file (tapes/why.py made both); nothing is searched here. */
'use strict';
(function () {
  var html = tp.html, hooks = tp.hooks, selected = { number: null, text: '' };
  var LONGEST = 600, WHOLE = 3000, LEAST = 12;

  /* The words that are selected on the page are asked about; without any, what the call before did not have. */
  tp.askWhy = function (store) {
    selected = { number: store.get().number, text: String(getSelection()).trim() };
    store.set({ view: 'why' });
  };

  function solid(text) { return text.replace(/\s+/g, ''); }

  /* The sentence or line of a text in which a character stands, and how many letters of it stand before. */
  tp.wordsAt = function (text, at) {
    var start = text.lastIndexOf('\n', at - 1) + 1, end = text.indexOf('\n', at);
    if (end < 0) end = text.length;
    if (end - start > LONGEST) {
      var before = text.slice(Math.max(start, at - LONGEST / 2), at), after = text.slice(at, Math.min(end, at + LONGEST / 2));
      var cut = Math.max(before.lastIndexOf('. '), before.lastIndexOf('? '), before.lastIndexOf('! ')), stop = after.search(/[.?!](\s|$)/);
      start = at - before.length + (cut < 0 ? 0 : cut + 2);
      end = at + (stop < 0 ? after.length : stop + 1);
    }
    if (solid(text.slice(start, end)).length < LEAST) { start = Math.max(0, at - WHOLE / 2); end = Math.min(text.length, at + WHOLE / 2); }
    return { text: text.slice(start, end), at: solid(text.slice(start, at)).length };
  };

  /* Of the texts that the file explains, those spans that the words stand in: [{place, spans}]. */
  tp.spansWith = function (texts, words) {
    var wanted = solid(words), out = [];
    for (var text of texts) {
      var flat = solid(text.text), at = wanted ? flat.indexOf(wanted) : -1, done = 0, spans = [];
      if (at < 0) continue;
      for (var span of text.spans) {
        var size = solid(span.text).length;
        if (done + size > at && done < at + wanted.length) spans.push(span);
        done += size;
      }
      out.push({ place: text.place, text: text.text, spans: spans });
    }
    return out;
  };

  function Jump(props) {
    var told = props.told;
    if (told.event === undefined) return html`<span>${tp.spelled(told.words)}</span>`;
    function go() {
      var tab = /^header /.test(told.path || '') ? 'headers' : 'conversation';
      tp.state.set({ number: told.event, view: '', tab: tab, lit: { number: told.event, side: told.kind, text: props.lit || '' } });
    }
    return html`<button class="jump" onClick=${go}>${tp.spelled(told.words)}</button>`;
  }

  /* The words in their source, with what stands around them. */
  function Around(props) {
    var around = props.source.around;
    if (!around || !(around[0] || around[2])) return null;
    return html`<div class="around">${around[0] && '…' + tp.spelled(around[0])}<mark>${tp.spelled(tp.clip(around[1], 200))}</mark>${around[2] && tp.spelled(around[2]) + '…'}</div>`;
  }

  function Came(props) {
    return html`<ul>${props.spans.map(function (span) {
      return html`<li>← “${tp.spelled(tp.clip(span.text, 120))}”
        ${span.asked_in && html` asked in <${Jump} lit=${span.text} told=${{ event: span.asked_in.event, kind: 'request', words: 'event ' + span.asked_in.event + ' at ' + span.asked_in.path }} />`}:
        ${' '}${span.source ? html`<${Jump} lit=${span.source.around && span.source.around[1]} told=${span.source} /><${Around} source=${span.source} />` : 'the agent’s own words'}
        ${span.came && span.came.length > 0 && html`<${Came} spans=${span.came} />`}</li>`;
    })}</ul>`;
  }

  /* A text in spans. `at`: how many letters stand before the one that was clicked on; its span is outlined. */
  function Text(props) {
    var text = props.text, numbered = text.spans.filter(function (span) { return span.source; }), done = 0, here = null;
    for (var one of text.spans) {
      done += solid(one.text).length;
      if (props.at !== undefined && here === null && done > props.at) here = one;
    }
    return html`<section class="message"><h4>${tp.spelled(text.place)}</h4>
      <pre class="text">${text.spans.map(function (span) {
        var at = numbered.indexOf(span);
        return at < 0 ? tp.spelled(span.text) : html`<mark class=${'why-' + (at % 5) + (span === here ? ' here' : '')} title=${tp.spelled(span.source.words)}>${tp.spelled(span.text)}<sup>${at + 1}</sup></mark>`;
      })}</pre>
      <ol>${numbered.map(function (span) {
        return html`<li class=${span === here ? 'here' : ''}><${Jump} lit=${span.source.around && span.source.around[1]} told=${span.source} /> <span class="dim">characters ${span.source.start} to ${span.source.end}; in the requests since event ${span.since}</span>
          <${Around} source=${span.source} />
          ${span.others.length > 0 && html`<div class="dim">or ${span.others.map(function (told) { return html`<${Jump} lit=${span.text} told=${told} /> `; })}</div>`}
          ${span.came.length > 0 && html`<${Came} spans=${span.came} />`}</li>`;
      })}</ol>
      ${numbered.length === 0 && html`<p class="dim">the agent’s own words</p>`}
    </section>`;
  }

  /* What is told of `text` in a request, or of all that is new in it. Only the last question's answer is shown. */
  function useWhy(model, number, text) {
    var pair = hooks.useState({}), key = number + ' ' + text;
    hooks.useEffect(function () {
      var gone = false;
      model.source.why(number, text).then(function (found) { if (!gone) pair[1]({ key: key, found: found }); }, function (error) { if (!gone) pair[1]({ key: key, found: { error: error.message } }); });
      return function () { gone = true; };
    }, [key]);
    return pair[0].key === key ? pair[0].found : null;
  }

  function Found(props) {
    var found = props.found;
    return html`<div>
      ${!found && html`<p class="dim">looking …</p>`}
      ${found && found.error && html`<p class="bad">${tp.spelled(found.error)}</p>`}
      ${found && found.texts && found.texts.map(function (text) { return html`<${Text} text=${text} at=${props.at} />`; })}
      ${found && found.whole === false && html`<p class="dim">This is much text: not every arrow is followed to its end.</p>`}
    </div>`;
  }

  /* Below the words that were clicked on. */
  tp.Where = function (props) {
    var found = useWhy(tp.model, props.number, props.asked.text), box = hooks.useRef(null);
    hooks.useEffect(function () { if (found) box.current.scrollIntoView({ block: 'nearest' }); }, [found]);
    return html`<div ref=${box} class="why where" aria-live="polite"><p><b>where these words come from</b> <button onClick=${props.close}>close</button></p><${Found} found=${found} at=${props.asked.at} /></div>`;
  };

  tp.views.why = function (props) {
    var number = props.state.number, text = selected.number === number ? selected.text : '', found = useWhy(props.model, number, text);
    return html`<div class="lower single why" tabindex="0" data-number=${number}>
      <p><button onClick=${function () { props.store.set({ view: '' }); }}>back</button> where the words of event ${number} come from${found && found.fresh ? ': what the call before, event ' + found.previous + ', did not have' : ''}</p>
      <${Found} found=${found} />
      ${found && found.texts && found.texts.length === 0 && html`<p class="dim">Nothing is new in it. Click on words of its conversation, or select some and press w.</p>`}
    </div>`;
  };
})();
