"""Builds generated loads of several sizes in processes of their own, and prints speed, memory and disk side by side.

python -m tests.benchmarks.build                        a million and four million nodes, four million edges
python -m tests.benchmarks.build --full                 up to 200 million nodes, 100 million edges, a node with ten million neighbors
python -m tests.benchmarks.build --nodes 20000000 --edges 0 --memory-limit-mib 256 --folder /mnt/disk
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from tests.kit.measured_build import Generated, Ran, allocated, idle, run

MIB = 1 << 20
PROBE_MIB = 2048


def disk_speed(folder: Path) -> tuple[float, float]:
    """MiB/s of writing a file of its own in sequence, synced, and of reading it again past the page cache."""
    path, block = folder / "probe", os.urandom(8 * MIB)
    started = time.perf_counter()
    with path.open("wb") as file:
        for _ in range(PROBE_MIB // 8):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        written = time.perf_counter()
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    began = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.read(8 * MIB):
            pass
    read = time.perf_counter() - began
    path.unlink()
    return PROBE_MIB / (written - started), PROBE_MIB / read


def measure(graph: Generated, limit_mib: int, parent: Path) -> tuple[Ran, Ran, int, float]:
    """One build: what it took, what an idle one does, disk afterwards, seconds of writing the load."""
    with tempfile.TemporaryDirectory(dir=parent) as name:
        folder = Path(name)
        base = idle(folder / "idle", graph, memory_limit_mib=limit_mib)
        started = time.perf_counter()
        task = graph.write(folder, memory_limit_mib=limit_mib)
        writing = time.perf_counter() - started
        ran = run(task, watch_disk=True)
        return ran, base, allocated(folder / "out"), writing


def report(what: str, rows: int, ran: Ran, base: Ran, after: int, writing: float, *, steps: bool) -> float:
    """Print one build; gives its rows per second of a core, the process's own start aside."""
    speed = rows / (ran.core_seconds - base.core_seconds)
    words = (
        f"{what:34s} {ran.seconds:8.1f} s {rows / ran.seconds:12,.0f} rows/s {speed:12,.0f} rows/s a core ({base.core_seconds:.1f} s of start aside)",
        f"memory {(ran.anonymous - base.anonymous) / MIB:5.0f} MiB above idle",
        f"disk {ran.disk / MIB:8,.0f} MiB at most, {after / MIB:8,.0f} after ({ran.disk / rows:.0f} and {after / rows:.0f} bytes a row)",
        f"written in {writing:.1f} s",
    )
    print("   ".join(words), flush=True)
    if steps:
        last = 0.0
        for at, name in ran.steps:
            print(f"    {name:24s} {at - last:8.1f} s")
            last = at
    return speed


def of_tables(what: str, graph: Generated, rows: int, tables: int, limit_mib: int, parent: Path) -> None:
    """Print what each table of further weights adds to a build, beside the build without any."""
    plain, base, before, _ = measure(graph, limit_mib, parent)
    ran, _, after, _ = measure(replace(graph, tables=tables), limit_mib, parent)
    seconds, own = (ran.core_seconds - plain.core_seconds) / tables, plain.core_seconds - base.core_seconds
    words = (
        f"each of {tables} tables of {what}".ljust(44) + f"{seconds:8.2f} s of a core more ({seconds / own:.0%} of the {own:.2f} without)",
        f"{(after - before) / tables / rows:.1f} bytes a row more ({before / rows:.1f} without)",
        f"at the peak {(ran.disk - plain.disk) / tables / rows:.1f} more",
        f"memory {(ran.anonymous - plain.anonymous) / MIB:+.0f} MiB",
    )
    print("   ".join(words), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=[1_000_000, 4_000_000], help="sizes of builds of nodes alone")
    parser.add_argument("--edges", type=int, default=4_000_000, help="edges of one more build; 0 for none")
    parser.add_argument("--hub", type=int, default=400_000, help="how many of them one node has")
    parser.add_argument("--tables", type=int, default=2, help="of further weights, in builds beside those without any; 0 for none")
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--stride", type=int, default=1, help="between ids; a large one makes them sparse")
    parser.add_argument("--memory-limit-mib", type=int, default=512)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="on the disk to measure")
    parser.add_argument("--full", action="store_true", help="1, 10, 100 and 200 million nodes; 100 million edges, ten million of one node")
    parser.add_argument("--steps", action="store_true", help="the seconds of every step")
    given = parser.parse_args()
    if given.full:
        given.nodes, given.edges, given.hub = [1_000_000, 10_000_000, 100_000_000, 200_000_000], 100_000_000, 10_000_000
    write, read = disk_speed(given.folder)
    print(f"the disk's own speed: {write:,.0f} MiB/s written and synced, {read:,.0f} MiB/s read; limit {given.memory_limit_mib} MiB")
    speeds = []
    for nodes in given.nodes:
        graph = Generated(nodes=nodes, parts=given.parts, stride=given.stride)
        speeds.append(report(f"{nodes:,} nodes", nodes, *measure(graph, given.memory_limit_mib, given.folder), steps=given.steps))
    if len(speeds) > 1:
        print("linear: " + ", ".join(f"{nodes:,} nodes at {speed / speeds[0]:.2f}" for nodes, speed in zip(given.nodes, speeds, strict=True)), end="")
        print(" of the first one's rows a second of a core")
    if given.edges:
        nodes = max(given.edges // 10, 1000)
        graph = Generated(nodes=nodes, edges=given.edges, hub=given.hub, parts=given.parts, stride=given.stride)
        what = f"{given.edges:,} edges, {given.hub:,} of one"
        report(what, given.edges + nodes, *measure(graph, given.memory_limit_mib, given.folder), steps=given.steps)
    if given.tables:
        few = Generated(nodes=given.nodes[0], parts=given.parts, stride=given.stride)
        of_tables(f"{few.nodes:,} nodes", few, few.nodes, given.tables, given.memory_limit_mib, given.folder)
    if given.tables and given.edges:
        # Of nodes and of edges, kept at both ends; by far most rows are edges.
        of_tables(f"{graph.edges:,} edges", graph, graph.edges + graph.nodes, given.tables, given.memory_limit_mib, given.folder)


if __name__ == "__main__":
    main()
