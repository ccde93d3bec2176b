// The page: what is chosen, and everything that shows it.

const programs = decode(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);
const state = {
  programs, chosen: 0, shown: new Set(programs.map((p) => p.index)), hidden: new Set(),
  step: null, pinned: false, value: null, holder: null, tab: 'rules',
};
// Arguments that would push everything else against the upper edge are drawn on demand.
if (programs.some((p) => p.memory.arguments > p.memory.peak)) state.hidden.add('arguments');

const chart = new Chart(byId('chart'), state);
const actions = {
  step(step) { choose(step, true); },
  value(id) {
    state.value = state.value === id ? null : id;
    chart.drawOver();
    drawDetails();
  },
};
const current = () => programs[state.chosen];
const anyOffloaded = programs.some((p) => p.memory.host > 0);

// ------------------------------------------------------------------------------------------- theme
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId('theme').textContent = theme === 'dark' ? '☀ light' : '☾ dark';
}
function remember(theme) {
  try { localStorage.setItem('reprise-theme', theme); } catch { /* a page from a file may not be allowed to */ }
}
function remembered() {
  try { return localStorage.getItem('reprise-theme'); } catch { return null; }
}
const prefersDark = window.matchMedia('(prefers-color-scheme: dark)');
setTheme(remembered() || (prefersDark.matches ? 'dark' : 'light'));
prefersDark.addEventListener('change', () => { if (!remembered()) setTheme(prefersDark.matches ? 'dark' : 'light'); });
byId('theme').addEventListener('click', () => {
  const theme = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  setTheme(theme);
  remember(theme);
});

// ---------------------------------------------------------------------------------------- programs
function lineSample(p) {
  const [stroke, dash] = rivalLine(p.index);
  const line = p.index === state.chosen ? { class: 'outline' } : { class: 'rival', stroke, 'stroke-dasharray': dash || null };
  return shape('svg', { width: 22, height: 10, 'aria-hidden': 'true' }, shape('path', { d: 'M1 5H21', ...line }));
}

function drawnBox(p) {
  const toggle = (e) => {
    e.stopPropagation();
    if (e.target.checked) state.shown.add(p.index);
    else state.shown.delete(p.index);
    chart.draw();
  };
  const checked = state.shown.has(p.index);
  return element('input', { type: 'checkbox', checked, 'aria-label': `draw ${p.name}`, onclick: toggle });
}

// The peak as a bar, compared with that of the first program.
function peakMeter(p, highest) {
  const first = programs[0].memory.peak;
  const percent = first === 0 ? 0 : (100 * p.memory.peak) / first - 100;
  const change = p.index === 0 || first === 0 ? '' : ` ${percent <= 0 ? '−' : '+'}${Math.abs(percent).toFixed(0)}%`;
  const width = Math.max(2, (110 * p.memory.peak) / highest).toFixed(0);
  return element('div', { class: 'meter', title: exactBytes(p.memory.peak) }, element('i', { style: `width:${width}px` }),
    element('span', {}, bytesText(p.memory.peak), element('span', { class: 'less' }, change)));
}

function programRow(p, highest) {
  const share = p.cost.flops > 0 ? (100 * p.cost.recomputed) / p.cost.flops : 0;
  const offloaded = p.memory.host > 0 ? [bytesCell(p.memory.host), p.memory.on_disk ? ' on disk' : ' in memory'] : '–';
  return element('tr', { class: p.index === state.chosen ? 'chosen' : null, onclick: () => chooseProgram(p.index) },
    element('td', {}, element('div', { class: 'name' }, programs.length > 1 ? drawnBox(p) : null, lineSample(p),
      element('button', { type: 'button', 'aria-current': p.index === state.chosen ? 'true' : null }, p.name))),
    element('td', {}, peakMeter(p, highest)),
    element('td', { class: 'number' }, bytesCell(p.memory.temporaries)),
    element('td', { class: 'number' }, bytesCell(p.memory.outputs)),
    element('td', { class: 'number' }, bytesCell(p.memory.arguments)),
    anyOffloaded ? element('td', { class: 'number' }, offloaded) : null,
    element('td', { class: 'number' }, flopsText(p.cost.matmul)),
    element('td', { class: 'number' }, flopsText(p.cost.recomputed), element('span', { class: 'less' }, ` ${share.toFixed(1)}%`)),
    element('td', { class: 'number' }, p.steps.length.toLocaleString('en')));
}

