/* One exchange: as a conversation, raw, headers, its place in the run; the stream as it came is stream.js. */
'use strict';
(function () {
  var html = tp.html, hooks = tp.hooks;
  var TABS = ['conversation', 'request', 'response', 'headers', 'stream', 'place'];
  tp.TABS = TABS;

  /* Where words stand in a text, spaces and JSON's escapes aside: [from, to], or null. */
  function placeOf(text, words) {
    words = words.slice(0, 400).trim();
    if (!words) return null;
    for (var form of [words, JSON.stringify(words).slice(1, -1)]) {
      var at = text.indexOf(form);
      if (at >= 0) return [at, at + form.length];
    }
    var found = new RegExp(Array.from(words.replace(/\s+/g, ''), function (one) { return one.replace(/[\\^$.*+?()[\]{}|\/-]/g, '\\$&'); }).join('\\s*'), 'u').exec(text);
    return found && [found.index, found.index + found[0].length];
  }
  tp.placeOf = placeOf;

  /* The place in a text that was clicked on. Where characters of it are spelled out, it
     is the same place in the line at best. */
  function clickedAt(event, element, text) {
    var at = document.caretPositionFromPoint ? document.caretPositionFromPoint(event.clientX, event.clientY) : null;
    var range = at ? null : document.caretRangeFromPoint && document.caretRangeFromPoint(event.clientX, event.clientY);
    var node = at ? at.offsetNode : range ? range.startContainer : null, offset = at ? at.offset : range ? range.startOffset : 0;
    if (!node || !element.contains(node)) return 0;
    var before = document.createRange();
    before.setStart(element, 0);
    before.setEnd(node, offset);
    var lines = before.toString().split('\n'), own = text.split('\n').slice(0, lines.length), last = own.pop() || '';
    return own.reduce(function (sum, line) { return sum + line.length + 1; }, 0) + Math.min(lines[lines.length - 1].length, Math.max(0, last.length - 1));
  }

  /* The words that were followed to this side of the chosen exchange; '' where none were. */
  function litOn(side) {
    var state = tp.state ? tp.state.get() : {};
    return state.lit && side && state.lit.side === side && state.lit.number === state.number ? state.lit.text : '';
  }

  /* The name by which a call of a tool and its result know each other. */
  function Id(props) {
    return litOn(props.side) === props.id ? html` <mark class="lit">${tp.spelled(props.id)}</mark>` : html` <span class="dim">${tp.spelled(props.id)}</span>`;
  }

  /* A text. `side`: whether it is of the `request` or the `answer`; words that came from there are lit. `ask`: the
     number of the exchange of whose request it is: a click on words, or Enter on the text, asks where they come from. */
  function Text(props) {
    var text = props.text || '', lit = litOn(props.side), box = hooks.useRef(null), place = lit ? placeOf(text, lit) : null;
    var limit = hooks.useState(props.most || 20000), most = Math.max(limit[0], place ? place[1] : 0), asked = hooks.useState(null);
    var shown = text.length > most ? text.slice(0, most) : text, can = props.ask !== undefined;
    hooks.useEffect(function () { var found = place && box.current.querySelector('mark.lit'); if (found) found.scrollIntoView({ block: 'center' }); }, [lit]);
    function click(event) {
      if (event.target.closest('button') || String(getSelection())) return;
      asked[1](tp.wordsAt(text, clickedAt(event, box.current, text)));
    }
    function key(event) {
      if ((event.key !== 'Enter' && event.key !== 'w') || tp.going() || event.target !== box.current || event.ctrlKey || event.metaKey || event.altKey || String(getSelection())) return;
      event.preventDefault();
      event.stopPropagation();
      asked[1](asked[0] ? null : { text: text.slice(0, 3000) });
    }
    var more = text.length > most && html`<button onClick=${function () { limit[1](text.length); }}>… ${tp.count(text.length - most, 'more character')}</button>`;
    var inside = place ? [tp.spelled(shown.slice(0, place[0])), html`<mark class="lit">${tp.spelled(shown.slice(place[0], place[1]))}</mark>`, tp.spelled(shown.slice(place[1]))] : tp.spelled(shown);
    if (!can) return html`<pre ref=${box} class=${'text ' + (props.kind || '')}>${inside}${more}</pre>`;
    return html`<pre ref=${box} class=${'text asks ' + (props.kind || '')} tabindex="0" aria-description="Enter: where these words come from" onClick=${click} onKeyDown=${key}>${inside}${more}</pre>
      ${asked[0] && html`<${tp.Where} number=${props.ask} asked=${asked[0]} close=${function () { asked[1](null); if (box.current) box.current.focus(); }} />`}`;
  }
  tp.Text = Text;

  function pretty(text) {
    try { return JSON.stringify(JSON.parse(text), null, 2); } catch (error) { return text; }
  }
  tp.pretty = pretty;

  /* A picture of the tape: only as data, and only of kinds that hold nothing a browser would run. */
  function Picture(props) {
    var part = props.part;
    if (!/^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+\/]+=*$/.test(part.image)) return html`<div class="media">[a picture that can't be shown]</div>`;
    return html`<img class="media" src=${part.image} alt=${tp.spelled((part.kind || 'image') + ' ' + (part.detail || ''))} loading="lazy" />`;
  }

  function Part(props) {
    var part = props.part;
    if (part.kind === 'text') return html`<${Text} text=${part.text} kind=${part.refusal ? 'refusal' : ''} ask=${props.ask} side=${props.side} />`;
    if (part.kind === 'thought') return html`<div class="thought"><b>thinking</b><${Text} text=${part.text || '(hidden by the provider)'} ask=${part.text ? props.ask : undefined} side=${props.side} /></div>`;
    if (part.kind === 'tool-call') return html`<div class="tool"><b>calls ${tp.spelled(part.name || '')}</b>${part.id && html`<${Id} id=${part.id} side=${props.side} />`}<${Text} text=${pretty(part.arguments)} ask=${props.ask} side=${props.side} />${props.results && part.id && props.results.has(part.id) && html`<${Part} part=${props.results.get(part.id)} paired=${true} ask=${props.ask} side=${props.side} />`}</div>`;
    if (part.kind === 'tool-result') return html`<div class=${part.error ? 'tool bad' : 'tool'}><b>${part.error ? 'error' : 'result'}${props.paired ? '' : part.id && props.calls && props.calls.has(part.id) ? ' of ' + tp.spelled(props.calls.get(part.id)) : ' of a tool'}</b>${!props.paired && part.id && html`<${Id} id=${part.id} side=${props.side} />`}<${Text} text=${pretty(part.text)} ask=${props.ask} side=${props.side} />${(part.media || []).map(function (one, at) { return html`<${Picture} key=${at} part=${one} />`; })}</div>`;
    if (part.image) return html`<${Picture} part=${part} />`;
    return html`<div class="media">[${tp.spelled((part.kind === 'media' ? '' : part.kind) + ' ' + (part.detail || ''))}]</div>`;
  }

  function Message(props) {
    var message = props.message;
    return html`<section class=${'message role-' + (/^[a-z]+$/.test(message.role) ? message.role : 'other')} data-place=${props.place}>
      <h4>${tp.spelled(message.role)}${props.note && html` <span class="dim">${props.note}</span>`}</h4>
      ${message.parts.map(function (part, at) { return html`<${Part} key=${at} part=${part} results=${props.results} calls=${props.calls} ask=${props.ask} side=${props.place === 'answer' ? 'answer' : 'request'} />`; })}
      ${message.parts.length === 0 && html`<p class="dim">(empty)</p>`}
    </section>`;
  }
  tp.Message = Message;

  /* Results of tools stand with their calls: by id, and only where each of both has its own. */
  function paired(messages) {
    var results = new Map(), calls = new Map(), twice = new Set();
    for (var message of messages) for (var part of message.parts) {
      if (part.kind === 'tool-call' && part.id) { if (calls.has(part.id)) twice.add(part.id); calls.set(part.id, part.name || ''); }
      if (part.kind === 'tool-result' && part.id) { if (results.has(part.id)) twice.add(part.id); results.set(part.id, part); }
    }
    for (var id of Array.from(results.keys())) if (twice.has(id) || !calls.has(id)) results.delete(id);
    return { results: results, calls: calls };
  }

  function Conversation(props) {
    var call = props.document.call, ask = props.model.source.why ? props.document.exchange.number : undefined;
    if (!call && props.document.exchange.mcp) return html`<${Mcp} message=${props.document.exchange.mcp} pictures=${props.document.pictures || []} ask=${ask} />`;
    if (!call && props.document.messages.length) return html`<${tp.Frames} document=${props.document} model=${props.model} />`;
    if (!call) return html`<p class="dim">This is no call of a model. Its bodies:</p><${Bodies} document=${props.document} model=${props.model} />`;
    var pairs = paired(call.messages), cost = tp.cost(call);
    var shown = call.messages.map(function (message, at) {
      var parts = message.parts.filter(function (part) { return !(part.kind === 'tool-result' && pairs.results.get(part.id) === part); });
      return { at: at, message: parts.length === message.parts.length ? message : { role: message.role, parts: parts }, gone: parts.length === 0 && message.parts.length > 0 };
    });
    var facts = [call.model, call.stop && 'stop: ' + call.stop, tp.tokens(call), call.streamed && 'streamed', tp.costs(cost)].filter(Boolean);
    return html`<div class="conversation">
      <p class="facts">${facts.map(tp.spelled).join(' · ')}</p>
      ${shown.map(function (one) { return one.gone ? null : html`<${Message} key=${one.at} message=${one.message} place=${one.at} results=${pairs.results} calls=${pairs.calls} ask=${ask} />`; })}
      ${call.answer && html`<${Message} message=${call.answer} place="answer" note="answer" />`}
      ${call.error && html`<section class="message bad"><h4>error</h4><${Text} text=${call.error} /></section>`}
    </div>`;
  }

  /* A message of MCP: the method, the tool with its arguments, and what came of it. */
  function Mcp(props) {
    var message = props.message;
    return html`<div class="conversation mcp">
      <p class="facts">MCP: ${tp.spelled(message.method)}</p>
      <section class="message role-user"><h4>${tp.spelled(message.name || message.method)}</h4>${message.arguments ? html`<${Text} text=${pretty(message.arguments)} ask=${props.ask} side="request" />` : html`<p class="dim">(no arguments)</p>`}</section>
      ${message.result === null ? html`<p class="dim">There is no result.</p>` : html`<section class=${'message ' + (message.error ? 'bad' : 'role-tool')}><h4>${message.error ? 'error' : 'result'}</h4><${Text} text=${pretty(message.result)} side="answer" />${props.pictures.map(function (one, at) { return html`<${Picture} key=${at} part=${{ image: one, kind: 'image' }} />`; })}</section>`}
    </div>`;
  }

  function bodyText(body) {
    if (!body) return '';
    if (body.text !== undefined) return body.text;
    return '(' + tp.size(body.size) + ' that are no text)\n' + hex(tp.unbase64(body.b64 || ''), 4096);
  }

  /* Bytes as a table: where, hexadecimal, and the letters of ASCII among them. */
  function hex(bytes, most) {
    var lines = [];
    for (var at = 0; at < Math.min(bytes.length, most); at += 16) {
      var row = Array.from(bytes.subarray(at, Math.min(at + 16, most)));
      lines.push(at.toString(16).padStart(6, '0') + '  ' + row.map(function (byte) { return byte.toString(16).padStart(2, '0'); }).join(' ').padEnd(48) + ' ' + row.map(function (byte) { return byte > 31 && byte < 127 ? String.fromCharCode(byte) : '·'; }).join(''));
    }
    if (bytes.length > most) lines.push('… ' + tp.count(bytes.length - most, 'more byte'));
    return lines.join('\n');
  }
  tp.hexTable = hex;

  /* A body that is a picture of a kind that can be shown. */
  function BodyPicture(props) {
    var body = props.of.body, kind = (props.of.headers.find(function (pair) { return pair[0].toLowerCase() === 'content-type'; }) || ['', ''])[1].split(';')[0].trim().toLowerCase();
    if (!body.b64 || !body.whole || !/^image\/(png|jpeg|gif|webp)$/.test(kind)) return null;
    return html`<${Picture} part=${{ image: 'data:' + kind + ';base64,' + body.b64, kind: 'image', detail: kind }} />`;
  }

  /* A body as the tape has it, its codings undone; JSON may be set out in lines. */
  function Raw(props) {
    var state = hooks.useState(false), body = props.of.body, text = bodyText(body), neat = pretty(text);
    if (!body || (body.size === 0 && !text)) return html`<p class="dim">There is no body.</p>`;
    return html`<div><p class="dim">${tp.size(body.size)} on the tape${body.coding.length > 0 && ', ' + tp.spelled(body.coding.join(', ')) + ' undone'}${!body.whole && ', cut'}${body.note && ': ' + tp.spelled(body.note)}
      ${neat !== text && html` <button onClick=${function () { state[1](!state[0]); }}>${state[0] ? 'set out in lines' : 'exact text'}</button>`}</p>
      <${BodyPicture} of=${props.of} />
      <${Text} text=${state[0] ? text : neat} /></div>`;
  }

  function Bodies(props) {
    var document_ = props.document;
    return html`<div><h4>request</h4><${BodyPicture} of=${document_.request} /><${Text} text=${pretty(bodyText(document_.request.body))} side="request" ask=${document_.request.body.text && props.model.source.why ? document_.exchange.number : undefined} />
      ${document_.response && html`<h4>response</h4><${BodyPicture} of=${document_.response} /><${Text} text=${pretty(bodyText(document_.response.body))} side="answer" />`}</div>`;
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

  function Place(props) {
    var document_ = props.document, model = props.model, row = model.byNumber.get(document_.exchange.number);
    var clock = document_.clock || {};
    return html`<div>
      <table class="headers">
        <tr><th>lane</th><td>${tp.spelled(model.lanes[row.lane].label)}${row.n !== null && ', its request ' + row.n}</td></tr>
        <tr><th>causal rank</th><td>${row.rank}</td></tr>
        ${model.timeless ? html`<tr><th>times</th><td>not known: the source of this tape did not tell them</td></tr>` : html`
        <tr><th>asked</th><td>${tp.duration(row.at)} after the start</td></tr>
        <tr><th>first byte</th><td>${row.first === null ? 'not told' : tp.duration(row.first - row.at) + ' later'}</td></tr>
        <tr><th>ended</th><td>${row.end === null ? 'not on the tape' : tp.duration(row.end - row.at) + ' later, ' + row.how}</td></tr>`}
        ${row.tokens_in !== null && html`<tr><th>tokens</th><td>${tp.tokens(row)}</td></tr>`}
        ${row.source && html`<tr><th>source</th><td>${row.source}</td></tr>`}
        <tr><th>record</th><td>${document_.record}</td></tr>
        <tr><th>its chain hash</th><td class="hash">${model.hashes && model.hashes[document_.record] ? tp.hex(model.hashes[document_.record]) : 'known when “verify” has checked the tape'}</td></tr>
      </table>
      <h4>vector clock <span class="dim">requests and answers of each lane that this request knew of</span></h4>
      <table class="headers">${Object.keys(clock).map(function (lane) { return html`<tr><th>${tp.spelled(lane || 'no lane')}</th><td>${clock[lane]}</td></tr>`; })}</table>
    </div>`;
  }

  var VIEWS = {
    conversation: Conversation,
    request: function (props) { return props.document.messages.length ? html`<${tp.Frames} document=${props.document} model=${props.model} from="client" />` : html`<${Raw} of=${props.document.request} />`; },
    response: function (props) { return props.document.messages.length ? html`<${tp.Frames} document=${props.document} model=${props.model} from="server" />` : props.document.response ? html`<${Raw} of=${props.document.response} />` : html`<p class="dim">There was no response${props.document.end && props.document.end.error ? ': ' + tp.spelled(props.document.end.error) : ''}.</p>`; },
    headers: Headers,
    stream: tp.Stream,
    place: Place,
  };

  tp.Detail = function (props) {
    var pair = hooks.useState({}), state = pair[0], set = pair[1], number = props.number;
    var asking = hooks.useRef({ number: null, again: false });
    /* While an exchange grows it is asked for again once its last answer is there: if each question dropped the one
       before, a slow answer would never be shown. */
    function look() {
      var turn = asking.current = { number: number, again: false };
      props.model.source.exchange(number).then(function (found) { return { number: number, document: found }; }, function (error) { return { number: number, error: error.message }; }).then(function (now) {
        if (asking.current.number !== number) return;
        asking.current = { number: null, again: false };
        // What is there is better than a line that is lost for a while.
        set(function (old) { return now.error && old.document && old.number === number ? old : now; });
        if (turn.again) look();
      });
    }
    hooks.useEffect(function () {
      if (number === null) return;
      if (asking.current.number === number) asking.current.again = true; else look();
    }, [number, props.version]);
    hooks.useEffect(function () { return function () { asking.current = { number: null, again: false }; }; }, []);
    if (number === null) return html`<div class="detail empty"><p class="dim">Choose an exchange: click one, or press j.</p></div>`;
    if (state.number !== number && !state.document) return html`<div class="detail empty"><p class="dim">…</p></div>`;
    if (state.error) return html`<div class="detail empty"><p class="bad">${tp.spelled(state.error)}</p></div>`;
    var View = VIEWS[props.tab] || tp.tabViews[props.tab] || Conversation, row = state.document.exchange;
    return html`<div class="detail" data-number=${row.number}>
      <header><b>${(props.model.byNumber.get(row.number) || row).label || row.number}</b> ${tp.spelled(row.method)} <span class="url">${tp.spelled((row.scheme ? row.scheme + '://' : '') + row.host + row.path + (row.query ? '?' + row.query : ''))}</span>
        <span class=${props.model.failed({ how: row.how, status: row.status }) ? 'bad' : 'good'}> ${row.status === null ? row.how || 'unfinished' : row.status}${row.how !== 'complete' && row.status !== null ? ' ' + (row.how || 'unfinished') : ''}</span></header>
      <nav class="tabs" role="tablist">${TABS.map(function (tab, at) { return html`<button role="tab" id=${'tab-' + tab} aria-controls="panel" aria-selected=${tab === props.tab} onClick=${function () { props.choose(tab); }}>${tab}<kbd>${at + 1}</kbd></button>`; })}${props.actions}</nav>
      <div class="body" tabindex="0" role="tabpanel" id="panel" aria-labelledby=${'tab-' + props.tab}><${View} key=${row.number + props.tab} document=${state.document} model=${props.model} /></div>
    </div>`;
  };
})();
