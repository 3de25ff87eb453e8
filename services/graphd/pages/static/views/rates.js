// Request rates and latencies of this graphd.

import { get } from "../api.js";
import { h } from "../dom.js";
import { count, moment, real, seconds } from "../format.js";
import { field, select, table } from "../parts.js";
import { lines } from "../plot.js";

export const nav = "/ui/rates";
export const title = () => "Rates";
export const pace = { least: 5000, most: 5000 };
export const load = ({ query, signal }) => get("/rates", { method: query.get("method") }, signal);

export function render(data) {
  const { series } = data;
  const names = data.methods.map((row) => row.method);
  if (data.method && !names.includes(data.method)) names.unshift(data.method);
  const whose = data.method || "all methods";
  const latest = series.per_s[series.per_s.length - 1];
  const timed = series.p99_s.filter((value) => value !== null);
  const numbers = series.ended_ms.map((ended, i) => ({ ended, i })).reverse().slice(0, 60);
  return [
    h("p", null, `What trainers ask over gRPC of the process that serves this page, measured every ${data.step_s} s and kept for half an hour at most; it begins anew when the process does. For longer, have Prometheus read `, h("a", { href: "/metrics" }, "/metrics"), "."),
    h("form", { class: "filters" }, field("Method", select("method", [["", "all"], ...names.map((name) => [name, name])], data.method))),
    series.ended_ms.length === 0
      ? h("p", { role: "status" }, `Nothing was measured yet: the first measurement takes ${data.step_s} s.`)
      : [
          lines({
            id: "throughput",
            title: `Calls a second, ${whose}`,
            desc: `${real(latest)} calls a second in the last ${data.step_s} s; the most in the time that is kept is ${real(Math.max(...series.per_s))}.`,
            times: series.ended_ms,
            series: [
              { name: "calls", style: "s1", values: series.per_s },
              { name: "errors", style: "s2", values: series.errors_per_s },
            ],
            unit: "calls a second",
            text: real,
          }),
          timed.length === 0
            ? h("p", null, "No call was answered in this time.")
            : lines({
                id: "latency",
                title: `Time to answer, ${whose}`,
                desc: `In the last ${data.step_s} s in which calls were answered, 99 of 100 took ${seconds(timed[timed.length - 1])} or less; the worst such measurement is ${seconds(Math.max(...timed))}.`,
                times: series.ended_ms,
                series: [
                  { name: "half within", style: "s1", values: series.p50_s },
                  { name: "95 % within", style: "s2", values: series.p95_s },
                  { name: "99 % within", style: "s3", values: series.p99_s },
                ],
                unit: "time",
                text: seconds,
                log: true,
                data: table({
                  id: "rates-numbers",
                  caption: "The last measurements, newest first",
                  rows: numbers,
                  columns: [
                    { label: "Until", head: true, cell: ({ ended }) => moment(ended) },
                    { label: "Calls a second", number: true, cell: ({ i }) => real(series.per_s[i]) },
                    { label: "Errors a second", number: true, cell: ({ i }) => real(series.errors_per_s[i]) },
                    { label: "Half within", number: true, cell: ({ i }) => seconds(series.p50_s[i]) },
                    { label: "95 % within", number: true, cell: ({ i }) => seconds(series.p95_s[i]) },
                    { label: "99 % within", number: true, cell: ({ i }) => seconds(series.p99_s[i]) },
                  ],
                }),
              }),
        ],
    h("h2", null, "By method"),
    table({
      id: "methods",
      caption: "Calls in the time that is kept, most first",
      rows: data.methods,
      key: (row) => row.method,
      empty: "Nobody has called yet.",
      columns: [
        { label: "Method", head: true, cell: (row) => h("a", { href: `/ui/rates?method=${encodeURIComponent(row.method)}` }, row.method) },
        { label: "Calls", number: true, cell: (row) => count(row.calls) },
        { label: "Errors", number: true, cell: (row) => count(row.errors) },
        { label: "A second", number: true, cell: (row) => real(row.per_s) },
        { label: "Half within", number: true, cell: (row) => seconds(row.p50_s) },
        { label: "95 % within", number: true, cell: (row) => seconds(row.p95_s) },
        { label: "99 % within", number: true, cell: (row) => seconds(row.p99_s) },
      ],
    }),
    h("p", { class: "quiet" }, "Times are read off the buckets of a histogram: between two bounds they are interpolated."),
  ];
}
