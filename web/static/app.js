/* The page: bar, lanes, list, detail; keys; what is in the address. The address names a view, never data of the tape. */
'use strict';
(function () {
  var html = tp.html, hooks = tp.hooks, ROW = 22;

  function readHash() {
    var found = new URLSearchParams(location.hash.slice(1));
    return { number: found.has('e') ? Number(found.get('e')) : null, tab: tp.TABS.includes(found.get('tab')) ? found.get('tab') : 'conversation', axis: found.get('axis') === 'rank' ? 'rank' : 'time', view: found.get('view') || '', other: found.has('o') ? Number(found.get('o')) : null };
  }

  function writeHash(state) {
    var out = new URLSearchParams();
    if (state.number !== null) out.set('e', state.number);
    if (state.tab !== 'conversation') out.set('tab', state.tab);
    if (state.axis !== 'time') out.set('axis', state.axis);
    if (state.view) out.set('view', state.view);
    if (state.other !== null) out.set('o', state.other);
    var text = '#' + out;
    if (location.hash !== text && (location.hash || text !== '#')) history.replaceState(null, '', text);
  }

  tp.start = async function (source) {
    var model = new tp.Model(source), root = document.getElementById('app');
    var store = tp.store(Object.assign({ query: '', helping: false, rows: null, found: null, badge: null, marked: null }, readHash()));
    tp.model = model;
    tp.state = store;
    try { await model.load(); } catch (error) {
      root.textContent = 'The tape could not be opened: ' + tp.spelled(error.message);
      return;
    }
    document.title = model.tape.name + ' · tapeproxy';
    tp.render(html`<${Page} model=${model} store=${store} />`, root);
    addEventListener('hashchange', function () { store.set(readHash()); });
    store.watch(writeHash);
    if (source.live) source.live(model, store);
  };

  function visible(model, state) {
    var rows = state.query ? model.filter(state.query) : model.rows;
    if (state.found) rows = rows.filter(function (row) { return state.found.has(row.number); });
    if (state.axis === 'rank') rows = rows.slice().sort(function (a, b) { return (a.order === undefined ? a.number : a.order) - (b.order === undefined ? b.number : b.order); });
    return rows;
  }

  /* What changes when there is more of an exchange to see. */
  function grown(row) { return row ? [row.status, row.chunks, row.how].join() : ''; }

  function Page(props) {
    var model = props.model, store = props.store, state = tp.useStore(store), version = tp.useStore(model.changed).version;
    var canvas = hooks.useRef(null), lanes = hooks.useRef(null), search = hooks.useRef(null);
    var rows = hooks.useMemo(function () { return visible(model, state); }, [version, state.query, state.found, state.axis]);
    function pick(number) { store.set({ number: number }); }
    hooks.useEffect(function () {
      lanes.current = tp.lanes = new tp.Lanes(canvas.current, model, pick);
      lanes.current.axis = state.axis;
      lanes.current.fit();
      if (state.number !== null) lanes.current.show(state.number);
    }, []);
    hooks.useEffect(function () { if (lanes.current && lanes.current.axis !== state.axis) lanes.current.setAxis(state.axis); }, [state.axis]);
    hooks.useEffect(function () { if (lanes.current) { lanes.current.show(state.number); } }, [state.number]);
    hooks.useEffect(function () {
      lanes.current.shown = rows.length === model.rows.length ? null : new Set(rows.map(function (row) { return row.number; }));
      lanes.current.draw();
    }, [rows]);
    hooks.useEffect(function () {
      function key(event) { keys(event, { model: model, store: store, rows: rows, lanes: lanes.current, search: search.current }); }
      addEventListener('keydown', key);
      return function () { removeEventListener('keydown', key); };
    }, [rows]);
    var View = state.view && tp.views[state.view];
    return html`<div class="page">
      <${Bar} model=${model} store=${store} state=${state} rows=${rows} search=${search} version=${version} />
      <div class="lanes"><canvas ref=${canvas} aria-label="swimlanes: one lane a thread, task or process" role="img"></canvas></div>
      ${View ? html`<${View} model=${model} store=${store} state=${state} lanes=${lanes.current} />` : html`<div class="lower">
        <${List} model=${model} rows=${rows} number=${state.number} pick=${pick} version=${version} />
        <${tp.Detail} model=${model} number=${state.number} tab=${state.tab} version=${grown(model.byNumber.get(state.number))} choose=${function (tab) { store.set({ tab: tab }); }} />
      </div>`}
      ${state.helping && html`<${Help} close=${function () { store.set({ helping: false }); }} />`}
    </div>`;
  }

  function Bar(props) {
    var model = props.model, state = props.state, store = props.store, tape = model.tape;
    async function look(event) {
      event.preventDefault();
      var text = event.target.elements[0].value.trim();
      if (!text) { store.set({ found: null }); return; }
      store.set({ searching: true });
      try { store.set({ found: new Set(await model.source.search(text)), query: '', sought: text }); } finally { store.set({ searching: false }); }
    }
    async function check() {
      store.set({ badge: { text: 'checking …' } });
      try {
        var found = await tp.verify(await model.source.file(), function (share) { store.set({ badge: { text: 'checking ' + Math.round(share * 100) + ' %' } }); });
        store.set({ badge: found.ok ? { good: true, text: 'chain intact: ' + tp.count(found.records, 'record') + (found.sealed ? ', sealed' : ', no seal') } : { bad: true, text: 'CHANGED: ' + found.why } });
      } catch (error) { store.set({ badge: { bad: true, text: error.message } }); }
    }
    return html`<header class="bar">
      <h1 title=${tp.spelled(tape.name)}>${tp.spelled(tape.argv.join(' ') || tape.name)}</h1>
      <span class="dim">${state.offline ? tp.spelled(state.offline) : tape.recording ? 'recording' : tape.outcome || 'interrupted'} · ${tp.count(model.rows.length, 'exchange')} · ${tp.duration(model.end())}${tape.parent ? ' · a fork' : ''}</span>
      <button class=${'badge' + (state.badge && state.badge.good ? ' good' : '') + (state.badge && state.badge.bad ? ' bad' : '')} onClick=${check} title="check each line's hash, here in the browser">${state.badge ? tp.spelled(state.badge.text) : 'verify'}</button>
      <span class="grow"></span>
      <input ref=${props.search} class="filter" type="search" placeholder="filter: status:5 host:api model:gpt lane:…   /" value=${state.query} onInput=${function (event) { store.set({ query: event.target.value }); }} aria-label="filter" />
      <form onSubmit=${look}><input type="search" class="sought" placeholder="text in bodies" aria-label="search in bodies" /></form>
      ${state.found && html`<button onClick=${function () { store.set({ found: null }); }}>${tp.count(state.found.size, 'hit')} ×</button>`}
      <button onClick=${function () { store.set({ axis: state.axis === 'time' ? 'rank' : 'time' }); }} title="t">${state.axis === 'time' ? 'time' : 'causal rank'}</button>
      <button onClick=${function () { store.set({ helping: true }); }} title="keys and colours">?</button>
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
    return html`<div class="list" ref=${box} role="listbox" aria-label="exchanges" onScroll=${function (event) { pair[1]({ top: event.target.scrollTop, height: event.target.clientHeight }); }}>
      <div class="whole" style=${{ height: rows.length * ROW + 'px' }}>
        ${rows.slice(first, last).map(function (row, at) {
          return html`<div key=${row.number} class=${'row' + (row.number === props.number ? ' chosen' : '') + (model.failed(row) ? ' failed' : '')} role="option" aria-selected=${row.number === props.number} style=${{ top: (first + at) * ROW + 'px' }} onClick=${function () { props.pick(row.number); }}>
            <span class="n">${row.number}</span><span class=${'dot ' + (row.source || (row.dialect ? 'llm' : row.inside ? 'inside' : 'recorded'))}></span>
            <span class="status">${row.status || row.how || '…'}</span>
            <span class="what">${row.model ? tp.spelled(row.model) : tp.spelled(row.method + ' ' + row.path)}</span>
            <span class="words">${tp.spelled(row.said || row.words || (row.model ? '' : row.host))}</span>
            <span class="time">${row.end === null ? '…' : tp.duration(row.end - row.at)}</span>
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
    ['g 1 2 Enter', 'go to exchange 12'],
    ['1 … 6', 'conversation, request, response, headers, stream, place'],
    ['p', 'play the stream at the pace of the tape'],
    ['t', 'time, or causal rank'],
    ['+ / − / 0', 'zoom in, out, all'],
    ['← / →', 'move along the axis'],
    ['m, then c', 'mark an exchange; compare its context with another one'],
    ['f', 'fork here'],
    ['?', 'this page'],
  ];
  var COLOURS = [['recorded', 'recorded'], ['llm', 'call of a model'], ['inside', 'served by the run itself'], ['reused', 'reused from the parent tape'], ['mutated', 'changed by the fork'], ['live', 'asked anew by the fork'], ['failed', 'failed']];

  function Help(props) {
    return html`<div class="over" onClick=${props.close}><div class="help" role="dialog" aria-label="help">
      <h2>Keys</h2><table>${KEYS.map(function (pair) { return html`<tr><th>${pair[0]}</th><td>${pair[1]}</td></tr>`; })}</table>
      <h2>Colours</h2><p>${COLOURS.map(function (pair) { return html`<span class="legend"><span class=${'dot ' + pair[0]}></span>${pair[1]}</span> `; })}</p>
      <p class="dim">A bar is light until the first byte came; its ticks are chunks. Small marks below a lane are what it read: clock, files, tools. Lines are where lanes met. Filters: host: status: model: lane: how: source: method: path: is:failed is:llm is:streamed; a leading − excludes.</p>
    </div></div>`;
  }

  var going = null;
  function keys(event, page) {
    var store = page.store, state = store.get();
    if (event.key === 'Escape') {
      if (document.activeElement && document.activeElement !== document.body) document.activeElement.blur();
      else store.set(state.helping ? { helping: false } : state.view ? { view: '' } : { query: '', found: null });
      return;
    }
    if (event.target.matches('input, textarea, select') || event.ctrlKey || event.metaKey || event.altKey) return;
    if (going !== null) {
      if (/^[0-9]$/.test(event.key)) { going += event.key; event.preventDefault(); return; }
      if (event.key === 'Enter' && page.model.byNumber.has(Number(going))) store.set({ number: Number(going) });
      going = null;
      if (event.key === 'Enter') return;
    }
    var done = true;
    switch (event.key) {
      case 'j': step(page, 1); break;
      case 'k': step(page, -1); break;
      case 'J': step(page, 1, true); break;
      case 'K': step(page, -1, true); break;
      case '/': page.search.focus(); break;
      case 'g': going = ''; break;
      case '?': store.set({ helping: !state.helping }); break;
      case 't': store.set({ axis: state.axis === 'time' ? 'rank' : 'time' }); break;
      case '+': case '=': page.lanes.zoom(0.6); break;
      case '-': page.lanes.zoom(1.6); break;
      case '0': page.lanes.fit(); break;
      case 'ArrowRight': page.lanes.pan(80); break;
      case 'ArrowLeft': page.lanes.pan(-80); break;
      case 'p': if (state.tab !== 'stream') { store.set({ tab: 'stream' }); setTimeout(function () { if (tp.playStream) tp.playStream(); }, 60); } else if (tp.playStream) tp.playStream(); break;
      case 'm': store.set({ marked: state.number }); break;
      case 'c': if (state.marked !== null && tp.views.context) store.set({ view: 'context', other: state.marked }); break;
      case 'f': if (tp.views.fork && !page.model.source.embedded) store.set({ view: 'fork' }); break;
      default:
        if (/^[1-6]$/.test(event.key)) store.set({ tab: tp.TABS[Number(event.key) - 1] });
        else done = false;
    }
    if (done) event.preventDefault();
  }

  function step(page, by, inLane) {
    var state = page.store.get(), rows = page.rows;
    if (inLane && state.number !== null) {
      var lane = page.model.byNumber.get(state.number).lane;
      rows = rows.filter(function (row) { return row.lane === lane; });
    }
    if (!rows.length) return;
    var at = rows.findIndex(function (row) { return row.number === state.number; });
    var next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.max(0, Math.min(rows.length - 1, at + by));
    page.store.set({ number: rows[next].number });
  }
})();
