// SVG plots: lines over time, histograms, points per partition. Each plot has a title and a description for screen readers,
// and a table of the same numbers below it.

import { h, patch, s } from "./dom.js";

const HEIGHT = 250;
const MARGIN = { top: 14, right: 14, bottom: 44, left: 66 };
const LEAST_WIDTH = 260;
const MOST_WIDTH = 1140;

/** Return the width of a plot. It follows the screen, so that text keeps its size on narrow screens. */
function plotWidth() {
  const main = document.getElementById("main");
  const style = getComputedStyle(main);
  const inner = main.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - 34;
  return Math.round(Math.max(LEAST_WIDTH, Math.min(inner, MOST_WIDTH)));
}

/** Return about the requested number of round tick values from low to high. */
export function ticks(low, high, about) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / Math.max(1, about);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((m) => m * power >= rough) * power;
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) found.push(i * step);
  return found;
}

/** Return the powers of ten from low to high, thinned to about the requested number. */
export function decades(low, high, about) {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / Math.max(1, about)));
  const found = [];
  for (let e = first; e <= last; e += step) found.push(10 ** e);
  return found;
}

function linear(low, high, from, to) {
  return (value) => from + ((value - low) / (high - low || 1)) * (to - from);
}

function logarithmic(low, high, from, to) {
  const scale = linear(Math.log10(low), Math.log10(high), from, to);
  return (value) => scale(Math.log10(Math.max(value, low)));
}

