/* The page: bar, lanes, list, detail; keys; what is in the address. The address names a view, never data of the tape. */
'use strict';
(function () {
  var html = tp.html, hooks = tp.hooks, ROW = 22;
  tp.AXES = ['time', 'rank', 'order'];
  var AXIS_NAMES = { time: 'time', rank: 'causal rank', order: 'order' };

  function readHash() {
    var found = new URLSearchParams(location.hash.slice(1));
    function number(name) { return /^[0-9]{1,9}$/.test(found.get(name) || '') ? Number(found.get(name)) : null; }
    return { number: number('e'), tab: tp.TABS.includes(found.get('tab')) ? found.get('tab') : 'conversation', axis: tp.AXES.includes(found.get('axis')) ? found.get('axis') : 'time', view: found.get('view') || '', other: number('o'), marked: number('m') };
  }

  /* The view that an address names, where there is one and what it needs: a fork a server, `why` who knows of words. */
  function viewOf(model, name) {
    if ((name === 'fork' && model.source.embedded) || (name === 'why' && !model.source.why)) return undefined;
    return tp.views[name];
  }

  function writeHash(state) {
    var out = new URLSearchParams();
    if (state.number !== null) out.set('e', state.number);
    if (state.tab !== 'conversation') out.set('tab', state.tab);
    if (state.axis !== 'time') out.set('axis', state.axis);
    if (state.view) out.set('view', state.view);
    if (state.other !== null) out.set('o', state.other);
    if (state.marked !== null) out.set('m', state.marked);
    var text = '#' + out;
    if (location.hash !== text && (location.hash || text !== '#')) history.replaceState(null, '', text);
  }

  tp.start = async function (source) {
    var model = new tp.Model(source), root = document.getElementById('app');
    var store = tp.store(Object.assign({ query: '', helping: false, pricing: false, causal: false, found: null, badge: null }, readHash()));
    tp.model = model;
    tp.state = store;
    try { await model.load(); } catch (error) {
      root.textContent = '';
      tp.render(html`<main class="tapes"><h1>The tape could not be opened</h1><pre class="bad">${tp.spelled(error.message)}</pre>
        ${error.status === 423 && html`<p>Only the server opens tapes: start \`tapeproxy serve\` again with that, then load this page anew.</p>`}
        ${source.home && html`<p><a href="/">all tapes</a></p>`}</main>`, root);
      return;
    }
    if (model.diff) {
      tp.TABS.push('difference');
      if (!location.hash.includes('tab=')) store.set({ tab: 'difference' });
      var branch = model.diff.branch === null ? null : model.diff.events[model.diff.branch];
      if (branch && store.get().number === null) store.set({ number: branch[1] !== null ? branch[1] : branch[2] });
    }
    if (model.timeless && store.get().axis === 'time') store.set({ axis: 'order' });
    function address() {
      var named = readHash();
      store.set(viewOf(model, named.view) ? named : Object.assign(named, { view: '' }));
    }
    if (!viewOf(model, store.get().view)) store.set({ view: '' });
    document.title = tp.spelled(model.tape.name) + ' · tapeproxy';
    root.textContent = '';
    tp.render(html`<${Page} model=${model} store=${store} />`, root);
    addEventListener('hashchange', address);
    store.watch(writeHash);
    if (source.live) source.live(model, store);
  };

  function visible(model, state) {
    var rows = state.query ? model.filter(state.query) : model.rows;
    if (state.found) rows = rows.filter(function (row) { return state.found.has(row.number); });
    if (state.axis === 'rank' && model.ranked) rows = rows.slice().sort(function (a, b) { return (a.order === undefined ? a.number : a.order) - (b.order === undefined ? b.number : b.order); });
    return rows;
  }

  /* What changes when there is more of an exchange to see: its columns do not tell of what its client said meanwhile. */
  function grown(row) { return row ? row.news : 0; }

  function Page(props) {
    var model = props.model, store = props.store, state = tp.useStore(store), version = tp.useStore(model.changed).version;
    var canvas = hooks.useRef(null), lanes = hooks.useRef(null), search = hooks.useRef(null);
    var band = hooks.useRef(null), rows = hooks.useMemo(function () { return visible(model, state); }, [version, state.query, state.found, state.axis]);
    function pick(number) { store.set({ number: number }); }
    hooks.useEffect(function () {
      lanes.current = tp.lanes = new tp.Lanes(canvas.current, model, pick);
      lanes.current.axis = state.axis;
      tp.ringDiff(model, lanes.current);
      lanes.current.fit();
      if (state.number !== null) lanes.current.show(state.number);
    }, []);
    hooks.useEffect(function () { if (lanes.current && lanes.current.axis !== state.axis) lanes.current.setAxis(state.axis); }, [state.axis]);
    hooks.useEffect(function () { if (lanes.current) { lanes.current.show(state.number); } }, [state.number]);
    // The lanes take the room that they need, and leave most of the page to what is read.
    hooks.useEffect(function () { if (lanes.current) band.current.style.height = 'min(' + Math.max(64, lanes.current.tallness()) + 'px, 40vh)'; }, [version, state.axis]);
    hooks.useEffect(function () {
      var view = lanes.current, gone = false;
      if (!state.causal || state.number === null) { view.causal = null; view.draw(); return undefined; }
      model.source.exchange(state.number).then(function (found) {
        if (gone || !found.clock) return;
        view.causal = causal(model, found);
        view.draw();
      }, function () {});
      return function () { gone = true; };
    }, [state.causal, state.number, model.rows.length]);
    hooks.useEffect(function () {
      lanes.current.shown = rows.length === model.rows.length ? null : new Set(rows.map(function (row) { return row.number; }));
      lanes.current.draw();
    }, [rows]);
    hooks.useEffect(function () {
      function key(event) { keys(event, { model: model, store: store, rows: rows, lanes: lanes.current, search: search.current }); }
      addEventListener('keydown', key);
      return function () { removeEventListener('keydown', key); };
    }, [rows]);
    var View = viewOf(model, state.view);
    return html`<div class="page">
      <${Bar} model=${model} store=${store} state=${state} rows=${rows} search=${search} version=${version} />
      <div class="lanes" ref=${band}><canvas ref=${canvas} aria-label=${tp.count(model.lanes.length, 'lane') + ', one a thread, task or process; the list below has the same exchanges'} role="img"></canvas></div>
      <p class="unseen" aria-live="polite">${state.number !== null && spoken(model, state.number)}</p>
      ${View ? html`<${View} key=${state.view} model=${model} store=${store} state=${state} lanes=${lanes.current} />` : html`<div class="lower">
        <${List} model=${model} rows=${rows} number=${state.number} marked=${state.marked} pick=${pick} version=${version} />
        <${tp.Detail} model=${model} number=${state.number} tab=${state.tab} version=${grown(model.byNumber.get(state.number))} choose=${function (tab) { store.set({ tab: tab }); }} />
      </div>`}
      ${state.pricing && html`<${Prices} model=${model} close=${function () { store.set({ pricing: false }); }} />`}
      ${state.helping && html`<${Help} close=${function () { store.set({ helping: false }); }} />`}
    </div>`;
  }

  /* What of each lane came before the chosen exchange (rows before `past`) and knows of it (rows from `future` on). */
  function causal(model, found) {
    var lanes = new Map(), row = model.byNumber.get(found.exchange.number);
    for (var lane of model.lanes) {
      var known = found.clock[lane.id] || 0, reached = found.reached[lane.id];
      // The clock counts requests and answers; what counts is whose answer was there.
      lanes.set(lane.id, { past: Math.floor(known / 2), future: reached === undefined ? Infinity : reached });
    }
    var own = lanes.get(model.lanes[row.lane].id);
    own.past = Math.min(own.past, row.turn);
    return { lanes: lanes };
  }

  /* A command as people say it: programs and scripts without their folders. */
  function command(argv) {
    return argv.map(function (word, at) { return at < 2 && word.startsWith('/') ? word.slice(word.lastIndexOf('/') + 1) : word; }).join(' ');
  }

  function spoken(model, number) {
    var row = model.byNumber.get(number);
    return row ? tp.spelled('exchange ' + row.label + ', ' + (row.model || row.mcp || row.method + ' ' + row.path) + ', ' + (row.status || row.how || 'unfinished') + ', lane ' + model.lanes[row.lane].label) : '';
  }

  function Bar(props) {
    var model = props.model, state = props.state, store = props.store, tape = model.tape, sum = hooks.useMemo(function () { return model.totals(props.rows); }, [props.rows, props.version, tp.table]);
    async function look(event) {
      event.preventDefault();
      var text = event.target.elements[0].value.trim();
      // Only the last search counts, and none that was given up meanwhile.
      var asked = text ? { text: text } : null;
      store.set({ searching: asked, found: null, failed: null });
      if (!asked) return;
      try {
        var found = new Set(await model.source.search(text));
        if (store.get().searching === asked) store.set({ searching: null, found: found, query: '' });
      } catch (error) { if (store.get().searching === asked) store.set({ searching: null, failed: error.message }); }
    }
    async function check() {
      if (state.badge && state.badge.busy) return;
      var growing = model.tape.recording;
      store.set({ badge: { busy: true, text: 'checking …' } });
      try {
        var found = await tp.verify(await model.source.file(), function (share) { store.set({ badge: { busy: true, text: 'checking ' + Math.round(share * 100) + ' %' } }); });
        model.hashes = found.hashes;
        store.set({ badge: tp.judged(found, growing) });
      } catch (error) { store.set({ badge: { text: error.message } }); }
    }
    return html`<header class="bar">
      ${model.source.home && html`<a class="home" href="/" title="all tapes of this server">tapes</a>`}
      <h1 title=${tp.spelled(tape.name + (tape.argv.length ? '\n' + tape.argv.join(' ') : ''))}>${tp.spelled(tp.clip(command(tape.argv) || tape.name, 200))}</h1>
      <span class="dim">${state.offline ? tp.spelled(state.offline) : tape.recording ? 'recording' : tape.outcome || 'interrupted'} · ${tp.count(model.rows.length, 'exchange')} ${model.timeless ? '' : ' · ' + tp.duration(model.end())}${tape.parent ? ' · a fork' : ''}${tape.scrubbed ? ' · scrubbed' : ''}${model.unmarked ? ' · ' + tp.count(model.unmarked, 'reading') + ' without a mark' : ''}</span>
      ${sum.calls > 0 && html`<button class="sum" onClick=${function () { store.set({ pricing: true }); }} title="tokens of the calls that are shown; a table of prices of your own gives what they cost">${tp.count(sum.calls, 'call')}${sum.tokens_in + sum.tokens_out > 0 ? ' · ' + tp.tokens(sum) : ''}${sum.cost === null ? '' : ' · ' + tp.costs(sum.cost)}</button>`}
      ${model.diff ? html`<${tp.DiffVerdict} model=${model} store=${store} state=${state} />` : html`<button class=${'badge' + (state.badge && state.badge.good ? ' good' : '') + (state.badge && state.badge.bad ? ' bad' : '')} onClick=${check} title="check each line's hash and the seal, here in the browser; \`tapeproxy verify\` also computes what the exchanges add up to">${state.badge ? tp.spelled(state.badge.text) : 'verify'}</button>`}
      <span class="grow"></span>
      <input ref=${props.search} class="filter" type="search" placeholder="filter  /" title="words, or status:5 host:api model:gpt lane:worker is:failed; all are in the help" value=${state.query} onInput=${function (event) { store.set({ query: event.target.value }); }} aria-label="filter" />
      <form onSubmit=${look}><input type="search" class="sought" placeholder="in bodies  s" aria-label="search in bodies" /></form>
      ${state.searching && html`<span class="dim">searching …</span>`}${state.failed && html`<span class="bad">${tp.spelled(state.failed)}</span>`}
      ${state.found && html`<button onClick=${function () { store.set({ found: null }); }}>${tp.count(state.found.size, 'hit')} ×</button>`}
      <button onClick=${function () { nextAxis(model, store); }} title="the axis: t">by ${AXIS_NAMES[state.axis]}</button>
      <button aria-pressed=${state.causal} onClick=${function () { store.set({ causal: !state.causal }); }} title="dim what the chosen exchange neither knew of nor is known by: h">causes</button>
      <button onClick=${function () { store.set({ helping: true }); }} title="keys and colours: ?" aria-label="help">?</button>
    </header>`;
  }

  function List(props) {
    var pair = hooks.useState({ top: 0, height: 400 }), view = pair[0], box = hooks.useRef(null), rows = props.rows;
    hooks.useEffect(function () {
      var element = box.current;
      var observer = new ResizeObserver(function () { pair[1](function (old) { return { top: old.top, height: element.clientHeight }; }); });
      observer.observe(element);
      return function () { observer.disconnect(); };
    }, []);
    hooks.useEffect(function () {
      var at = rows.findIndex(function (row) { return row.number === props.number; }), element = box.current;
      if (at < 0) return;
      if (at * ROW < element.scrollTop) element.scrollTop = at * ROW;
      else if ((at + 1) * ROW > element.scrollTop + element.clientHeight) element.scrollTop = (at + 1) * ROW - element.clientHeight;
    }, [props.number, rows]);
    var first = Math.max(0, Math.floor(view.top / ROW) - 4), last = Math.min(rows.length, Math.ceil((view.top + view.height) / ROW) + 4);
    var model = props.model;
    return html`<div class="list" ref=${box} role="listbox" tabindex="0" aria-label="exchanges" aria-activedescendant=${props.number === null ? null : 'row-' + props.number} onScroll=${function (event) { pair[1]({ top: event.target.scrollTop, height: event.target.clientHeight }); }}>
      <div class="whole" style=${{ height: rows.length * ROW + 'px' }}>
        ${rows.slice(first, last).map(function (row, at) {
          return html`<div key=${(first + at) % 256} id=${'row-' + row.number} class=${'row' + (row.number === props.number ? ' chosen' : '') + (model.failed(row) ? ' failed' : '') + (row.number === props.marked ? ' marked' : '')} role="option" aria-selected=${row.number === props.number} style=${{ top: (first + at) * ROW + 'px' }} onClick=${function () { props.pick(row.number); }}>
            <span class="n">${row.label}</span><span class=${'dot ' + (model.failed(row) ? 'failed' : row.source || (row.dialect ? 'llm' : row.inside ? 'inside' : 'recorded'))}></span>
            <span class="status">${row.status || row.how || '…'}</span>
            <span class="what">${tp.spelled(row.model || row.mcp || row.method + ' ' + row.path)}</span>
            <span class="words">${tp.spelled(row.said || row.words || (row.model || row.mcp ? '' : row.host))}</span>
            <span class="time">${model.timeless ? '' : row.end === null ? '…' : tp.duration(row.end - row.at)}</span>
          </div>`;
        })}
      </div>
      ${rows.length === 0 && html`<p class="dim">Nothing fits the filter.</p>`}
    </div>`;
  }

  var KEYS = [
    ['j / k', 'next, previous exchange of what the filter shows'],
    ['J / K', 'next, previous of the same lane'],
    ['/', 'filter; Escape leaves it'],
    ['g 1 2 Enter', 'go to exchange 12; of two runs, g B 1 2 Enter'],
    ['1 … 6', 'conversation, request, response, headers, stream, place'],
    ['p', 'play the stream at the pace of the tape'],
    ['t', 'the axis: time, causal rank, order on the tape'],
    ['h', 'dim what the chosen exchange neither knew of nor is known by'],
    ['+ / − / 0', 'zoom in, out, all'],
    ['← → ↑ ↓', 'move along the axis, and over the lanes'],
    ['s', 'search in bodies'],
    ['c', 'compare the context with that of the call before in its lane'],
    ['m, then c', 'mark a call; compare the context of another one with its'],
    ['w', 'where the words of the request, or those that are selected, come from; so does a click on words of a conversation, or Enter on a text'],
    ['f', 'fork here'],
    ['?', 'this page'],
  ];
  var COLOURS = [['recorded', 'recorded'], ['llm', 'call of a model'], ['inside', 'served by the run itself'], ['reused', 'reused from the parent tape'], ['mutated', 'changed by the fork'], ['live', 'asked anew by the fork'], ['failed', 'failed']];

  function Prices(props) {
    var text = hooks.useState(tp.stored('tapeproxy-prices')), box = hooks.useRef(null);
    hooks.useEffect(function () { box.current.focus(); }, []);
    function keep() { tp.stored('tapeproxy-prices', text[0]); tp.table = tp.prices(text[0]); props.model.bump(); props.close(); }
    return html`<div class="over"><div class="help" role="dialog" aria-modal="true" aria-label="prices">
      <h2>What calls cost</h2>
      <p class="dim">Tokens are those that the answers told. Prices are yours: a line for each model, its name or how it begins, and what a million tokens cost, in and out; then, if you like, those in that were read from a cache, and those written to one. Without these two they count as the others, and what calls cost is said to be “about” that. They stay in this browser.</p>
      <textarea ref=${box} rows="8" spellcheck="false" placeholder="some-model 2.50 10 0.25 3.125" aria-label="table of prices" onInput=${function (event) { text[1](event.target.value); }}>${text[0]}</textarea>
      <p><button onClick=${keep}>keep</button> <button onClick=${props.close}>close</button></p></div></div>`;
  }

  function Help(props) {
    return html`<div class="over" onClick=${props.close}><div class="help" role="dialog" aria-modal="true" aria-label="help">
      <h2>Keys</h2><table>${KEYS.map(function (pair) { return html`<tr><th>${pair[0]}</th><td>${pair[1]}</td></tr>`; })}</table>
      <h2>Colours</h2><p>${COLOURS.map(function (pair) { return html`<span class="legend"><span class=${'dot ' + pair[0]}></span>${pair[1]}</span> `; })}</p>
      <p class="dim">A bar is light until the first byte came; its ticks are chunks. Small marks below a lane are what it read: clock, files, tools; red ones at the top are notes. The mouse on one says which. Lines are where lanes met; those of the chosen exchange are coloured: what it knew from, and who knew of it. Filters: host: status: model: lane: how: source: method: path: is:failed is:llm is:streamed; a leading − excludes.</p>
    </div></div>`;
  }

  var going = null;
  /* Whether the digits of `g 1 2 Enter` are being typed: Enter is theirs then, wherever the focus is. */
  tp.going = function () { return going !== null; };
  function keys(event, page) {
    var store = page.store, state = store.get();
    if (event.key === 'Escape') {
      if (document.activeElement && document.activeElement.matches('input, textarea, select')) document.activeElement.blur();
      else store.set(state.helping || state.pricing ? { helping: false, pricing: false } : state.view ? { view: '', other: null } : { query: '', found: null, searching: null, failed: null });
      return;
    }
    if (event.target.matches('input, textarea, select, summary') || event.ctrlKey || event.metaKey || event.altKey) return;
    if (going !== null) {
      if (/^[0-9]$/.test(event.key) || (going === '' && page.model.diff && /^[ab]$/i.test(event.key))) { going += event.key.toUpperCase(); event.preventDefault(); return; }
      var wanted = (/^[0-9]/.test(going) && page.model.diff ? 'A' : '') + going.replace(/^([AB]?)0+/, '$1'), row = page.model.rows.find(function (one) { return one.label === wanted; });
      // A key that is held down, such as Shift for a B, ends nothing.
      if (event.key === 'Shift') return;
      going = null;
      if (event.key === 'Enter') {
        event.preventDefault();  // it would also press a button that has the focus
        if (row) store.set({ number: row.number });
        return;
      }
    }
    var done = true;
    switch (event.key) {
      case 'j': step(page, 1); break;
      case 'k': step(page, -1); break;
      case 'J': step(page, 1, true); break;
      case 'K': step(page, -1, true); break;
      case '/': page.search.focus(); break;
      case 's': document.querySelector('.sought').focus(); break;
      case 'g': going = ''; break;
      case '?': store.set({ helping: !state.helping }); break;
      case 't': nextAxis(page.model, store); break;
      case 'h': store.set({ causal: !state.causal }); break;
      case '+': case '=': page.lanes.zoom(0.6); break;
      case '-': page.lanes.zoom(1.6); break;
      case '0': page.lanes.fit(); break;
      case 'ArrowRight': page.lanes.pan(80); break;
      case 'ArrowLeft': page.lanes.pan(-80); break;
      case 'ArrowDown': case 'ArrowUp':
        // Who stands in a text scrolls that.
        if (event.target.matches('.body, .single')) done = false;
        else if (event.target.matches('.list')) step(page, event.key === 'ArrowDown' ? 1 : -1);
        else page.lanes.scroll(event.key === 'ArrowDown' ? 60 : -60);
        break;
      case 'p': if (state.tab !== 'stream') { tp.playSoon = state.number; store.set({ tab: 'stream' }); } else if (tp.playStream) tp.playStream(); break;
      case 'b': if (page.model.diff && page.model.diff.branch !== null) store.set({ number: page.model.diff.events[page.model.diff.branch].slice(1, 3).find(function (one) { return one !== null; }), tab: 'difference', view: '' }); else done = false; break;
      case 'm': store.set({ marked: state.marked === state.number ? null : state.number }); break;
      case 'c': store.set(state.view === 'context' ? { view: '', other: null } : { view: 'context', other: state.marked === state.number ? null : state.marked }); break;
      case 'w': if (state.number !== null && page.model.source.why) tp.askWhy(store); else done = false; break;
      case 'f': if (tp.views.fork && !page.model.source.embedded) store.set({ view: 'fork' }); break;
      default:
        if (/^[1-9]$/.test(event.key) && tp.TABS[Number(event.key) - 1]) store.set({ tab: tp.TABS[Number(event.key) - 1] });
        else done = false;
    }
    if (done) event.preventDefault();
  }

  function nextAxis(model, store) {
    var axes = model.timeless ? ['order', 'rank'] : tp.AXES;
    store.set({ axis: axes[(axes.indexOf(store.get().axis) + 1) % axes.length] });
  }

  function step(page, by, inLane) {
    var state = page.store.get(), rows = page.rows;
    if (inLane && page.model.byNumber.has(state.number)) {
      var lane = page.model.byNumber.get(state.number).lane;
      rows = rows.filter(function (row) { return row.lane === lane; });
    }
    if (!rows.length) return;
    var at = rows.findIndex(function (row) { return row.number === state.number; });
    var next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.max(0, Math.min(rows.length - 1, at + by));
    page.store.set({ number: rows[next].number });
  }
})();
