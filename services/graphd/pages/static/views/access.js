// Access control: principals, API keys without their secrets, roles and limits.

import { describeError, get, post } from "../api.js";
import { h } from "../dom.js";
import { ago, count, of, real } from "../format.js";
import { field, problem, select, sure, table } from "../parts.js";

const ROLES = ["reader", "writer", "builder", "admin"];
export const nav = "/ui/access";
export const title = () => "Access";
export const pace = { least: 5000, most: 30000 };
export const absent = () => ({ title: "Access control is off", text: "Everyone who reaches this server may do everything.", href: "/ui", list: "Overview" });

export const load = ({ query, signal }) => get("/access", { q: query.get("q") }, signal);

/** Request a change, and show what came of it. */
async function change(context, path, body, said) {
  const { memory } = context;
  try {
    const made = await post(`/ui/api/access${path}`, body);
    memory.said = () => said(made);
    memory.problem = null;
  } catch (error) {
    memory.problem = describeError(error);
    memory.said = null;
  }
  context.redraw();
  context.refresh();
}

/** Return the values of a form, without spaces at their ends. */
const values = (form) => Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value.trim()]));

function form(context, name, fields, button, send) {
  const onsubmit = (event) => {
    event.preventDefault();
    send(values(event.target));
  };
  return h("form", { class: "buttons fields", "aria-label": name, onsubmit }, fields, h("button", { type: "submit" }, button));
}

function grant(context, { principal, space, role }) {
  return change(context, "/grants", { principal, space, role }, (made) => h("p", null, `${made.principal} is ${made.role} in ${made.space} now.`));
}

async function revokeGrant(context, { principal, space, role }) {
  if (!(await sure({ title: `Revoke the role of ${principal}?`, text: `${principal} is ${role} in ${space}. Calls that need the role fail from then on.`, yes: "Revoke role" }))) return;
  await change(context, "/grants/revoke", { principal, space }, (made) => h("p", null, `Revoked the role of ${principal} in ${space}. ${made.notice}`));
}

async function revokeKey(context, key) {
  if (!(await sure({ title: `Revoke the key ${key.key_id}?`, text: `It is a key of ${key.principal}. Its calls and sessions end. This cannot be undone.`, yes: "Revoke key" }))) return;
  await change(context, `/keys/${encodeURIComponent(key.key_id)}/revoke`, {}, () => h("p", null, `Revoked the key ${key.key_id}.`));
}

function createKey(context, { principal, description, days }) {
  const done = () => {
    context.memory.said = null;
    context.redraw();
  };
  return change(context, "/keys", { principal, description, expires_days: Number(days || 0) }, (made) => [
    h("p", null, `The key of ${made.key.principal}. Copy it now: it is not shown again.`),
    h("pre", { id: "new-key", tabindex: "0" }, made.secret),
    h("p", null, h("button", { type: "button", onclick: done }, "Hide the key")),
  ]);
}

/** Limits of a principal in a space: name, label, and the step of its numbers. */
const LIMITS = [
  ["calls_per_s", "Calls per second", "any"],
  ["rows_per_s", "Rows per second", "any"],
  ["bytes_per_s", "Bytes per second", "any"],
  ["concurrent_calls", "Concurrent calls", 1],
  ["stored_bytes", "Stored bytes (of the principal *)", 1],
  ["pins", "Pins", 1],
  ["jobs", "Jobs", 1],
  ["share", "Share of turns (in the space *)", "any"],
];

function setLimits(context, { principal, space, ...words }) {
  const limits = Object.fromEntries(LIMITS.map(([name]) => [name, Number(words[name] || 0)]));
  return change(context, "/limits", { principal, space, ...limits }, (made) => h("p", null, Object.keys(made.limits).length ? `Set the limits of ${made.principal} in ${made.space}.` : `${made.principal} has no limits of its own in ${made.space} now.`));
}

/** Fill the form with the limits of a row. */
function editLimits(row) {
  const { elements } = document.querySelector("form[aria-label='Set limits']");
  elements.principal.value = row.principal;
  elements.space.value = row.space;
  for (const [name] of LIMITS) elements[name].value = row.limits[name] ?? "";
  elements[LIMITS[0][0]].focus();
}

async function removeLimits(context, { principal, space }) {
  if (!(await sure({ title: `Remove the limits of ${principal}?`, text: `They are those in ${space}. The limits of the principal * hold there from then on, if it has any.`, yes: "Remove limits" }))) return;
  await setLimits(context, { principal, space });
}

const ended = (key) => (key.revoked_ms ? ["revoked ", ago(key.revoked_ms)] : key.expires_ms ? [key.expires_ms < Date.now() ? "expired " : "expires ", ago(key.expires_ms)] : "valid");

