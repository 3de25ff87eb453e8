// One space: types and counts, versions and their pins, partitions and their hosts.

import { get, post, describeError } from "../api.js";
import { h } from "../dom.js";
import { ago, both, count, of, real, short } from "../format.js";
import { facts, field, hostName, pager, presence, problem, select, sure, table } from "../parts.js";
import { may } from "../session.js";

const LIMIT = 25;
export const nav = "/ui/spaces";
export const title = ({ params }) => `Space ${params.space}`;
export const pace = { least: 3000, most: 15000 };
export const absent = ({ params }) => ({ title: `Space “${params.space}” not found`, text: "There is no graph space of this name. It may have been dropped.", href: "/ui/spaces", list: "All spaces" });
export const key = ({ space, versions }) => JSON.stringify([space.version, versions.length, space.holders, space.unavailable_parts]);

export async function load({ params, query, signal }) {
  const at = `/spaces/${encodeURIComponent(params.space)}`;
  const part = { host: query.get("host"), sort: query.get("sort"), order: query.get("order"), offset: query.get("offset"), limit: LIMIT };
  const [space, versions, parts] = await Promise.all([get(at, {}, signal), get(`${at}/versions`, {}, signal), get(`${at}/parts`, part, signal)]);
  return { space, versions, parts };
}

async function submit(context, kind) {
  const { params, memory } = context;
  const words = {
    build: { title: `Build a version of ${params.space}?`, text: "The new version includes everything that is committed now. It becomes the current version.", yes: "Build" },
    audit: { title: `Audit the current version of ${params.space}?`, text: "The job reads every file of the version, verifies the checksums, and compares the alias tables with the weights.", yes: "Audit" },
  }[kind];
  if (!(await sure(words))) return;
  try {
    const made = await post("/ui/api/jobs", { space: params.space, kind });
    memory.said = ["good", made.job.job_id, kind];
    context.announce(`Job ${made.job.job_id} was submitted.`);
  } catch (error) {
    memory.said = ["bad", describeError(error)];
  }
  context.redraw();
}

function said({ memory }) {
  if (!memory.said) return null;
  const [how, what, kind] = memory.said;
  return how === "good"
    ? h("p", { role: "status" }, `Submitted the ${kind} as `, h("a", { href: `/ui/jobs/${what}` }, `job ${what}`), ".")
    : problem(what);
}

/** Say which partitions are unavailable, and why. */
function outage({ holders, parts, unavailable_parts: unavailable }) {
  if (!unavailable) return null;
  const offline = holders.filter((holder) => !holder.online).map((holder) => hostName(holder.address));
  return problem({
    what: `${count(unavailable)} of ${of(parts, "partition")} ${unavailable === 1 ? "is" : "are"} unavailable: ${offline.slice(0, 10).join(", ")}${offline.length > 10 ? " …" : ""} ${offline.length === 1 ? "is" : "are"} offline.`,
    todo: "Requests that need these partitions fail until their hosts are online again.",
  });
}

