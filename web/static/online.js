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

  /* What the server says, or an error with its words. */
  tp.fetched = async function (path, order) {
    var headers = { 'x-tapeproxy-token': tp.token };
    var reply = await fetch(path, order === undefined ? { headers: headers } : { method: 'POST', headers: Object.assign(headers, { 'content-type': 'application/json' }), body: JSON.stringify(order) });
    if (reply.ok) return reply;
    var told = await reply.json().catch(function () { return {}; });
    throw Object.assign(new Error(told.error || reply.status + ' ' + reply.statusText), { status: reply.status });
  };
  tp.ask = async function (path, order) { return (await tp.fetched(path, order)).json(); };

  /* Follow a tape that is being recorded, from where the page is: `at`, as the server called it. A line that is lost is
     taken up from the last place of which all has come; where the server knows nothing of that, all of the tape comes
     again, so nothing is missed. */
  tp.follow = function (model, store) {
    var wait = 250, why = '', started = model.tape.started_at, at = model.tape.at;
    (function connect() {
      var line = new WebSocket(location.origin.replace(/^http/, 'ws') + '/api/tapes/' + encodeURIComponent(model.source.id) + '/live');
      tp.line = line;
      line.onopen = function () { line.send(JSON.stringify({ token: tp.token, at: at || '' })); };
      line.onmessage = function (event) {
        var news = JSON.parse(event.data);
        if (news.error) { why = news.error; return; }
        wait = 250;
        why = '';
        if (news.outline && news.whole && news.outline.tape.started_at !== started) { location.reload(); return; }  // another tape has its name now
        if (news.outline) {
          // What was said of the first records stays true of a tape that grows; a seal is something else.
          var badge = store.get().badge;
          if (badge && !badge.busy && model.tape.recording !== news.outline.tape.recording) store.set({ badge: null });
          model.take(news.outline);
        }
        if (news.labels) model.takeLabels(news.labels, true);
        if (news.at) at = news.at;
        if (store.get().offline) store.set({ offline: null });
      };
      line.onclose = function (event) {
        if (event.code === 1000) {
          model.askRanks();
          return;
        }
        var ends = event.code === 4401 || event.code === 4404;
        store.set({ offline: (why || 'connection lost') + (ends ? '' : '; trying again') });
        if (ends) return;
        setTimeout(connect, wait);
        wait = Math.min(5000, wait * 2);
      };
    })();
  };

  function worded(argv) {
    return argv.map(function (word) { return /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'"; }).join(' ');
  }

  /* Two tapes of the server, compared. */
  function diffSource(a, b) {
    var names = '?a=' + encodeURIComponent(a) + '&b=' + encodeURIComponent(b), whole = tp.ask('/api/diff' + names);
    return {
      embedded: true,
      home: true,
      id: null,
      outline: async function () { return (await whole).outline; },
      ranks: async function () { return (await whole).ranks; },
      labels: async function () { return (await whole).labels; },
      exchange: function (n) { return tp.ask('/api/diff/exchanges/' + n + names); },
      differences: function (at) { return tp.ask('/api/diff/differences/' + at + names); },
      search: async function (text) {
        var found = await Promise.all([a, b].map(function (name) { return tp.ask('/api/tapes/' + encodeURIComponent(name) + '/search?q=' + encodeURIComponent(text)); }));
        var first = (await whole).outline.diff.first;
        return found[0].numbers.concat(found[1].numbers.map(function (number) { return number + first; }));
      },
      file: async function () { throw new Error('open one of the tapes to verify it'); },
    };
  }

  /* Who rests on a link will click on it: the server reads that tape already, one at a time. */
  var resting = null, reading = false;
  function rest(name) {
    clearTimeout(resting);
    resting = setTimeout(function () {
      if (reading) return;
      reading = true;
      tp.ask('/api/tapes/' + encodeURIComponent(name) + '/ready').catch(function () {}).then(function () { reading = false; });
    }, 80);
  }
  function leave() { clearTimeout(resting); }

  /* The list: names at once, and what must be read from each tape one after the other. */
  function Tapes() {
    var pair = hooks.useState({ rows: null }), about = hooks.useRef(new Map());
    hooks.useEffect(function () {
      var gone = false, timer = null;
      async function look() {
        try {
          var rows = await tp.ask('/api/tapes');
          if (!gone) pair[1]({ rows: rows });
          for (var row of rows) {
            var mark = [row.written, row.size, row.recording && 'recording'].join(), known = about.current.get(row.name);
            if (gone || (known && (known.mark === mark || (row.recording && known.recording)))) continue;
            try {
              about.current.set(row.name, Object.assign(await tp.ask('/api/tapes/' + encodeURIComponent(row.name) + '/about'), { mark: mark, recording: row.recording }));
            } catch (error) { about.current.delete(row.name); }
            if (!gone) pair[1]({ rows: rows });
          }
        } catch (error) { if (!gone) pair[1]({ rows: null, error: error.message }); }
        if (!gone) timer = setTimeout(look, 2000);
      }
      look();
      return function () { gone = true; clearTimeout(timer); };
    }, []);
    var state = pair[0], chosen = hooks.useState([]);
    function choose(name, yes) { chosen[1](chosen[0].filter(function (one) { return one !== name; }).concat(yes ? [name] : []).slice(-2)); }
    function number(value) { return value === null || value === undefined ? '' : value.toLocaleString('en'); }
    return html`<main class="tapes"><${tp.Forks} /><h1>Tapes</h1>
      ${state.error && html`<p class="bad">${tp.spelled(state.error)}</p>`}
      ${state.rows && state.rows.length === 0 && html`<p class="dim">There are none here. <code>tapeproxy record -- python agent.py</code> makes one.</p>`}
      ${state.rows && state.rows.length > 0 && html`<table class="headers"><thead><tr><th>tape</th><th>command</th><th>begun</th><th>outcome</th><th>exchanges</th><th>tokens in</th><th>out</th><th>size</th></tr></thead><tbody>${state.rows.map(function (row) {
        var known = about.current.get(row.name) || { argv: [], outcome: row.recording ? 'recording' : '…' };
        var bad = known.outcome !== 'exit 0' && known.outcome !== 'complete' && known.outcome !== '…';
        return html`<tr key=${row.name}><td><input type="checkbox" aria-label=${'compare ' + tp.spelled(row.name)} checked=${chosen[0].includes(row.name)} onChange=${function (event) { choose(row.name, event.target.checked); }} /> <a href=${'/tape/' + encodeURIComponent(row.name)} onPointerEnter=${function () { rest(row.name); }} onFocus=${function () { rest(row.name); }} onPointerLeave=${leave} onBlur=${leave}>${tp.spelled(row.name)}</a>${known.is_fork && html` <span class="dim">fork</span>`}</td>
          <td class="command">${tp.spelled(worded(known.argv))}</td>
          <td class="dim">${new Date(known.started_at || row.written * 1000).toLocaleString()}</td>
          <td class=${'outcome ' + (row.recording ? 'good' : bad ? 'bad' : '')}>${row.recording ? 'recording' : tp.spelled(known.outcome)}</td>
          <td class="exchanges">${number(known.exchanges)}</td><td>${number(known.tokens_in)}</td><td>${number(known.tokens_out)}</td><td class="dim">${tp.size(row.size)}</td></tr>`;
      })}</tbody></table>`}
      ${chosen[0].length === 2 && html`<p><a class="compare" href=${'/diff?a=' + encodeURIComponent(chosen[0][0]) + '&b=' + encodeURIComponent(chosen[0][1])}>compare ${tp.spelled(chosen[0].join(' with '))}</a></p>`}
      ${chosen[0].length === 1 && html`<p class="dim">Choose another one to compare with.</p>`}
    </main>`;
  }

  var place = /^\/tape\/([^/]+)$/.exec(location.pathname);
  if (place) {
    var source = tp.httpSource(decodeURIComponent(place[1]));
    source.live = function (model, store) { if (model.tape.recording) tp.follow(model, store); };
    tp.start(source);
  } else if (location.pathname === '/diff') {
    var asked = new URLSearchParams(location.search);
    tp.start(diffSource(asked.get('a') || '', asked.get('b') || ''));
  } else {
    document.title = 'Tapes · tapeproxy';
    document.getElementById('app').textContent = '';
    tp.render(html`<${Tapes} />`, document.getElementById('app'));
  }
})();
