// Request rates and latencies of this graphd.

import { get } from "../api.js";
import { h } from "../dom.js";
import { ago, count, rate, real, seconds } from "../format.js";
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
  const subject = data.method || "all methods";
  const latest = series.per_s[series.per_s.length - 1];
  const timed = series.p99_s.filter((value) => value !== null);
  const numbers = series.ended_ms.map((ended, i) => ({ ended, i })).reverse().slice(0, 60);
  return [
    h("p", null, `gRPC calls to the process that serves this page; other graphds have pages of their own. They are measured every ${data.step_s} s and kept for 30 minutes, until the process ends. For longer periods, let Prometheus read `, h("a", { href: "/metrics" }, "/metrics"), "."),
    h("form", { class: "filters" }, field("Method", select("method", [["", "all"], ...names.map((name) => [name, name])], data.method))),
    series.ended_ms.length === 0
      ? h("p", { role: "status" }, `There is no measurement yet; the first takes ${data.step_s} s.`)
      : [
          lines({
            id: "throughput",
            title: `Calls per second, ${subject}`,
            desc: `${rate(latest)} calls per second in the last ${data.step_s} s; the highest rate of the stored measurements is ${rate(Math.max(...series.per_s))}.`,
            times: series.ended_ms,
            series: [
              { name: "calls", style: "s1", values: series.per_s },
              { name: "errors", style: "s2", values: series.errors_per_s },
            ],
            unit: "calls per second",
            text: rate,
            tick: real,
            least: 0.1,
          }),
          timed.length === 0
            ? h("p", null, "No call was answered in this time.")
            : lines({
                id: "latency",
                title: `Latency, ${subject}`,
                desc: `In the last measurement with calls, the 99th percentile was ${seconds(timed[timed.length - 1])}; the highest of the stored measurements is ${seconds(Math.max(...timed))}.`,
                times: series.ended_ms,
                // The widest line is drawn first, so that equal percentiles stay visible.
                series: [
                  { name: "p99", style: "s3 widest", values: series.p99_s },
                  { name: "p95", style: "s2 wide", values: series.p95_s },
                  { name: "p50", style: "s1", values: series.p50_s },
                ],
                unit: "latency",
                text: seconds,
                log: true,
                data: table({
                  id: "rates-numbers",
                  caption: "The last measurements, newest first",
                  rows: numbers,
                  columns: [
                    { label: "Ended", head: true, cell: ({ ended }) => ago(ended) },
                    { label: "Calls per second", number: true, cell: ({ i }) => rate(series.per_s[i]) },
                    { label: "Errors per second", number: true, cell: ({ i }) => rate(series.errors_per_s[i]) },
                    { label: "p50", number: true, cell: ({ i }) => seconds(series.p50_s[i]) },
                    { label: "p95", number: true, cell: ({ i }) => seconds(series.p95_s[i]) },
                    { label: "p99", number: true, cell: ({ i }) => seconds(series.p99_s[i]) },
                  ],
                }),
              }),
        ],
    h("h2", null, "By method"),
    table({
      id: "methods",
      caption: "Calls in the stored measurements, most frequent first",
      rows: data.methods,
      key: (row) => row.method,
      empty: "There was no call yet.",
      columns: [
        { label: "Method", head: true, cell: (row) => h("a", { href: `/ui/rates?method=${encodeURIComponent(row.method)}` }, row.method) },
        { label: "Calls", number: true, cell: (row) => count(row.calls) },
        { label: "Errors", number: true, cell: (row) => count(row.errors) },
        { label: "Calls per second", number: true, cell: (row) => rate(row.per_s) },
        { label: "p50", number: true, cell: (row) => seconds(row.p50_s) },
        { label: "p95", number: true, cell: (row) => seconds(row.p95_s) },
        { label: "p99", number: true, cell: (row) => seconds(row.p99_s) },
      ],
    }),
    h("p", { class: "quiet" }, "p50, p95 and p99 are percentiles of the latency: half, 95 % and 99 % of the calls took at most this long. They are estimated from the buckets of a histogram. Point at a plot, or focus it and use the arrow keys, to read its values."),
  ];
}
