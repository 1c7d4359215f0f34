/* The tape as the page holds it: columns of the outline, labels and ranks as they come, the filter, the order. */
'use strict';
tp.Model = class {
  constructor(source) {
    this.source = source;
    this.tape = null;
    this.lanes = [];
    this.hosts = [];
    this.rows = [];        // by place; a row is an object of the outline's columns
    this.byNumber = new Map();
    this.edges = [];
    this.marks = [];
    this.ranked = false;
    this.version = 0;
    this.shape = 0;          // counts what moves lanes, bars or marks; the version counts all
    this.changed = tp.store({ version: 0, shape: 0 });
    this.bumped = -Infinity;
    this.waiting = null;
  }

  async load() {
    this.take(await this.source.outline());
    var self = this;
    // Ranks and labels cost the server more: the page is there before they are.
    this.askRanks();
    (async function () {
      for (var from = 1, size = 250; from <= self.rows.length; from += size, size = 500) {
        try { self.takeLabels(await self.source.labels(from, from + size - 1)); } catch (error) { console.warn('labels', error); break; }
        if (self.source.embedded) break;
      }
      self.labelled = true;  // for bench/viewer.py
    })();
  }

  take(outline) {
    // A lane that is new may stand between others: rows know theirs by its id.
    var ids = this.lanes.map(function (lane) { return lane.id; });
    var places = new Map(outline.lanes.map(function (lane, at) { return [lane.id, at]; }));
    for (var old of this.rows) old.lane = places.get(ids[old.lane]);
    this.tape = outline.tape;
    this.lanes = outline.lanes.map(function (lane, at) {
      return Object.assign({ at: at, label: lane.name ? lane.name + ' (' + lane.id + ')' : lane.id || 'no lane', rows: [], depth: 0 }, lane);
    });
    for (var lane of this.lanes) lane.depth = lane.parent === null ? 0 : this.lanes[lane.parent].depth + 1;
    this.edges = outline.edges;
    this.marks = outline.marks.slice().sort(function (a, b) { return a[1] - b[1]; });
    this.unmarked = outline.unmarked || 0;
    this.byLane = null;
    this.last = null;
    this.diff = outline.diff || null;
    var columns = outline.rows, hosts = columns.hosts, names = Object.keys(columns).filter(function (name) { return name !== 'hosts'; });
    for (var at = 0; at < columns.number.length; at++) {
      var number = columns.number[at], row = this.byNumber.get(number);
      if (!row) {
        row = { number: number, label: String(number), place: this.rows.length, rank: number, words: '', said: '', model: null, dialect: null, mcp: null, tokens_in: null, tokens_out: null, tokens_cached: null, tokens_written: null, error: null };
        this.byNumber.set(number, row);
        this.rows.push(row);
      }
      for (var name of names) row[name] = columns[name][at];
      row.news = (row.news || 0) + 1;
      row.host = hosts[columns.host[at]];
    }
    this.timeless = this.end() === 0;
    this.top = null;
    this.seat();
    this.bump(true);
  }

  /* The marks of each lane, and of none (null), in the order of their times. */
  marksOf() {
    if (!this.byLane) {
      this.byLane = new Map();
      for (var mark of this.marks) {
        if (!this.byLane.has(mark[0])) this.byLane.set(mark[0], []);
        this.byLane.get(mark[0]).push(mark);
      }
    }
    return this.byLane;
  }

  /* The ranks as they are now; an older answer that comes late is of fewer exchanges. */
  async askRanks() {
    var turn = this.turn = (this.turn || 0) + 1;
    try {
      var found = await this.source.ranks();
      if (turn === this.turn) this.takeRanks(found);
    } catch (error) { console.warn('ranks', error); }
  }

  /* The highest causal rank. */
  highest() {
    if (this.top === null) this.top = this.rows.reduce(function (most, row) { return Math.max(most, row.rank); }, 1);
    return this.top;
  }

  /* Tokens of all calls: in, out, and how many calls there are. */
  totals(rows) {
    var sum = { calls: 0, tokens_in: 0, tokens_out: 0, tokens_cached: 0, tokens_written: 0, cost: null };
    for (var row of rows) {
      if (row.dialect === null) continue;
      sum.calls++;
      for (var name of ['tokens_in', 'tokens_out', 'tokens_cached', 'tokens_written']) sum[name] += row[name] || 0;
      var cost = tp.cost(row);
      if (cost !== null) sum.cost = { money: (sum.cost ? sum.cost.money : 0) + cost.money, rough: cost.rough || (sum.cost !== null && sum.cost.rough) };
    }
    return sum;
  }

  /* The call of a model that the same lane made before this one; null where there is none. */
  callBefore(number) {
    var row = this.byNumber.get(number), found = null;
    for (var one of row ? this.lanes[row.lane].turns : []) {
      if (one.number === number) break;
      if (one.dialect !== null) found = one;
    }
    return found && found.number;
  }

  /* Where exchanges of one lane overlap they stand below each other. */
  seat() {
    for (var lane of this.lanes) { lane.rows = []; lane.depthOfRows = 1; }
    var now = this.end();
    for (var row of this.rows) {
      row.stop = row.end === null ? Math.max(now, row.at) : Math.max(row.end, row.at);
      this.lanes[row.lane].rows.push(row);
    }
    for (var one of this.lanes) {
      // The lane's own order, which times need not follow.
      one.turns = one.rows.slice().sort(function (a, b) { return (a.n === null ? a.number : a.n) - (b.n === null ? b.number : b.n); });
      one.turns.forEach(function (row, at) { row.turn = at; });
      one.rows.sort(function (a, b) { return a.at - b.at || a.number - b.number; });
      var free = [];
      for (var item of one.rows) {
        var seat = free.findIndex(function (until) { return until <= item.at; });
        if (seat < 0) seat = free.length < 6 ? free.length : 5;
        free[seat] = item.stop;
        item.seat = seat;
      }
      one.depthOfRows = Math.max(1, free.length);
      var most = -Infinity;
      one.until = one.rows.map(function (row) { most = Math.max(most, row.stop); return most; });
      one.sorted = null;
    }
  }

  end() {
    if (this.last === null) this.last = this.rows.reduce(function (most, row) { return Math.max(most, row.end === null ? row.at : row.end); }, this.tape ? this.tape.duration : 0);
    return this.last;
  }

  /* What calls were about. `live`: just now, over the line; what was asked for before that may come later, and is older. */
  takeLabels(columns, live) {
    for (var at = 0; at < columns.number.length; at++) {
      var row = this.byNumber.get(columns.number[at]);
      if (row && live) row.heard = true;
      if (row && (live || !row.heard)) for (var name in columns) row[name] = columns[name][at];
    }
    this.later();
  }

  takeRanks(columns) {
    var self = this;
    columns.number.forEach(function (number, at) {
      var row = self.byNumber.get(number);
      if (row) { row.rank = columns.rank[at]; row.order = at; }
    });
    this.ranked = true;
    this.top = null;
    for (var lane of this.lanes) lane.sorted = null;
    this.bump(true);
  }

  bump(shape) {
    this.version++;
    if (shape) this.shape++;
    this.bumped = performance.now();
    this.changed.set({ version: this.version, shape: this.shape });
  }

  /* Labels come in many pieces: the page takes up what there is twice a second, the first at once. */
  later() {
    if (this.waiting !== null) return;
    var self = this;
    this.waiting = setTimeout(function () { self.waiting = null; self.bump(); }, Math.max(0, 500 - (performance.now() - this.bumped)));
  }

  failed(row) { return (row.how !== 'complete' && row.how !== null) || row.status >= 400; }

  /* A filter is words: `host:api status:5 model:gpt lane:bob how:reset source:live method:post`, others anywhere. */
  filter(text) {
    var self = this, tests = [];
    for (var word of text.trim().split(/\s+/).filter(Boolean)) {
      var found = /^(-?)(host|status|model|lane|how|source|method|path|is):(.*)$/i.exec(word);
      tests.push(this.test(found ? found[2].toLowerCase() : '', (found ? found[3] : word.replace(/^-/, '')).toLowerCase(), found ? found[1] === '-' : /^-./.test(word)));
    }
    return this.rows.filter(function (row) { return tests.every(function (test) { return test.call(self, row); }); });
  }

  test(field, value, not) {
    var self = this;
    function has(text) { return text !== null && text !== undefined && String(text).toLowerCase().includes(value); }
    return function (row) {
      var yes;
      if (field === 'status') yes = row.status !== null && String(row.status).startsWith(value);
      else if (field === 'lane') yes = has(self.lanes[row.lane].label);
      else if (field === 'is') yes = value === 'failed' ? self.failed(row) : value === 'llm' ? row.dialect !== null : value === 'streamed' ? row.chunks > 1 : value === 'inside' ? row.inside : value === 'different' ? tp.differs(row, self) : false;
      else if (field) yes = has(row[field]);
      else yes = has(row.path) || has(row.host) || has(row.model) || has(row.mcp) || has(row.words) || has(row.said) || has(row.method) || String(row.number) === value;
      return yes !== not;
    };
  }
};
