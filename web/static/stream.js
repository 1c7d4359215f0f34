/* What came, piece by piece, at the pace of the tape: the chunks of an answer, the messages of a WebSocket. */
'use strict';
(function () {
  var html = tp.html, hooks = tp.hooks;
  var AROUND = 400;  // pixels beyond the screen that are drawn
  var NEAR = 24;     // pixels from the end at which a reader is at the end

  /* Of each chunk, the server-sent events that end in it. https://html.spec.whatwg.org/multipage/server-sent-events.html */
  function eventsOf(pieces) {
    var rest = '', name = '', data = [];
    return pieces.map(function (piece, at) {
      var found = [], last = at === pieces.length - 1, lines;
      rest += piece.text || '';
      // A lone CR at the end may be the first half of a line's end.
      var cut = rest.endsWith('\r') && !last ? rest.slice(0, -1) : rest;
      lines = cut.split(/\r\n|\r|\n/);
      rest = lines.pop() + rest.slice(cut.length);
      for (var line of lines) {
        if (line === '') {
          if (data.length) found.push({ name: name || 'message', data: data.join('\n') });
          name = '';
          data = [];
        } else {
          var parts = /^([^:]*):? ?([^]*)$/.exec(line);
          if (parts[1] === 'data') data.push(parts[2]);
          else if (parts[1] === 'event') name = parts[2];
        }
      }
      return found;
    });
  }
  tp.eventsOf = eventsOf;

  /* A list of which only what is on the screen is drawn, in the element `.body` that scrolls it. `follow`: it stays at
     its end while it grows, until the reader scrolls away from there; a new `turn` goes back to its end. `layout`: what
     changes when all heights do. */
  function Items(props) {
    var box = hooks.useRef(null), own = hooks.useRef(null), count = props.items.length, redraw = hooks.useState(0)[1];
    if (!own.current) own.current = { heights: [], sum: 0, known: 0, top: 0, height: 800, atEnd: Boolean(props.follow), stays: false, turn: props.turn, layout: props.layout };
    var list = own.current, follows = false;
    if (list.turn !== props.turn) { list.turn = props.turn; list.atEnd = true; }
    if (list.layout !== props.layout) { list.layout = props.layout; forget(); }
    follows = (Boolean(props.follow) || list.stays) && list.atEnd;
    function forget() { list.heights = []; list.sum = list.known = 0; }
    function height(at) { return list.heights[at] === undefined ? (list.known ? list.sum / list.known : NEAR) : list.heights[at]; }
    /* Where the screen is within the list. */
    function look() {
      var scroller = box.current.closest('.body'), top = scroller.getBoundingClientRect().top - box.current.getBoundingClientRect().top;
      var moved = Math.abs(top - list.top) > 1 || list.height !== scroller.clientHeight;
      list.top = top;
      list.height = scroller.clientHeight;
      return moved;
    }
    hooks.useEffect(function () {
      var scroller = box.current.closest('.body'), width = scroller.clientWidth;
      function scrolled() {
        list.atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR;
        list.stays = list.stays && list.atEnd;
        if (look()) redraw(function (old) { return old + 1; });
      }
      // A browser would go to where the end is thought to be before all on the way there was measured.
      function key(event) {
        if (event.key !== 'End' || event.target !== scroller) return;
        event.preventDefault();
        list.stays = list.atEnd = true;
        redraw(function (old) { return old + 1; });
      }
      var observer = new ResizeObserver(function () {
        if (scroller.clientWidth !== width) { width = scroller.clientWidth; forget(); }
        redraw(function (old) { return old + 1; });
      });
      scroller.addEventListener('scroll', scrolled);
      scroller.addEventListener('keydown', key);
      observer.observe(scroller);
      return function () { scroller.removeEventListener('scroll', scrolled); scroller.removeEventListener('keydown', key); observer.disconnect(); };
    }, []);
    var first = 0, last = count, above = 0, below = 0, at, y;
    if (follows) {
      for (first = count, y = 0; first > 0 && y < list.height + AROUND; first--) y += height(first - 1);
      for (at = 0; at < first; at++) above += height(at);
    } else {
      while (first < count && above + height(first) < list.top - AROUND) above += height(first++);
      for (last = first, y = above; last < count && y < list.top + list.height + AROUND; last++) y += height(last);
      for (at = last; at < count; at++) below += height(at);
    }
    hooks.useLayoutEffect(function () {
      var children = box.current.children, changed = false, now;
      for (var place = 1; place < children.length - 1; place++) {
        now = children[place].getBoundingClientRect().height;
        var before = list.heights[first + place - 1];
        if (before !== undefined && Math.abs(before - now) < 0.5) continue;
        list.sum += now - (before || 0);
        if (before === undefined) list.known++;
        list.heights[first + place - 1] = now;
        changed = true;
      }
      if (follows) { var scroller = box.current.closest('.body'); scroller.scrollTop = scroller.scrollHeight; }
      if (look() && !follows) changed = true;
      if (changed) redraw(function (old) { return old + 1; });
    });
    return html`<div class="chunks" ref=${box}><div style=${{ height: above + 'px' }}></div>${props.items.slice(first, last).map(function (item, place) { return props.draw(item, first + place); })}<div style=${{ height: below + 'px' }}></div></div>`;
  }

  /* Whether more of it may come. */
  function grows(props) { return props.document.end === null && props.model.tape.recording; }

  function since(at, base) { return at === null ? '' : '+' + tp.duration(Math.round((at - base) / 1000)); }

  /* What a message of a WebSocket says of itself: the type of JSON that has one, as the events of realtime APIs do. */
  function typeOf(message) {
    if (message.text === undefined || message.text[0] !== '{') return '';
    try { var value = JSON.parse(message.text); return typeof value.type === 'string' ? value.type : ''; } catch (error) { return ''; }
  }

  /* A message of a WebSocket: who sent it, of what kind it is, and what it says. */
  function frame(message, at, base, neat) {
    var facts = [message.type !== 'text' && message.type, message.code !== null && message.code, message.text === undefined && tp.size(message.size), typeOf(message), !message.whole && '(not whole)'].filter(Boolean);
    return html`<div key=${at} class=${'chunk frame from-' + message.from}><span class="when">${since(message.at_ns, base)}</span><span class="who">${message.from}</span><div class="said">${facts.length > 0 && html`<b>${tp.spelled(facts.join(' '))}</b>`}
      ${message.text === undefined ? html`<pre>${tp.hexTable(tp.unbase64(message.b64), 512)}</pre>` : message.text && html`<${tp.Text} text=${neat ? tp.pretty(message.text) : message.text} most=${4000} />`}</div></div>`;
  }

  function chunk(piece, at, base, events) {
    return html`<div key=${at} class="chunk"><span class="when">${since(piece.at_ns, base)}</span>${piece.text !== undefined ? html`<${tp.Text} text=${piece.text} most=${4000} />` : html`<pre>${tp.spelled(piece.b64 ? tp.hexTable(tp.unbase64(piece.b64), 512) : '(' + tp.size(piece.size) + ')')}</pre>`}
      ${events && html`<div class="events">${events.map(function (event, place) { return html`<div key=${place} class="event"><b>${tp.spelled(event.name)}</b><pre>${tp.spelled(tp.clip(tp.pretty(event.data), 4000))}</pre></div>`; })}</div>`}</div>`;
  }

  /* The messages of a WebSocket, or those `from` one side of it. */
  tp.Frames = function (props) {
    var all = props.document.messages, base = props.document.request.at_ns;
    var shown = hooks.useMemo(function () { return props.from ? all.filter(function (one) { return one.from === props.from; }) : all; }, [all, props.from]);
    var sent = all.filter(function (one) { return one.from === 'client'; }).length;
    return html`<div><p class="facts">A WebSocket: ${tp.count(sent, 'message')} of the client, ${all.length - sent} of the server</p>
      <${Items} items=${shown} follow=${grows(props)} draw=${function (item, at) { return frame(item, at, base, true); }} /></div>`;
  };

  /* What the pieces add up to while they come: the end of it, below them. */
  function SoFar(props) {
    var box = hooks.useRef(null);
    hooks.useLayoutEffect(function () { box.current.scrollTop = box.current.scrollHeight; }, [props.text]);
    return html`<pre class="sofar" ref=${box} aria-label="the text so far">${tp.spelled(props.text.length > 4000 ? '…' + props.text.slice(-4000) : props.text)}</pre>`;
  }

  /* What came, as it came; the button plays it at the pace of the tape, or n times as fast. */
  tp.Stream = function (props) {
    var document_ = props.document, base = document_.request.at_ns, response = document_.response;
    var items = hooks.useMemo(function () { return document_.messages.concat(response ? response.pieces : []); }, [document_]);
    var state = hooks.useState(items.length), playing = hooks.useState(0), turn = hooks.useState(0), timer = hooks.useRef(null), latest = hooks.useRef(items), going = hooks.useRef(0);
    var shown = Math.min(state[0], items.length), setShown = state[1], live = grows(props);
    function goes(speed) { clearTimeout(timer.current); going.current = speed; playing[1](speed); }
    function stop() { goes(0); }
    function play(speed) {
      goes(speed);
      turn[1](function (old) { return old + 1; });
      var began = performance.now(), first = items.length && items[0].at_ns !== null ? items[0].at_ns : base;
      (function step(at) {
        var items = latest.current, now = (performance.now() - began) * 1e6 * speed;
        while (at < items.length && (items[at].at_ns === null || items[at].at_ns - first <= now)) at++;
        setShown(at);
        if (at >= items.length) { goes(0); return; }
        timer.current = setTimeout(step, Math.max(4, (items[at].at_ns - first - now) / 1e6 / speed), at);
      })(0);
    }
    latest.current = items;
    tp.playStream = function () { if (playing[0]) stop(); else play(1); };
    hooks.useEffect(function () {
      var soon = tp.playSoon === document_.exchange.number;
      if (soon || tp.playSoon !== tp.state.get().number) tp.playSoon = null;
      if (soon) play(1);
      return function () { clearTimeout(timer.current); tp.playStream = null; };
    }, []);
    // More of it has come: who plays it goes on (and may have begun since this was drawn), who looks at all of it sees that.
    hooks.useEffect(function () { if (!going.current) setShown(items.length); }, [document_]);
    var isEvents = hooks.useMemo(function () {
      return Boolean(response) && response.headers.some(function (pair) { return pair[0].toLowerCase() === 'content-type' && /event-stream/i.test(pair[1]); });
    }, [document_]);
    var both = hooks.useState(true), events = hooks.useMemo(function () {
      // Of frames that are no text the server tells the events.
      return items.some(function (item) { return item.events; }) ? items.map(function (item) { return item.events || []; }) : isEvents ? eventsOf(items) : null;
    }, [items, isEvents]);
    var speaks = hooks.useMemo(function () { return items.some(function (item) { return item.said; }); }, [items]);
    if (!items.length) return html`<p class="dim">There is no body.</p>`;
    var last = shown > 0 ? items[shown - 1].at_ns : null;
    return html`<div class="stream">
      <p class="player"><button class="play" onClick=${function () { if (playing[0]) stop(); else play(1); }}>${playing[0] ? 'stop' : 'play'}</button>
        <button onClick=${function () { play(10); }}>10 ×</button>
        ${events && html`<button aria-pressed=${both[0]} onClick=${function () { both[1](!both[0]); }}>${both[0] ? 'chunks only' : 'with events'}</button>`}
        <span class="dim"> ${shown} of ${tp.count(items.length, document_.messages.length ? 'message' : 'chunk')}${last !== null ? ', ' + tp.duration(Math.round((last - base) / 1000)) + ' after the request' : ''}</span></p>
      <${Items} items=${items.slice(0, shown)} follow=${playing[0] > 0 || live} turn=${turn[0]} layout=${both[0]} draw=${function (item, at) {
        return item.from ? frame(item, at, base, false) : chunk(item, at, base, both[0] && events ? events[at] : null);
      }} />
      ${speaks && (live || turn[0] > 0) && html`<${SoFar} text=${items.slice(0, shown).map(function (item) { return item.said || ''; }).join('')} />`}
    </div>`;
  };
})();
