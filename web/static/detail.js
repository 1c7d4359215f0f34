/* One exchange: as a conversation, raw, headers, the stream as it came, its place in the run. */
'use strict';
(function () {
  var html = tp.html, hooks = tp.hooks;
  var TABS = ['conversation', 'request', 'response', 'headers', 'stream', 'place'];
  tp.TABS = TABS;

  function Text(props) {
    var limit = hooks.useState(20000), text = props.text || '';
    var shown = text.length > limit[0] ? text.slice(0, limit[0]) : text;
    return html`<pre class=${'text ' + (props.kind || '')}>${tp.spelled(shown)}${text.length > limit[0] && html`<button onClick=${function () { limit[1](text.length); }}>… ${tp.count(text.length - limit[0], 'more character')}</button>`}</pre>`;
  }
  tp.Text = Text;

  function pretty(text) {
    try { return JSON.stringify(JSON.parse(text), null, 2); } catch (error) { return text; }
  }
  tp.pretty = pretty;

  function Part(props) {
    var part = props.part;
    if (part.kind === 'text') return html`<${Text} text=${part.text} kind=${part.refusal ? 'refusal' : ''} />`;
    if (part.kind === 'thought') return html`<div class="thought"><b>thinking</b><${Text} text=${part.text || '(hidden by the provider)'} /></div>`;
    if (part.kind === 'tool-call') return html`<div class="tool"><b>calls ${tp.spelled(part.name)}</b>${part.id && html` <span class="dim">${tp.spelled(part.id)}</span>`}<${Text} text=${pretty(part.arguments)} /></div>`;
    if (part.kind === 'tool-result') return html`<div class=${part.error ? 'tool bad' : 'tool'}><b>${part.error ? 'error of a tool' : 'result of a tool'}</b>${part.id && html` <span class="dim">${tp.spelled(part.id)}</span>`}<${Text} text=${pretty(part.text)} /></div>`;
    if (part.image) return html`<img class="media" src=${part.image} alt=${tp.spelled(part.detail || part.kind)} />`;
    return html`<div class="media">[${tp.spelled((part.kind === 'media' ? '' : part.kind) + ' ' + (part.detail || ''))}]</div>`;
  }

  function Message(props) {
    var message = props.message;
    return html`<section class=${'message role-' + (/^[a-z]+$/.test(message.role) ? message.role : 'other')} data-place=${props.place}>
      <h4>${tp.spelled(message.role)}${props.note && html` <span class="dim">${props.note}</span>`}</h4>
      ${message.parts.map(function (part, at) { return html`<${Part} key=${at} part=${part} />`; })}
      ${message.parts.length === 0 && html`<p class="dim">(empty)</p>`}
    </section>`;
  }
  tp.Message = Message;

  function Conversation(props) {
    var call = props.document.call;
    if (!call) return html`<p class="dim">This is no call of a model. Its bodies:</p><${Bodies} document=${props.document} />`;
    var facts = [call.model, call.stop && 'stop: ' + call.stop, call.tokens_in !== null && call.tokens_in + ' tokens in', call.tokens_out !== null && call.tokens_out + ' out', call.streamed && 'streamed', props.document.cost && props.document.cost].filter(Boolean);
    return html`<div class="conversation">
      <p class="facts">${facts.map(tp.spelled).join(' · ')}</p>
      ${call.messages.map(function (message, at) { return html`<${Message} key=${at} message=${message} place=${at} />`; })}
      ${call.answer && html`<${Message} message=${call.answer} place="answer" note="answer" />`}
      ${call.error && html`<section class="message bad"><h4>error</h4><${Text} text=${call.error} /></section>`}
    </div>`;
  }

  function bodyText(body) {
    if (!body) return '';
    if (body.text !== undefined) return body.text;
    return '(' + tp.size(body.size) + ' that are no text)\n' + tp.clip(body.b64 || '', 4000);
  }

  function Bodies(props) {
    var document_ = props.document;
    return html`<div><h4>request</h4><${Text} text=${pretty(bodyText(document_.request.body))} />
      ${document_.response && html`<h4>response</h4><${Text} text=${pretty(bodyText(document_.response.body))} />`}</div>`;
  }

  function Headers(props) {
    var document_ = props.document, sides = [['request', document_.request], ['response', document_.response]];
    return html`<div>${sides.map(function (side) {
      if (!side[1]) return html`<p class="dim">no ${side[0]}</p>`;
      return html`<h4>${side[0]} <span class="dim">${tp.spelled(side[1].http)}${side[1].reason ? ' ' + side[1].status + ' ' + tp.spelled(side[1].reason) : ''}</span></h4>
        <table class="headers">${side[1].headers.map(function (pair) { return html`<tr><th>${tp.spelled(pair[0])}</th><td>${tp.spelled(pair[1])}</td></tr>`; })}</table>`;
    })}
    ${document_.end && document_.end.trailers.length > 0 && html`<h4>trailers</h4><table class="headers">${document_.end.trailers.map(function (pair) { return html`<tr><th>${tp.spelled(pair[0])}</th><td>${tp.spelled(pair[1])}</td></tr>`; })}</table>`}</div>`;
  }

  /* The chunks of the answer as they came; the button plays them at the pace of the tape, or n times as fast. */
  function Stream(props) {
    var pieces = (props.document.response && props.document.response.pieces) || [], base = props.document.request.at_ns;
    var state = hooks.useState(pieces.length), playing = hooks.useState(0), timer = hooks.useRef(null);
    var shown = Math.min(state[0], pieces.length), setShown = state[1];
    function stop() { clearTimeout(timer.current); playing[1](0); }
    function play(speed) {
      clearTimeout(timer.current);
      playing[1](speed);
      var began = performance.now(), first = pieces.length && pieces[0].at_ns !== null ? pieces[0].at_ns : base;
      (function step(at) {
        var now = (performance.now() - began) * 1e6 * speed;
        while (at < pieces.length && (pieces[at].at_ns === null || pieces[at].at_ns - first <= now)) at++;
        setShown(at);
        if (at >= pieces.length) { playing[1](0); return; }
        timer.current = setTimeout(step, Math.max(4, (pieces[at].at_ns - first - now) / 1e6 / speed), at);
      })(0);
    }
    hooks.useEffect(function () {
      setShown(pieces.length);
      tp.playStream = function () { if (timer.current && playing[0]) stop(); else play(1); };
      return function () { clearTimeout(timer.current); tp.playStream = null; };
    }, [props.document]);
    if (!pieces.length) return html`<p class="dim">There is no body.</p>`;
    return html`<div class="stream">
      <p><button class="play" onClick=${function () { if (playing[0]) stop(); else play(1); }}>${playing[0] ? 'stop' : 'play'}</button>
        <button onClick=${function () { play(10); }}>10 ×</button>
        <span class="dim"> ${shown} of ${tp.count(pieces.length, 'chunk')}${shown > 0 && pieces[shown - 1].at_ns !== null ? ', ' + tp.duration(Math.round((pieces[shown - 1].at_ns - base) / 1000)) + ' after the request' : ''}</span></p>
      <div class="chunks">${pieces.slice(0, Math.min(shown, 4000)).map(function (piece, at) {
        return html`<div key=${at} class="chunk"><span class="when">${piece.at_ns === null ? '' : '+' + tp.duration(Math.round((piece.at_ns - base) / 1000))}</span><pre>${tp.spelled(piece.text !== undefined ? piece.text : '(' + tp.size(piece.size) + ')')}</pre></div>`;
      })}</div>
    </div>`;
  }

  function Place(props) {
    var document_ = props.document, model = props.model, row = model.byNumber.get(document_.exchange.number);
    var clock = document_.clock || {};
    return html`<div>
      <table class="headers">
        <tr><th>lane</th><td>${tp.spelled(model.lanes[row.lane].label)}${row.n !== null && ', its request ' + row.n}</td></tr>
        <tr><th>causal rank</th><td>${row.rank}</td></tr>
        <tr><th>asked</th><td>${tp.duration(row.at)} after the start</td></tr>
        <tr><th>first byte</th><td>${row.first === null ? 'not told' : tp.duration(row.first - row.at) + ' later'}</td></tr>
        <tr><th>ended</th><td>${row.end === null ? 'not on the tape' : tp.duration(row.end - row.at) + ' later, ' + row.how}</td></tr>
        ${row.source && html`<tr><th>source</th><td>${row.source}</td></tr>`}
        ${document_.hash && html`<tr><th>chain hash</th><td class="hash">${document_.hash}</td></tr>`}
      </table>
      <h4>vector clock <span class="dim">requests and answers of each lane that this request knew of</span></h4>
      <table class="headers">${Object.keys(clock).map(function (lane) { return html`<tr><th>${tp.spelled(lane || 'no lane')}</th><td>${clock[lane]}</td></tr>`; })}</table>
    </div>`;
  }

  var VIEWS = {
    conversation: Conversation,
    request: function (props) { return html`<${Text} text=${pretty(bodyText(props.document.request.body))} />`; },
    response: function (props) { return props.document.response ? html`<${Text} text=${pretty(bodyText(props.document.response.body))} />` : html`<p class="dim">There was no response${props.document.end && props.document.end.error ? ': ' + tp.spelled(props.document.end.error) : ''}.</p>`; },
    headers: Headers,
    stream: Stream,
    place: Place,
  };

  tp.Detail = function (props) {
    var pair = hooks.useState({}), state = pair[0], set = pair[1], number = props.number;
    hooks.useEffect(function () {
      if (number === null) return undefined;
      var gone = false;
      props.model.source.exchange(number).then(function (found) { if (!gone) set({ number: number, document: found }); }, function (error) { if (!gone) set({ number: number, error: error.message }); });
      return function () { gone = true; };
    }, [number, props.version]);
    if (number === null) return html`<div class="detail empty"><p class="dim">Choose an exchange: click one, or press j.</p></div>`;
    if (state.number !== number && !state.document) return html`<div class="detail empty"><p class="dim">…</p></div>`;
    if (state.error) return html`<div class="detail empty"><p class="bad">${tp.spelled(state.error)}</p></div>`;
    var View = VIEWS[props.tab] || Conversation, row = state.document.exchange;
    return html`<div class="detail" data-number=${row.number}>
      <header><b>${row.number}</b> ${tp.spelled(row.method)} <span class="url">${tp.spelled((row.scheme ? row.scheme + '://' : '') + row.host + row.path + (row.query ? '?' + row.query : ''))}</span>
        <span class=${props.model.failed({ how: row.how, status: row.status }) ? 'bad' : 'good'}> ${row.status === null ? row.how || 'unfinished' : row.status}${row.how !== 'complete' && row.status !== null ? ' ' + (row.how || 'unfinished') : ''}</span></header>
      <nav class="tabs" role="tablist">${TABS.map(function (tab, at) { return html`<button role="tab" aria-selected=${tab === props.tab} onClick=${function () { props.choose(tab); }}>${tab}<kbd>${at + 1}</kbd></button>`; })}${props.actions}</nav>
      <div class="body" tabindex="0"><${View} key=${row.number + props.tab} document=${state.document} model=${props.model} /></div>
    </div>`;
  };
})();
