/* The swimlanes: one canvas that draws what is on screen, and nothing else. Knows pixels; the model knows the tape. */
'use strict';
tp.Lanes = class {
  /* `pick(number)` is called for a click on an exchange. */
  constructor(canvas, model, pick) {
    this.canvas = canvas;
    this.model = model;
    this.pick = pick;
    this.axis = 'time';
    this.from = 0;
    this.to = 1;
    this.top = 0;
    this.selected = null;
    this.ringed = new Set();
    this.branch = new Set();
    this.shown = null;        // null: all; else a Set of numbers that the filter leaves
    this.due = false;
    this.base = document.createElement('canvas');  // all but what the chosen exchange changes
    this.stale = true;
    this.pixels = new tp.Pixels();
    this.shape = model.shape;
    this.frames = [];         // ms of main-thread work of the last drawings
    this.gutter = 170;
    this.causal = null;       // {past, future}: of each lane, rows before the one and from the other on; the rest is dimmed
    this.seenMarks = [];
    this.rowHeight = 14;
    var self = this;
    canvas.addEventListener('wheel', function (event) { self.wheel(event); }, { passive: false });
    canvas.addEventListener('mousedown', function (event) { self.press(event); });
    canvas.addEventListener('mousemove', function (event) { self.hover(event); });
    canvas.addEventListener('mouseleave', function () { self.say(null); });
    new ResizeObserver(function () { self.draw(); }).observe(canvas.parentNode);
    model.changed.watch(function (state) { self.grown(state.shape); });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', function () { self.colours = null; self.draw(); });
    this.hinted = document.createElement('div');
    this.hinted.className = 'hint';
    this.hinted.hidden = true;
    canvas.parentNode.appendChild(this.hinted);
  }

  span() {
    if (this.axis === 'time') return [0, Math.max(1, this.model.end())];
    return this.axis === 'rank' ? [0, this.model.highest() + 2] : [0.3, this.model.rows.length + 0.8];
  }

  fit() {
    var span = this.span();
    // An agent that takes seconds to begin: all is shown from when something happened.
    if (this.axis === 'time' && this.model.rows.length) {
      var told = this.model.marks.find(function (mark) { return mark[2] !== 'clock'; });
      span[0] = this.model.rows.reduce(function (first, row) { return Math.min(first, row.at); }, told ? told[1] : span[1]);
    }
    var pad = (span[1] - span[0]) * 0.02;
    this.from = span[0] - pad;
    this.to = span[1] + pad;
    this.fitted = true;
    this.draw();
  }

  /* There is more of the tape, or (the `shape` as it was) other labels and colours. */
  grown(shape) {
    if (shape === this.shape) { this.draw(); return; }
    this.shape = shape;
    this.tall = null;
    if (this.fitted !== false) this.fit(); else this.draw();
  }

  setAxis(axis) { this.axis = axis; this.tall = null; this.fit(); }

  /* Where an exchange stands: by time, by causal rank (which two may share), or by its place on the tape. */
  begin(row) { return this.axis === 'time' ? row.at : this.axis === 'rank' ? row.rank - 0.8 : row.place + 0.55; }
  stop(row) { return this.axis === 'time' ? row.stop : this.axis === 'rank' ? row.rank + 0.8 : row.place + 1.45; }
  x(value) { return this.gutter + (value - this.from) / (this.to - this.from) * (this.width - this.gutter); }
  at(x) { return this.from + (x - this.gutter) / (this.width - this.gutter) * (this.to - this.from); }

  /* Lanes with their heights: y of each, in the coordinates of the whole picture. */
  places() {
    if (this.tall && this.tall.lanes === this.model.lanes) return this.tall.places;
    var y = 24, self = this;
    var places = this.model.lanes.map(function (lane) {
      var height = (self.axis === 'time' ? lane.depthOfRows : 1) * self.rowHeight + 8;
      var place = { lane: lane, y: y, height: height };
      y += height;
      return place;
    });
    this.tall = { lanes: this.model.lanes, places: places };
    return places;
  }

  /* How tall all lanes are together, in pixels. */
  tallness() {
    var places = this.places(), last = places[places.length - 1];
    return last ? last.y + last.height + 8 : 60;
  }

  rowsOf(lane) {
    if (this.axis === 'time') return { rows: lane.rows, until: lane.until };
    if (!lane.sorted || lane.sorted.axis !== this.axis) {
      var self = this, rows = lane.rows.slice().sort(function (a, b) { return self.begin(a) - self.begin(b) || a.number - b.number; });
      lane.sorted = { axis: this.axis, rows: rows, until: rows.map(function (row) { return self.stop(row); }) };
    }
    return lane.sorted;
  }

  draw() {
    this.stale = true;
    this.drawChosen();
  }

  /* Another exchange is chosen, and nothing else is new. */
  drawChosen() {
    if (this.due) return;
    this.due = true;
    var self = this;
    requestAnimationFrame(function () {
      self.due = false;
      var began = performance.now();
      self.paint();
      if (!tp.painted) tp.painted = performance.now();  // for bench/viewer.py
      self.frames.push(performance.now() - began);
      if (self.frames.length > 600) self.frames.shift();
    });
  }

  palette() {
    if (!this.colours) {
      var style = getComputedStyle(document.documentElement), colours = this.colours = {};
      for (var name of ['ink', 'dim', 'line', 'paper', 'stripe', 'recorded', 'reused', 'mutated', 'live', 'failed', 'inside', 'accent', 'edge', 'mark', 'llm', 'past', 'future']) {
        colours[name] = style.getPropertyValue('--' + name).trim();
      }
    }
    return this.colours;
  }

  colour(row) {
    var colours = this.palette();
    if (this.planned) {
      // What a fork would do with it.
      if (!this.plannedOf || this.plannedOf.plan !== this.planned) {
        this.plannedOf = { plan: this.planned, by: new Map() };
        for (var lane of this.planned.lanes) for (var what of ['reused', 'mutated', 'live']) for (var number of lane[what]) this.plannedOf.by.set(number, what);
      }
      return colours[this.plannedOf.by.get(row.number) || 'recorded'];
    }
    if (this.model.failed(row)) return colours.failed;
    if (row.source && colours[row.source]) return colours[row.source];
    if (row.inside) return colours.inside;
    return row.dialect ? colours.llm : colours.recorded;
  }

  paint() {
    var canvas = this.canvas, ratio = devicePixelRatio || 1;
    this.width = canvas.clientWidth;
    this.height = canvas.clientHeight;
    this.gutter = Math.min(170, Math.max(60, Math.round(this.width * 0.22)));
    if (canvas.width !== Math.round(this.width * ratio) || canvas.height !== Math.round(this.height * ratio)) {
      canvas.width = this.base.width = Math.round(this.width * ratio);
      canvas.height = this.base.height = Math.round(this.height * ratio);
      this.stale = true;
    }
    if (!canvas.width || !canvas.height) return;
    if (this.stale) this.paintBase(ratio);
    this.stale = false;
    var pen = canvas.getContext('2d');
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(this.base, 0, 0);
    this.prepare(pen, ratio);
    pen.save();
    pen.beginPath();
    pen.rect(this.gutter - 4, 16, this.width, this.height);
    pen.clip();
    this.paintOwnEdges(pen);
    this.paintChosen(pen);
    pen.restore();
  }

  prepare(pen, ratio) {
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = '11px ui-sans-serif, system-ui, sans-serif';
    pen.textBaseline = 'middle';
  }

  paintBase(ratio) {
    var pen = this.base.getContext('2d'), colours = this.palette(), wide = [];
    this.prepare(pen, ratio);
    this.pixels.begin(this.base, pen, ratio);
    this.placed = this.places();
    this.full = this.tallness();
    this.top = Math.max(0, Math.min(this.top, this.full - this.height));
    this.seen = [];
    for (var at = 0; at < this.placed.length; at++) {
      var place = this.placed[at], y = place.y - this.top;
      if (y + place.height < 0 || y > this.height) continue;
      if (at % 2) this.pixels.fill(0, y, this.width, place.height, colours.stripe, 1);
      this.paintLane(place, y, wide);
    }
    this.paintMarks();
    this.pixels.put(pen);
    for (var bar of wide) this.paintBar(pen, bar, colours);
    this.paintEdges(pen);
    this.paintGutter(pen);
    this.paintAxis(pen);
    if (this.full > this.height + 1) {
      // There is more below or above.
      var share = this.height / this.full;
      pen.fillStyle = colours.edge;
      pen.fillRect(this.width - 4, this.top * share, 3, Math.max(16, this.height * share));
    }
  }

  /* Whether `h` dims a row: what the chosen exchange neither knew of nor is known by. */
  apart(row) {
    if (!this.causal || row.number === this.selected) return false;
    var lane = this.causal.lanes.get(this.model.lanes[row.lane].id);
    return !lane || !(row.turn < lane.past || row.turn >= lane.future);
  }

  paintLane(place, y, wide) {
    var found = this.rowsOf(place.lane), rows = found.rows, timed = this.axis === 'time';
    var first = tp.bisect(found.until, this.from), lastX = [], lastColour = [], lastDimmed = [];
    for (var at = first; at < rows.length; at++) {
      var row = rows[at], begin = this.begin(row);
      if (begin > this.to) break;
      var stop = this.stop(row);
      if (stop < this.from) continue;
      var x = Math.max(this.gutter, this.x(begin)), right = Math.min(this.width, this.x(stop));
      var width = Math.max(2, right - x), seat = timed ? row.seat : 0, ringed = this.ringed.has(row.number);
      var dimmed = (this.shown !== null && !this.shown.has(row.number)) || this.apart(row), colour = this.colour(row);
      // Bars that would fall on the same pixels are drawn once.
      if (width <= 2 && !this.branch.has(row.number) && lastX[seat] === Math.round(x) && lastColour[seat] === colour && lastDimmed[seat] === dimmed) continue;
      lastX[seat] = Math.round(x);
      lastColour[seat] = colour;
      lastDimmed[seat] = dimmed;
      var top = y + 4 + seat * this.rowHeight, height = this.rowHeight - 3;
      if (width <= 6 && !ringed) this.pixels.fill(x, top, width, height, colour, dimmed ? 0.15 : 1);
      else {
        wide.push({ row: row, x: x, width: width, top: top, height: height, colour: colour, alpha: dimmed ? 0.15 : 1, ring: ringed ? (this.branch.has(row.number) ? 'failed' : 'accent') : null });
      }
      this.seen.push([x, right, top, top + height, row.number]);
    }
  }

  /* The chosen exchange, above all others. */
  paintChosen(pen) {
    var row = this.selected === null ? null : this.model.byNumber.get(this.selected), place = row && this.placed[row.lane];
    if (!place) return;
    var begin = this.begin(row), stop = this.stop(row), top = place.y - this.top + 4 + (this.axis === 'time' ? row.seat : 0) * this.rowHeight;
    if (begin > this.to || stop < this.from || top > this.height) return;
    var x = Math.max(this.gutter, this.x(begin)), width = Math.max(2, Math.min(this.width, this.x(stop)) - x);
    var dimmed = this.shown !== null && !this.shown.has(row.number);
    this.paintBar(pen, { row: row, x: x, width: width, top: top, height: this.rowHeight - 3, colour: this.colour(row), alpha: dimmed ? 0.15 : 1, ring: 'ink' }, this.palette(), width > 6);
  }

  /* `drawn`: the bar itself is there. */
  paintBar(pen, bar, colours, drawn) {
    if (!drawn) this.paintBody(pen, bar, colours);
    if (!bar.ring) return;
    pen.strokeStyle = colours[bar.ring];
    pen.lineWidth = this.branch.has(bar.row.number) ? 4 : 2;
    pen.strokeRect(bar.x - 1.5, bar.top - 1.5, bar.width + 3, bar.height + 3);
  }

  paintBody(pen, bar, colours) {
    var row = bar.row, x = bar.x, width = bar.width, top = bar.top, height = bar.height;
    pen.globalAlpha = bar.alpha;
    pen.fillStyle = bar.colour;
    if (this.axis === 'time' && row.first !== null && width > 6) {
      // Until the first byte the bar is light: that is what the agent waited for.
      var split = Math.min(x + width, Math.max(x, this.x(row.first)));
      pen.globalAlpha = bar.alpha * 0.4;
      pen.fillRect(x, top, split - x, height);
      pen.globalAlpha = bar.alpha;
      pen.fillRect(split, top, Math.max(1, x + width - split), height);
      if (row.ticks && row.ticks.length > 1 && width > 24) {
        pen.fillStyle = colours.paper;
        var lastTick = -9;
        for (var tick of row.ticks) {
          var tx = this.x(tick);
          if (tx - lastTick < 3 || tx < this.gutter || tx > this.width) continue;
          pen.fillRect(tx, top + 2, 1, height - 4);
          lastTick = tx;
        }
      }
    } else {
      pen.fillRect(x, top, width, height);
    }
    if (width > 40) {
      // Where the bar is light its text is dark.
      var light = this.axis === 'time' && row.first !== null && this.x(row.first) - x > 36;
      pen.fillStyle = light ? colours.ink : colours.paper;
      pen.save();
      pen.beginPath();
      pen.rect(x, top, width, height);
      pen.clip();
      pen.fillText(tp.spelled(tp.clip(row.label + ' ' + (row.model || row.path), 60)), x + 3, top + height / 2 + 0.5);
      pen.restore();
    }
    pen.globalAlpha = 1;
  }

  /* Where a lane stood when it had made `n` requests: on the axis. `n` null: at its end. */
  moment(lane, n, after) {
    var rows = this.rowsOf(lane).rows;
    if (!rows.length) return null;
    if (n === null) return this.stop(rows[rows.length - 1]);
    if (after) return n > 0 && rows[n - 1] ? this.stop(rows[Math.min(n, rows.length) - 1]) : this.begin(rows[0]);
    return rows[n] ? this.begin(rows[n]) : this.stop(rows[rows.length - 1]);
  }

  /* From where to where an edge is drawn; null where nothing of it is on the screen. */
  line(edge) {
    var one = this.placed[edge[1]], other = this.placed[edge[3]];
    if (!one || !other) return null;
    var y = one.y + one.height / 2 - this.top, y2 = other.y + other.height / 2 - this.top;
    if ((y < 0 && y2 < 0) || (y > this.height && y2 > this.height)) return null;
    var begin = this.moment(one.lane, edge[2], true), end = this.moment(other.lane, edge[4], false);
    if (begin === null) begin = end;
    if (end === null || (begin < this.from && end < this.from) || (begin > this.to && end > this.to)) return null;
    return [Math.max(this.gutter, this.x(begin)), y, Math.max(this.gutter, this.x(end)), y2];
  }

  curve(pen, line) {
    pen.moveTo(line[0], line[1]);
    pen.bezierCurveTo(line[0] + 14, line[1], line[2] - 14, line[3], line[2], line[3]);
  }

  paintEdges(pen) {
    var drawn = 0;
    pen.strokeStyle = this.palette().edge;
    pen.lineWidth = 1;
    pen.globalAlpha = this.causal ? 0.25 : 1;
    pen.beginPath();
    for (var edge of this.model.edges) {
      var line = this.line(edge);
      if (line === null) continue;
      this.curve(pen, line);
      if (++drawn > 3000) break;
    }
    pen.stroke();
    pen.globalAlpha = 1;
  }

  /* Those of the chosen exchange, above the others. */
  paintOwnEdges(pen) {
    var drawn = 0;
    pen.lineWidth = 1.6;
    for (var edge of this.selected === null ? [] : this.model.edges) {
      var how = this.role(edge), line = how && this.line(edge);
      if (!line) continue;
      pen.strokeStyle = this.palette()[how];
      pen.beginPath();
      this.curve(pen, line);
      pen.stroke();
      if (++drawn > 3000) break;
    }
  }

  /* What an edge is to the chosen exchange: on the way from its `past`, into its `future`, or nothing to it. */
  role(edge) {
    var chosen = this.selected === null ? null : this.model.byNumber.get(this.selected);
    if (!chosen) return '';
    var sent = edge[2] === null ? this.model.lanes[edge[1]].rows.length : edge[2];
    if (this.causal) {
      var from = this.causal.lanes.get(this.model.lanes[edge[1]].id), to = this.causal.lanes.get(this.model.lanes[edge[3]].id);
      if (!from || !to) return '';
      if (edge[4] <= (edge[3] === chosen.lane ? chosen.turn : to.past - 1)) return 'past';
      return sent >= from.future && edge[4] >= to.future ? 'future' : '';
    }
    if (edge[3] === chosen.lane && edge[4] === chosen.turn) return 'past';
    return edge[1] === chosen.lane && sent === chosen.turn + 1 ? 'future' : '';
  }

  paintMarks() {
    this.seenMarks = [];
    if (this.axis !== 'time') return;
    var colours = this.palette(), lastX = new Map();
    for (var pair of this.model.marksOf()) {
      var place = pair[0] === null ? null : this.placed[pair[0]], marks = pair[1];
      var y = place ? place.y + place.height - 4 - this.top : 18;
      if (y < 0 || y > this.height) continue;
      for (var at = tp.bisect(marks, this.from, function (mark) { return mark[1]; }); at < marks.length; at++) {
        var mark = marks[at];
        if (mark[1] > this.to) break;
        var x = Math.round(this.x(mark[1]));
        if (x < this.gutter || lastX.get(y) === x) continue;
        lastX.set(y, x);
        this.pixels.fill(x, y, mark[2] === 'clock' ? 1 : 3, 3, mark[2] === 'note' ? colours.failed : colours.mark, 1);
        this.seenMarks.push([x, y, mark]);
      }
    }
  }

  paintGutter(pen) {
    var colours = this.palette();
    pen.fillStyle = colours.paper;
    pen.globalAlpha = 0.92;
    pen.fillRect(0, 0, this.gutter - 4, this.height);
    pen.globalAlpha = 1;
    pen.fillStyle = colours.ink;
    for (var place of this.placed) {
      var y = place.y - this.top;
      if (y + place.height < 0 || y > this.height) continue;
      var left = 8 + 8 * Math.min(6, place.lane.depth);
      pen.fillText(this.fitting(pen, tp.spelled(tp.clip(place.lane.label, 80)), this.gutter - left - 8), left, y + place.height / 2);
    }
  }

  /* A text without what has no room: the middle of a name says least. */
  fitting(pen, text, room) {
    if (pen.measureText(text).width <= room) return text;
    var keep = Math.max(2, Math.floor(text.length * room / pen.measureText(text).width) - 1);
    return text.slice(0, Math.ceil(keep * 0.6)) + '…' + text.slice(text.length - Math.floor(keep * 0.4));
  }

  paintAxis(pen) {
    var colours = this.palette(), span = this.to - this.from, steps = Math.max(2, Math.floor((this.width - this.gutter) / 110));
    var step = Math.pow(10, Math.floor(Math.log10(span / steps)));
    for (var factor of [1, 2, 5, 10]) if (span / (step * factor) <= steps) { step *= factor; break; }
    if (this.axis !== 'time') step = Math.max(1, Math.round(step));
    pen.fillStyle = colours.paper;
    pen.fillRect(this.gutter, 0, this.width, 16);
    pen.fillStyle = colours.dim;
    pen.strokeStyle = colours.line;
    pen.beginPath();
    for (var value = Math.ceil(Math.max(0, this.from) / step) * step; value < this.to; value += step) {
      var x = Math.round(this.x(value)) + 0.5;
      if (x < this.gutter) continue;
      pen.moveTo(x, 12);
      pen.lineTo(x, 18);
      pen.fillText(this.axis === 'time' ? tp.duration(Math.round(value)) : String(Math.round(value)), x + 3, 8);
    }
    pen.stroke();
    pen.fillText({ time: 'time', rank: 'causal rank', order: 'order' }[this.axis], 8, 8);
  }

  wheel(event) {
    event.preventDefault();
    var scale = event.deltaMode === 1 ? 16 : 1;
    if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(event.deltaY * scale * 0.004), event.offsetX);
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX || event.deltaY) * scale);
    else if (this.full > this.height) { this.top += event.deltaY * scale; this.draw(); } else this.pan(event.deltaY * scale);
  }

  zoom(factor, x) {
    var middle = this.at(Math.max(this.gutter, x === undefined ? (this.width + this.gutter) / 2 : x)), span = this.span();
    var least = this.axis === 'time' ? 20 : 3, most = (span[1] - span[0]) * 1.2;
    var size = Math.min(most, Math.max(least, (this.to - this.from) * factor)), share = (middle - this.from) / (this.to - this.from);
    this.from = middle - size * share;
    this.to = this.from + size;
    this.fitted = false;
    this.draw();
  }

  pan(pixels) {
    var by = pixels / (this.width - this.gutter) * (this.to - this.from), span = this.span();
    by = Math.max(span[0] - this.to + (this.to - this.from) * 0.1, Math.min(span[1] - this.from - (this.to - this.from) * 0.1, by));
    this.from += by;
    this.to += by;
    this.fitted = false;
    this.draw();
  }

  /* Lanes up or down. */
  scroll(pixels) { this.top += pixels; this.draw(); }

  /* Bring an exchange on screen. */
  show(number) {
    this.selected = number;
    var row = this.model.byNumber.get(number), from = this.from, above = this.top;
    if (row) {
      var begin = this.begin(row), size = this.to - this.from;
      if (begin < this.from || begin > this.to) {
        this.from = begin - size * 0.3;
        this.to = this.from + size;
      }
      var place = this.placed && this.placed[row.lane];
      if (place && (place.y - this.top < 20 || place.y + place.height - this.top > this.height)) this.top = place.y - this.height / 2;
    }
    if (this.causal || this.from !== from || this.top !== above) this.draw(); else this.drawChosen();
  }

  hit(event) {
    var x = event.offsetX, y = event.offsetY, best = null;
    for (var one of this.seen || []) {
      if (x >= one[0] - 2 && x <= Math.max(one[1], one[0] + 2) + 2 && y >= one[2] - 1 && y <= one[3] + 1) best = one[4];
    }
    return best;
  }

  press(event) {
    var self = this, startX = event.clientX, moved = false, lastX = startX, lastY = event.clientY, number = this.hit(event);
    function move(now) {
      if (Math.abs(now.clientX - startX) > 3) moved = true;
      if (moved) { self.pan(lastX - now.clientX); self.top += lastY - now.clientY; }
      lastX = now.clientX;
      lastY = now.clientY;
    }
    function up() {
      removeEventListener('mousemove', move);
      removeEventListener('mouseup', up);
      if (!moved && number !== null) self.pick(number);
    }
    addEventListener('mousemove', move);
    addEventListener('mouseup', up);
  }

  hover(event) {
    var number = this.hit(event);
    this.canvas.style.cursor = number === null ? 'default' : 'pointer';
    if (number !== null) this.say(this.about(this.model.byNumber.get(number)), event);
    else this.say(this.aboutPlace(event.offsetX, event.offsetY), event);
  }

  /* What a mark stands for, or a lane is called. */
  aboutPlace(x, y) {
    var marks = this.seenMarks.filter(function (one) { return Math.abs(one[0] + 1 - x) <= 3 && Math.abs(one[1] + 1 - y) <= 4; });
    if (marks.length) {
      return marks.slice(0, 6).map(function (one) { return one[2][2] + (one[2][3] ? ': ' + one[2][3] : '') + '  at ' + tp.duration(one[2][1]); });
    }
    if (x > this.gutter - 4 || y < 20) return null;
    var top = this.top, place = (this.placed || []).find(function (one) { return one.y - top <= y && y < one.y - top + one.height; });
    return place ? [place.lane.label, (place.lane.kind ? place.lane.kind + ', ' : '') + tp.count(place.lane.rows.length, 'exchange')] : null;
  }

  about(row) {
    var lines = [row.label + '  ' + row.method + ' ' + row.host + row.path, (row.status || row.how || 'unfinished') + (row.model ? '  ' + row.model : '') + (this.model.timeless || row.end === null ? '' : '  ' + tp.duration(row.end - row.at))];
    if (row.words) lines.push('← ' + row.words);
    if (row.said) lines.push('→ ' + row.said);
    if (row.tokens_in !== null || row.tokens_out !== null) lines.push(tp.tokens(row));
    return lines;
  }

  say(lines, event) {
    this.hinted.hidden = !lines;
    if (!lines) return;
    this.hinted.textContent = lines.map(function (line) { return tp.spelled(tp.clip(line, 300)); }).join('\n');
    // Beside the canvas, not in it: the lanes may be lower than a hint is tall.
    var box = this.canvas.getBoundingClientRect(), x = box.left + event.offsetX + 12, y = box.top + event.offsetY + 14;
    this.hinted.style.left = Math.max(4, Math.min(x, innerWidth - this.hinted.offsetWidth - 6)) + 'px';
    this.hinted.style.top = Math.min(y, innerHeight - this.hinted.offsetHeight - 6) + 'px';
  }
};
