// Hosts: state, processor, memory, data and last heartbeat of every daemon.

import { get } from "../api.js";
import { h } from "../dom.js";
import { ago, bytes, count, rate, seconds } from "../format.js";
import { field, pager, presence, select, table } from "../parts.js";
import { isClusterAdmin } from "../session.js";

const LIMIT = 50;
const MOST_SPACES = 6;
export const nav = "/ui/hosts";
export const title = () => "Hosts";
export const pace = { least: 2000, most: 5000 };
export const key = (data) => JSON.stringify(data.hosts.map((host) => [host.uuid, host.online, host.parts, host.held_bytes]));

export function load({ query, signal }) {
  return get("/hosts", { q: query.get("q"), sort: query.get("sort"), order: query.get("order"), offset: query.get("offset"), limit: LIMIT }, signal);
}

const inProcess = (host) => host.address.endsWith(":0");

function spaces(host) {
  if (host.role === "graphd") return "–";
  if (!host.spaces.length) return count(host.parts);
  return h(
    "ul",
    { class: "chips" },
    host.spaces.slice(0, MOST_SPACES).map((space) => h("li", null, h("a", { href: `/ui/spaces/${encodeURIComponent(space.name)}?host=${encodeURIComponent(host.address)}` }, space.name), ` ${count(space.parts)}`)),
    host.spaces.length > MOST_SPACES && h("li", null, `and ${host.spaces.length - MOST_SPACES} more`),
  );
}

export function render(data, { query }) {
  const sorted = [query.get("sort") ?? "role", query.get("order") ?? "asc"];
  return [
    h(
      "form",
      { class: "filters", role: "search" },
      field("Address or uuid contains", h("input", { name: "q", type: "search", value: query.get("q") ?? "", autocomplete: "off" })),
      field("Sort by", select("sort", [["role", "role"], ["address", "address"], ["parts", "partitions"], ["held", "data"], ["free", "free disk space"], ["heartbeat", "last heartbeat"]], sorted[0])),
      h("button", { type: "submit" }, "Show"),
    ),
    table({
      id: "hosts",
      caption: "Daemons that send heartbeats to metad",
      rows: data.hosts,
      sorted,
      key: (host) => host.uuid,
      empty: query.get("q") ? "No address or uuid contains this text." : "No daemon has sent a heartbeat yet. Start a storaged with the address of metad.",
      columns: [
        {
          label: "Daemon",
          head: true,
          sort: "address",
          cell: (host) => [
            h("span", { title: `uuid ${host.uuid}` }, inProcess(host) ? "in this process" : host.address),
            h("span", { class: "under" }, host.role, host.role === "storaged" && !inProcess(host) && isClusterAdmin() && [" · ", h("a", { href: `/ui/logs?daemon=${host.uuid}`, "aria-label": `log of ${host.address}` }, "log")]),
          ],
        },
        { label: "State", cell: (host) => presence(host.online) },
        { label: "CPU", number: true, cell: (host) => (host.cpu_cores === null || !host.online ? "–" : [rate(host.cpu_cores), h("span", { class: "under" }, `of ${count(host.cpu_count)}`)]) },
        { label: "Memory", number: true, cell: (host) => (host.memory_bytes === null || !host.online ? "–" : [bytes(host.memory_bytes), host.memory_total_bytes !== null && h("span", { class: "under" }, `of ${bytes(host.memory_total_bytes)}`)]) },
        { label: "Partitions", sort: "parts", cell: spaces },
        { label: "Data", number: true, sort: "held", cell: (host) => (host.role === "graphd" ? "–" : bytes(host.held_bytes)) },
        { label: "Disk free", number: true, sort: "free", cell: (host) => (host.role === "graphd" ? "–" : [bytes(host.free_bytes), host.disk_bytes !== null && h("span", { class: "under" }, `of ${bytes(host.disk_bytes)}`)]) },
        { label: "Heartbeat", sort: "heartbeat", cell: (host) => (host.last_heartbeat_ms ? `${host.silent_s < 10 ? host.silent_s.toFixed(1) + " s" : seconds(host.silent_s)} ago` : "–") },
        { label: "Started", cell: (host) => ago(host.started_ms) },
      ],
    }),
    pager({ offset: Number(query.get("offset") ?? 0), limit: LIMIT, total: data.total, shown: data.hosts.length }),
    h("p", { class: "quiet" }, "CPU counts busy processors, and memory is resident, of the daemon's own process; builds run in processes of their own. Storageds on one disk show the same free space."),
  ];
}
