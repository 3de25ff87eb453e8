// The list of spaces.

import { get } from "../api.js";
import { h } from "../dom.js";
import { ago, count } from "../format.js";
import { availability, field, pager, table } from "../parts.js";

const LIMIT = 50;
export const nav = "/ui/spaces";
export const title = () => "Spaces";
export const pace = { least: 3000, most: 20000 };

export function load({ query, signal }) {
  return get("/spaces", { q: query.get("q"), sort: query.get("sort"), order: query.get("order"), offset: query.get("offset"), limit: LIMIT }, signal);
}

export function render(data, { query }) {
  return [
    h("form", { class: "filters", role: "search" }, field("Name contains", h("input", { name: "q", type: "search", value: query.get("q") ?? "", autocomplete: "off" })), h("button", { type: "submit" }, "Search")),
    table({
      id: "spaces",
      caption: "Spaces, with the counts of their current versions",
      rows: data.spaces,
      sorted: [query.get("sort") ?? "name", query.get("order") ?? "asc"],
      key: (space) => space.space_id,
      empty: query.get("q") ? `No name contains “${query.get("q")}”.` : ["No spaces yet. Create one with ", h("code", null, "asterism load NAME FILES --create --build"), "."],
      columns: [
        { label: "Name", head: true, sort: "name", cell: (space) => h("a", { href: `/ui/spaces/${encodeURIComponent(space.name)}` }, space.name) },
        { label: "Version", number: true, cell: (space) => (space.version ? h("a", { href: `/ui/spaces/${encodeURIComponent(space.name)}/versions/${space.version}` }, space.version) : "none") },
        { label: "Nodes", number: true, cell: (space) => count(space.nodes) },
        { label: "Edges", number: true, cell: (space) => count(space.edges) },
        { label: "Partitions", number: true, sort: "parts", cell: (space) => count(space.parts) },
        { label: "State", cell: (space) => (space.version || space.unavailable_parts ? availability(space.unavailable_parts, space.parts) : "no version") },
        { label: "Created", sort: "created", cell: (space) => ago(space.created_ms) },
      ],
    }),
    pager({ offset: Number(query.get("offset") ?? 0), limit: LIMIT, total: data.total, shown: data.spaces.length }),
  ];
}