function drawPrograms() {
  const highest = Math.max(1, ...programs.map((p) => p.memory.peak));
  const titles = ['peak', 'temporaries', 'outputs', 'arguments', ...(anyOffloaded ? ['offloaded'] : []),
    'matmul flops', 'recomputed flops', 'steps'];
  byId('programs').replaceChildren(
    element('thead', {}, element('tr', {}, element('th', { scope: 'col' }, programs.length > 1 ? 'policy' : 'program'),
      titles.map((t, i) => element('th', { scope: 'col', class: i > 0 ? 'number' : null }, t)))),
    element('tbody', {}, programs.map((p) => programRow(p, highest))));
}

function chooseProgram(index) {
  if (index === state.chosen) return;
  Object.assign(state, { chosen: index, value: null, holder: null, pinned: false });
  state.step = current().peakStep;
  state.shown.add(index);
  drawAll();
  writeHash();
}

// ------------------------------------------------------------------------------------------ legend
function legendButton(name, swatch, title) {
  const toggle = () => {
    if (state.hidden.has(name)) state.hidden.delete(name);
    else state.hidden.add(name);
    drawLegend();
    chart.draw();
  };
  const pressed = String(!state.hidden.has(name));
  return element('button', { type: 'button', 'aria-pressed': pressed, onclick: toggle, 'data-legend': name, title }, swatch, name);
}

function drawLegend() {
  const p = current();
  const focused = document.activeElement && document.activeElement.dataset.legend;
  const stages = stageNames.map((_, s) => s).filter((s) => p.steps.some((step) => step.stage === s));
  const hues = element('span', { class: 'hues' }, stages.map((s) => element('span', {},
    element('span', { class: 'swatch' }, element('i', { class: `fill stage${s} holder2` })), stageNames[s])));
  const swatch = (...classes) => element('span', { class: 'swatch' }, classes.map((c) => element('i', { class: c })));
  const shades = (holder) => swatch(...stages.map((s) => `fill stage${s} holder${holder}`));
  const there = stackOrder.filter((h) => p.values.some((v) => v.holder === h));
  byId('legend').replaceChildren(hues, ...there.map((h) => legendButton(holderNames[h], shades(h))),
    legendButton('gaps', swatch('plain-gap'),
      'what the plan reserves beyond the fullest step: gaps between values, memory that libraries take by themselves'),
    legendButton('arguments', swatch('plain-argument'), 'held by the caller, no part of the peak'));
  if (focused) byId('legend').querySelector(`[data-legend="${focused}"]`)?.focus();
}

// ----------------------------------------------------------------------------------- chosen step
function choose(step, pin) {
  const p = current();
  state.step = Math.min(p.steps.length - 1, Math.max(0, step));
  if (pin !== undefined) state.pinned = pin;
  chart.drawOver();
  drawDetails();
  if (pin) writeHash();
}

function operationList(step) {
  const shown = step.operations.slice(0, 40);
  const items = shown.map((o) => element('li', {},
    stageChip(o.stage), ' ', element('b', {}, o.what), ' ', element('code', { class: 'less' }, o.at)));
  const rest = step.operations.length - shown.length;
  if (rest > 0) items.push(element('li', { class: 'note' }, `and ${rest} more`));
  return element('ul', { class: 'operations tall' }, items);
}

function line(name, ...what) {
  return [element('dt', {}, name), element('dd', {}, ...what)];
}

function valueCard(v) {
  return [element('h3', {}, 'Chosen value'), element('dl', { id: 'value' },
    line('value', v.name), line('type', element('code', {}, v.type || 'scratch memory')), line('bytes', exactBytes(v.bytes)),
    line('held as', holderNames[v.holder]), line('place', element('code', {}, v.place)),
    v.what ? line('made by', v.what, ' in step ', stepLinks(v.writers, actions.step)) : [],
    v.at ? line('source line', element('code', {}, v.at)) : [],
    line('read by', v.readers.length ? 'steps ' : '', stepLinks(v.readers, actions.step)),
    v.because ? line('kept', v.because) : [])];
}

