// Completion in a text area: a list at the cursor, used by keyboard or mouse. `data-own` elements hold it.

import { h, patch } from "./dom.js";

const DELAY_MS = 120;
const LONGEST = 20_000;

export class Completion {
  /**
   * @param id of the text area; the list is shown in the element `${id}-completion` next to it
   * @param request async (text before the cursor, signal) => {prefix_length, candidates: [{text, kind}]}
   * @param done (text area) => nothing, after a completion was inserted
   * @param announce (text) => nothing
   */
  constructor(id, { request, done, announce }) {
    this.id = id;
    this.request = request;
    this.done = done;
    this.announce = announce;
    this.timer = null;
    this.controller = null;
    this.close();
  }

  get area() {
    return document.getElementById(this.id);
  }

  get open() {
    return this.candidates.length > 0;
  }

  /** Narrow the list to what was typed, and request completions after a short delay. */
  typed() {
    clearTimeout(this.timer);
    this.controller?.abort();
    if (this.open) this.narrow();
    this.timer = setTimeout(() => this.load(false), DELAY_MS);
  }

  narrow() {
    const { area } = this;
    const before = area.value.slice(0, area.selectionStart);
    const more = before.slice(this.before.length);
    const word = bare(before.slice(this.before.length - this.prefix));
    if (!before.startsWith(this.before) || /[^\w:`$]/.test(more)) return this.close();
    this.before = before;
    this.prefix += more.length;
    this.index = -1;
    this.candidates = this.candidates.filter(({ text }) => bare(text).startsWith(word) && bare(text) !== word);
    return this.draw();
  }

  /** Request completions now. Unless the reader asked for the list, keywords need their first letter. */
  async load(explicit) {
    clearTimeout(this.timer);
    const { area } = this;
    const before = area?.value.slice(0, area.selectionStart) ?? "";
    if (!area || area !== document.activeElement || area.selectionStart !== area.selectionEnd || before.length > LONGEST) return this.close();
    this.controller?.abort();
    this.controller = new AbortController();
    const { signal } = this.controller;
    let found;
    try {
      found = await this.request(before, signal);
    } catch {
      return undefined; // running the statement shows the error
    }
    if (signal.aborted || this.area !== document.activeElement || area.value.slice(0, area.selectionStart) !== before) return undefined;
    if (!found.candidates.length || !(explicit || found.prefix_length || found.candidates[0].kind !== "keyword")) return this.close();
    this.before = before;
    this.prefix = found.prefix_length;
    this.candidates = found.candidates;
    this.index = -1;
    this.announce(`${found.candidates.length === 1 ? "1 completion" : `${found.candidates.length} completions`}. Use the arrow keys and Tab.`);
    return this.draw();
  }

  /** Handle a key; return true if it was meant for the list. */
  key(event) {
    const control = event.ctrlKey || event.metaKey || event.altKey;
    if (event.key === " " && event.ctrlKey) this.load(true);
    else if (!this.open || control) return false;
    else if (event.key === "ArrowDown") this.select(this.index + 1);
    else if (event.key === "ArrowUp") this.select(this.index < 0 ? -1 : this.index - 1);
    else if (event.key === "Escape") this.close();
    else if (event.key === "Tab" && !event.shiftKey) this.insert(Math.max(this.index, 0));
    else if (event.key === "Enter" && this.index >= 0) this.insert(this.index);
    else return false;
    event.preventDefault();
    return true;
  }

  select(index) {
    const n = this.candidates.length;
    this.index = (index + n) % n;
    this.draw();
    document.getElementById(`${this.id}-option-${this.index}`).scrollIntoView({ block: "nearest" });
  }

  insert(index) {
    const { area } = this;
    const end = area.selectionStart;
    area.setRangeText(this.candidates[index].text, end - this.prefix, end, "end");
    this.close();
    this.done(area);
  }

  close() {
    clearTimeout(this.timer);
    this.controller?.abort();
    this.candidates = [];
    this.index = -1;
    this.draw();
  }

  draw() {
    const box = document.getElementById(`${this.id}-completion`);
    const { area } = this;
    if (!box || !area) return;
    if (!this.open) {
      patch(box, []);
      area.removeAttribute("aria-controls");
      area.removeAttribute("aria-activedescendant");
      return;
    }
    const list = `${this.id}-options`;
    const options = this.candidates.map(({ text, kind }, i) =>
      h("li", { id: `${this.id}-option-${i}`, role: "option", "aria-selected": String(i === this.index), onmousedown: (event) => (event.preventDefault(), this.insert(i)) }, h("code", null, text), h("span", null, kind)),
    );
    patch(box, [h("ul", { id: list, role: "listbox", "aria-label": "Completions" }, options)]);
    area.setAttribute("aria-controls", list);
    if (this.index >= 0) area.setAttribute("aria-activedescendant", `${this.id}-option-${this.index}`);
    else area.removeAttribute("aria-activedescendant");
    place(box.firstChild, area, this.prefix);
  }
}

const bare = (text) => text.replaceAll("`", "").toLowerCase();

/** Move a list below the word at the cursor of a text area, inside the element that holds both. */
function place(list, area, prefix) {
  const style = getComputedStyle(area);
  const start = area.selectionStart - prefix;
  const mark = h("span", null, area.value.slice(start, area.selectionStart) || ".");
  const copy = h("div", { class: "copy", "aria-hidden": "true" }, area.value.slice(0, start), mark);
  for (const name of ["font", "letterSpacing", "tabSize", "padding", "borderWidth"]) copy.style[name] = style[name];
  copy.style.width = `${area.clientWidth + 2 * parseFloat(style.borderTopWidth)}px`;
  list.after(copy);
  const top = area.offsetTop + mark.offsetTop + mark.offsetHeight - area.scrollTop;
  const left = area.offsetLeft + mark.offsetLeft;
  copy.remove();
  list.style.top = `${Math.min(top, area.offsetTop + area.offsetHeight)}px`;
  list.style.left = `${Math.max(0, Math.min(left, list.offsetParent.clientWidth - list.offsetWidth))}px`;
}
