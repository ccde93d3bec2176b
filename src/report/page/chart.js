// The picture: one program as stacked bands, the others as lines over it.

const rivalLines = [['#0f9d8a', ''], ['#8b5cf6', '7 4'], ['#c26a1b', '2 3'], ['#0891b2', '10 3 2 3'], ['#db2777', '4 2'],
  ['#65a30d', '12 4']];  // colours and dashes

function rivalLine(index) {
  return rivalLines[index % rivalLines.length];
}

class Chart {
  constructor(box, state) {
    this.box = box;
    this.state = state;
    this.margin = { left: 68, right: 16, top: 30, bottom: 44 };
  }

  get program() { return this.state.programs[this.state.chosen]; }

  draw() {
    const { state } = this;
    this.width = Math.max(280, this.box.clientWidth);
    this.height = this.width < 620 ? 300 : 400;
    const shown = state.programs.filter((p) => state.shown.has(p.index) || p.index === state.chosen);
    this.steps = Math.max(...shown.map((p) => p.steps.length));
    const peak = Math.max(1, ...shown.map((p) => p.total[p.peakStep]));
    const below = state.hidden.has('arguments') ? 0 : this.program.memory.arguments;
    const isOnDisk = this.program.memory.on_disk && !state.hidden.has('on the host');
    const disk = isOnDisk ? this.program.held[holders.host].reduce((a, b) => Math.max(a, b), 0) : 0;
    this.most = Math.max(peak, disk) * 1.06;
    this.least = -below;
    const svg = shape('svg', { viewBox: `0 0 ${this.width} ${this.height}`, height: this.height, 'aria-hidden': 'true' });
    svg.append(this.hatch(), this.grid(), this.bands(), this.strip(), this.outline(this.program, 'outline', {}));
    if (disk > 0) svg.append(this.line(this.program, this.program.held[holders.host], 'disk', {}));
    for (const p of shown) {
      if (p.index === state.chosen) continue;
      const [stroke, dash] = rivalLine(p.index);
      svg.append(this.outline(p, 'halo', {}), this.outline(p, 'rival', { stroke, 'stroke-dasharray': dash || null }));
    }
    this.over = shape('g');
    svg.append(this.over, this.peaks(shown));
    this.box.replaceChildren(svg);
    this.backLabels(svg);
    this.drawOver();
  }

  x(step) { return this.margin.left + (step / this.steps) * (this.width - this.margin.left - this.margin.right); }
  y(bytes) {
    const room = this.height - this.margin.top - this.margin.bottom;
    return this.margin.top + ((this.most - bytes) / (this.most - this.least)) * room;
  }

