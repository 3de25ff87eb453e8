// A form for statements, and the table of results.

import { get, post, Problem, told } from "../api.js";
import { h } from "../dom.js";
import { count, of, real, seconds } from "../format.js";
import { field, select, sure, table } from "../parts.js";

const TIMEOUT_S = 30;
const MOST_EXPECTED = 12;
export const nav = "/ui/query";
export const title = () => "Query";
export const pace = { least: Infinity };

export async function load({ query, signal }) {
  const { spaces } = await get("/spaces", { limit: 200 }, signal);
  const names = spaces.map((space) => space.name);
  const asked = query.get("space") ?? "";
  if (asked && !names.includes(asked)) names.unshift(asked);
  const chosen = asked || names[0] || "";
  const space = chosen ? await get(`/spaces/${encodeURIComponent(chosen)}`, {}, signal).catch(() => null) : null;
  return { names, chosen, space };
}

/** Return the first keywords of those statements that change data. Quoted text and comments are skipped. */
export function changes(text) {
  const bare = text.replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`|\/\*[^]*?\*\/|(?:\/\/|#)[^\n]*/g, " ");
  return bare
    .split(";")
    .map((one) => one.match(/^\s*(?:(?:explain|profile)\s+)?(create|drop|submit|stop|recover)\b/i)?.[1].toUpperCase())
    .filter(Boolean);
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
  if (typeof made !== "object" || made === null || Array.isArray(made)) throw new SyntaxError("expected an object of names and values");
  return made;
}

async function run(context) {
  const { memory } = context;
  if (memory.running) return;
  const statement = box("statement").value;
  // Read the form before rendering again, so that the request is what the form showed when it was sent.
  const [space, language, rows] = ["space", "language", "rows"].map((name) => box(name).value);
  let values;
  try {
    values = parameters(box("parameters").value);
  } catch (error) {
    memory.answer = null;
    memory.problem = { what: `The parameters are no JSON: ${error.message}`, todo: 'Write them as {"least": 3}, or leave the field empty.' };
    context.redraw();
    box("parameters").focus();
    return;
  }
  const what = language === "ngql" ? changes(statement) : [];
  if (what.length && !(await sure({ title: `Run ${[...new Set(what)].join(", ")}?`, text: what.includes("DROP") ? "This removes a space with everything in it: loads, versions, data. This cannot be undone." : "This changes the cluster.", yes: "Run it" }))) return;
  memory.running = true;
  memory.problem = null;
  context.redraw();
  try {
    memory.answer = await post("/query", { statement, parameters: values, space, language, rows: Number(rows), timeout_s: TIMEOUT_S }, undefined, 1000 * (TIMEOUT_S + 5));
    context.announce(`${of(memory.answer.length, "row")} in ${seconds(memory.answer.took_s)}.`);
  } catch (error) {
    memory.answer = null;
    memory.problem = told(error);
    if (error instanceof Problem && error.body.line) {
      memory.problem = { ...memory.problem, line: error.body.line, column: error.body.column, expected: error.body.expected ?? [] };
      point(statement, error.body);
    }
  }
  memory.running = false;
  context.redraw();
}

/** Put the cursor at the error in the statement. */
function point(statement, { line, column }) {
  const before = statement.split("\n").slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
  const at = Math.min(before + column - 1, statement.length);
  box("statement").focus();
  box("statement").setSelectionRange(at, Math.min(at + 1, statement.length));
}

function problem({ problem: said }) {
  if (!said) return null;
  return h(
    "div",
    { class: "problem", role: "alert", id: "query-problem" },
    h("p", null, h("strong", null, said.what.split("\n")[0])),
    said.what.includes("\n") && h("pre", { tabindex: "0" }, said.what.split("\n").slice(1).join("\n")),
    said.expected?.length > 0 && h("p", null, "There may stand: ", said.expected.slice(0, MOST_EXPECTED).join(", "), said.expected.length > MOST_EXPECTED && " …"),
    said.todo && h("p", null, said.todo),
  );
}

function cell(value) {
  if (value === null) return h("span", { class: "quiet" }, "null");
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : real(value);
  return Array.isArray(value) || typeof value === "object" ? h("code", null, JSON.stringify(value)) : String(value);
}

function answer({ answer: found }) {
  if (!found) return null;
  const told_ = [of(found.length, "row"), seconds(found.took_s), found.version && `version ${found.version}`, found.space && `space ${found.space}`, found.seed !== null && `seed ${found.seed}`].filter(Boolean);
  const numbers = found.columns.map((column) => /^(u?int|float)\d+$/.test(column.type));
  return [
    h("h2", null, "Answer"),
    h("p", null, told_.join(" · ")),
    found.columns.length > 0 &&
      table({
        id: "answer",
        caption: found.rows.length < found.length ? `The first ${count(found.rows.length)} of ${of(found.length, "row")}` : of(found.length, "row"),
        rows: found.rows,
        empty: "The statement gives no row.",
        columns: found.columns.map((column, i) => ({ label: h("span", { title: column.type }, column.name), number: numbers[i], cell: (row) => cell(row[i]) })),
      }),
    found.plan && [h("h3", null, "Plan"), h("pre", { tabindex: "0" }, found.plan)],
    found.stages?.length > 0 && [
      h("h3", null, "Stages"),
      table({
        id: "stages",
        caption: "What each step took",
        rows: found.stages,
        columns: [
          { label: "Stage", head: true, cell: (stage) => stage.name },
          { label: "Took", number: true, cell: (stage) => seconds(stage.took_s) },
          { label: "Rows", number: true, cell: (stage) => (stage.rows < 0 ? "–" : count(stage.rows)) },
        ],
      }),
    ],
    found.token && h("details", null, h("summary", null, "The token of this draw"), h("pre", { tabindex: "0" }, found.token)),
  ];
}

/** Return the selected values: the reader's choices, or those of the address, or the defaults. */
function choices(memory, data) {
  if (memory.addressed !== data.chosen) {
    memory.addressed = data.chosen;
    memory.choices = { ...memory.choices, space: data.chosen };
  }
  return { language: "ngql", rows: "200", ...memory.choices };
}

export function render(data, context) {
  const { memory } = context;
  const chosen = choices(memory, data);
  const list = (name, pairs) => select(name, pairs, chosen[name], { id: name, onchange: (event) => (memory.choices[name] = event.target.value) });
  const send = (event) => {
    event.preventDefault();
    run(context);
  };
  const typed = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(event);
  };
  return [
    h("p", { id: "query-help" }, "One statement, or several with ; between: the last one's table is shown. Ctrl+Enter runs them. What changes the cluster (CREATE, DROP, SUBMIT, STOP, RECOVER) is asked about first."),
    h(
      "form",
      { onsubmit: send },
      field("Statement", h("textarea", { id: "statement", rows: 5, spellcheck: "false", autocapitalize: "off", "aria-describedby": `query-help${memory.problem ? " query-problem" : ""}`, onkeydown: typed })),
      h(
        "div",
        { class: "buttons fields" },
        field("Space", list("space", [["", "as USE says"], ...data.names.map((name) => [name, name])])),
        field("Language", list("language", [["ngql", "nGQL style"], ["euler", "Euler's GQL"]])),
        field("Rows at most", list("rows", [["50", "50"], ["200", "200"], ["1000", "1,000"]])),
        field("Parameters, as JSON", h("input", { id: "parameters", autocomplete: "off", spellcheck: "false", placeholder: '{"least": 3}' })),
        h("button", { type: "submit", class: "main" }, memory.running ? "Running …" : "Run"),
      ),
    ),
    h("h2", null, "Examples"),
    h("ul", { class: "chips" }, examples(data).map((text) => h("li", null, h("button", { type: "button", onclick: () => ((box("statement").value = text), box("statement").focus()) }, h("code", null, text))))),
    problem(memory),
    answer(memory),
  ];
}
