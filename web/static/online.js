/* The page when a server gives it: the token, the list of tapes, and the line over which a tape grows. */
'use strict';
(function () {
  var html = tp.html, hooks = tp.hooks;

  /* The token comes behind the # of the address that was printed, is kept for this origin, and leaves the address. */
  function token() {
    var found = new URLSearchParams(location.hash.slice(1));
    if (found.has('token')) {
      localStorage.setItem('tapeproxy-token', found.get('token'));
      found.delete('token');
      history.replaceState(null, '', location.pathname + (String(found) ? '#' + found : ''));
    }
    return localStorage.getItem('tapeproxy-token') || '';
  }
  tp.token = token();

  tp.ask = async function (path, order) {
    var headers = { accept: 'application/json', 'x-tapeproxy-token': tp.token };
    var reply = await fetch(path, order === undefined ? { headers: headers } : { method: 'POST', headers: Object.assign(headers, { 'content-type': 'application/json' }), body: JSON.stringify(order) });
    var body = await reply.json().catch(function () { return { error: reply.status + ' ' + reply.statusText }; });
    if (!reply.ok) throw new Error(body.error || String(reply.status));
    return body;
  };

  /* Follow a tape that is being recorded; after a lost line the whole outline comes again, so nothing is missed. */
  tp.follow = function (model, store) {
    var wait = 250, done = false;
    (function connect() {
      var line = new WebSocket(location.origin.replace(/^http/, 'ws') + '/api/tapes/' + encodeURIComponent(model.source.id) + '/live');
      tp.line = line;
      line.onopen = function () { line.send(JSON.stringify({ token: tp.token })); };
      line.onmessage = async function (event) {
        wait = 250;
        store.set({ offline: false });
        var news = JSON.parse(event.data);
        model.take(news.outline);
        model.takeLabels(news.labels);
        if (!news.outline.tape.recording) {
          done = true;
          try { model.takeRanks(await model.source.ranks()); } catch (error) { console.warn('ranks', error); }
        }
      };
      line.onclose = function () {
        if (done) return;
        store.set({ offline: true });
        setTimeout(connect, wait = Math.min(5000, wait * 2));
      };
    })();
  };

  function Tapes() {
    var pair = hooks.useState({ rows: null });
    hooks.useEffect(function () {
      function look() { tp.ask('/api/tapes').then(function (rows) { pair[1]({ rows: rows }); }, function (error) { pair[1]({ rows: null, error: error.message }); }); }
      look();
      var timer = setInterval(look, 2000);
      return function () { clearInterval(timer); };
    }, []);
    var state = pair[0];
    return html`<main class="tapes"><h1>Tapes</h1>
      ${state.error && html`<p class="bad">${tp.spelled(state.error)}</p>`}
      ${state.rows && state.rows.length === 0 && html`<p class="dim">There are none here. <code>tapeproxy record -- python agent.py</code> makes one.</p>`}
      ${state.rows && html`<ul>${state.rows.map(function (row) {
        return html`<li key=${row.name}><a href=${'/tape/' + encodeURIComponent(row.name)}>${tp.spelled(row.name)}</a> <span class="dim">${tp.size(row.size)}, ${new Date(row.written * 1000).toLocaleString()}</span>${row.recording && html` <b class="good">recording</b>`}</li>`;
      })}</ul>`}
    </main>`;
  }

  var place = /^\/tape\/([^/]+)$/.exec(location.pathname);
  if (place) {
    var source = tp.httpSource(decodeURIComponent(place[1]));
    source.live = function (model, store) { if (model.tape.recording) tp.follow(model, store); };
    tp.start(source);
  } else {
    document.title = 'Tapes · tapeproxy';
    document.getElementById('app').textContent = '';
    tp.render(html`<${Tapes} />`, document.getElementById('app'));
  }
})();
