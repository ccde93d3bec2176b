'use strict';
// Numbers for people, and elements without markup in strings: texts of programs are never read as HTML.

function bytesText(bytes) {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return (unit === 0 ? String(value) : value.toFixed(value < 10 ? 2 : 1)) + ' ' + units[unit];
}

function exactBytes(bytes) {
  return bytes.toLocaleString('en') + (bytes === 1 ? ' byte' : ' bytes');
}

function flopsText(flops) {
  const units = ['', ' k', ' M', ' G', ' T', ' P'];
  let unit = 0;
  let value = flops;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return unit === 0 ? String(value) : value.toFixed(value < 10 ? 2 : 1) + units[unit];
}

function countText(count, what) {
  return count.toLocaleString('en') + ' ' + what + (count === 1 ? '' : 's');
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function shape(tag, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

// The smallest of 1, 2, 5, 10, 20, 50 ... that is not smaller.
function roundUp(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least) || 1;
}

// Round steps of an axis of bytes: 1, 2, 5 or so of a power of 1024.
function byteTicks(most, wanted) {
  let unit = 1;
  while (unit * 1024 <= most / 2) unit *= 1024;
  const steps = [1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 50, 64, 100, 128, 200, 256, 400, 500, 512].map((n) => n * unit);
  const step = steps.find((s) => most / s <= wanted) || steps[steps.length - 1];
  const ticks = [];
  for (let at = 0; at <= most; at += step) ticks.push(at);
  return ticks;
}