export function render({ space, versions, parts }, context) {
  const { query } = context;
  const at = `/ui/spaces/${encodeURIComponent(space.name)}`;
  const types = (element) => space.types.filter((type) => type.element === element);
  return [
    outage(space),
    facts([
      ["Current version", space.version ? h("a", { href: `${at}/versions/${space.version}` }, space.version) : "none"],
      ["Partitions", `${count(space.parts)} on ${of(space.holders.length, "host")}`],
      ["Node ids", space.ids === "global" ? "unique in the space" : "unique within a type"],
      ["Placement", space.placement],
      ["Stored edges", { out: "out-edges", in: "in-edges", both: "out-edges and in-edges" }[space.direction] ?? space.direction],
      ["Created", both(space.created_ms)],
    ]),
    h(
      "div",
      { class: "buttons" },
      may("builder", space.name) && h("button", { type: "button", onclick: () => submit(context, "build") }, "Build a version"),
      may("builder", space.name) && h("button", { type: "button", disabled: !space.version, onclick: () => submit(context, "audit") }, "Audit the current version"),
      h("a", { href: `/ui/jobs?space=${encodeURIComponent(space.name)}`, class: "step" }, "Jobs"),
      h("a", { href: `/ui/query?space=${encodeURIComponent(space.name)}`, class: "step" }, "Query"),
    ),
    said(context),
    h("h2", null, "Schema and counts"),
    ["node", "edge"].map((element) =>
      table({
        id: `${element}s`,
        caption: element === "node" ? "Node types" : "Edge types",
        rows: types(element),
        key: (type) => type.type_id,
        empty: `No ${element} types`,
        columns: [
          { label: "Type", head: true, cell: (type) => (element === "node" && type.count ? h("a", { href: `${at}/node?type=${encodeURIComponent(type.name)}` }, type.name) : type.name) },
          { label: "Rows", number: true, cell: (type) => count(type.count) },
          { label: "Positive weight", number: true, cell: (type) => count(type.positive) },
          { label: "Sum of weights", number: true, cell: (type) => real(type.weight) },
          { label: "Weights", cell: (type) => (type.weighted ? "stored" : "1 for each row") },
          { label: "Named weights", cell: (type) => (type.tables.length ? type.tables.map((text) => h("div", null, h("code", null, text))) : "–") },
          { label: "Features", wide: true, cell: (type) => type.features.join(", ") || "–" },
          element === "edge" && { label: "Dropped", number: true, cell: (type) => count(type.dropped) },
        ].filter(Boolean),
      }),
    ),
    h("details", null, h("summary", null, "Schema (JSON)"), h("pre", { tabindex: "0" }, JSON.stringify(space.schema, null, 2))),
    h("h2", null, "Versions"),
    table({
      id: "versions",
      caption: "Served versions, newest first",
      rows: versions,
      key: (version) => version.version,
      empty: "No versions yet. Build one to sample from the space.",
      columns: [
        { label: "Version", head: true, cell: (version) => [h("a", { href: `${at}/versions/${version.version}` }, version.version), version.current && " (current)"] },
        { label: "Published", cell: (version) => ago(version.created_ms) },
        { label: "Built by", cell: (version) => h("a", { href: `/ui/jobs/${version.job_id}` }, `job ${version.job_id}`) },
        { label: "Commit", number: true, cell: (version) => count(version.watermark) },
        { label: "Pinned by", wide: true, cell: (version) => (version.pins.length ? h("ul", { class: "causes" }, version.pins.slice(0, 20).map((pin) => h("li", null, pin.owner || `pin ${pin.pin_id}`, ", expires ", ago(pin.expires_ms))), version.pins.length > 20 && h("li", null, `and ${count(version.pins.length - 20)} more`)) : "not pinned") },
        { label: "Digest", cell: (version) => short(version.digest) },
      ],
    }),
    h("h2", null, "Partitions"),
    table({
      id: "holders",
      caption: "Hosts",
      rows: space.holders.slice(0, 100),
      key: (holder) => holder.uuid,
      columns: [
        { label: "Host", head: true, cell: (holder) => hostName(holder.address) },
        { label: "State", cell: (holder) => presence(holder.online) },
        { label: "Partitions", number: true, cell: (holder) => count(holder.parts) },
        { label: "Partition numbers", wide: true, cell: (holder) => holder.which },
      ],
    }),
    space.holders.length > 100 && h("p", { class: "quiet" }, `The first 100 of ${count(space.holders.length)} hosts. The Hosts page lists all.`),
    h("h3", null, "Contents by partition"),
    h(
      "form",
      { class: "filters" },
      field("Host", select("host", [["", "all"], ...space.holders.slice(0, 200).map((holder) => [holder.address, hostName(holder.address)])], query.get("host") ?? "")),
      h("noscript", null, h("button", { type: "submit" }, "Apply")),
    ),
    table({
      id: "parts",
      caption: space.version ? `Partitions of version ${space.version}` : "Partitions (no version yet)",
      rows: parts.parts,
      sorted: [query.get("sort") ?? "part", query.get("order") ?? "asc"],
      key: (part) => part.part,
      columns: [
        { label: "Partition", head: true, sort: "part", cell: (part) => part.part },
        { label: "Nodes", number: true, sort: "nodes", cell: (part) => count(part.nodes) },
        { label: "Edges", number: true, sort: "edges", cell: (part) => count(part.edges) },
        { label: "Sum of weights", number: true, sort: "weight", cell: (part) => real(part.weight) },
        { label: "Hosts", cell: (part) => part.hosts.map(hostName).join(", ") },
        { label: "State", cell: (part) => presence(part.online) },
        { label: "Image digest", cell: (part) => short(part.digest) },
      ],
    }),
    pager({ offset: Number(query.get("offset") ?? 0), limit: LIMIT, total: parts.total, shown: parts.parts.length }),
  ];
}
