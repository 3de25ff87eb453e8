// One space: types and counts, versions and their pins, partitions and their hosts.

import { get, post, told } from "../api.js";
import { h } from "../dom.js";
import { count, moment, of, real, short } from "../format.js";
import { facts, field, pager, presence, select, sure, table } from "../parts.js";

const LIMIT = 25;
export const nav = "/ui/spaces";
export const title = ({ params }) => `Space ${params.space}`;
export const pace = { least: 3000, most: 15000 };
export const key = ({ space, versions }) => JSON.stringify([space.version, versions.length, space.holders]);

export async function load({ params, query, signal }) {
  const at = `/spaces/${encodeURIComponent(params.space)}`;
  const part = { host: query.get("host"), sort: query.get("sort"), order: query.get("order"), offset: query.get("offset"), limit: LIMIT };
  const [space, versions, parts] = await Promise.all([get(at, {}, signal), get(`${at}/versions`, {}, signal), get(`${at}/parts`, part, signal)]);
  return { space, versions, parts };
}

async function submit(context, kind) {
  const { params, memory } = context;
  if (!(await sure({ title: `Submit a ${kind}`, text: kind === "build" ? `What is committed of ${params.space} by now becomes its next version.` : `The current version of ${params.space} is read again, every byte, and its tables are held against its weights.`, yes: `Submit the ${kind}` }))) return;
  try {
    const made = await post("/ui/api/jobs", { space: params.space, kind });
    memory.said = ["good", made.job.job_id, kind];
    context.announce(`Job ${made.job.job_id} was submitted.`);
  } catch (error) {
    memory.said = ["bad", told(error)];
  }
  context.redraw();
}

function said({ memory }) {
  if (!memory.said) return null;
  const [how, what, kind] = memory.said;
  return how === "good"
    ? h("p", { role: "status" }, `The ${kind} is `, h("a", { href: `/ui/jobs/${what}` }, `job ${what}`), ".")
    : h("div", { class: "problem", role: "alert" }, h("p", null, h("strong", null, what.what)), what.todo && h("p", null, what.todo));
}

