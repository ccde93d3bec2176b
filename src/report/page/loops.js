// The schedules of loops with checkpoints: steps to the right, evaluations downwards.

function loopLine(kind, points) {
  return shape('polyline', { class: kind, points: points.map((p) => p.join(',')).join(' ') });
}

function loopDrawing(loop, width) {
  const left = 68, right = 16, top = 26, height = 260, bottom = 22;
  const x = (step) => left + (step / loop.steps) * (width - left - right);
  const y = (evaluations) => top + (evaluations / loop.evaluations) * (height - top - bottom);
  const svg = shape('svg', { viewBox: `0 0 ${width} ${height}`, height, role: 'img',
    'aria-label': `${loop.steps} steps, ${loop.evaluations} evaluations` });
  for (let i = 0; i < loop.kept.length; i += 2) {
    const [state, slot] = [loop.kept[i], loop.kept[i + 1]];
    svg.append(shape('line', { class: slot > 0 && slot <= loop.disk ? 'slot on-disk' : 'slot', x1: x(state), x2: x(state), y1: top - 8, y2: top }));
  }
  for (let i = 0; i < loop.advances.length; i += 3) {
    const [from, to, before] = loop.advances.slice(i, i + 3);
    svg.append(loopLine('advance', [[x(from), y(before)], [x(to), y(before + to - from)]]));
  }
  const reversed = [];
  for (let i = 0; i < loop.reversals.length; i += 2) reversed.push([x(loop.reversals[i]), y(loop.reversals[i + 1])]);
  svg.append(loopLine('reversal', reversed));
  svg.append(shape('text', { x: left - 8, y: y(0) + 4, 'text-anchor': 'end' }, '0'),
    shape('text', { x: left - 8, y: y(loop.evaluations), 'text-anchor': 'end' }, String(loop.evaluations)),
    shape('text', { x: x(loop.steps), y: height - 6, 'text-anchor': 'end' }, `step ${loop.steps}`));
  return svg;
}

function drawLoops(program, box) {
  const loops = program.bodies.filter((b) => b.loop);
  box.closest('section').hidden = loops.length === 0;
  const width = Math.max(280, box.clientWidth);
  box.replaceChildren(...loops.flatMap((b, i) => [
    element('p', { class: 'note' }, `Loop ${i + 1}: ${b.loop.steps} steps, ${b.loop.kept.length / 2} states kept when its reversal begins `
      + `(ticks${b.loop.disk > 0 ? '; dashed ones are on disk' : ''}), ${b.loop.evaluations} evaluations in all. Lines to the right play steps; `
      + 'the bold line reverses them.'),
    loopDrawing(b.loop, width)]));
}
