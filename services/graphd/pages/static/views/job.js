// One job: progress, tasks, attempts and failures.

import { get, post, describeError } from "../api.js";
import { h } from "../dom.js";
import { ago, both, count, real, seconds, some } from "../format.js";
import { facts, hostName, problem, progress, state, sure, table } from "../parts.js";
import { may } from "../session.js";

export const nav = "/ui/jobs";
export const title = ({ params }) => `Job ${params.job}`;
export const pace = { least: 1000, most: 15000 };
export const absent = ({ params }) => ({ title: `Job ${params.job} not found`, text: "There is no job with this number. Jobs are removed a week after they end, unless metad is configured otherwise.", href: "/ui/jobs", list: "All jobs" });

export async function load(context) {
  const data = await get(`/jobs/${encodeURIComponent(context.params.job)}`, {}, context.signal);
  announceProgress(data.job, context);
  return data;
}

/** Announce each tenth of a running job's progress, and each change of its state. */
function announceProgress(job, { memory, announce }) {
  const tenth = job.state === "RUNNING" && job.fraction !== null ? Math.floor(10 * job.fraction) : 0;
  const word = `${job.state} ${tenth}`;
  if (memory.word !== undefined && memory.word !== word) announce(job.state === "RUNNING" ? `Job ${job.job_id} is running, ${10 * tenth} percent done.` : `Job ${job.job_id} is ${job.state}.`);
  memory.word = word;
}

async function order(context, what) {
  const { params, memory } = context;
  const words = {
    stop: { title: `Stop job ${params.job}?`, text: "Its tasks end on all hosts. You can recover the job later: it resumes from its last checkpoint.", yes: "Stop job" },
    recover: { title: `Recover job ${params.job}?`, text: "It resumes with the same input, from its last checkpoint.", yes: "Recover job" },
  }[what];
  if (!(await sure(words))) return;
  try {
    await post(`/ui/api/jobs/${params.job}/${what}`);
    memory.problem = null;
  } catch (error) {
    memory.problem = describeError(error);
  }
  context.redraw();
  context.refresh();
}

const rows = ({ rows_done: done, rows_total: total }) => (total ? `${count(done)} of ${count(total)}` : count(done));

export function render({ job, options, watermark, tasks, addresses }, context) {
  const open = job.state === "QUEUE" || job.state === "RUNNING";
  const { memory } = context;
  const space = `/ui/spaces/${encodeURIComponent(job.space)}`;
  const failed = tasks.filter((task) => task.causes.length);
  const results = tasks.filter((task) => task.result_lines.length);
  return [
    h("p", { class: "crumbs" }, h("a", { href: "/ui/jobs" }, "All jobs")),
    h("p", { class: "big" }, state(job.state, job.ending), job.state === "RUNNING" && progress(job.fraction, `progress of job ${job.job_id}`)),
    job.cause && h("div", { class: "problem" }, h("p", null, h("strong", null, "Cause of failure: "), job.cause)),
    facts([
      ["Kind", job.kind],
      ["Space", h("a", { href: space }, job.space)],
      ["Version", job.version ? h("a", { href: `${space}/versions/${job.version}` }, job.version) : "none"],
      ["Rows", rows(job)],
      open && ["Rows/s", job.rows_per_s === null ? "–" : real(job.rows_per_s)],
      open && ["ETA", seconds(job.eta_s)],
      ["Includes commits up to", count(watermark)],
      ["Submitted", both(job.submitted_ms)],
      ["Started", both(job.started_ms)],
      ["Ended", both(job.finished_ms)],
      job.finished_ms && job.started_ms && ["Duration", seconds((job.finished_ms - job.started_ms) / 1000)],
      ...Object.entries(options).map(([name, value]) => [`Option ${name}`, value]),
    ]),
    memory.problem && problem(memory.problem),
    may("builder", job.space) && h(
      "div",
      { class: "buttons" },
      open && !job.ending && h("button", { type: "button", class: "danger", onclick: () => order(context, "stop") }, "Stop"),
      (job.state === "FAILED" || job.state === "STOPPED") && h("button", { type: "button", onclick: () => order(context, "recover") }, "Recover"),
    ),
    h("h2", null, "Tasks"),
    table({
      id: "tasks",
      caption: "Tasks, one for each storaged",
      rows: tasks,
      key: (task) => task.task_id,
      columns: [
        { label: "Task", head: true, cell: (task) => task.task_id },
        { label: "Host", cell: (task) => hostName(addresses[task.host]) },
        { label: "State", cell: (task) => state(task.state) },
        { label: "Phase", cell: (task) => task.activity || "–" },
        { label: "Progress", cell: (task) => (task.state === "RUNNING" ? progress(task.rows_total ? Math.min(1, task.rows_done / task.rows_total) : null, `progress of task ${task.task_id}`) : "–") },
        { label: "Rows", number: true, cell: rows },
        { label: "Rows/s", number: true, cell: (task) => (task.rows_per_s === null ? "–" : real(task.rows_per_s)) },
        { label: "ETA", number: true, cell: (task) => seconds(task.eta_s) },
        { label: "Attempt", number: true, cell: (task) => task.attempt || "–" },
        { label: "Partitions", number: true, cell: (task) => h("span", { title: some(task.parts) }, count(task.parts.length)) },
        { label: "Ended", cell: (task) => ago(task.finished_ms) },
      ],
    }),
    h("h2", null, "Failed attempts"),
    failed.length
      ? failed.map((task) => [h("h3", null, `Task ${task.task_id} on ${hostName(addresses[task.host])}`), h("ol", { class: "causes" }, task.causes.map((cause) => h("li", null, cause))), task.retry_at_ms > Date.now() && h("p", null, "Next attempt ", ago(task.retry_at_ms), ".")])
      : h("p", null, "None"),
    results.length > 0 && [h("h2", null, "Results"), results.map((task) => [h("h3", null, `Task ${task.task_id}`), h("ul", { class: "causes" }, task.result_lines.map((line) => h("li", null, line)))])],
  ];
}
