// Hosts: their state, the data they hold, and their last heartbeats.

import { get } from "../api.js";
import { h } from "../dom.js";
import { bytes, count, moment, seconds, short } from "../format.js";
import { field, pager, presence, select, table } from "../parts.js";

const LIMIT = 50;
export const nav = "/ui/hosts";
export const title = () => "Hosts";
export const pace = { least: 2000, most: 5000 };
export const key = (data) => JSON.stringify(data.hosts.map((host) => [host.uuid, host.online, host.parts, host.held_bytes]));

export function load({ query, signal }) {
  return get("/hosts", { q: query.get("q"), sort: query.get("sort"), order: query.get("order"), offset: query.get("offset"), limit: LIMIT }, signal);
}

export function render(data, { query }) {
  const sorted = [query.get("sort") ?? "role", query.get("order") ?? "asc"];
  return [
    h(
      "form",
      { class: "filters", role: "search" },
      field("Address or uuid has", h("input", { name: "q", type: "search", value: query.get("q") ?? "", autocomplete: "off" })),
      field("Sorted by", select("sort", [["role", "role"], ["address", "address"], ["parts", "parts"], ["held", "bytes held"], ["free", "bytes free"], ["heartbeat", "last heartbeat"]], sorted[0])),
      h("button", { type: "submit" }, "Show"),
    ),
    table({
      id: "hosts",
      caption: "Daemons that send heartbeats to metad",
      rows: data.hosts,
      sorted,
      key: (host) => host.uuid,
      empty: query.get("q") ? "None has these letters in its address." : "No daemon has sent a heartbeat yet. Start a storaged that knows metad's address.",
      columns: [
        { label: "Address", head: true, sort: "address", cell: (host) => (host.address.endsWith(":0") ? "in this process" : host.address) },
        { label: "Role", sort: "role", cell: (host) => host.role },
        { label: "State", cell: (host) => presence(host.online) },
        { label: "Parts", number: true, sort: "parts", cell: (host) => (host.role === "graphd" ? "–" : count(host.parts)) },
        {
          label: "Of spaces",
          wide: true,
          cell: (host) =>
            host.spaces.length
              ? h("ul", { class: "chips" }, host.spaces.slice(0, 12).map((space) => h("li", null, h("a", { href: `/ui/spaces/${encodeURIComponent(space.name)}?host=${encodeURIComponent(host.address)}` }, space.name), ` ${count(space.parts)}`)), host.spaces.length > 12 && h("li", null, `and ${host.spaces.length - 12} more`))
              : "–",
        },
        { label: "Bytes held", number: true, sort: "held", cell: (host) => bytes(host.held_bytes) },
        { label: "Bytes free", number: true, sort: "free", cell: (host) => bytes(host.free_bytes) },
        { label: "Last heartbeat", sort: "heartbeat", cell: (host) => (host.last_heartbeat_ms ? `${host.silent_s < 10 ? host.silent_s.toFixed(1) + " s" : seconds(host.silent_s)} ago` : "–") },
        { label: "Start", number: true, cell: (host) => (host.incarnation > 1e9 ? moment(host.incarnation) : count(host.incarnation)) },
        { label: "uuid", cell: (host) => short(host.uuid) },
      ],
    }),
    pager({ offset: Number(query.get("offset") ?? 0), limit: LIMIT, total: data.total, shown: data.hosts.length }),
  ];
}
