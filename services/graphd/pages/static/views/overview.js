// The cluster at a glance.

import { get } from "../api.js";
import { h } from "../dom.js";
import { bytes, count, moment, real, seconds } from "../format.js";
import { figures, progress, state, table } from "../parts.js";

export const nav = "/ui";
export const title = () => "Overview";
export const pace = { least: 2000, most: 10000 };
export const load = ({ signal }) => get("/overview", {}, signal);
export const key = (data) => JSON.stringify([data.jobs, data.running, data.storageds_online, data.graphds_online, data.spaces]);

const jobLink = (job) => h("a", { href: `/ui/jobs/${job.job_id}` }, job.job_id);
const spaceLink = (job) => h("a", { href: `/ui/spaces/${encodeURIComponent(job.space)}` }, job.space);

export function render(data) {
  const waiting = data.jobs.QUEUE + data.jobs.RUNNING;
  return [
    data.missing.length > 0 && h("div", { class: "problem", role: "status" }, h("p", null, h("strong", null, `This ${data.daemon} is not ready: `), data.missing.join("; "))),
    figures([
      ["Storageds online", `${data.storageds_online} of ${data.storageds}`, `${bytes(data.held_bytes)} held, ${bytes(data.free_bytes)} free`, "/ui/hosts"],
      ["Graphds online", `${data.graphds_online} of ${data.graphds}`, null, "/ui/hosts"],
      ["Spaces", count(data.spaces), null, "/ui/spaces"],
      ["Jobs under way", count(waiting), `${count(data.jobs.FINISHED)} finished, ${count(data.jobs.FAILED)} failed, ${count(data.jobs.STOPPED)} stopped`, "/ui/jobs"],
      ["Calls a second", real(data.calls_per_s), data.p99_s === null ? "none in the last minute" : `99 % within ${seconds(data.p99_s)}`, "/ui/rates"],
    ]),
    h("h2", null, "Under way"),
    table({
      id: "running",
      caption: "The newest jobs that wait or run",
      empty: "Nothing waits or runs.",
      rows: data.running,
      key: (job) => job.job_id,
      columns: [
        { label: "Job", head: true, cell: jobLink },
        { label: "Space", cell: spaceLink },
        { label: "Kind", cell: (job) => job.kind },
        { label: "State", cell: (job) => state(job.state, job.ending) },
        { label: "Progress", cell: (job) => (job.state === "RUNNING" ? progress(job.fraction, `progress of job ${job.job_id}`) : "–") },
        { label: "Left", number: true, cell: (job) => seconds(job.eta_s) },
      ],
    }),
    h("h2", null, "What failed"),
    table({
      id: "failed",
      caption: "The newest jobs that failed",
      empty: "No job that is remembered has failed.",
      rows: data.failed,
      key: (job) => job.job_id,
      columns: [
        { label: "Job", head: true, cell: jobLink },
        { label: "Space", cell: spaceLink },
        { label: "Kind", cell: (job) => job.kind },
        { label: "Ended", cell: (job) => moment(job.finished_ms) },
        { label: "Cause", wide: true, cell: (job) => job.cause },
      ],
    }),
  ];
}
