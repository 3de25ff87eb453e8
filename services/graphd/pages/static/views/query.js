// A form for statements, with completion and history, and the table of results.

import { get, post, Problem, describeError } from "../api.js";
import { Completion } from "../completion.js";
import { h } from "../dom.js";
import { ago, count, of, seconds } from "../format.js";
import { field, select, sure, table } from "../parts.js";
import { cell, csv, jsonText, save } from "../results.js";
import { changes, confirmation, forget, history, remember } from "../statements.js";

const TIMEOUT_S = 30;
const LIMITS = ["50", "200", "1000", "10000"];
const MOST_SHOWN = 1000;
const LONGEST_IN_ADDRESS = 2000;
const NOTHING = /\b(?:nothing to (?:draw|sample)|there are no (?:nodes|edges|rows))\b/;
export const nav = "/ui/query";
export const title = () => "Query";
export const pace = { least: Infinity };

export async function load(context) {
  const { query, signal, memory } = context;
  if (memory.address !== query.toString()) open(context);
  const { spaces } = await get("/spaces", { limit: 200 }, signal);
  const names = spaces.map((space) => space.name);
  const { choices } = memory;
  if (choices.space === null) choices.space = names[0] ?? "";
  if (choices.space && !names.includes(choices.space)) names.unshift(choices.space);
  const space = choices.space ? await get(`/spaces/${encodeURIComponent(choices.space)}`, {}, signal).catch(() => null) : null;
  return { names, space };
}

/** Take the form's values from the address. */
function open({ query, memory }) {
  memory.address = query.toString();
  memory.choices = {
    space: query.get("space"),
    language: query.get("language") === "euler" ? "euler" : "ngql",
    limit: LIMITS.includes(query.get("limit")) ? query.get("limit") : "200",
    parameters: query.get("parameters") ?? "",
    statement: query.get("statement") ?? "",
  };
  memory.back = -1;
  const area = box("statement");
  if (area) area.value = memory.choices.statement; // a redraw keeps what is typed
}

/** Keep the form's values in the address, so that a reload and a shared link restore them. */
function keep(context) {
  const { space, language, limit, parameters, statement } = context.memory.choices;
  const query = new URLSearchParams();
  query.set("space", space ?? "");
  if (language !== "ngql") query.set("language", language);
  query.set("limit", limit);
  if (parameters && parameters.length <= LONGEST_IN_ADDRESS) query.set("parameters", parameters);
  if (statement && statement.length <= LONGEST_IN_ADDRESS) query.set("statement", statement);
  context.query = query;
  context.memory.address = query.toString();
  window.history.replaceState(window.history.state, "", `${location.pathname}?${query}`);
}

function choose(context, name, value) {
  context.memory.choices[name] = value;
  keep(context);
}

/** Put a statement into the form. */
function write(context, text) {
  const area = box("statement");
  area.value = text;
  area.setSelectionRange(text.length, text.length);
  choose(context, "statement", text);
}

function examples({ space }) {
  const found = ["SHOW SPACES", "SHOW HOSTS", "SHOW JOBS"];
  const node = space?.types.find((type) => type.element === "node" && type.count);
  const edge = space?.types.find((type) => type.element === "edge" && type.count);
  if (node) found.push(`SAMPLE 5 VERTICES ON ${node.name}`);
  if (edge) {
    const [from, relation] = edge.name.split(":");
    found.push(`SAMPLE 5 EDGES ON ${relation}`, `SAMPLE 3 NEIGHBORS FROM 0 ON ${from} OVER ${relation}`);
  }
  return found;
}

const box = (name) => document.getElementById(name);

function parameters(text) {
  if (!text.trim()) return {};
  const made = JSON.parse(text);
  if (typeof made !== "object" || made === null || Array.isArray(made)) throw new SyntaxError("expected an object");
  return made;
}

/** Return the names of the parameters; none while their JSON is incomplete. */
function parameterNames(text) {
  try {
    return Object.keys(parameters(text));
  } catch {
    return [];
  }
}