/** Draw the y axis with grid lines across the plot. */
function yAxis(width, y, at, text, label) {
  const right = width - MARGIN.right;
  return s(
    "g",
    { class: "axis" },
    at.map((value) => [
      s("line", { class: "grid", x1: MARGIN.left, x2: right, y1: y(value), y2: y(value) }),
      s("text", { x: MARGIN.left - 8, y: y(value) + 4, "text-anchor": "end" }, text(value)),
    ]),
    s("text", { class: "label", transform: `translate(14 ${(MARGIN.top + HEIGHT - MARGIN.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, label),
  );
}

function xAxis(width, x, at, text, label) {
  const bottom = HEIGHT - MARGIN.bottom;
  return s(
    "g",
    { class: "axis" },
    s("line", { class: "base", x1: MARGIN.left, x2: width - MARGIN.right, y1: bottom, y2: bottom }),
    at.map((value) => [
      s("line", { class: "tick", x1: x(value), x2: x(value), y1: bottom, y2: bottom + 5 }),
      // Keep labels at the edge inside the plot.
      s("text", { x: x(value), y: bottom + 18, "text-anchor": x(value) > width - MARGIN.right - 16 ? "end" : "middle" }, text(value)),
    ]),
    s("text", { class: "label", x: (MARGIN.left + width - MARGIN.right) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, label),
  );
}

function figure({ id, title, desc, width, marks, legend, data, readout = null, attributes = {} }) {
  return h(
    "figure",
    { id, class: "plot" },
    h("figcaption", null, title),
    legend && h("ul", { class: "legend" }, legend.map(([style, name, mark]) => h("li", null, s("svg", { class: "swatch", viewBox: "0 0 26 10", width: 26, height: 10, "aria-hidden": "true" }, mark ?? s("line", { class: style, x1: 1, x2: 25, y1: 5, y2: 5 })), name))),
    readout,
    s("svg", { role: "img", "aria-labelledby": `${id}-title ${id}-desc`, viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, ...attributes }, s("title", { id: `${id}-title` }, title), s("desc", { id: `${id}-desc` }, desc), marks),
    data && h("details", null, h("summary", null, "The numbers"), data),
  );
}

// -- values at the pointer ----------------------------------------------------------------------

/** Plots over time by id: {width, top, bottom, times, series, x, text}. */
const timed = new Map();
/** The plot and the time that are pointed at: {id, time}; null if none is. */
let pointed = null;

const clockText = (ms) => new Date(ms).toLocaleTimeString("en-GB");

/** Return the index of the time that is closest to a time. */
function closest(times, time) {
  let best = 0;
  times.forEach((other, i) => {
    if (Math.abs(other - time) < Math.abs(times[best] - time)) best = i;
  });
  return best;
}

const indexOf = (id) => (pointed?.id === id ? closest(timed.get(id).times, pointed.time) : null);

function pointerMarks(id) {
  const i = indexOf(id);
  if (i === null) return [];
  const plot = timed.get(id);
  const x = plot.x(plot.times[i]).toFixed(1);
  return [
    s("line", { class: "pointer", x1: x, x2: x, y1: plot.top, y2: plot.bottom }),
    plot.series.map((one) => one.values[i] !== null && s("circle", { class: "pointed", cx: x, cy: plot.y(one.values[i]).toFixed(1), r: 3 })),
  ].flat().filter(Boolean);
}

/** Return the values at the pointer as text; without one, those of the newest measurement. */
function readoutText(id) {
  const plot = timed.get(id);
  const i = indexOf(id) ?? plot.times.length - 1;
  if (i < 0) return "";
  const values = plot.series.map((one) => (plot.series.length > 1 ? `${one.name} ${plot.text(one.values[i])}` : plot.text(one.values[i])));
  return `${clockText(plot.times[i])}: ${values.join(", ")}`;
}

function point(id, time) {
  const before = pointed?.id;
  pointed = id === null ? null : { id, time };
  for (const changed of new Set([before, id])) {
    const marks = changed && document.getElementById(`${changed}-pointer`);
    if (!marks) continue;
    patch(marks, pointerMarks(changed));
    patch(document.getElementById(`${changed}-readout`), [document.createTextNode(readoutText(changed))]);
  }
}

document.addEventListener("pointermove", (event) => {
  const svg = event.target.closest?.("svg[data-timed]");
  const plot = svg && timed.get(svg.dataset.timed);
  if (!plot?.times.length) {
    if (pointed && !document.activeElement?.matches?.("svg[data-timed]")) point(null);
    return;
  }
  const box = svg.getBoundingClientRect();
  const at = ((event.clientX - box.left) / box.width) * plot.width;
  const distance = (time) => Math.abs(plot.x(time) - at);
  point(svg.dataset.timed, plot.times.reduce((best, time) => (distance(time) < distance(best) ? time : best)));
});

document.addEventListener("keydown", (event) => {
  const id = event.target.dataset?.timed;
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const plot = timed.get(id);
  if (!step || !plot?.times.length) return;
  event.preventDefault();
  const last = plot.times.length - 1;
  point(id, plot.times[Math.max(0, Math.min(last, (indexOf(id) ?? last) + step))]);
});

document.addEventListener("focusout", (event) => {
  if (event.target.dataset?.timed && event.target.dataset.timed === pointed?.id) point(null);
});

/** Register a plot over time; return the element that shows values and the marks at the pointer. */
function track(id, plot, name) {
  timed.set(id, plot);
  return [h(name, { id: `${id}-readout`, class: "readout" }, readoutText(id)), s("g", { id: `${id}-pointer` }, pointerMarks(id))];
}

/** Return the path of a line; null values interrupt it. */
function linePath(times, values, x, y) {
  let path = "";
  let pen = false;
  values.forEach((value, i) => {
    if (value === null) {
      pen = false;
      return;
    }
    const lonely = !pen && (values[i + 1] ?? null) === null;
    path += `${pen ? "L" : "M"}${x(times[i]).toFixed(1)} ${y(value).toFixed(1)}${lonely ? "h1.5" : ""}`;
    pen = true;
  });
  return path;
}

/** Draw a small line without axes, and the value at the pointer below it. */
export function sparkline({ id, title, desc, times, series, text }) {
  const [width, height] = [150, 34];
  const values = series.flatMap((one) => one.values).filter((value) => value !== null);
  const x = linear(times[0] ?? 0, times[times.length - 1] ?? 1, 3, width - 3);
  const y = linear(0, Math.max(...values, 0) || 1, height - 3, 4);
  const [readout, pointer] = track(id, { width, top: 2, bottom: height - 2, times, series, x, y, text }, "span");
  return [
    s(
      "svg",
      { class: "spark", role: "img", "data-timed": id, "aria-labelledby": `${id}-title ${id}-desc`, viewBox: `0 0 ${width} ${height}`, width, height },
      s("title", { id: `${id}-title` }, title),
      s("desc", { id: `${id}-desc` }, desc),
      s("line", { class: "base", x1: 0, x2: width, y1: height - 2, y2: height - 2 }),
      series.map((one) => s("path", { class: `line ${one.style}`, d: linePath(times, one.values, x, y) })),
      pointer,
    ),
    readout,
  ];
}

/**
 * Plot lines over time.
 *
 * `times` are milliseconds. A series is {name, style, values}, with null for missing values. `log` makes the y axis logarithmic.
 * `text` formats values, and `tick` those at the axis. A linear axis ends at `least` or above.
 */
export function lines({ id, title, desc, times, series, unit, text, tick = text, least = 0, log = false, data = null }) {
  const width = plotWidth();
  const values = series.flatMap((one) => one.values).filter((value) => value !== null && (!log || value > 0));
  const [first, last] = [times[0], times[times.length - 1]];
  const x = linear(first, last, MARGIN.left, width - MARGIN.right);
  const bottom = HEIGHT - MARGIN.bottom;
  let y;
  let marks;
  if (log) {
    const low = 10 ** Math.floor(Math.log10(Math.min(...values, 1e-3)));
    const high = 10 ** Math.ceil(Math.log10(Math.max(...values, low * 10)));
    y = logarithmic(low, high, bottom, MARGIN.top);
    marks = decades(low, high, 6);
  } else {
    const high = (Math.max(...values, least) || 1) * 1.05; // all zeros: use an axis from 0 to about 1
    y = linear(0, high, bottom, MARGIN.top);
    marks = ticks(0, high, 5);
  }
  const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: last - first < 300_000 ? "2-digit" : undefined });
  const at = times.length > 1 ? Array.from({ length: width > 500 ? 5 : 3 }, (_, i, all = width > 500 ? 4 : 2) => first + (i * (last - first)) / all) : [first];
  const shown = series.map((one) => ({ ...one, values: one.values.map((value) => (value === null || (log && value <= 0) ? null : value)) }));
  const [readout, pointer] = track(id, { width, top: MARGIN.top, bottom, times, series: shown, x, y, text }, "p");
  return figure({
    id,
    title,
    desc,
    width,
    legend: series.length > 1 ? series.map((one) => [one.style, one.name]) : null,
    readout,
    attributes: { "data-timed": id, tabindex: 0 },
    marks: [yAxis(width, y, marks, tick, unit), xAxis(width, x, at, clock, "time of day"), shown.map((one) => s("path", { class: `line ${one.style}`, d: linePath(times, one.values, x, y) })), pointer],
    data,
  });
}

/** Plot a histogram over a logarithmic axis: bars show shares of rows, the stepped line shares of their weight. */
export function histogram({ id, title, desc, bars, rows, weight, text, percent, data = null }) {
  const width = plotWidth();
  const low = bars[0].low;
  const high = bars[bars.length - 1].high;
  const x = logarithmic(low, high, MARGIN.left, width - MARGIN.right);
  const bottom = HEIGHT - MARGIN.bottom;
  const shares = bars.map((bar) => [rows ? bar.rows / rows : 0, weight ? bar.weight / weight : 0]);
  const most = Math.max(...shares.flat()) * 1.05 || 1;
  const y = linear(0, most, bottom, MARGIN.top);
  const at = high / low > 30 ? decades(low, high, width > 500 ? 9 : 5) : ticks(low, high, width > 500 ? 7 : 4).filter((value) => value > 0);
  const edges = bars.map((bar) => [x(bar.low), x(bar.high)]);
  let step = "";
  shares.forEach(([, share], i) => {
    step += `${i ? "L" : "M"}${edges[i][0].toFixed(1)} ${y(share).toFixed(1)}L${edges[i][1].toFixed(1)} ${y(share).toFixed(1)}`;
  });
  return figure({
    id,
    title,
    desc,
    width,
    legend: [
      ["s1 thick", "share of the rows"],
      ["s2", "share of the weight"],
    ],
    marks: [
      yAxis(width, y, ticks(0, most, 4), percent, "share"),
      shares.map(([share], i) => s("rect", { class: "bar", x: edges[i][0].toFixed(1), width: Math.max(1, edges[i][1] - edges[i][0] - 1).toFixed(1), y: y(share).toFixed(1), height: (bottom - y(share)).toFixed(1) })),
      s("path", { class: "line s2", d: step }),
      xAxis(width, x, at, text, "weight, by its logarithm"),
    ],
    data,
  });
}

/** Draw a point of a series: a dot, or the square of every second series. */
function seriesPoint(k, names, x, y) {
  return k % 2
    ? s("rect", { class: names, x: (x - 2.6).toFixed(1), y: (y - 2.6).toFixed(1), width: 5.2, height: 5.2 })
    : s("circle", { class: names, cx: x.toFixed(1), cy: y.toFixed(1), r: 3 });
}

/** Plot points per partition on a logarithmic y axis with a line at the bound; zeros lie at the bottom. */
export function points({ id, title, desc, xs, series, bound, label, text, data = null }) {
  const width = plotWidth();
  const bottom = HEIGHT - MARGIN.bottom;
  const positive = series.flatMap((one) => one.values).filter((value) => value > 0);
  const low = 10 ** Math.floor(Math.log10(Math.min(...positive, bound) / 10));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...positive, bound) * 2));
  const x = linear(Math.min(...xs) - 0.5, Math.max(...xs) + 0.5, MARGIN.left, width - MARGIN.right);
  const y = logarithmic(low, high, bottom, MARGIN.top);
  const at = ticks(Math.min(...xs), Math.max(...xs), width > 500 ? 8 : 4).filter(Number.isInteger);
  return figure({
    id,
    title,
    desc,
    width,
    legend: [...series.map((one, k) => [one.style, one.name, seriesPoint(k, `sample ${one.style}`, 13, 5)]), ["bound", "bound: beyond it a version is refused"]],
    marks: [
      yAxis(width, y, decades(low, high, 6), text, label),
      s("line", { class: "bound", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(bound), y2: y(bound) }),
      series.map((one, k) => one.values.map((value, i) => seriesPoint(k, `dot ${one.style}`, x(xs[i]), y(value)))),
      xAxis(width, x, at, String, "part"),
    ],
    data,
  });
}
