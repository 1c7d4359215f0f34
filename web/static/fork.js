/* Fork from the page: change a value of the chosen exchange, see what would be reused and asked anew, run it. */
'use strict';
(function () {
  var html = tp.html, hooks = tp.hooks;
  var KINDS = [
    ['--text', 'the answer’s text', 'what the model says instead'],
    ['--set', 'a value of the answer', '$.choices[0].message.content="…"'],
    ['--status', 'the answer’s status', '429'],
    ['--request-set', 'a value of the request', '$.messages[0].content="…"'],
    ['--model', 'the model', 'gpt-4o'],
    ['--system', 'the system prompt', 'You are brief.'],
  ];

  function answerText(document_) {
    var call = document_.call;
    if (!call || !call.answer) return '';
    return call.answer.parts.filter(function (part) { return part.kind === 'text'; }).map(function (part) { return part.text; }).join('');
  }

  /* A form an exchange: what was typed for one is never sent for another, and is there again when one comes back. */
  var drafts = new Map();
  tp.views.fork = function (props) {
    var number = props.state.number;
    if (number === null) return html`<div class="lower single"><p class="dim">Choose an exchange first, then press f.</p></div>`;
    return html`<${Form} key=${number} ...${props} number=${number} />`;
  };

  /* The forks that this server runs, each with a button that stops it: whoever loads the page anew finds them here. */
  tp.Forks = function (props) {
    var pair = hooks.useState({ rows: [] }), state = pair[0];
    hooks.useEffect(function () {
      var gone = false, timer = null;
      (async function look() {
        var rows = [];
        // A server that can't be reached is told by what else the page asks it.
        try { rows = await tp.ask('/api/forks'); } catch (error) {}
        if (gone) return;
        pair[1](function (old) { return Object.assign({}, old, { rows: rows.filter(function (row) { return row.running; }) }); });
        timer = setTimeout(look, 1000);
      })();
      return function () { gone = true; clearTimeout(timer); };
    }, []);
    var rows = state.rows.filter(function (row) { return row.fork !== props.but; });
    if (!rows.length) return null;
    return html`<section class="forks"><h3>Forks that run</h3><table class="headers">${rows.map(function (row) {
      return html`<tr key=${row.fork}><td>${row.begun ? html`<a href=${'/tape/' + encodeURIComponent(row.child)}>${tp.spelled(row.child)}</a>` : tp.spelled(row.child)}</td>
        <td class="dim">of <a href=${'/tape/' + encodeURIComponent(row.parent) + (row.at === null ? '' : '#e=' + row.at + '&view=fork')}>${tp.spelled(row.parent)}</a>${row.at !== null && ' at ' + row.at}</td>
        <td><button class="stop" onClick=${function () { tp.ask('/api/forks/' + row.fork + '/stop', {}).catch(function (error) { pair[1](function (old) { return Object.assign({}, old, { error: error.message }); }); }); }}>stop</button></td></tr>`;
    })}</table>${state.error && html`<p class="bad">${tp.spelled(state.error)}</p>`}</section>`;
  };

  function Form(props) {
    var model = props.model, number = props.number, id = model.source.id;
    var pair = hooks.useState(drafts.get(number) || { kind: '--text', value: '', read: false, rerun: 'future', keyless: '', document: null }), state = pair[0];
    function set(changes) {
      pair[1](function (old) {
        var now = Object.assign({}, old, typeof changes === 'function' ? changes(old) : changes);
        drafts.set(number, Object.assign({}, now, { busy: false, plan: null }));
        return now;
      });
    }
    function touch(changes) { set(Object.assign({ plan: null }, changes)); }
    hooks.useEffect(function () {
      // Until the answer is there nothing can be typed: it would land in, or before, the text that comes.
      model.source.exchange(number).then(function (found) {
        var text = answerText(found);
        // What was typed for it stays where somebody comes back to it.
        set(function (old) { return old.read ? { document: found } : { document: found, read: true, value: text, kind: text ? '--text' : '--set' }; });
      }, function (error) { set({ error: error.message, read: true }); });
      // One that was ordered here before the page was loaded anew goes on.
      if (!state.fork) tp.ask('/api/forks').then(function (rows) {
        var own = rows.filter(function (row) { return row.running && row.parent === id && row.at === number; }).pop();
        if (own) set(function (old) { return old.fork ? {} : { fork: { fork: own.fork, child: own.child }, run: null }; });
      }, function () {});
    }, []);
    hooks.useEffect(function () {
      if (!state.plan) return undefined;
      props.lanes.planned = state.plan;
      props.lanes.draw();
      return function () { props.lanes.planned = null; props.lanes.draw(); };
    }, [state.plan]);
    hooks.useEffect(function () {
      if (!state.fork || (state.run && !state.run.running)) return undefined;
      var timer = null, gone = false;
      // One question after the other: an older answer would say that it still runs.
      (async function look() {
        try {
          var now = await tp.ask('/api/forks/' + state.fork.fork);
          if (gone) return;
          set({ run: now, lost: null });
          if (!now.running) return;
        } catch (error) { if (!gone) set({ lost: error.message }); }
        if (!gone) timer = setTimeout(look, 400);
      })();
      return function () { gone = true; clearTimeout(timer); };
    }, [state.fork]);

    function ordered(form) {
      // A text may itself begin with a number and two colons.
      var options = [['--at', String(number)], [form.kind, form.kind === '--text' ? number + '::' + form.value : form.value]];
      return { options: options, rerun: form.rerun, keyless: form.keyless.split(/[\s,]+/).filter(Boolean) };
    }
    function order() { return ordered(state); }
    /* What an order of before says, a plan or a mistake in it, says nothing of what the form says now. */
    async function act(path, done) {
      var asked = JSON.stringify(order());
      function still(changes) { set(function (old) { return JSON.stringify(ordered(old)) === asked ? changes : {}; }); }
      set({ error: null, busy: true });
      try { done(await tp.ask('/api/tapes/' + encodeURIComponent(id) + path, order()), still); } catch (error) { still({ error: error.message }); }
      set({ busy: false });
    }
    function plan() { act('/plan', function (found, still) { still({ plan: found }); }); }
    function run() { act('/fork', function (found) { set({ fork: found, run: null }); }); }
    var runs = state.fork && (!state.run || state.run.running), ready = !state.busy && state.read;
    var kind = KINDS.find(function (one) { return one[0] === state.kind; });
    return html`<div class="lower single"><div class="forking">
      <h3>Fork at exchange ${number}</h3>
      <p class="dim">What came before, and what knows nothing of it, is answered from the tape. What follows is asked anew, live.</p>
      <label>change <select disabled=${!state.read} value=${state.kind} onChange=${function (event) { touch({ kind: event.target.value, value: event.target.value === '--text' && state.document ? answerText(state.document) : '' }); }}>${KINDS.map(function (one) { return html`<option value=${one[0]}>${one[1]}</option>`; })}</select></label>
      <textarea rows="6" spellcheck="false" disabled=${!state.read} placeholder=${state.read ? kind[2] : 'reading the exchange …'} value=${state.value} onInput=${function (event) { touch({ value: event.target.value }); }} aria-label="new value"></textarea>
      <label>asked anew <select value=${state.rerun} onChange=${function (event) { set({ rerun: event.target.value, plan: null }); }}><option value="future">all that follows</option><option value="changed">only what is not asked as on the tape</option></select></label>
      <label>secret variables that no live call needs <input value=${state.keyless} placeholder="NAME, NAME" onInput=${function (event) { set({ keyless: event.target.value, plan: null }); }} /></label>
      <p><button class="plan" disabled=${!ready} onClick=${plan}>what would happen</button> <button class="run" disabled=${!ready || runs} onClick=${run}>run it</button> <button onClick=${function () { props.store.set({ view: '' }); }}>close</button></p>
      ${state.error && html`<pre class="bad error">${tp.spelled(state.error)}</pre>`}
      ${state.plan && html`<div class="planned"><p><b>about ${tp.count(state.plan.live_calls, 'live call')}</b></p><table class="headers">${state.plan.lanes.map(function (lane) {
        return html`<tr><th>${tp.spelled(lane.name)}</th><td>${['reused', 'mutated', 'live'].filter(function (what) { return lane[what].length; }).map(function (what) { return html`<span class="legend"><span class=${'dot ' + what}></span>${what} ${lane[what].join(', ')}</span>`; })}</td></tr>`;
      })}</table></div>`}
      ${state.fork && html`<div class="running"><p>${runs ? html`<b class="good">running</b> <button class="stop" onClick=${function () { tp.ask('/api/forks/' + state.fork.fork + '/stop', {}).catch(function (error) { set({ error: error.message }); }); }}>stop</button>` : html`<b>ended with exit code ${state.run.exit_code}</b>`}
        ${state.lost && html`<span class="bad">${tp.spelled(state.lost)}; trying again</span> `}
        ${state.run && state.run.begun && html`<a class="child" href=${'/tape/' + encodeURIComponent(state.fork.child)} target="_blank" rel="noopener">${tp.spelled(state.fork.child)}</a>`}</p>
        <pre class="output">${tp.spelled((state.run && state.run.output) || '')}</pre></div>`}
      <${tp.Forks} but=${state.fork && state.fork.fork} />
    </div></div>`;
  }
})();