async function run(context) {
  const { memory } = context;
  if (memory.running) return;
  memory.completion.close();
  // Read the form before rendering again, so that the request is what the form showed when it was sent.
  for (const name of ["statement", "space", "language", "limit", "parameters"]) memory.choices[name] = box(name).value;
  keep(context);
  const { statement, space, language, limit } = memory.choices;
  let values;
  try {
    values = parameters(memory.choices.parameters);
  } catch (error) {
    memory.answer = null;
    memory.problem = { what: `parameters: expected a JSON object (${error.message})`, todo: 'For example {"least": 3}. Leave the field empty if there are none.' };
    context.redraw();
    box("parameters").focus();
    return;
  }
  const made = language === "ngql" ? changes(statement) : [];
  if (made.length && !(await sure(confirmation(made, space)))) return;
  remember({ text: statement, space, language });
  memory.back = -1;
  memory.running = true;
  memory.problem = null;
  context.redraw();
  try {
    memory.answer = await post("/query", { statement, parameters: values, space, language, rows: Number(limit), timeout_s: TIMEOUT_S }, undefined, 1000 * (TIMEOUT_S + 5));
    if (memory.answer.kind === "use") choose(context, "space", memory.answer.space);
    context.announce(`${of(memory.answer.length, "row")} in ${seconds(memory.answer.took_s)}.`);
  } catch (error) {
    memory.answer = null;
    fail(error, context);
  }
  memory.running = false;
  context.redraw();
  if (made.length) context.refresh();
}

/** Show an error at its position. A sample of nothing is an empty result, not an error. */
function fail(error, { memory, announce }) {
  const { what, todo } = describeError(error);
  const [first, ...excerpt] = what.split("\n");
  if (error instanceof Problem && error.kind === "NotFound" && NOTHING.test(first)) {
    memory.answer = { nothing: first.replace(/^line \d+, column \d+: /, "") };
    announce("0 rows.");
    return;
  }
  memory.problem = { what: first, excerpt: excerpt.join("\n"), todo };
  if (error instanceof Problem && error.body.line) point(memory.choices.statement, error.body);
}

/** Select the word at the error in the statement. */
function point(statement, { line, column }) {
  const before = statement.split("\n").slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
  const at = Math.min(before + column - 1, statement.length);
  box("statement").focus();
  box("statement").setSelectionRange(at, Math.min(at + (statement.slice(at).match(/^\w+/)?.[0].length ?? 1), statement.length));
}

function problem({ problem: shown }) {
  if (!shown) return null;
  return h("div", { class: "problem", role: "alert", id: "query-problem" }, h("p", null, h("strong", null, shown.what)), shown.excerpt && h("pre", { tabindex: "0" }, shown.excerpt), shown.todo && h("p", null, shown.todo));
}

function answer({ answer: found }) {
  if (!found) return null;
  if (found.nothing) return [h("h2", null, "Result"), h("p", { id: "nothing" }, h("strong", null, "0 rows. "), found.nothing)];
  const shown = found.rows.slice(0, MOST_SHOWN);
  const notes = [of(found.length, "row"), seconds(found.took_s), found.space && `space ${found.space}`, found.version && `version ${found.version}`, found.seed !== null && `seed ${found.seed}`].filter(Boolean);
  const number = found.columns.map((column, i) => /^(u?int|float)\d+$/.test(column.type) && !found.rows.some((row) => Array.isArray(row[i])));
  return [
    h("h2", null, "Result"),
    h("p", null, found.columns.length || found.plan ? notes.join(" · ") : ["Done", ...notes.slice(1)].join(" · ")),
    found.columns.length > 0 && [
      table({
        id: "answer",
        caption: shown.length < found.length ? `The first ${count(shown.length)} of ${of(found.length, "row")}` : of(found.length, "row"),
        rows: shown,
        empty: "0 rows",
        columns: found.columns.map((column, i) => ({ label: h("span", { title: column.type }, column.name), head: i === 0, number: number[i], cell: (row) => cell(row[i], column.type) })),
      }),
      found.rows.length > 0 &&
        h(
          "div",
          { class: "buttons" },
          h("button", { type: "button", onclick: () => save("result.csv", "text/csv", csv(found)) }, `Download CSV (${of(found.rows.length, "row")})`),
          h("button", { type: "button", onclick: () => save("result.json", "application/json", jsonText(found)) }, "Download JSON"),
        ),
    ],
    found.plan && [h("h3", null, "Plan"), h("pre", { tabindex: "0" }, found.plan)],
    found.stages?.length > 0 && [
      h("h3", null, "Stages"),
      table({
        id: "stages",
        caption: "Duration by stage",
        rows: found.stages,
        columns: [
          { label: "Stage", head: true, cell: (stage) => stage.name },
          { label: "Duration", number: true, cell: (stage) => seconds(stage.took_s) },
          { label: "Rows", number: true, cell: (stage) => (stage.rows < 0 ? "–" : count(stage.rows)) },
        ],
      }),
    ],
    found.token && h("details", null, h("summary", null, "Replay token"), h("pre", { tabindex: "0" }, found.token)),
  ];
}

