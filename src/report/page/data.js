// The data that write_report has put into the page, and sums over it.

const holderNames = ['arguments', 'outputs', 'residuals', 'temporaries', 'on the host'];
const stageNames = ['forward', 'recompute', 'backward', 'after'];
const holders = { argument: 0, output: 1, residual: 2, temporary: 3, host: 4 };
const stackOrder = [holders.residual, holders.output, holders.temporary, holders.host];  // from the axis upwards

// Template arguments of functions say little and take much room.
function shortPlace(text) {
  return text.replace(/ \(([^<(]+)<[^]*>\)/, ' ($1)');
}

function decodeStep([what, stage, body, packed, reads, writes], strings) {
  const operations = [];
  for (let i = 0; i < packed.length; i += 3) {
    operations.push({ what: strings[packed[i]], at: strings[packed[i + 1]], stage: packed[i + 2] });
  }
  return { what: strings[what], stage, body, operations, reads, writes };
}

function decodeValue(v, id, strings) {
  return { id, name: strings[v[0]], type: strings[v[1]], bytes: v[2], held: v[3], holder: v[4], what: strings[v[5]],
    at: strings[v[6]], stage: v[7], place: strings[v[8]], first: v[9], last: v[10], because: strings[v[11]],
    readers: [], writers: [] };
}

function decodeRule(r, id, strings) {
  return { id, type: strings[r[0]], bytes: r[1], origin: strings[r[2]], computed: r[3] === 1, reason: strings[r[4]],
    makers: r[5].map((n) => strings[n]), readers: r[6].map((n) => strings[n]), readerCount: r[7] };
}

// What each holder has at each step; the total is what a run holds beyond its arguments.
function sumBytes(program) {
  const n = program.steps.length;
  const held = holderNames.map(() => new Float64Array(n + 1));
  for (const v of program.values) {
    held[v.holder][v.first] += v.held;
    held[v.holder][v.last + 1] -= v.held;
  }
  for (const row of held) {
    for (let i = 1; i < n; i++) row[i] += row[i - 1];
  }
  const counted = stackOrder.filter((h) => h !== holders.host || !program.memory.on_disk);
  const total = new Float64Array(n);
  let peakStep = 0;
  for (let i = 0; i < n; i++) {
    total[i] = counted.reduce((sum, h) => sum + held[h][i], program.gap);
    if (total[i] > total[peakStep]) peakStep = i;
  }
  return { held, counted, total, peakStep };
}

function bodyPath(program, body) {
  const labels = [];
  for (let b = body; b !== 0; b = program.bodies[b].outer) labels.unshift(program.bodies[b].label);
  return labels.join(' › ');
}

function decode(text) {
  const raw = JSON.parse(text);
  raw.strings = raw.strings.map(shortPlace);
  return raw.programs.map((p, index) => {
    const program = { ...p, index };
    program.bodies = p.bodies.map(([label, outer, loop]) => ({ label: raw.strings[label], outer, loop }));
    program.steps = p.steps.map((s) => decodeStep(s, raw.strings));
    program.values = p.values.map((v, i) => decodeValue(v, i, raw.strings));
    program.rules = p.rules.map((r, i) => decodeRule(r, i, raw.strings));
    program.steps.forEach((step, i) => {
      for (const v of step.reads) program.values[v].readers.push(i);
      for (const v of step.writes) program.values[v].writers.push(i);
    });
    return Object.assign(program, sumBytes(program));
  });
}

function liveAt(program, step) {
  return program.values.filter((v) => v.first <= step && step <= v.last);
}
