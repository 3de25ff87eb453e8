// Widgets shared by several pages: tables, pagers, states, progress bars, dialogs.

import { h } from "./dom.js";
import { count } from "./format.js";

/** Return the address of this page with other query parameters; empty ones are left out. */
export function address(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value === null || value === undefined || value === 0) query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  return location.pathname + (text ? `?${text}` : "");
}

/**
 * A table with its own horizontal scrolling. Its first column stays in sight.
 *
 * Columns: {label, cell: row => node or text, number: right-aligned digits, head: row header, sort: the server's sort key}.
 * `sorted` is [sort key, "asc" or "desc"].
 */
export function table({ id, caption, columns, rows, sorted = null, empty = "None", key = null }) {
  const heads = columns.map((column) => {
    if (!column.sort) return h("th", { scope: "col", class: column.number && "number" }, column.label);
    const mine = sorted?.[0] === column.sort;
    const next = mine && sorted[1] === "asc" ? "desc" : "asc";
    const arrow = mine ? (sorted[1] === "asc" ? " ▲" : " ▼") : "";
    return h(
      "th",
      { scope: "col", class: column.number && "number", "aria-sort": mine ? (sorted[1] === "asc" ? "ascending" : "descending") : null },
      h("a", { href: address({ sort: column.sort, order: next, offset: null }), "data-keep": true }, column.label, h("span", { "aria-hidden": "true" }, arrow)),
    );
  });
  const body = rows.map((row) =>
    h(
      "tr",
      key ? { id: `${id}-${key(row)}` } : null,
      columns.map((column) => h(column.head ? "th" : "td", { scope: column.head ? "row" : null, class: column.number ? "number" : column.wide ? "wide" : null }, column.cell(row))),
    ),
  );
  if (!rows.length) body.push(h("tr", null, h("td", { colspan: columns.length, class: "none" }, empty)));
  return h(
    "div",
    { class: "scroll", role: "region", tabindex: "0", "aria-labelledby": `${id}-caption` },
    h("table", { id }, h("caption", { id: `${id}-caption` }, h("span", null, caption)), h("thead", null, h("tr", null, heads)), h("tbody", null, body)),
  );
}

/** Mark the tables that are wider than their region: style.css shows that they scroll. */
export function mark(root) {
  for (const region of root.querySelectorAll(".scroll")) region.toggleAttribute("data-over", region.scrollWidth > region.clientWidth + 1);
}

/** A pager: the range of shown rows, the total, and links to the other pages. */
export function pager({ offset, limit, total, shown }) {
  const last = offset + shown;
  return h(
    "nav",
    { class: "pager", "aria-label": "Pagination" },
    h("span", null, total ? `${count(offset + 1)}–${count(last)} of ${count(total)}` : "0 rows"),
    step("First", offset > 0, { offset: null }),
    step("Previous", offset > 0, { offset: Math.max(0, offset - limit) }),
    step("Next", last < total, { offset: last }),
    step("Last", last < total, { offset: Math.floor((total - 1) / limit) * limit }),
  );
}

/** A link to another page of rows, or only its label if there is no such page. */
export const step = (label, there, changes) =>
  there ? h("a", { href: address(changes), "data-keep": true, class: "step" }, label) : h("span", { class: "step off", "aria-disabled": "true" }, label);

const ENDING = { STOPPED: "STOPPING", FAILED: "FAILING" };

/** A state, shown by its name and not by color alone. `ending` is the state that a job is about to enter. */
export const state = (name, ending = null) => h("span", { class: `state ${name.toLowerCase()}` }, ending ? ENDING[ending] ?? name : name);

/** The online state of a daemon. */
export const presence = (online) => h("span", { class: `state ${online ? "finished" : "failed"}` }, online ? "online" : "offline");

/** The state of a space: available, or the number of partitions that no online host holds. */
export const availability = (unavailable, parts) => h("span", { class: `state ${unavailable ? "failed" : "finished"}` }, unavailable ? `${count(unavailable)} of ${count(parts)} partitions offline` : "available");

/** Progress, as a bar and as text. */
export function progress(fraction, label) {
  if (fraction === null) return h("span", null, "counting rows");
  const part = Math.floor(1000 * fraction) / 10;
  return h("span", { class: "far" }, h("progress", { max: 100, value: part, "aria-label": label }, `${part} %`), h("span", null, ` ${part} %`));
}

/** The used share of a capacity, as a bar and as text. A nearly full one is amber, and says so in words. */
export const usage = (share, label, full) => h("span", { class: full ? "usage full" : "usage" }, progress(share, label), full && h("span", { class: "under" }, "nearly full"));

/** A list of names and values. */
export const facts = (pairs) => h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));

/** An error and its remedy. */
export const problem = ({ what, todo }) => h("div", { class: "problem", role: "alert" }, h("p", null, h("strong", null, what)), todo && h("p", null, todo));

/** The address of a host; hosts of an embedded graph have none. */
export const hostName = (host) => (host.endsWith(":0") ? "this process" : host);

/** A few key figures in large type. */
export const figures = (items) =>
  h("ul", { class: "figures" }, items.filter(Boolean).map(([name, value, more, href]) => h("li", null, h("span", { class: "name" }, href ? h("a", { href }, name) : name), h("span", { class: "value" }, value), more && h("span", { class: "more" }, more))));

/** A form field with its label. */
export const field = (label, control) => h("label", { class: "field" }, h("span", null, label), control);

/** A select element; pairs are [value, label]. */
export const select = (name, pairs, chosen, more = {}) =>
  h("select", { name, ...more }, pairs.map(([value, words]) => h("option", { value, selected: value === chosen }, words)));

/** Show a confirmation dialog and resolve to true if the reader confirms. Escape cancels. */
export function sure({ title, text, yes }) {
  return new Promise((resolve) => {
    const dialog = h(
      "dialog",
      { "aria-labelledby": "sure-title", "aria-describedby": "sure-text", onclose: () => (dialog.remove(), resolve(dialog.returnValue === "yes")) },
      h("h2", { id: "sure-title" }, title),
      h("p", { id: "sure-text" }, text),
      h(
        "div",
        { class: "buttons" },
        h("button", { type: "button", autofocus: true, onclick: () => dialog.close("no") }, "Cancel"),
        h("button", { type: "button", class: "danger", onclick: () => dialog.close("yes") }, yes),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}