export function render(data, context) {
  const { query, memory } = context;
  const shown = Math.max(data.principals.length, data.keys.length, data.grants.length, data.limits.length);
  const name = (value = "") => field("Principal", h("input", { name: "principal", required: true, maxlength: 128, autocomplete: "off", value }));
  return [
    memory.problem && problem(memory.problem),
    memory.said && h("div", { class: "health green", role: "status" }, memory.said()),
    h("form", { class: "filters", role: "search" }, field("Principal or space contains", h("input", { name: "q", type: "search", value: query.get("q") ?? "", autocomplete: "off" })), h("button", { type: "submit" }, "Search")),
    data.total > shown && h("p", { class: "quiet" }, `The first ${count(shown)} rows of each table; a search narrows them down.`),
    table({
      id: "principals",
      caption: of(data.principals.length, "principal"),
      rows: data.principals,
      key: (row) => row.name,
      columns: [
        { label: "Principal", head: true, cell: (row) => row.name },
        data.is_cluster_admin && { label: "Valid keys", number: true, cell: (row) => count(row.valid_keys) },
        { label: "Role everywhere", cell: (row) => row.role_everywhere || "–" },
        { label: "Spaces with a role", number: true, cell: (row) => count(row.spaces) },
      ].filter(Boolean),
    }),
    h("h2", null, "Roles"),
    table({
      id: "grants",
      caption: "Granted roles; the space * is every space",
      rows: data.grants,
      key: (row) => `${row.space} ${row.principal}`,
      columns: [
        { label: "Principal", head: true, cell: (row) => row.principal },
        { label: "Space", cell: (row) => row.space },
        { label: "Role", cell: (row) => row.role },
        { label: "Change", cell: (row) => h("button", { type: "button", class: "danger", "aria-label": `Revoke the role of ${row.principal} in ${row.space}`, onclick: () => revokeGrant(context, row) }, "Revoke") },
      ],
    }),
    form(
      context,
      "Grant a role",
      [name(), field("Space", h("input", { name: "space", required: true, maxlength: 128, autocomplete: "off" })), field("Role", select("role", ROLES.map((role) => [role, role]), memory.role ?? "reader", { onchange: (event) => (memory.role = event.target.value) }))],
      "Grant role",
      (words) => grant(context, words),
    ),
    data.is_cluster_admin && [
      h("h2", null, "API keys"),
      table({
        id: "keys",
        caption: "API keys, the oldest first; their secrets are not kept",
        rows: data.keys,
        key: (row) => row.key_id,
        columns: [
          { label: "Key id", head: true, cell: (row) => h("code", null, row.key_id) },
          { label: "Principal", cell: (row) => row.principal },
          { label: "Description", wide: true, cell: (row) => row.description || "–" },
          { label: "Created", cell: (row) => ago(row.created_ms) },
          { label: "State", cell: ended },
          { label: "Change", cell: (row) => (row.revoked_ms ? "–" : h("button", { type: "button", class: "danger", "aria-label": `Revoke the key ${row.key_id}`, onclick: () => revokeKey(context, row) }, "Revoke")) },
        ],
      }),
      form(
        context,
        "Create an API key",
        [
          name(),
          field("Description", h("input", { name: "description", maxlength: 256, autocomplete: "off" })),
          field("Days until it expires (empty: never)", h("input", { name: "days", type: "number", min: 1, max: 36500, step: 1 })),
        ],
        "Create key",
        (words) => createKey(context, words),
      ),
    ],
    h("h2", null, "Limits"),
    table({
      id: "limits",
      caption: "Limits; the principal * is every one without limits of its own",
      rows: data.limits,
      key: (row) => `${row.space} ${row.principal}`,
      empty: "No limits.",
      columns: [
        { label: "Principal", head: true, cell: (row) => row.principal },
        { label: "Space", cell: (row) => row.space },
        { label: "Limits", wide: true, cell: (row) => Object.entries(row.limits).map(([what, value]) => `${what} ${Number.isInteger(value) ? count(value) : real(value)}`).join(", ") },
        data.is_cluster_admin && {
          label: "Change",
          cell: (row) =>
            h(
              "span",
              { class: "buttons" },
              h("button", { type: "button", "aria-label": `Change the limits of ${row.principal} in ${row.space}`, onclick: () => editLimits(row) }, "Change"),
              h("button", { type: "button", class: "danger", "aria-label": `Remove the limits of ${row.principal} in ${row.space}`, onclick: () => removeLimits(context, row) }, "Remove"),
            ),
        },
      ].filter(Boolean),
    }),
    data.is_cluster_admin && [
      h("p", { class: "quiet" }, "An empty field is no limit. The limits replace all that the principal has in the space."),
      form(
        context,
        "Set limits",
        [
          name("*"),
          field("Space", h("input", { name: "space", required: true, maxlength: 128, autocomplete: "off", value: "*" })),
          LIMITS.map(([what, label, step]) => field(label, h("input", { name: what, type: "number", min: 0, step }))),
        ],
        "Set limits",
        (words) => setLimits(context, words),
      ),
    ],
  ];
}
