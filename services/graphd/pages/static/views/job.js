// One job: progress, tasks, attempts and failures.

import { get, post, told } from "../api.js";
import { h } from "../dom.js";
import { count, moment, real, seconds } from "../format.js";
import { facts, progress, state, sure, table } from "../parts.js";

export const nav = "/ui/jobs";
export const title = ({ params }) => `Job ${params.job}`;
export const pace = { least: 1000, most: 15000 };

export async function load(context) {
  const data = await get(`/jobs/${encodeURIComponent(context.params.job)}`, {}, context.signal);
  tell(data.job, context);
  return data;
}

/** Announce each tenth of a running job's progress, and each change of its state. */
function tell(job, { memory, announce }) {
  const tenth = job.state === "RUNNING" && job.fraction !== null ? Math.floor(10 * job.fraction) : 0;
  const word = `${job.state} ${tenth}`;
  if (memory.word !== undefined && memory.word !== word) announce(job.state === "RUNNING" ? `Job ${job.job_id} is running, ${10 * tenth} percent done.` : `Job ${job.job_id} is ${job.state}.`);
  memory.word = word;
}

async function order(context, what) {
  const { params, memory } = context;
  const words = {
    stop: { title: `Stop job ${params.job}?`, text: "Its tasks are ended on all hosts. It can be recovered, and then goes on from its last checkpoint.", yes: "Stop it" },
    recover: { title: `Recover job ${params.job}?`, text: "It goes on with the same input, from its last checkpoint.", yes: "Recover it" },
  }[what];
  if (!(await sure(words))) return;
  try {
    await post(`/ui/api/jobs/${params.job}/${what}`);
    memory.problem = null;
  } catch (error) {
    memory.problem = told(error);
  }
  context.redraw();
  context.refresh();
}

export function render({ job, options, cut, tasks }, context) {
  const open = job.state === "QUEUE" || job.state === "RUNNING";
  const { memory } = context;
  const space = `/ui/spaces/${encodeURIComponent(job.space)}`;
  return [
    h("p", { class: "crumbs" }, h("a", { href: "/ui/jobs" }, "All jobs")),
    h("p", { class: "big" }, state(job.state, job.ending), " ", job.state === "RUNNING" && progress(job.fraction, `progress of job ${job.job_id}`)),
    job.cause && h("div", { class: "problem" }, h("p", null, h("strong", null, "Cause: "), job.cause)),
    facts([
      ["Kind", job.kind],
      ["Space", h("a", { href: space }, job.space)],
      ["Version", job.version ? h("a", { href: `${space}/versions/${job.version}` }, job.version) : "none"],
      ["Rows", job.rows_total ? `${count(job.rows_done)} of ${count(job.rows_total)}` : count(job.rows_done)],
      open && ["Rows a second", job.rows_per_s === null ? "–" : real(job.rows_per_s)],
      open && ["Left", seconds(job.eta_s)],
      ["Shows writes up to commit", count(cut)],
      ["Submitted", moment(job.submitted_ms)],
      ["Started", moment(job.started_ms)],
      ["Ended", moment(job.finished_ms)],
      job.finished_ms && job.started_ms && ["Took", seconds((job.finished_ms - job.started_ms) / 1000)],
      ...Object.entries(options).map(([name, value]) => [`Option ${name}`, value]),
    ]),
    memory.problem && h("div", { class: "problem", role: "alert" }, h("p", null, h("strong", null, memory.problem.what)), memory.problem.todo && h("p", null, memory.problem.todo)),
    h(
      "div",
      { class: "buttons" },
      open && !job.ending && h("button", { type: "button", class: "danger", onclick: () => order(context, "stop") }, "Stop"),
      (job.state === "FAILED" || job.state === "STOPPED") && h("button", { type: "button", onclick: () => order(context, "recover") }, "Recover"),
    ),
    h("h2", null, "Tasks"),
    table({
      id: "tasks",
      caption: "Its share on each storaged",
      rows: tasks,
      key: (task) => task.task_id,
      columns: [
        { label: "Task", head: true, cell: (task) => task.task_id },
        { label: "Host", cell: (task) => (task.address.endsWith(":0") ? "this process" : task.address) },
        { label: "State", cell: (task) => state(task.state) },
        { label: "Phase", cell: (task) => task.phase || "–" },
        { label: "Progress", cell: (task) => (task.state === "RUNNING" ? progress(task.rows_total ? Math.min(1, task.rows_done / task.rows_total) : null, `progress of task ${task.task_id}`) : "–") },
        { label: "Rows", number: true, cell: (task) => (task.rows_total ? `${count(task.rows_done)} of ${count(task.rows_total)}` : count(task.rows_done)) },
        { label: "Rows a second", number: true, cell: (task) => (task.rows_per_s === null ? "–" : real(task.rows_per_s)) },
        { label: "Left", number: true, cell: (task) => seconds(task.eta_s) },
        { label: "Attempt", number: true, cell: (task) => (task.attempt || "none yet") },
        { label: "Parts", number: true, cell: (task) => h("span", { title: task.which }, count(task.parts)) },
        { label: "Ended", cell: (task) => moment(task.finished_ms) },
      ],
    }),
    h("h2", null, "Attempts that came to nothing"),
    tasks.some((task) => task.causes.length)
      ? tasks.filter((task) => task.causes.length).map((task) => [h("h3", null, `Task ${task.task_id} on ${task.address.endsWith(":0") ? "this process" : task.address}`), h("ol", { class: "causes" }, task.causes.map((cause) => h("li", null, cause))), task.retry_at_ms > 0 && h("p", null, "Tried again at ", moment(task.retry_at_ms), ".")])
      : h("p", null, "There were none."),
    tasks.some((task) => task.made.length) && [h("h2", null, "What it made"), tasks.filter((task) => task.made.length).map((task) => [h("h3", null, `Task ${task.task_id}`), h("ul", { class: "causes" }, task.made.map((line) => h("li", null, line)))])],
  ];
}
