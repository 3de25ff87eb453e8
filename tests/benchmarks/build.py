"""Benchmark of builds of generated loads: speed, memory and disk side by side.

Each build runs in its own process.

python -m tests.benchmarks.build                        a million and four million nodes, four
                                                        million edges
python -m tests.benchmarks.build --full                 up to 200 million nodes, 100 million edges,
                                                        a node with ten million neighbors
python -m tests.benchmarks.build --nodes 20000000 --edges 0 --memory-limit-mib 256 --folder
/mnt/disk"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from tests.kit.measured_build import (
    BuildMeasurement,
    GeneratedGraph,
    allocated_bytes,
    measure_idle,
    run,
)

MIB = 1 << 20
PROBE_MIB = 2048


def disk_speed(folder: Path) -> tuple[float, float]:
    """Return MiB/s of writing a file in sequence, synced, and of reading it uncached."""
    path, block = folder / "probe", os.urandom(8 * MIB)
    started = time.perf_counter()
    with path.open("wb") as file:
        for _ in range(PROBE_MIB // 8):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        written = time.perf_counter()
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    read_started = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.read(8 * MIB):
            pass
    read = time.perf_counter() - read_started
    path.unlink()
    return PROBE_MIB / (written - started), PROBE_MIB / read


def measure(
    graph: GeneratedGraph, limit_mib: int, parent: Path
) -> tuple[BuildMeasurement, BuildMeasurement, int, float]:
    """Return the measurement of a build, of an idle one, disk usage after, and write seconds.

    The seconds are those of writing the load.
    """
    with tempfile.TemporaryDirectory(dir=parent) as name:
        folder = Path(name)
        idle_build = measure_idle(folder / "idle", graph, memory_limit_mib=limit_mib)
        started = time.perf_counter()
        task = graph.write(folder, memory_limit_mib=limit_mib)
        write_s = time.perf_counter() - started
        measured = run(task, watch_disk=True)
        return measured, idle_build, allocated_bytes(folder / "out"), write_s


def report(
    label: str,
    rows: int,
    measured: BuildMeasurement,
    idle_build: BuildMeasurement,
    disk_after: int,
    write_s: float,
    *,
    steps: bool,
) -> float:
    """Print one build; return its rows per second of a core, without the start of the process."""
    speed = rows / (measured.core_seconds - idle_build.core_seconds)
    columns = (
        (
            f"{label:34s} {measured.seconds:8.1f} s {rows / measured.seconds:12,.0f} rows/s "
            f"{speed:12,.0f} rows/s a core ({idle_build.core_seconds:.1f} s of start aside)"
        ),
        (
            f"memory {(measured.anonymous_bytes - idle_build.anonymous_bytes) / MIB:5.0f} MiB "
            "above idle"
        ),
        (
            f"disk {measured.disk_bytes / MIB:8,.0f} MiB at most, {disk_after / MIB:8,.0f} after "
            f"({measured.disk_bytes / rows:.0f} and {disk_after / rows:.0f} bytes a row)"
        ),
        f"written in {write_s:.1f} s",
    )
    print("   ".join(columns), flush=True)
    if steps:
        previous_end = 0.0
        for end, name in measured.steps:
            print(f"    {name:24s} {end - previous_end:8.1f} s")
            previous_end = end
    return speed


def report_tables(
    label: str, graph: GeneratedGraph, rows: int, tables: int, limit_mib: int, parent: Path
) -> None:
    """Print the cost of each weight table, relative to a build without tables."""
    without_tables, idle_build, disk_without, _ = measure(graph, limit_mib, parent)
    with_tables, _, disk_with, _ = measure(replace(graph, tables=tables), limit_mib, parent)
    seconds, base_core_seconds = (
        (with_tables.core_seconds - without_tables.core_seconds) / tables,
        without_tables.core_seconds - idle_build.core_seconds,
    )
    columns = (
        f"each of {tables} tables of {label}".ljust(44)
        + (
            f"{seconds:8.2f} s of a core more ({seconds / base_core_seconds:.0%} of the "
            f"{base_core_seconds:.2f} without)"
        ),
        (
            f"{(disk_with - disk_without) / tables / rows:.1f} bytes a row more "
            f"({disk_without / rows:.1f} without)"
        ),
        (
            "at the peak "
            f"{(with_tables.disk_bytes - without_tables.disk_bytes) / tables / rows:.1f} more"
        ),
        f"memory {(with_tables.anonymous_bytes - without_tables.anonymous_bytes) / MIB:+.0f} MiB",
    )
    print("   ".join(columns), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--nodes",
        type=int,
        nargs="*",
        default=[1_000_000, 4_000_000],
        help="sizes of builds of nodes alone",
    )
    parser.add_argument(
        "--edges", type=int, default=4_000_000, help="edges of one more build; 0 for none"
    )
    parser.add_argument("--hub", type=int, default=400_000, help="how many of them one node has")
    parser.add_argument(
        "--tables",
        type=int,
        default=2,
        help="of further weights, in builds beside those without any; 0 for none",
    )
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument(
        "--stride", type=int, default=1, help="between ids; a large one makes them sparse"
    )
    parser.add_argument("--memory-limit-mib", type=int, default=512)
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), help="on the disk to measure"
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="1, 10, 100 and 200 million nodes; 100 million edges, ten million of one node",
    )
    parser.add_argument("--steps", action="store_true", help="the seconds of every step")
    options = parser.parse_args()
    if options.full:
        options.nodes, options.edges, options.hub = (
            [1_000_000, 10_000_000, 100_000_000, 200_000_000],
            100_000_000,
            10_000_000,
        )
    write, read = disk_speed(options.folder)
    print(
        f"the disk's own speed: {write:,.0f} MiB/s written and synced, {read:,.0f} MiB/s "
        f"read; limit {options.memory_limit_mib} MiB"
    )
    speeds = []
    for nodes in options.nodes:
        graph = GeneratedGraph(nodes=nodes, parts=options.parts, stride=options.stride)
        speeds.append(
            report(
                f"{nodes:,} nodes",
                nodes,
                *measure(graph, options.memory_limit_mib, options.folder),
                steps=options.steps,
            )
        )
    if len(speeds) > 1:
        print(
            "linear: "
            + ", ".join(
                f"{nodes:,} nodes at {speed / speeds[0]:.2f}"
                for nodes, speed in zip(options.nodes, speeds, strict=True)
            ),
            end="",
        )
        print(" of the first one's rows a second of a core")
    if options.edges:
        nodes = max(options.edges // 10, 1000)
        graph = GeneratedGraph(
            nodes=nodes,
            edges=options.edges,
            hub=options.hub,
            parts=options.parts,
            stride=options.stride,
        )
        label = f"{options.edges:,} edges, {options.hub:,} of one"
        report(
            label,
            options.edges + nodes,
            *measure(graph, options.memory_limit_mib, options.folder),
            steps=options.steps,
        )
    if options.tables:
        node_graph = GeneratedGraph(
            nodes=options.nodes[0], parts=options.parts, stride=options.stride
        )
        report_tables(
            f"{node_graph.nodes:,} nodes",
            node_graph,
            node_graph.nodes,
            options.tables,
            options.memory_limit_mib,
            options.folder,
        )
    if options.tables and options.edges:
        # Tables of nodes and of edges; edges have them at both ends and are most of the rows.
        report_tables(
            f"{graph.edges:,} edges",
            graph,
            graph.edges + graph.nodes,
            options.tables,
            options.memory_limit_mib,
            options.folder,
        )


if __name__ == "__main__":
    main()
