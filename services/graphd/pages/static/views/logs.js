// The newest log records of a daemon.

import { get } from "../api.js";
import { h } from "../dom.js";
import { ago } from "../format.js";
import { field, select, table } from "../parts.js";

export const nav = "/ui/hosts";
export const title = () => "Log";
export const pace = { least: 3000, most: 10000 };
export const key = (data) => JSON.stringify(data.records[0] ?? null);
export const load = ({ query, signal }) => get("/logs", { daemon: query.get("daemon") }, signal);

const LEVELS = { DEBUG: 10, INFO: 20, WARNING: 30, ERROR: 40, CRITICAL: 50 };
const STYLES = { WARNING: "stopped", ERROR: "failed", CRITICAL: "failed" };

/** A table of log records. */
export const records = ({ id, caption, rows }) =>
  table({
    id,
    caption,
    rows,
    empty: "No record is kept yet.",
    columns: [
      { label: "Time", head: true, cell: (record) => ago(record.time_ms) },
      { label: "Level", cell: (record) => h("span", { class: `state ${STYLES[record.level] ?? "queue"}` }, record.level) },
      { label: "Record", wide: true, cell: (record) => h("code", { title: record.logger }, record.text) },
    ],
  });

export function render(data, { query }) {
  const least = LEVELS[query.get("level")] ?? 0;
  const rows = data.records.filter((record) => (LEVELS[record.level] ?? 50) >= least);
  return [
    h(
      "form",
      { class: "filters" },
      field("Daemon", select("daemon", data.daemons.map((one) => [one.id, one.label]), data.daemon)),
      field("Level", select("level", [["", "all"], ["WARNING", "warnings and errors"], ["ERROR", "errors"]], query.get("level") ?? "")),
      h("noscript", null, h("button", { type: "submit" }, "Show")),
    ),
    records({ id: "records", caption: "Newest first", rows }),
    h("p", { class: "quiet" }, "A daemon keeps its last 200 records in memory. Its complete log is what it writes to stderr. A graphd shows its own log on its own pages."),
  ];
}