function drawStep(p, step) {
  const inside = bodyPath(p, step.body);
  const names = (ids) => (ids.length ? ids.map((v) => p.values[v].name).join(', ') : 'nothing');
  byId('step').replaceChildren(
    element('div', { class: 'bar' }, element('h2', {}, `Step ${state.step}: ${step.what}`), stageChip(step.stage)),
    element('dl', {},
      line('holds', element('b', {}, bytesText(p.total[state.step])), state.step === p.peakStep ? ' – the peak' : ''),
      p.counted.filter((h) => p.held[h][state.step] > 0).map((h) => line(holderNames[h], bytesText(p.held[h][state.step]))),
      p.gap > 0 ? line('gaps', bytesText(p.gap)) : [],
      inside ? line('inside', inside) : [],
      line('reads', names(step.reads)), line('writes', names(step.writes))),
    ...(state.value === null ? [] : valueCard(p.values[state.value])),
    element('h3', {}, countText(step.operations.length, 'operation')), operationList(step));
}

function drawDetails() {
  const p = current();
  const step = p.steps[state.step];
  drawStep(p, step);
  const all = liveAt(p, state.step);
  const live = all.filter((v) => (state.holder === null ? v.holder !== holders.argument : v.holder === state.holder));
  const only = (holder, text) => {
    const choose = () => {
      state.holder = holder;
      drawDetails();
    };
    return element('button', { type: 'button', 'aria-pressed': String(state.holder === holder), onclick: choose }, text);
  };
  const kinds = [...new Set(all.map((v) => v.holder))].sort();
  const title = state.holder === null ? 'Values alive at this step' : `Alive at this step: ${holderNames[state.holder]}`;
  byId('live').replaceChildren(
    element('div', { class: 'bar' }, element('h2', {}, `${title} (${live.length})`),
      element('div', { id: 'kinds' }, only(null, 'all'), ...kinds.map((h) => only(h, holderNames[h])))),
    element('div', { class: 'scroll tall' }, sortableTable(liveColumns(actions), live,
      { chosen: (v) => v.id === state.value, onrow: (v) => actions.value(v.id) })));
  const box = byId('chart');
  box.setAttribute('aria-valuemin', '0');
  box.setAttribute('aria-valuemax', String(p.steps.length - 1));
  box.setAttribute('aria-valuenow', String(state.step));
  box.setAttribute('aria-valuetext',
    `step ${state.step}, ${stageNames[step.stage]}, ${step.what}, ${bytesText(p.total[state.step])}`);
}

// ----------------------------------------------------------------------------------------- pointer
function drawTip(event, step, holder) {
  const p = current();
  const tip = byId('tip');
  const s = p.steps[step];
  const isMeant = (v) => (holder === null ? v.holder !== holders.argument : v.holder === holder);
  const largest = liveAt(p, step).filter(isMeant).sort((a, b) => b.bytes - a.bytes).slice(0, 3);
  const row = (name, bytes, here) => element('div', { class: here ? 'row here' : 'row' },
    element('span', {}, name), element('span', {}, bytesText(bytes)));
  tip.replaceChildren(element('p', {}, element('b', {}, `step ${step}`), ` ${s.what} `, stageChip(s.stage)),
    row('holds', p.total[step], true),
    ...p.counted.filter((h) => p.held[h][step] > 0).map((h) => row(holderNames[h], p.held[h][step], h === holder)),
    ...largest.map((v) => element('div', { class: 'code less' }, `${v.type || v.name} ${v.what} ${v.at}`)));
  tip.hidden = false;
  const box = tip.parentElement.getBoundingClientRect();
  const x = event.clientX - box.left;
  tip.style.left = `${x + tip.offsetWidth + 24 > box.width ? Math.max(4, x - tip.offsetWidth - 16) : x + 16}px`;
  tip.style.top = `${Math.max(4, event.clientY - box.top - tip.offsetHeight - 12)}px`;
}

