// One node: its features, its neighbors by edge type, and a picture of a sampled neighborhood.

import { get, Problem, describeError } from "../api.js";
import { h } from "../dom.js";
import { count, of, real } from "../format.js";
import { layout, picture } from "../neighborhood.js";
import { address, field, select, step, table } from "../parts.js";

const PAGE_ROWS = 20;
const MOST = 1000;
export const nav = "/ui/spaces";
export const title = ({ params, query }) => (query.get("id") ? `${query.get("type")} ${query.get("id")}` : `Nodes of ${params.space}`);
export const pace = { least: 30000, most: 300000 };

const hrefOf = (space) => (node) => `/ui/spaces/${encodeURIComponent(space)}/node?${new URLSearchParams({ type: node.type, id: node.id })}`;

export async function load({ params, query, signal }) {
  const at = `/spaces/${encodeURIComponent(params.space)}`;
  const types = await get(`${at}/node-types`, { type: query.get("type") }, signal);
  const id = query.get("id");
  if (!id) return { types, node: null };
  const which = { type: types.type, id };
  try {
    const [node, neighborhood] = await Promise.all([
      get(`${at}/node`, { ...which, edge: query.get("edge"), direction: query.get("direction"), offset: query.get("offset") }, signal),
      get(`${at}/neighborhood`, { ...which, seed: query.get("seed") }, signal),
    ]);
    return { types, node, neighborhood };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { types, node: null, problem: describeError(error).what }; // the form stays, for another id
  }
}

const shown = (value) => (typeof value === "number" ? real(value) : (value ?? "not finite"));

function featureValue(feature) {
  if (feature.scalar) return h("span", null, typeof feature.values[0] === "number" && Number.isInteger(feature.values[0]) ? String(feature.values[0]) : shown(feature.values[0]));
  if (!feature.length) return "empty";
  const more = feature.length - feature.values.length;
  return h("code", null, `[${feature.values.map(shown).join(", ")}${more > 0 ? ", …" : ""}]`, more > 0 && h("span", { class: "quiet" }, ` ${of(feature.length, "value")}`));
}

function neighbors(group, index, href) {
  const { edge_type: edge, direction, neighbor_type: type, degree, offset, rows } = group;
  const id = `neighbors-${index}`;
  const to = (start) => ({ edge, direction, offset: start || null });
  const most = Math.min(degree, MOST);
  return [
    table({
      id,
      caption: `${direction === "out" ? "→" : "←"} ${edge}: ${of(degree, "neighbor")}`,
      rows,
      columns: [
        { label: `${type}`, head: true, cell: (row) => h("a", { href: href({ type, id: row.id }) }, row.id) },
        { label: "Weight", number: true, cell: (row) => real(row.weight) },
      ],
      empty: "There is no edge of this type here.",
    }),
    degree > PAGE_ROWS &&
      h(
        "nav",
        { class: "pager", "aria-label": `Further neighbors, ${direction === "out" ? "outgoing" : "incoming"} ${edge}` },
        h("span", null, `${count(offset + 1)}–${count(offset + rows.length)} of ${count(degree)}, heaviest first`),
        step("First", offset > 0, to(0)),
        step("Previous", offset > 0, to(Math.max(0, offset - PAGE_ROWS))),
        step("Next", offset + rows.length < most, to(offset + rows.length)),
        degree > MOST && h("span", { class: "quiet" }, `The heaviest ${count(MOST)} are shown.`),
      ),
  ];
}

function pictureOf(context, data, href) {
  const main = document.getElementById("main");
  const width = Math.round(Math.max(280, Math.min(main.clientWidth - 82, 1100)));
  const height = Math.round(Math.max(320, Math.min(width * 0.6, 560)));
  const which = JSON.stringify([data.neighborhood, width, height]);
  if (context.memory.which !== which) {
    context.memory.which = which;
    context.memory.positions = layout(data.neighborhood, width, height);
  }
  return picture({ id: "neighborhood", data: data.neighborhood, positions: context.memory.positions, width, height, href });
}

export function render(data, context) {
  const { params, query } = context;
  const { types, node, problem } = data;
  const href = hrefOf(params.space);
  return [
    h("p", { class: "crumbs" }, h("a", { href: `/ui/spaces/${encodeURIComponent(params.space)}` }, `Space ${params.space}`), node && `, version ${node.version}`),
    h(
      "form",
      { class: "filters", role: "search" },
      field("Node type", select("type", types.types.map((name) => [name, name]), types.type)),
      field(types.string_ids ? "Node id (a string)" : "Node id", h("input", { name: "id", type: "search", value: query.get("id") ?? "", autocomplete: "off", inputmode: types.string_ids ? "text" : "numeric" })),
      h("button", { type: "submit" }, "Show"),
    ),
    problem && h("div", { class: "problem", role: "alert" }, h("p", null, h("strong", null, problem))),
    !node && types.version === 0 && h("p", null, "The space has no published version yet; build it first."),
    !node && types.examples.length > 0 && h("p", null, `Some nodes of type ${types.type}: `, types.examples.map((id, i) => [i > 0 && ", ", h("a", { href: href({ type: types.type, id }) }, id)])),
    !node && types.version > 0 && types.examples.length === 0 && h("p", null, `The version has no node of type ${types.type}.`),
    node && [
      h("h2", null, "Features"),
      node.features.length === 0
        ? h("p", { class: "quiet" }, `Nodes of type ${node.type} have no features.`)
        : table({
            id: "features",
            caption: `Features of ${node.type} ${node.id}`,
            rows: node.features,
            key: (feature) => feature.name,
            columns: [
              { label: "Name", head: true, cell: (feature) => feature.name },
              { label: "Type", cell: (feature) => feature.type },
              { label: "Value", wide: true, cell: featureValue },
            ],
          }),
      h("h2", null, "Neighborhood"),
      data.neighborhood.edges.length === 0
        ? h("p", { class: "quiet" }, "No edge was sampled: the node has none of positive weight.")
        : [
            h("p", { class: "quiet" }, `Two hops of up to 6 and 3 neighbors per node and direction, sampled by weight with seed ${data.neighborhood.seed}. `, h("a", { href: address({ seed: data.neighborhood.seed + 1 }), "data-keep": true }, "Sample again")),
            pictureOf(context, data, href),
          ],
      h("h2", null, "Neighbors"),
      node.neighbors.length === 0 && h("p", { class: "quiet" }, `No edge type of the space is stored at nodes of type ${node.type}.`),
      node.neighbors.map((group, index) => neighbors(group, index, href)),
    ],
  ];
}
