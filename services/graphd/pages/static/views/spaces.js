// The list of spaces.

import { get } from "../api.js";
import { h } from "../dom.js";
import { count, moment } from "../format.js";
import { field, pager, table } from "../parts.js";

const LIMIT = 50;
export const nav = "/ui/spaces";
export const title = () => "Spaces";
export const pace = { least: 3000, most: 20000 };

export function load({ query, signal }) {
  return get("/spaces", { q: query.get("q"), sort: query.get("sort"), order: query.get("order"), offset: query.get("offset"), limit: LIMIT }, signal);
}

export function render(data, { query }) {
  return [
    h("form", { class: "filters", role: "search" }, field("Name has", h("input", { name: "q", type: "search", value: query.get("q") ?? "", autocomplete: "off" })), h("button", { type: "submit" }, "Show")),
    table({
      id: "spaces",
      caption: "Spaces, with what their current versions hold",
      rows: data.spaces,
      sorted: [query.get("sort") ?? "name", query.get("order") ?? "asc"],
      key: (space) => space.space_id,
      empty: query.get("q") ? "None has these letters in its name." : "There is no space yet: `asterism load NAME FILES --create --build` makes one.",
      columns: [
        { label: "Name", head: true, sort: "name", cell: (space) => h("a", { href: `/ui/spaces/${encodeURIComponent(space.name)}` }, space.name) },
        { label: "Version", number: true, cell: (space) => (space.version ? h("a", { href: `/ui/spaces/${encodeURIComponent(space.name)}/versions/${space.version}` }, space.version) : "none yet") },
        { label: "Nodes", number: true, cell: (space) => count(space.nodes) },
        { label: "Edges", number: true, cell: (space) => count(space.edges) },
        { label: "Parts", number: true, sort: "parts", cell: (space) => count(space.parts) },
        { label: "Made", sort: "created", cell: (space) => moment(space.created_ms) },
      ],
    }),
    pager({ offset: Number(query.get("offset") ?? 0), limit: LIMIT, total: data.total, shown: data.spaces.length }),
  ];
}