function listenToChart() {
  const box = byId('chart');
  box.addEventListener('pointermove', (e) => {
    const step = chart.stepAt(e.clientX);
    drawTip(e, step, chart.holderAt(e.clientY, step));
    if (!state.pinned && step !== state.step) choose(step);
  });
  box.addEventListener('pointerleave', () => { byId('tip').hidden = true; });
  box.addEventListener('click', (e) => {
    const step = chart.stepAt(e.clientX);
    state.holder = chart.holderAt(e.clientY, step);
    choose(step, !(state.pinned && step === state.step));
  });
  box.addEventListener('keydown', (e) => {
    const n = current().steps.length;
    const jump = Math.max(1, Math.round(n / 20));
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -jump, PageUp: jump,
      Home: -n, End: n };
    if (e.key in moves) choose(state.step + moves[e.key] * (e.shiftKey ? 10 : 1), true);
    else if (e.key === 'p') choose(current().peakStep, true);
    else if (e.key === 'Escape') choose(state.step, false);
    else return;
    e.preventDefault();
  });
  byId('keys').textContent = 'Point at a step or click to keep it; click a band for its values. Keys: ← → by one step, '
    + 'with shift by ten, Page Up and Page Down, Home, End, p to the peak, Esc lets go.';
}

// --------------------------------------------------------------------------------------- residuals
const listTexts = {
  rules: "What JAX's rules and the policies of checkpoints save. Arguments and constants live anyway.",
  plan: 'What lies in memory, or on the host, from a step of the forward pass to one that recomputes or goes backward. '
    + 'The plan may compute cheap values again instead of keeping them, and keep what they are made from.',
};

function drawResiduals() {
  const p = current();
  const kept = p.values.filter((v) => v.because !== '');
  const computed = p.rules.filter((r) => r.computed);
  const size = (rows) => `${countText(rows.length, 'value')}, ${bytesText(rows.reduce((total, r) => total + r.bytes, 0))}`;
  const tab = (name, text) => {
    const open = () => {
      state.tab = name;
      drawResiduals();
      byId(`tab-${name}`).focus();
    };
    return element('button', { type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': 'residuals',
      'aria-selected': String(state.tab === name), onclick: open }, text);
  };
  byId('tabs').replaceChildren(tab('rules', `saved by the rules: ${size(computed)}`), tab('plan', `kept by the plan: ${size(kept)}`));
  byId('residuals').setAttribute('aria-labelledby', `tab-${state.tab}`);
  const rows = state.tab === 'rules' ? p.rules : kept;
  const table = state.tab === 'rules' ? sortableTable(ruleColumns(), rows)
    : sortableTable(keptColumns(actions), rows, { chosen: (v) => v.id === state.value, onrow: (v) => actions.value(v.id) });
  const empty = 'Nothing: this program has no backward pass, or it reads nothing.';
  byId('residuals').replaceChildren(element('p', { class: 'note' }, rows.length ? listTexts[state.tab] : empty),
    element('div', { class: 'scroll tall' }, rows.length ? table : null));
}

// ------------------------------------------------------------------------------------------- links
// #program=name&step=12&tab=plan&value=3 opens the page there.
function readHash() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const p = programs.find((q) => q.name === asked.get('program'));
  if (p) state.chosen = p.index;
  state.step = current().peakStep;
  if (asked.has('step')) {
    state.step = Math.min(current().steps.length - 1, Math.max(0, Math.floor(Number(asked.get('step'))) || 0));
    state.pinned = true;
  }
  if (current().values[asked.get('value')]) state.value = Number(asked.get('value'));
  if (asked.get('tab') === 'plan') state.tab = 'plan';
}
function writeHash() {
  const here = new URLSearchParams({ program: current().name, step: String(state.step) });
  try { history.replaceState(null, '', `#${here}`); } catch { /* some browsers forbid it for files */ }
}

function drawAll() {
  const p = current();
  drawPrograms();
  byId('chart-title').textContent = `${p.name}: at most ${bytesText(p.memory.peak)} beyond the arguments`;
  drawLegend();
  chart.draw();
  drawDetails();
  drawResiduals();
  drawLoops(p, byId('loops'));
}

readHash();
listenToChart();
drawAll();
drawCurve(JSON.parse(byId('data').textContent), byId('curve'));
window.addEventListener('hashchange', () => {
  readHash();
  drawAll();
});
new ResizeObserver(() => { if (byId('chart').clientWidth !== chart.width) chart.draw(); }).observe(byId('chart'));
