// Format numbers, sizes and times for display.

import { h } from "./dom.js";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** Format an integer, or a dash if it is not known. */
export const count = (n) => (n === null || n === undefined ? "–" : whole.format(n));

/** Format a number to four digits; very large and very small numbers as powers of ten. */
export function real(n) {
  if (n === null || n === undefined) return "–";
  if (n === 0) return "0";
  const size = Math.abs(n);
  return size >= 1e7 || size < 1e-3 ? n.toExponential(2).replace(/\.?0+e/, "e") : new Intl.NumberFormat("en", { maximumSignificantDigits: 4 }).format(n);
}

/** Format a fraction of one as a percentage. */
export const percent = (n) => (n === null || n === undefined ? "–" : `${new Intl.NumberFormat("en", { maximumSignificantDigits: 3 }).format(100 * n)} %`);

/** Format bytes in powers of 1024; 0 means not known. */
export function bytes(n) {
  if (!n) return "–";
  let unit = 0;
  for (; n >= 1024 && unit < 5; unit += 1) n /= 1024;
  return `${new Intl.NumberFormat("en", { maximumFractionDigits: n < 10 && unit ? 1 : 0 }).format(n)} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
}

/** Format a duration in seconds. */
export function seconds(n) {
  if (n === null || n === undefined) return "–";
  if (n < 1e-3) return `${real(1e6 * n)} µs`;
  if (n < 1) return `${real(Number((1e3 * n).toPrecision(3)))} ms`;
  if (n < 60) return `${n < 10 ? n.toFixed(1) : Math.round(n)} s`;
  if (n < 3600) return `${Math.floor(n / 60)} min ${Math.round(n % 60)} s`;
  if (n < 86400) return `${Math.floor(n / 3600)} h ${Math.round((n % 3600) / 60)} min`;
  return `${Math.floor(n / 86400)} d ${Math.round((n % 86400) / 3600)} h`;
}

/** Format a time in milliseconds since 1970; 0 means not yet. */
export function moment(ms) {
  if (!ms) return "–";
  const at = new Date(ms);
  const pad = (n) => String(n).padStart(2, "0");
  const day = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
  return h("time", { datetime: at.toISOString() }, `${day} ${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`);
}

/** Format a time relative to now, with the exact time as the title; 0 means not yet. */
export function ago(ms, now = Date.now()) {
  if (!ms) return "–";
  const at = moment(ms);
  const away = Math.abs(now - ms) / 1000;
  at.title = at.textContent;
  if (away >= 30 * 86400) at.textContent = at.title.slice(0, 10);
  else at.textContent = away < 10 ? "just now" : ms > now ? `in ${span(away)}` : `${span(away)} ago`;
  return at;
}

/** Format the exact time, and the time relative to now. */
export const both = (ms) => (ms ? [moment(ms), " (", ago(ms), ")"] : "–");

function span(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return of(Math.floor(seconds / 86400), "day");
}

/** Show the first digits of a digest or uuid, with the full text as the title. */
export const short = (text) => (text ? h("code", { title: text }, text.slice(0, 12)) : "–");

/** Format a count with its noun: 1 part, 2 parts. */
export const of = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/** Return the first numbers of a list, and how many more it has. */
export const some = (numbers, most = 40) => numbers.slice(0, most).join(", ") + (numbers.length > most ? ` and ${count(numbers.length - most)} more` : "");

/** Format calls per second to three digits, and small rates as an upper bound. */
export function rate(n) {
  if (n === null || n === undefined) return "–";
  if (n === 0) return "0";
  return n < 0.01 ? "< 0.01" : new Intl.NumberFormat("en", { maximumSignificantDigits: 3 }).format(n);
}