  hatch() {
    const size = { width: 5, height: 5, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' };
    return shape('defs', {}, shape('pattern', { id: 'hatch', ...size },
      shape('line', { x1: 0, y1: 0, x2: 0, y2: 5, class: 'hatch-line' })));
  }

  grid() {
    const group = shape('g');
    const right = this.width - this.margin.right;
    for (const tick of byteTicks(this.most, 6)) {
      const y = this.y(tick);
      group.append(shape('line', { class: tick === 0 ? 'axis' : 'grid', x1: this.margin.left, x2: right, y1: y, y2: y }),
        shape('text', { x: this.margin.left - 8, y: y + 4, 'text-anchor': 'end' },
          tick === 0 ? '0' : bytesText(tick).replace(/\.0+ /, ' ')));
    }
    const every = roundUp((this.steps * 80) / (right - this.margin.left));
    for (let step = 0; this.x(step) < right - 60; step += every) {
      group.append(shape('text', { x: this.x(step + 0.5), y: this.height - 8, 'text-anchor': 'middle' }, String(step)));
    }
    group.append(shape('text', { x: right, y: this.height - 8, 'text-anchor': 'end' }, 'step'));
    return group;
  }

  // Columns of the picture: a step each, or where there are more steps than pixels the fullest of several.
  columns(program) {
    const n = program.steps.length;
    const room = this.x(n) - this.x(0);
    const size = Math.max(1, Math.ceil(n / Math.max(1, room)));
    const columns = [];
    for (let begin = 0; begin < n; begin += size) {
      let fullest = begin;
      for (let i = begin; i < Math.min(n, begin + size); i++) {
        if (program.total[i] > program.total[fullest]) fullest = i;
      }
      columns.push({ begin, end: Math.min(n, begin + size), step: fullest });
    }
    return columns;
  }

  bands() {
    const program = this.program;
    const group = shape('g');
    const paths = new Map();
    const add = (key, left, right, low, high) => {
      if (high <= low) return;
      const [x0, x1, y0, y1] = [left, right, this.y(low), this.y(high)].map((n) => n.toFixed(2));
      paths.set(key, `${paths.get(key) || ''}M${x0} ${y0}H${x1}V${y1}H${x0}Z`);
    };
    for (const { begin, end, step } of this.columns(program)) {
      const left = this.x(begin);
      const right = this.x(end) + 0.4;  // no seams between columns
      const stage = program.steps[step].stage;
      let low = 0;
      for (const holder of program.counted) {
        if (this.state.hidden.has(holderNames[holder])) continue;
        const high = low + program.held[holder][step];
        add(`band stage${stage} holder${holder}`, left, right, low, high);
        low = high;
      }
      if (!this.state.hidden.has('gaps')) add('band-gap', left, right, low, low + program.gap);
    }
    if (!this.state.hidden.has('arguments')) {
      add('band-argument', this.x(0), this.x(program.steps.length), -program.memory.arguments, 0);
    }
    for (const [key, d] of paths) group.append(shape('path', { class: key, d }));
    return group;
  }

  // The passes, also where little memory is held.
  strip() {
    const group = shape('g');
    const y = this.height - this.margin.bottom + 8;
    let run = null;
    const flush = (end) => {
      if (run === null) return;
      const x = this.x(run.begin);
      group.append(shape('rect', { class: `strip stage${run.stage}`, x, y, width: Math.max(0.5, this.x(end) - x), height: 7 }));
    };
    for (const { begin, step } of this.columns(this.program)) {
      const stage = this.program.steps[step].stage;
      if (run !== null && run.stage === stage) continue;
      flush(begin);
      run = { stage, begin };
    }
    flush(this.program.steps.length);
    return group;
  }

  // The sum of the bands that are drawn.
  drawnTotal(program, step) {
    let total = this.state.hidden.has('gaps') ? 0 : program.gap;
    for (const h of program.counted) total += this.state.hidden.has(holderNames[h]) ? 0 : program.held[h][step];
    return total;
  }
  outline(program, name, attributes) {
    const values = Float64Array.from({ length: program.steps.length }, (_, i) => this.drawnTotal(program, i));
    return this.line(program, values, name, attributes);
  }
  line(program, values, name, attributes) {
    let d = `M${this.x(0).toFixed(2)} ${this.y(0).toFixed(2)}`;
    for (const { end, step } of this.columns(program)) {
      d += `V${this.y(values[step]).toFixed(2)}H${this.x(end).toFixed(2)}`;
    }
    return shape('path', { class: name, d: d + `V${this.y(0).toFixed(2)}`, ...attributes });
  }

  // Where each program holds most; texts move apart.
  peaks(shown) {
    const group = shape('g');
    const isNarrow = this.width < 620;
    const named = shown.filter((p) => !isNarrow || p.index === this.state.chosen);
    const labels = named.map((p) => {
      const step = p.peakStep;
      const x = this.x(step + 0.5);
      const chosen = p.index === this.state.chosen;
      const text = (named.length > 1 ? p.name + ' ' : 'peak ') + bytesText(p.total[step]);
      return { x, y: this.y(this.drawnTotal(p, step)), chosen, text, color: rivalLine(p.index)[0] };
    });
    labels.sort((a, b) => a.y - b.y);
    let above = -Infinity;
    for (const l of labels) {
      const textY = Math.max(l.y - 11, above + 18);
      above = textY;
      const anchor = l.x > this.width * 0.78 ? 'end' : l.x < this.width * 0.22 ? 'start' : 'middle';
      const colored = (what) => (l.chosen ? null : `${what}:${l.color}`);
      group.append(shape('circle', { class: 'peak', cx: l.x, cy: l.y, r: 4, style: colored('stroke') }),
        shape('text', { class: 'strong', x: l.x, y: textY, 'text-anchor': anchor, style: colored('fill') }, l.text));
    }
    return group;
  }

  // Texts over bands and lines stay readable.
  backLabels(svg) {
    for (const label of svg.querySelectorAll('text.strong')) {
      const { x, y, width, height } = label.getBBox();
      label.before(shape('rect', { class: 'plate', x: x - 5, y: y - 1, width: width + 10, height: height + 2, rx: 4 }));
    }
  }

  // What changes with the pointer: the chosen step and the life of the chosen value.
  drawOver() {
    const { state } = this;
    this.over.replaceChildren();
    this.box.classList.toggle('pinned', state.pinned);
    if (state.value !== null) {
      const v = this.program.values[state.value];
      const y = this.margin.top - 12;
      const left = this.x(v.first);
      this.over.append(shape('path', { class: 'life', d: `M${left} ${y}H${Math.max(this.x(v.last + 1), left + 2)}` }),
        shape('text', { class: 'strong', x: Math.min(left, this.width - 200), y: y - 6 },
          `${v.name} lives from step ${v.first} to ${v.last}`));
    }
    if (state.step === null) return;
    const x = this.x(state.step + 0.5);
    const [y1, y2] = [this.margin.top - 6, this.height - this.margin.bottom + 15];
    this.over.append(shape('line', { class: 'cursor', x1: x, x2: x, y1, y2 }));
  }

  stepAt(clientX) {
    const box = this.box.getBoundingClientRect();
    // Clicks have whole positions, moves may have parts: both mean the same step.
    const x = ((Math.floor(clientX) - box.left) / box.width) * this.width;
    const room = this.width - this.margin.left - this.margin.right;
    const step = Math.floor(((x - this.margin.left) / room) * this.steps);
    return Math.min(this.program.steps.length - 1, Math.max(0, step));
  }
  // The band under the pointer; null: none.
  holderAt(clientY, step) {
    const box = this.box.getBoundingClientRect();
    const y = clientY - box.top;
    let low = 0;
    for (const holder of this.program.counted) {
      if (this.state.hidden.has(holderNames[holder])) continue;
      const high = low + this.program.held[holder][step];
      if (y <= this.y(low) && y >= this.y(high) && high > low) return holder;
      low = high;
    }
    const isArgument = y > this.y(0) && y < this.y(this.least) && !this.state.hidden.has('arguments');
    return isArgument ? holders.argument : null;
  }
}
