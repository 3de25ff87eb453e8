// Routing: map an address to a view, load and render it, and refresh it while the page is visible.

import { Problem, Unreachable, describeError } from "./api.js";
import { h, patch } from "./dom.js";
import { mark } from "./parts.js";
import { Poll } from "./poll.js";
import { ensure } from "./session.js";
import * as access from "./views/access.js";
import * as host from "./views/hosts.js";
import * as job from "./views/job.js";
import * as jobs from "./views/jobs.js";
import * as logs from "./views/logs.js";
import * as node from "./views/node.js";
import * as overview from "./views/overview.js";
import * as query from "./views/query.js";
import * as rates from "./views/rates.js";
import * as space from "./views/space.js";
import * as spaces from "./views/spaces.js";
import * as version from "./views/version.js";

/**
 * A view has `nav`, the menu entry to highlight; `title(context)`; `load(context)`, which fetches the data; and
 * `render(data, context)`, which returns nodes. `pace` holds the polling intervals in milliseconds. A change of `key(data)`
 * counts as a change of the data. `absent(context)` returns {title, text, href, list} for an object that does not exist,
 * with the address and name of the list of those that do. The server reads the addresses below: one to a line.
 */
const ROUTES = [
  ["/ui", overview],
  ["/ui/hosts", host],
  ["/ui/spaces", spaces],
  ["/ui/spaces/:space", space],
  ["/ui/spaces/:space/node", node],
  ["/ui/spaces/:space/versions/:version", version],
  ["/ui/jobs", jobs],
  ["/ui/jobs/:job", job],
  ["/ui/logs", logs],
  ["/ui/rates", rates],
  ["/ui/query", query],
  ["/ui/access", access],
];
const missing = {
  nav: "",
  title: () => "Page not found",
  load: async () => ({}),
  render: () => [
    h("p", null, "There is no page at ", h("code", null, location.pathname), "."),
    h("p", null, "These pages exist:"),
    h("ul", null, [...document.querySelectorAll("#nav a")].map((link) => h("li", null, h("a", { href: link.getAttribute("href") }, link.textContent)))),
  ],
  pace: { least: Infinity },
};
const ABSENT = [404, 422];

const main = document.getElementById("main");
const banner = document.getElementById("banner");
const live = document.getElementById("live");
let shown = null;

function matched(path) {
  const words = path.replace(/\/+$/, "").split("/");
  for (const [pattern, view] of ROUTES) {
    const wanted = pattern.split("/");
    if (wanted.length !== words.length) continue;
    const params = {};
    if (wanted.every((word, i) => (word.startsWith(":") ? words[i] !== "" && ((params[word.slice(1)] = decoded(words[i])), true) : word === words[i]))) return [view, params];
  }
  return [missing, {}];
}

