// Jobs in pages, newest first.

import { get } from "../api.js";
import { h } from "../dom.js";
import { ago, count, of, seconds } from "../format.js";
import { field, progress, select, state, step, table } from "../parts.js";

const LIMIT = 50;
const STATES = ["QUEUE", "RUNNING", "FINISHED", "FAILED", "STOPPED"];
const KINDS = ["build", "audit", "index", "compact", "export-tables", "backup", "restore"];
export const nav = "/ui/jobs";
export const title = () => "Jobs";
export const pace = { least: 1500, most: 15000 };
export const key = ({ page }) => JSON.stringify(page);

export async function load({ query, signal }) {
  const words = { space: query.get("space"), state: query.get("state"), kind: query.get("kind"), before: query.get("before"), limit: LIMIT };
  const [page, spaces] = await Promise.all([get("/jobs", words, signal), get("/spaces", { limit: 200 }, signal)]);
  return { page, spaces };
}

export function render({ page, spaces }, { query }) {
  const names = spaces.spaces.map((space) => space.name);
  const space = query.get("space") ?? "";
  if (space && !names.includes(space)) names.unshift(space);
  const [first, last] = [page.jobs[0]?.job_id, page.jobs[page.jobs.length - 1]?.job_id];
  return [
    h(
      "form",
      { class: "filters", role: "search" },
      field("Space", select("space", [["", "all"], ...names.map((name) => [name, name])], space)),
      field("State", select("state", [["", "all"], ...STATES.map((name) => [name, name])], query.get("state") ?? "")),
      field("Kind", select("kind", [["", "all"], ...KINDS.map((name) => [name, name])], query.get("kind") ?? "")),
    ),
    table({
      id: "jobs",
      caption: `${of(page.total, "job")}, newest first`,
      rows: page.jobs,
      key: (job) => job.job_id,
      empty: query.size ? "No jobs match." : "No jobs yet. Jobs are removed a week after they end.",
      columns: [
        { label: "Job", head: true, cell: (job) => h("a", { href: `/ui/jobs/${job.job_id}` }, job.job_id) },
        { label: "Space", cell: (job) => h("a", { href: `/ui/spaces/${encodeURIComponent(job.space)}` }, job.space) },
        { label: "Kind", cell: (job) => job.kind },
        { label: "State", cell: (job) => state(job.state, job.ending) },
        { label: "Progress", cell: (job) => (job.state === "RUNNING" ? progress(job.fraction, `progress of job ${job.job_id}`) : "–") },
        { label: "Rows", number: true, cell: (job) => count(job.rows_done) },
        { label: "Version", number: true, cell: (job) => job.version || "–" },
        { label: "Submitted", cell: (job) => ago(job.submitted_ms) },
        { label: "Duration", number: true, cell: (job) => (job.finished_ms && job.started_ms ? seconds((job.finished_ms - job.started_ms) / 1000) : "–") },
        { label: "Cause of failure", wide: true, cell: (job) => (job.cause.length > 160 ? `${job.cause.slice(0, 160)} …` : job.cause || "–") },
      ],
    }),
    h(
      "nav",
      { class: "pager", "aria-label": "Pagination" },
      h("span", null, !first ? "0 jobs" : first === last ? `Job ${first}` : `Jobs ${first} to ${last}`),
      step("Newest", query.get("before"), { before: null }),
      step("Older", page.next_before > 0, { before: page.next_before }),
    ),
  ];
}
