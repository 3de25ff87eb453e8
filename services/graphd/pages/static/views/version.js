// One version: weight statistics, weight histograms, and the accuracy of its alias tables.

import { get, describeError } from "../api.js";
import { h } from "../dom.js";
import { both, count, percent, real, short } from "../format.js";
import { facts, field, problem, select, table } from "../parts.js";
import { histogram, points } from "../plot.js";

export const nav = "/ui/spaces";
export const title = ({ params }) => `Version ${params.version} of ${params.space}`;
export const pace = { least: 10000, most: 60000 };
export const absent = ({ params }) => ({ title: `Version ${params.version} of ${params.space} not found`, text: "This version is not served. Versions are retired when newer ones are published, unless they are pinned.", href: `/ui/spaces/${encodeURIComponent(params.space)}`, list: `Versions of ${params.space}` });
export const key = ({ version }) => JSON.stringify(version);

const named = (row) => `${row.element} ${row.type}${row.weight_name ? `, by ${row.weight_name}` : ""}`;
const chosenOf = (rows, query) => rows.find((row) => `${row.element}:${row.type_id}:${row.weight_name}` === query.get("weights")) ?? rows.find((row) => row.positive > 0 && row.effective !== row.positive) ?? rows[0];

export async function load(context) {
  const { params, query, signal, memory } = context;
  const at = `/spaces/${encodeURIComponent(params.space)}/versions`;
  const [versions, weights] = await Promise.all([get(at, {}, signal), get(`${at}/${encodeURIComponent(params.version)}/weights`, {}, signal)]);
  const version = versions.find((one) => String(one.version) === params.version) ?? null;
  const chosen = chosenOf(weights, query);
  let audit = null;
  if (chosen) {
    const words = { element: chosen.element, type_id: chosen.type_id, weight: chosen.weight_name };
    const which = JSON.stringify([params, words]);
    audit = await get(`${at}/${encodeURIComponent(params.version)}/audit`, words, signal);
    if (memory.which !== which) {
      // The histogram is read from all partition images, which may take a while. A version never changes, so fetch it once.
      memory.which = which;
      memory.spread = null;
      get(`${at}/${encodeURIComponent(params.version)}/spread`, words, undefined, 70_000)
        .catch((error) => ({ problem: describeError(error) }))
        .then((spread) => {
          if (memory.which !== which) return;
          memory.spread = spread;
          context.redraw();
        });
    }
  }
  return { version, weights, chosen, audit };
}

function spreadPlot(chosen, spread) {
  if (!spread) return h("p", { role: "status" }, "Reading the weights of all partitions …");
  if (spread.problem) return problem(spread.problem);
  if (!spread.bars.length) return h("p", null, "No rows have a positive weight, so nothing can be sampled by weight.");
  const heaviest = spread.bars[spread.bars.length - 1];
  const most = spread.bars.reduce((best, bar) => (bar.rows > best.rows ? bar : best));
  return histogram({
    id: "spread",
    title: `Distribution of weights: ${named(chosen)}`,
    desc: `A histogram of ${count(spread.rows)} rows of positive weight from ${real(spread.bars[0].low)} to ${real(heaviest.high)}. Most rows, ${percent(most.rows / spread.rows)}, weigh from ${real(most.low)} to ${real(most.high)}. The heaviest bar has ${percent(heaviest.rows / spread.rows)} of the rows and ${percent(heaviest.weight / spread.weight)} of the weight.`,
    bars: spread.bars,
    rows: spread.rows,
    weight: spread.weight,
    text: real,
    percent: (value) => percent(Number(value.toPrecision(3))),
    data: table({
      id: "spread-numbers",
      caption: "Rows by weight",
      rows: spread.bars,
      columns: [
        { label: "From", head: true, cell: (bar) => real(bar.low) },
        { label: "Below", number: true, cell: (bar) => real(bar.high) },
        { label: "Rows", number: true, cell: (bar) => count(bar.rows) },
        { label: "Share of weight", number: true, cell: (bar) => percent(bar.weight / spread.weight) },
      ],
    }),
  });
}