function decoded(word) {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

/** Explain that an object does not exist. */
function gone({ text, href, list, message }) {
  return [h("p", null, text), message && h("p", { class: "quiet" }, message), h("p", null, h("a", { href, class: "step" }, list))];
}

/** Announce a text to screen readers. */
function announce(text) {
  if (live.textContent !== text) live.textContent = text;
}

class Shown {
  constructor(view, params) {
    this.view = view;
    this.path = location.pathname;
    this.data = null;
    this.problem = null;
    this.absent = null;
    this.kept = "";
    this.ended = false;
    this.context = { params, query: new URLSearchParams(location.search), signal: null, announce, refresh: () => this.poll.now(), redraw: () => this.draw(), memory: {} };
    this.poll = new Poll((signal) => this.load(signal), { least: 2000, most: 15000, ...view.pace, failed: (error, wait) => this.failed(error, wait) });
  }

  /** Show the same page with other query parameters. */
  turn() {
    this.context.query = new URLSearchParams(location.search);
    this.poll.stop();
    this.poll = new Poll((signal) => this.load(signal), { least: 2000, most: 15000, ...this.view.pace, failed: (error, wait) => this.failed(error, wait) });
    main.setAttribute("aria-busy", "true");
    return this.poll.now();
  }

  async load(signal) {
    this.context.signal = signal;
    if (await ensure(signal)) highlight(this.view);
    const data = await this.view.load(this.context);
    if (signal.aborted) return false;
    if (!banner.hidden) announce("The server is responding again.");
    banner.hidden = true;
    patch(banner, []);
    this.data = data;
    this.problem = null;
    this.absent = null;
    main.setAttribute("aria-busy", "false");
    this.draw();
    const key = this.view.key ? this.view.key(data) : JSON.stringify(data);
    const changed = key !== this.kept;
    this.kept = key;
    return changed;
  }

  failed(error, wait) {
    const words = describeError(error);
    if (error instanceof Unreachable) {
      banner.hidden = false;
      patch(banner, [document.createTextNode(`${words.what} Trying again in ${Math.round(wait / 1000)} s. `), h("button", { type: "button", onclick: () => this.poll.now() }, "Try now")]);
    } else if (error instanceof Problem && ABSENT.includes(error.status) && this.view.absent) {
      this.absent = { ...this.view.absent(this.context), message: error.status === 404 ? words.what : "" };
      this.poll.stop();
    } else {
      this.problem = words;
    }
    main.setAttribute("aria-busy", "false");
    this.draw();
  }

  draw() {
    if (this.ended) return;
    const title = this.absent?.title ?? this.view.title(this.context);
    document.title = `${title} · Asterism`;
    const nodes = [h("h1", { tabindex: "-1" }, title)];
    if (this.problem) nodes.push(h("div", { class: "problem", role: "alert" }, h("p", null, h("strong", null, this.problem.what)), this.problem.todo && h("p", null, this.problem.todo)));
    if (this.absent) nodes.push(gone(this.absent));
    else if (this.data !== null) nodes.push(this.view.render(this.data, this.context));
    else if (!this.problem) nodes.push(h("p", { class: "quiet" }, "Loading …"));
    patch(main, nodes);
    mark(main);
  }

  end() {
    this.ended = true;
    this.poll.stop();
  }
}

/** Highlight the menu entry of a view. */
function highlight(view) {
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.getAttribute("href") === view.nav) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Show the page of the current address. It may be the present page with other query parameters. */
async function show({ focus }) {
  const [view, params] = matched(location.pathname);
  highlight(view);
  if (shown?.view === view && shown.path === location.pathname) {
    await shown.turn();
    if (document.activeElement === document.body) main.querySelector(".scroll")?.focus();
    return;
  }
  shown?.end();
  shown = new Shown(view, params);
  patch(main, []);
  banner.hidden = true;
  announce("");
  main.setAttribute("aria-busy", "true");
  shown.draw();
  window.scrollTo(0, 0);
  if (focus) main.querySelector("h1").focus();
  await shown.poll.now();
}

/** Navigate to an address of these pages. */
export function go(href) {
  history.pushState(null, "", href);
  return show({ focus: true });
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const to = new URL(link.getAttribute("href"), location.href); // links in SVG have no `href` text
  if (to.origin !== location.origin || !/^\/ui(\/|$)/.test(to.pathname) || /^\/ui\/(api|static)(\/|$)/.test(to.pathname) || link.classList.contains("skip")) return;
  event.preventDefault();
  go(to.pathname + to.search);
});

document.addEventListener("submit", (event) => {
  // A filter form: its values become the query parameters of the address.
  if (!event.target.matches?.("form.filters")) return;
  event.preventDefault();
  const query = new URLSearchParams([...new FormData(event.target)].filter(([, value]) => value !== ""));
  const text = query.toString();
  go(location.pathname + (text ? `?${text}` : ""));
});

document.addEventListener("change", (event) => {
  if (event.target.matches?.("form.filters select")) event.target.form.requestSubmit();
});

window.addEventListener("popstate", () => show({ focus: true }));

document.addEventListener("toggle", (event) => event.target.open && mark(event.target), true);

let settle = null;
window.addEventListener("resize", () => {
  clearTimeout(settle);
  settle = setTimeout(() => shown?.data !== null && shown?.draw(), 150);
});

const THEMES = ["system", "light", "dark"];
const theme = document.getElementById("theme");

function themed() {
  theme.textContent = `Theme: ${document.documentElement.dataset.theme ?? "system"}`;
}

theme.addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme ?? "system") + 1) % THEMES.length];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    if (next === "system") localStorage.removeItem("asterism-theme");
    else localStorage.setItem("asterism-theme", next);
  } catch {
    // Storage is not available: the choice lasts until the page is closed.
  }
  themed();
});
themed();
show({ focus: false });
