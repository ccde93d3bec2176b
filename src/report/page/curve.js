// Time against memory: the plans that budgets choose from, and the programs of the page as points.

function curveDrawing(curve, points, width) {
  const left = 68, right = 16, top = 16, height = 280, bottom = 34;
  const plain = curve[curve.length - 1];
  const all = curve.concat(points);
  const least = Math.min(...all.map((p) => p.peak)), most = Math.max(...all.map((p) => p.peak));
  const slowest = Math.max(...all.map((p) => p.seconds)), fastest = Math.min(...all.map((p) => p.seconds));
  const x = (bytes) => left + ((bytes - least) / Math.max(most - least, 1)) * (width - left - right);
  const y = (seconds) => height - bottom - ((seconds - fastest) / Math.max(slowest - fastest, 1e-30)) * (height - top - bottom);
  const percent = (seconds) => `${seconds >= plain.seconds ? '+' : ''}${(100 * (seconds / plain.seconds - 1)).toFixed(1)} %`;
  const svg = shape('svg', { viewBox: `0 0 ${width} ${height}`, height, role: 'img',
    'aria-label': `Time against memory, ${countText(curve.length, 'plan')}, ${countText(points.length, 'program')}` });
  // Between two plans the one that needs less memory is taken.
  const line = curve.flatMap((p, i) => (i === 0 ? [[x(p.peak), y(p.seconds)]]
    : [[x(p.peak), y(curve[i - 1].seconds)], [x(p.peak), y(p.seconds)]]));
  svg.append(shape('polyline', { class: 'reversal', points: line.map((p) => p.join(',')).join(' ') }));
  for (const p of points) {
    const late = x(p.peak) > width * 0.7;
    svg.append(shape('circle', { class: 'policy-point', cx: x(p.peak), cy: y(p.seconds), r: 5 },
      shape('title', {}, `${p.name}: ${bytesText(p.peak)}, ${percent(p.seconds)}`)),
    shape('text', { x: x(p.peak) + (late ? -9 : 9), y: y(p.seconds) - 6, 'text-anchor': late ? 'end' : 'start' }, p.name));
  }
  svg.append(shape('text', { x: left - 8, y: y(slowest) + 4, 'text-anchor': 'end' }, percent(slowest)),
    shape('text', { x: left - 8, y: y(fastest), 'text-anchor': 'end' }, percent(fastest)),
    shape('text', { x: left, y: height - 10 }, bytesText(least)),
    shape('text', { x: width - right, y: height - 10, 'text-anchor': 'end' }, bytesText(most)));
  return svg;
}

function drawCurve(raw, box) {
  const curve = (raw.curve || []).map(([peak, seconds]) => ({ peak, seconds }));
  box.closest('section').hidden = curve.length === 0;
  if (curve.length === 0) return;
  const points = raw.programs.map((p) => ({ name: p.name, peak: p.memory.peak, seconds: p.cost.seconds }));
  box.replaceChildren(
    element('p', { class: 'note' }, 'Memory to the right, predicted time upwards, against the plan without a budget. The line is the best '
      + 'that a budget in bytes finds; the points are the programs of this page.'),
    curveDrawing(curve, points, Math.max(280, box.clientWidth)));
}