function auditPlot(chosen, audit) {
  const worst = Math.max(...audit.runs.map((run) => run.audit_tv));
  const span = (run) => (run.first === run.last ? run.first : `${run.first}–${run.last}`);
  return points({
    id: "audit",
    title: `Accuracy of the alias tables: ${named(chosen)}`,
    desc: `For each partition, the total variation distance between its alias table and its weights, and the largest relative error of a single row, as measured when it was built. The largest total variation distance is ${real(worst)}; a version with more than ${real(audit.limit_tv)} is not published. Zeros are on the lower edge.`,
    xs: audit.runs.map((run) => (run.first + run.last) / 2),
    series: [
      { name: "total variation", style: "s1", values: audit.runs.map((run) => run.audit_tv) },
      { name: "largest relative error", style: "s2", values: audit.runs.map((run) => run.audit_rel) },
    ],
    bound: audit.limit_tv,
    label: "error",
    text: real,
    data: table({
      id: "audit-numbers",
      caption: "Accuracy by partition",
      rows: audit.runs,
      columns: [
        { label: "Partition", head: true, cell: span },
        { label: "Rows with positive weight", number: true, cell: (run) => count(run.positive) },
        { label: "Sum of weights", number: true, cell: (run) => real(run.weight) },
        { label: "Total variation", number: true, cell: (run) => real(run.audit_tv) },
        { label: "Largest relative error", number: true, cell: (run) => real(run.audit_rel) },
        { label: "Below 2⁻⁶⁴", number: true, cell: (run) => count(run.underflow) },
      ],
    }),
  });
}

export function render({ version, weights, chosen, audit }, { params, memory }) {
  const space = `/ui/spaces/${encodeURIComponent(params.space)}`;
  return [
    h("p", { class: "crumbs" }, h("a", { href: space }, `Space ${params.space}`)),
    version &&
      facts([
        ["State", version.current ? "current" : "older, still served"],
        ["Published", both(version.created_ms)],
        ["Built by", h("a", { href: `/ui/jobs/${version.job_id}` }, `job ${version.job_id}`)],
        ["Includes commits up to", count(version.watermark)],
        ["Digest", short(version.digest)],
        ["Pinned by", version.pins.length ? version.pins.slice(0, 20).map((pin) => h("div", null, pin.owner || `pin ${pin.pin_id}`)) : "not pinned"],
      ]),
    h("h2", null, "Weight statistics"),
    table({
      id: "weights",
      caption: "By type and weight, over all partitions",
      rows: weights,
      key: (row) => `${row.element}-${row.type_id}-${row.weight_name}`,
      empty: "The version has no rows.",
      columns: [
        { label: "Type", head: true, cell: (row) => row.type },
        { label: "Weight", cell: (row) => (row.weight_name ? [row.weight_name, " = ", h("code", null, row.expression)] : "weight") },
        { label: "Rows", number: true, cell: (row) => count(row.count) },
        { label: "Positive", number: true, cell: (row) => count(row.positive) },
        { label: "Zero", number: true, cell: (row) => count(row.zero) },
        { label: "Unusual values", cell: unusual },
        { label: "Sum", number: true, cell: (row) => real(row.weight) },
        { label: "Effective rows", number: true, cell: (row) => (row.effective === null ? "–" : count(Math.round(row.effective))) },
        { label: "Largest share", number: true, cell: (row) => percent(row.largest_share) },
        { label: "Error bound", number: true, cell: (row) => real(row.error_bound) },
      ],
    }),
    h("p", { class: "quiet" }, "“Effective rows” is the effective sample size: the squared sum of the weights over the sum of their squares. “Largest share” is the share of the heaviest row. “Error bound” is an upper bound of the total variation distance between samples and weights."),
    chosen && [
      h("h2", null, "Distribution and accuracy"),
      h("form", { class: "filters" }, field("Weight", select("weights", weights.map((row) => [`${row.element}:${row.type_id}:${row.weight_name}`, named(row)]), `${chosen.element}:${chosen.type_id}:${chosen.weight_name}`))),
      spreadPlot(chosen, memory.spread),
      auditPlot(chosen, audit),
    ],
  ];
}

/** Describe unusual values among the weights. */
function unusual(row) {
  const said = [
    [row.negative, "negative"],
    [row.nan, "NaN"],
    [row.infinite, "infinite"],
    [row.subnormal, "subnormal"],
    [row.underflow, "too small to be sampled"],
  ].filter(([n]) => n);
  return said.length ? said.map(([n, what]) => `${count(n)} ${what}`).join(", ") : "none";
}
