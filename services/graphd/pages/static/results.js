// Values of result tables: cells of limited length, and files to download.

import { h } from "./dom.js";

const MOST_ITEMS = 4;
const MOST_CHARS = 80;
const MOST_TITLE_CHARS = 2000;
const DIGITS = 6;
const VECTOR_DIGITS = 3;
const DISPLAYED = 9;

/** Return the shortest text of a number that reads back as the same value of its type. */
export function exact(value, type) {
  if (!type.includes("float32") || Number.isInteger(value)) return String(value);
  for (let digits = 1; digits < 9; digits += 1) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(Number(value.toPrecision(9)));
}

/** Return a value as JSON, with the exact numbers of its type. */
function json(value, type) {
  if (Array.isArray(value)) return `[${value.map((item) => json(item, type)).join(", ")}]`;
  if (typeof value === "string" && /int\d+/.test(type)) return value; // an integer beyond 2^53: see api.js
  return typeof value === "number" ? exact(value, type) : JSON.stringify(value);
}

function rounded(value, type, digits) {
  if (typeof value !== "number") return JSON.stringify(value);
  const text = exact(value, type);
  return Number.isInteger(value) || text.replace(/^-?0?\.?/, "").length <= digits ? text : String(Number(value.toPrecision(digits)));
}

/** A shortened value that expands to the whole one, which is also its title. */
const expandable = (text, whole) => h("details", { class: "cell" }, h("summary", { title: whole.length > MOST_TITLE_CHARS ? `${whole.slice(0, MOST_TITLE_CHARS)} …` : whole }, text), h("code", null, whole));

/** Return the content of a table cell. */
export function cell(value, type) {
  if (value === null) return h("span", { class: "quiet" }, "null");
  if (typeof value === "number") {
    const whole = exact(value, type);
    const text = whole.length > DISPLAYED ? rounded(value, type, DIGITS) : whole;
    return text === whole ? text : h("span", { title: whole }, text);
  }
  if (Array.isArray(value)) {
    const items = value.slice(0, MOST_ITEMS).map((item) => rounded(item, type, VECTOR_DIGITS));
    const text = `[${items.join(", ")}${value.length > MOST_ITEMS ? `, … ${value.length} values` : ""}]`;
    const whole = json(value, type);
    return text === whole ? h("code", null, text) : expandable(h("code", null, text), whole);
  }
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return text.length > MOST_CHARS ? expandable(`${text.slice(0, MOST_CHARS)} …`, text) : text;
}

/** Return a result as CSV (RFC 4180): exact numbers, lists as JSON, and nothing for null. */
export function csv({ columns, rows }) {
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const text = (value, type) => (value === null ? "" : typeof value === "string" ? value : json(value, type));
  const lines = rows.map((row) => row.map((value, i) => quoted(text(value, columns[i].type))).join(","));
  return [columns.map((column) => quoted(column.name)).join(","), ...lines, ""].join("\r\n");
}

/** Return a result as a JSON document. */
export function jsonText({ columns, rows, space, version, seed }) {
  const lines = rows.map((row) => `[${row.map((value, i) => json(value, columns[i].type)).join(", ")}]`);
  return `{"columns": ${JSON.stringify(columns)}, "space": ${JSON.stringify(space)}, "version": ${version}, "seed": ${seed}, "rows": [\n${lines.join(",\n")}\n]}\n`;
}

/** Let the browser save a text as a file. */
export function save(name, type, text) {
  const href = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
