// Tables: sortable, and no longer than people read unless they ask.

const firstRows = 100;

// columns: [{ title, value(row), cell(row), number }]; value is what is sorted by.
function sortableTable(columns, rows, { sort, chosen, onrow } = {}) {
  const table = element('table');
  const order = { column: sort === undefined ? 0 : sort, ascending: false };
  let all = false;
  const compare = (a, b) => {
    const { value } = columns[order.column];
    const x = value(a);
    const y = value(b);
    const result = typeof x === 'number' ? x - y : String(x).localeCompare(String(y), 'en', { numeric: true });
    return order.ascending ? result : -result;
  };
  const head = () => element('thead', {}, element('tr', {}, columns.map((c, i) => {
    const direction = i !== order.column ? 'none' : order.ascending ? 'ascending' : 'descending';
    const choose = () => {
      order.ascending = i === order.column ? !order.ascending : !c.number;
      order.column = i;
      draw();
      table.querySelectorAll('th button')[i].focus();
    };
    return element('th', { scope: 'col', 'aria-sort': direction, class: c.number ? 'number' : null },
      element('button', { type: 'button', onclick: choose }, c.title));
  })));
  const draw = () => {
    const sorted = [...rows].sort(compare);
    const body = element('tbody', {}, sorted.slice(0, all ? sorted.length : firstRows).map((row) =>
      element('tr', { class: chosen && chosen(row) ? 'chosen' : null, onclick: () => onrow && onrow(row) },
        columns.map((c) => element('td', { class: c.number ? 'number' : c.name || null }, c.cell(row))))));
    table.replaceChildren(head(), body);
    if (!all && sorted.length > firstRows) {
      const more = () => {
        all = true;
        draw();
      };
      body.append(element('tr', {}, element('td', { colspan: columns.length },
        element('button', { type: 'button', class: 'link', onclick: more }, `show all ${sorted.length}`))));
    }
  };
  draw();
  return table;
}

function bytesCell(bytes) {
  return element('span', { title: exactBytes(bytes) }, bytesText(bytes));
}

function stageChip(stage) {
  return element('span', { class: `chip stage${stage}` }, stageNames[stage]);
}

function listed(items, count) {
  const rest = count - items.length;
  const lines = items.map((item) => element('div', { class: 'code' }, item));
  if (rest > 0) lines.push(element('div', { class: 'note' }, `and ${rest} more`));
  return lines.length > 0 ? lines : ['no one'];
}

// The row around it does not take part.
function linkButton(text, follow) {
  const onclick = (e) => {
    e.stopPropagation();
    follow();
  };
  return element('button', { type: 'button', class: 'link', onclick }, text);
}

// What an equation made, and the first step that wrote it.
function makerCell(v, goto) {
  return v.what ? [v.what, v.writers.length ? [' in ', stepLinks(v.writers.slice(0, 1), goto)] : []] : '–';
}

function stepLinks(steps, goto) {
  if (steps.length === 0) return ['no step'];
  const shown = steps.slice(0, 8);
  const links = shown.flatMap((s, i) => [i > 0 ? ', ' : '', linkButton(String(s), () => goto(s))]);
  return steps.length > shown.length ? [...links, ` and ${steps.length - shown.length} more`] : links;
}

function liveColumns(actions) {
  return [
    { title: 'bytes', number: true, value: (v) => v.bytes, cell: (v) => bytesCell(v.bytes) },
    { title: 'type', value: (v) => v.type, cell: (v) => element('code', {}, v.type || '–') },
    { title: 'value', value: (v) => v.name, cell: (v) => linkButton(v.name, () => actions.value(v.id)) },
    { title: 'held as', value: (v) => holderNames[v.holder], cell: (v) => holderNames[v.holder] },
    { title: 'made by', value: (v) => v.what, cell: (v) => makerCell(v, actions.step) },
    { title: 'source line', value: (v) => v.at, cell: (v) => element('code', {}, v.at || '–') },
    { title: 'read by steps', value: (v) => v.readers.length, cell: (v) => stepLinks(v.readers, actions.step) },
  ];
}

function ruleColumns() {
  // Where a value of a call is really made.
  const inside = (r) => r.makers.filter((m) => m.includes(', in ')).map((m) => element('div', { class: 'code less' }, m));
  const readers = (r) => listed(r.readers.slice(0, 2), r.readerCount);
  return [
    { title: 'bytes', number: true, value: (r) => r.bytes, cell: (r) => bytesCell(r.bytes) },
    { title: 'type', value: (r) => r.type, cell: (r) => element('code', {}, r.type) },
    { title: 'what', value: (r) => r.origin, cell: (r) => [r.origin, inside(r)] },
    { title: 'why', name: 'why', value: (r) => r.reason, cell: (r) => r.reason },
    { title: 'read by', value: (r) => r.readerCount, cell: readers },
  ];
}

function keptColumns(actions) {
  return [
    { title: 'bytes', number: true, value: (v) => v.bytes, cell: (v) => bytesCell(v.bytes) },
    { title: 'type', value: (v) => v.type, cell: (v) => element('code', {}, v.type) },
    { title: 'made by', value: (v) => v.what, cell: (v) => makerCell(v, actions.step) },
    { title: 'source line', value: (v) => v.at, cell: (v) => element('code', {}, v.at || '–') },
    { title: 'where', value: (v) => v.place, cell: (v) => element('code', {}, v.place) },
    { title: 'why', name: 'why', value: (v) => v.because, cell: (v) => v.because },
    { title: 'from, to', value: (v) => v.last - v.first, cell: (v) => `${v.first}–${v.last}` },
    { title: 'read by steps', value: (v) => v.readers.length, cell: (v) => stepLinks(v.readers, actions.step) },
  ];
}