export function render({ space, versions, parts }, context) {
  const { query } = context;
  const at = `/ui/spaces/${encodeURIComponent(space.name)}`;
  const types = (element) => space.types.filter((type) => type.element === element);
  return [
    facts([
      ["Current version", space.version ? h("a", { href: `${at}/versions/${space.version}` }, space.version) : "none yet"],
      ["Parts", `${count(space.parts)} on ${of(space.holders.length, "host")}`],
      ["Ids", space.ids === "global" ? "global: an id has one type" : "per type"],
      ["Placement", space.placement],
      ["Edges are kept", { out: "at their sources", in: "at their destinations", both: "at both ends" }[space.direction] ?? space.direction],
      ["Made", moment(space.created_ms)],
    ]),
    h(
      "div",
      { class: "buttons" },
      h("button", { type: "button", onclick: () => submit(context, "build") }, "Build a version"),
      h("button", { type: "button", disabled: !space.version, onclick: () => submit(context, "audit") }, "Audit the current one"),
      h("a", { href: `/ui/jobs?space=${encodeURIComponent(space.name)}`, class: "step" }, "Its jobs"),
      h("a", { href: `/ui/query?space=${encodeURIComponent(space.name)}`, class: "step" }, "Query it"),
    ),
    said(context),
    h("h2", null, "Schema and counts"),
    ["node", "edge"].map((element) =>
      table({
        id: `${element}s`,
        caption: element === "node" ? "Node types" : "Edge types",
        rows: types(element),
        key: (type) => type.type_id,
        empty: `There is no ${element} type.`,
        columns: [
          { label: "Type", head: true, cell: (type) => (element === "node" && type.count ? h("a", { href: `${at}/node?type=${encodeURIComponent(type.name)}` }, type.name) : type.name) },
          { label: "Rows", number: true, cell: (type) => count(type.count) },
          { label: "Of positive weight", number: true, cell: (type) => count(type.positive) },
          { label: "Sum of weights", number: true, cell: (type) => real(type.weight) },
          { label: "Weights", cell: (type) => (type.weighted ? "of their own" : "all 1") },
          { label: "Tables", cell: (type) => (type.tables.length ? type.tables.map((text) => h("div", null, h("code", null, text))) : "–") },
          { label: "Features", wide: true, cell: (type) => type.features.join(", ") || "–" },
          element === "edge" && { label: "Left out", number: true, cell: (type) => count(type.dropped) },
        ].filter(Boolean),
      }),
    ),
    h("details", null, h("summary", null, "The schema as a file has it"), h("pre", { tabindex: "0" }, JSON.stringify(space.schema, null, 2))),
    h("h2", null, "Versions"),
    table({
      id: "versions",
      caption: "Versions that are served, newest first",
      rows: versions,
      key: (version) => version.version,
      empty: "Nothing was published yet: build a version.",
      columns: [
        { label: "Version", head: true, cell: (version) => [h("a", { href: `${at}/versions/${version.version}` }, version.version), version.current && " (current)"] },
        { label: "Published", cell: (version) => moment(version.created_ms) },
        { label: "By job", cell: (version) => h("a", { href: `/ui/jobs/${version.job_id}` }, version.job_id) },
        { label: "Commit", number: true, cell: (version) => count(version.cut) },
        { label: "Pinned by", wide: true, cell: (version) => (version.pins.length ? h("ul", { class: "causes" }, version.pins.slice(0, 20).map((pin) => h("li", null, pin.owner || `pin ${pin.pin_id}`, " until ", moment(pin.expires_ms))), version.pins.length > 20 && h("li", null, `and ${of(version.pins.length - 20, "more", "more")}`)) : "nobody") },
        { label: "Digest", cell: (version) => short(version.digest) },
      ],
    }),
    h("h2", null, "Parts"),
    table({
      id: "holders",
      caption: "Who holds its parts",
      rows: space.holders.slice(0, 100),
      key: (holder) => holder.uuid,
      columns: [
        { label: "Host", head: true, cell: (holder) => (holder.address.endsWith(":0") ? "in this process" : holder.address) },
        { label: "State", cell: (holder) => presence(holder.online) },
        { label: "Parts", number: true, cell: (holder) => count(holder.parts) },
        { label: "Which", wide: true, cell: (holder) => holder.which },
      ],
    }),
    space.holders.length > 100 && h("p", { class: "quiet" }, `The first 100 of ${count(space.holders.length)} hosts; the others are under Hosts.`),
    h("h3", null, "What each part holds"),
    h(
      "form",
      { class: "filters" },
      field("Held by", select("host", [["", "any host"], ...space.holders.slice(0, 200).map((holder) => [holder.address, holder.address.endsWith(":0") ? "this process" : holder.address])], query.get("host") ?? "")),
      h("noscript", null, h("button", { type: "submit" }, "Show")),
    ),
    table({
      id: "parts",
      caption: `Parts of version ${space.version || "– (none yet)"}`,
      rows: parts.parts,
      sorted: [query.get("sort") ?? "part", query.get("order") ?? "asc"],
      key: (part) => part.part,
      columns: [
        { label: "Part", head: true, sort: "part", cell: (part) => part.part },
        { label: "Nodes", number: true, sort: "nodes", cell: (part) => count(part.nodes) },
        { label: "Edges", number: true, sort: "edges", cell: (part) => count(part.edges) },
        { label: "Sum of weights", number: true, sort: "weight", cell: (part) => real(part.weight) },
        { label: "Held by", cell: (part) => part.hosts.map((host) => (host.endsWith(":0") ? "this process" : host)).join(", ") },
        { label: "State", cell: (part) => presence(part.online) },
        { label: "Image", cell: (part) => short(part.digest) },
      ],
    }),
    pager({ offset: Number(query.get("offset") ?? 0), limit: LIMIT, total: parts.total, shown: parts.parts.length }),
  ];
}
