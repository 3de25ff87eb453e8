// The cluster at a glance: its health in one sentence, calls, storage, jobs and log.

import { get } from "../api.js";
import { h } from "../dom.js";
import { ago, bytes, count, of, rate, seconds } from "../format.js";
import { figures, progress, state, table, usage } from "../parts.js";
import { sparkline } from "../plot.js";
import { isClusterAdmin } from "../session.js";
import { records } from "./logs.js";

export const nav = "/ui";
export const title = () => "Overview";
export const pace = { least: 2000, most: 10000 };
export const key = (data) => JSON.stringify([data.health, data.jobs, data.running, data.storageds_online, data.graphds_online, data.spaces]);
export const load = ({ signal }) => get("/overview", {}, signal);

const spaceHref = (name) => `/ui/spaces/${encodeURIComponent(name)}`;
const jobLink = (job) => h("a", { href: `/ui/jobs/${job.job_id}` }, job.job_id);
const spaceLink = (job) => h("a", { href: spaceHref(job.space) }, job.space);

/** The sentence that `asterism status` prints, with links to the spaces that it names. */
function health({ level, sentence, offline }) {
  const [, head, rest] = /^(ready|not ready)(.*)$/s.exec(sentence);
  return h(
    "div",
    { id: "health", class: `health ${level}`, role: "status" },
    h("p", null, h("strong", null, head === "ready" ? "Ready" : "Not ready"), rest),
    offline.length > 0 && h("ul", null, offline.map((space) => h("li", null, "Partitions without a host online in ", h("a", { href: spaceHref(space.space) }, space.space), `: ${space.which}`))),
  );
}

const trend = ({ id, name, times, values, text }) => {
  const known = values.filter((value) => value !== null);
  return sparkline({
    id,
    title: name,
    desc: known.length ? `${name} over the last ${of(times.length, "measurement")}, between ${text(Math.min(...known))} and ${text(Math.max(...known))}.` : `${name}: no call was answered in the last ${of(times.length, "measurement")}.`,
    times,
    series: [{ name, style: "s1", values }],
    text,
  });
};