/** The statements that ran in this browser. */
function past(context) {
  const entries = history();
  if (!entries.length) return null;
  const recall = (entry) => {
    choose(context, "space", entry.space);
    choose(context, "language", entry.language);
    write(context, entry.text);
    context.redraw();
    box("statement").focus();
  };
  return h(
    "details",
    { id: "history" },
    h("summary", null, `History (${entries.length})`),
    h("ul", null, entries.map((entry) => h("li", null, h("button", { type: "button", onclick: () => recall(entry) }, h("code", null, entry.text)), h("span", { class: "quiet" }, entry.space && `${entry.space}, `, ago(entry.at))))),
    h("button", { type: "button", onclick: () => (forget(), context.redraw()) }, "Clear history"),
  );
}

/** Step through the history: 1 to an older statement, -1 to a newer one. */
function step(context, by) {
  const { memory } = context;
  const entries = history();
  const to = Math.max(-1, Math.min(memory.back + by, entries.length - 1));
  if (to === memory.back) return;
  if (memory.back === -1) memory.draft = box("statement").value;
  memory.back = to;
  write(context, to === -1 ? memory.draft : entries[to].text);
}

function typed(event, context) {
  const { memory } = context;
  const control = event.ctrlKey || event.metaKey;
  if (event.key === "Enter" && control) run(context);
  else if (control && (event.key === "ArrowUp" || event.key === "ArrowDown")) step(context, event.key === "ArrowUp" ? 1 : -1);
  else {
    memory.completion.key(event);
    return;
  }
  event.preventDefault();
}

const completion = (context) =>
  new Completion("statement", {
    request: (statement, signal) => {
      const { space, language, parameters: text } = context.memory.choices;
      return post("/ui/api/completions", { statement, space: space ?? "", language, parameters: parameterNames(text) }, signal);
    },
    done: (area) => choose(context, "statement", area.value),
    announce: context.announce,
  });

export function render(data, context) {
  const { memory } = context;
  const { choices } = memory;
  memory.completion ??= completion(context);
  const list = (name, pairs, then = () => {}) => select(name, pairs, choices[name] ?? "", { id: name, onchange: (event) => (choose(context, name, event.target.value), then()) });
  const send = (event) => {
    event.preventDefault();
    run(context);
  };
  const example = (text) => {
    choose(context, "language", "ngql");
    write(context, text);
    context.redraw();
    run(context);
  };
  const area = {
    id: "statement",
    rows: 5,
    spellcheck: "false",
    autocapitalize: "off",
    "aria-autocomplete": "list",
    "aria-describedby": `query-help${memory.problem ? " query-problem" : ""}`,
    onkeydown: (event) => typed(event, context),
    oninput: (event) => ((memory.back = -1), choose(context, "statement", event.target.value), memory.completion.typed()),
    onblur: () => memory.completion.close(),
  };
  return [
    h("p", { id: "query-help" }, "Separate statements with ; – the result of the last one is shown. Ctrl+Enter runs them, Ctrl+Space completes, Ctrl+↑ and Ctrl+↓ go through the history. Statements that change the cluster need a confirmation."),
    h(
      "form",
      { onsubmit: send },
      h("div", { class: "editor" }, field("Statement", h("textarea", area, choices.statement)), h("div", { id: "statement-completion", "data-own": true })),
      h(
        "div",
        { class: "buttons fields" },
        field("Space", list("space", [["", "none: USE selects it"], ...data.names.map((name) => [name, name])], context.refresh)),
        field("Language", list("language", [["ngql", "nGQL"], ["euler", "Euler's GQL"]])),
        field("Row limit", list("limit", LIMITS.map((value) => [value, count(Number(value))]))),
        field("Parameters (JSON)", h("input", { id: "parameters", autocomplete: "off", spellcheck: "false", placeholder: '{"least": 3}', value: choices.parameters, oninput: (event) => choose(context, "parameters", event.target.value) })),
        h("button", { type: "submit", class: "main" }, memory.running ? "Running …" : "Run"),
      ),
    ),
    problem(memory),
    answer(memory),
    h("h2", null, "Examples"),
    h("ul", { class: "chips" }, examples(data).map((text) => h("li", null, h("button", { type: "button", onclick: () => example(text) }, h("code", null, text))))),
    past(context),
  ];
}