export function render(data) {
  const waiting = data.jobs.QUEUE + data.jobs.RUNNING;
  const { ended_ms: times, per_s: calls, p99_s: p99 } = data.trend;
  const here = data.daemon === "graphd" ? "this graphd" : "this process";
  return [
    health(data.health),
    figures([
      ["Storageds online", `${data.storageds_online} of ${data.storageds}`, null, "/ui/hosts"],
      ["Graphds online", `${data.graphds_online} of ${data.graphds}`, null, "/ui/hosts"],
      ["Spaces", count(data.spaces), of(data.partitions, "partition"), "/ui/spaces"],
      ["Jobs in progress", count(waiting), `${count(data.jobs.FINISHED)} finished, ${count(data.jobs.FAILED)} failed, ${count(data.jobs.STOPPED)} stopped`, "/ui/jobs"],
      ["Calls per second", rate(data.calls_per_s), [`${here}, last minute`, trend({ id: "calls", name: "Calls per second", times, values: calls, text: rate })], "/ui/rates"],
      ["Latency, p99", data.p99_s === null ? "–" : seconds(data.p99_s), [data.p99_s === null ? "no call in the last minute" : `${here}, last minute`, trend({ id: "p99", name: "Latency, p99", times, values: p99, text: seconds })], "/ui/rates"],
    ]),
    h("h2", null, "Capacity"),
    table({
      id: "largest",
      caption: data.spaces > data.largest.length ? `The ${data.largest.length} largest of ${count(data.spaces)} spaces` : "Spaces",
      empty: "There is no space yet. Create one with: asterism load NAME FILES --create --build",
      rows: data.largest,
      key: (space) => space.name,
      columns: [
        { label: "Space", head: true, cell: (space) => h("a", { href: spaceHref(space.name) }, space.name) },
        { label: "Disk use", number: true, cell: (space) => bytes(space.bytes) },
        { label: "Nodes", number: true, cell: (space) => (space.version ? h("a", { href: `${spaceHref(space.name)}/node`, "aria-label": `${count(space.nodes)} nodes of ${space.name}` }, count(space.nodes)) : count(space.nodes)) },
        { label: "Edges", number: true, cell: (space) => count(space.edges) },
        { label: "Partitions", number: true, cell: (space) => count(space.parts) },
        { label: "Version", number: true, cell: (space) => (space.version ? h("a", { href: `${spaceHref(space.name)}/versions/${space.version}` }, space.version) : "none yet") },
      ],
    }),
    data.disks.length > 0 &&
      table({
        id: "disks",
        caption: "Disks of the storageds; a disk that several of them share counts once",
        rows: data.disks,
        key: (disk) => disk.hosts[0],
        columns: [
          { label: "Storageds", head: true, wide: true, cell: (disk) => disk.hosts.join(", ") },
          { label: "Data", number: true, cell: (disk) => bytes(disk.held_bytes) },
          { label: "Free", number: true, cell: (disk) => bytes(disk.free_bytes) },
          { label: "Size", number: true, cell: (disk) => bytes(disk.total_bytes) },
          { label: "Used", cell: (disk) => (disk.total_bytes ? usage(1 - disk.free_bytes / disk.total_bytes, `used share of the disk of ${disk.hosts.join(", ")}`, disk.nearly_full) : "–") },
        ],
      }),
    data.memory.length > 0 &&
      table({
        id: "memory",
        caption: "Memory of the daemons' own processes, fullest first",
        rows: data.memory,
        key: (host) => `${host.role}-${host.address}`,
        columns: [
          { label: "Daemon", head: true, cell: (host) => [host.address, host.role !== "all" && h("span", { class: "under" }, host.role)] },
          { label: "Memory", number: true, cell: (host) => bytes(host.used_bytes) },
          { label: "Size", number: true, cell: (host) => (host.total_bytes ? bytes(host.total_bytes) : "–") },
          { label: "Used", cell: (host) => (host.total_bytes ? usage(host.used_bytes / host.total_bytes, `used share of the memory ${host.role === "all" ? "" : `of ${host.role} `}${host.address}`, host.nearly_full) : "–") },
        ],
      }),
    h("h2", null, "Jobs"),
    data.running.length === 0 && h("p", { class: "quiet" }, "No job is waiting or running."),
    data.running.length > 0 &&
      table({
        id: "running",
        caption: "Waiting or running, newest first",
        rows: data.running,
        key: (job) => job.job_id,
        columns: [
          { label: "Job", head: true, cell: jobLink },
          { label: "Space", cell: spaceLink },
          { label: "Kind", cell: (job) => job.kind },
          { label: "State", cell: (job) => state(job.state, job.ending) },
          { label: "Progress", cell: (job) => (job.state === "RUNNING" ? progress(job.fraction, `progress of job ${job.job_id}`) : "–") },
          { label: "Time left", number: true, cell: (job) => seconds(job.eta_s) },
        ],
      }),
    data.failed.length > 0 &&
      table({
        id: "failed",
        caption: "Failed, newest first",
        rows: data.failed,
        key: (job) => job.job_id,
        columns: [
          { label: "Job", head: true, cell: jobLink },
          { label: "Space", cell: spaceLink },
          { label: "Kind", cell: (job) => job.kind },
          { label: "Ended", cell: (job) => ago(job.finished_ms) },
          { label: "Cause", wide: true, cell: (job) => job.cause },
        ],
      }),
    isClusterAdmin() && [
      h("h2", null, "Log"),
      records({ id: "log", caption: `Newest records of ${here}`, rows: data.log }),
      h("p", null, h("a", { href: "/ui/logs" }, "All records, and those of other daemons")),
    ],
  ];
}
