"""Two-minute demo: create, load, build, sample, check and export a shop's graph.

    make demo            or: python examples/demo.py --size 3 --address localhost:9669

It runs in this process and writes to the folder `demo-data`, unless an address is given.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

import asterism
from asterism import Client, Graph, export, ingest
from asterism.cli.job_waits import JobWatch
from asterism.cli.output import Output, table
from asterism.formats import generate

SPACE = "shop"
CONSOLE = Console(highlight=False)
OUTPUT = Output(as_json=False)
DRAWS = 400_000


def chapter(number: int, title: str, description: str) -> None:
    CONSOLE.print(f"\n[bold cyan]{number}. {title}[/bold cyan]\n[dim]{description}[/dim]")


def time_call(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the result of a call, and two times in milliseconds.

    They are those of its first run and of the fastest of the next ten.
    """
    times = []
    result = None
    for _ in range(11):
        started = time.perf_counter()
        result = call()
        times.append((time.perf_counter() - started) * 1000)
    return result, times[0], min(times[1:])


def make_files(folder: Path, size: float) -> Path:
    chapter(
        1,
        "A graph",
        (
            "Users who click, buy and follow in a shop, with weights and features, as files in "
            "DGL's chunked format."
        ),
    )
    started = time.perf_counter()
    counts = {"users": 20_000, "items": 5_000, "clicks": 250_000, "buys": 60_000, "follows": 60_000}
    shop = generate.Shop(
        **{name: max(1, int(count * size)) for name, count in counts.items()}, seed=7
    )
    source = generate.write_dgl(shop, folder)
    files = [path for path in folder.rglob("*") if path.is_file()]
    CONSOLE.print(
        f"{len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB, "
        f"made in {time.perf_counter() - started:.1f} s"
    )
    return source.parent


def open_client(folder: Path, address: str | None) -> Client:
    if address:
        return asterism.connect(address)
    started = time.perf_counter()
    with CONSOLE.status(
        "opening a service in this process; the first time on a machine, its kernels are compiled"
    ):
        client = asterism.open(folder)
    CONSOLE.print(f"a service in this process was open after {time.perf_counter() - started:.1f} s")
    return client


def load(client: Client, source: Path) -> None:
    chapter(
        2,
        "Loading",
        (
            "Chunk by chunk in bounded memory. A chunk that is acknowledged is on disk; a load "
            "that is cut off resumes."
        ),
    )
    client.create_space(SPACE, ingest.schema_of(source))
    with OUTPUT.progress() as report_progress:
        report = ingest.load(
            client,
            SPACE,
            source,
            progress=lambda p: report_progress(
                "load shop", p.rows_done, p.rows_total, phase=p.phase
            ),
        )
    rows = report.nodes + report.edges
    CONSOLE.print(
        f"{report.nodes:,} nodes and {report.edges:,} edges in {report.seconds:.1f} s: "
        f"{rows / report.seconds:,.0f} rows a second"
    )


def build(client: Client) -> None:
    chapter(
        3,
        "Building",
        (
            "A job in the background makes alias tables and images, audits them against the "
            "weights, and publishes a version."
        ),
    )
    started = time.perf_counter()
    with OUTPUT.progress() as report_progress:
        watch = JobWatch(client, report_progress)
        job = client.wait(client.submit_job(SPACE).job_id, timeout_s=600, on_progress=watch)
    if job.state != "FINISHED":
        raise SystemExit(f"the build {job.state}: {job.cause}")
    audit = max(share.audit_tv for share in client.manifest(SPACE).totals)
    CONSOLE.print(
        f"version {job.version} after {time.perf_counter() - started:.1f} s; the tables "
        f"differ from the weights by {audit:.1e} (total variation)"
    )


def sample(graph: Graph) -> None:
    chapter(4, "Sampling", "What a trainer asks thousands of times a second.")
    users, items = (graph.sample_nodes(512, kind, seed=1).nodes for kind in ("user", "item"))
    calls: list[tuple[str, Callable[[], Any], Callable[[Any], str]]] = [
        (
            "512 users",
            lambda: graph.sample_nodes(512, "user"),
            lambda a: f"{a.nodes[:5].tolist()} ...",
        ),
        (
            "512 items by weight",
            lambda: graph.sample_nodes(512, "item"),
            lambda a: f"{a.nodes[:5].tolist()} ...",
        ),
        (
            "512 purchases by weight",
            lambda: graph.sample_edges(512, "buys"),
            lambda a: f"{list(zip(a.src[:3].tolist(), a.dst[:3].tolist(), strict=True))} ...",
        ),
        (
            "10 items that each of 512 users clicked",
            lambda: graph.sample_neighbors(users, "clicks", 10),
            lambda a: f"int64{list(a.nodes.shape)}",
        ),
        (
            "the same, none twice",
            lambda: graph.sample_neighbors(users, "clicks", 10, replace=False),
            lambda a: f"{int((a.nodes >= 0).sum()):,} of {a.nodes.size:,}",
        ),
        (
            "whom they follow, and what those bought: 10, then 5",
            lambda: graph.sample_fanout(users, ["follows", "buys"], [10, 5]),
            lambda a: " -> ".join(f"{len(hop):,}" for hop in a.hops),
        ),
        (
            "price and look of 512 items",
            lambda: graph.node_features(items, ["price", "look"], "item"),
            lambda a: f"float32{list(a['look'].shape)}",
        ),
    ]
    rows = []
    for name, call, show in calls:
        result, first, best = time_call(call)
        rows.append((name, f"{first:,.1f} ms", f"{best:,.2f} ms", show(result)))
    CONSOLE.print(table("", ("drawn", "first call", "best of 10", "what comes back"), rows))
    same = (
        graph.sample_nodes(1000, "item", seed=5).nodes.tobytes()
        == graph.sample_nodes(1000, "item", seed=5).nodes.tobytes()
    )
    CONSOLE.print(f"the same seed gives the same bytes: {'yes' if same else 'NO'}")


def check_draws(graph: Graph) -> float:
    chapter(5, "Is it right?", f"{DRAWS:,} items drawn by weight, against the weights themselves.")
    ids, weights = (
        np.concatenate(columns)
        for columns in zip(*((b.ids, b.weights) for b in graph.scan_nodes("item")), strict=True)
    )
    order = np.argsort(ids)
    ids, share = ids[order], weights[order].astype(np.float64) / weights.sum(dtype=np.float64)
    draw_counts = np.bincount(
        np.searchsorted(ids, graph.sample_nodes(DRAWS, "item", seed=11).nodes), minlength=len(ids)
    )
    sigma = np.sqrt(DRAWS * share * (1 - share))
    heaviest = np.argsort(share)[::-1][:6]
    rows = [
        (
            int(ids[i]),
            f"{share[i]:.4%}",
            f"{draw_counts[i] / DRAWS:.4%}",
            f"{(draw_counts[i] - DRAWS * share[i]) / sigma[i]:+.2f} sigma",
        )
        for i in heaviest
    ]
    CONSOLE.print(
        table(
            "the heaviest items",
            ("item", "its share of the weight", "its share of the draws", "off by"),
            rows,
        )
    )
    is_frequent = DRAWS * share >= 5
    statistic = float(
        (((draw_counts - DRAWS * share) ** 2)[is_frequent] / (DRAWS * share)[is_frequent]).sum()
    )
    freedom = int(is_frequent.sum()) - 1
    deviation = (statistic - freedom) / np.sqrt(2 * freedom)
    weightless = int(draw_counts[share == 0].sum())
    CONSOLE.print(
        f"chi-square over {freedom + 1:,} items: {statistic:,.0f} where {freedom:,} is "
        f"expected, {deviation:+.1f} sigma"
    )
    CONSOLE.print(f"items of weight 0: {int((share == 0).sum()):,}; drawn of them: {weightless}")
    return float(deviation)


def export_parts(graph: Graph, out: Path) -> None:
    chapter(
        6, "Exporting", "Two partitions that DGL's distributed training loads, written without DGL."
    )
    with OUTPUT.progress() as report_progress:
        report = export.dgl(
            graph,
            out,
            parts=2,
            progress=lambda phase, done, total: report_progress(f"export {phase}", done, total),
        )
    sizes = [
        sum(path.stat().st_size for path in (out / f"part{part.part}").iterdir()) / 1e6
        for part in report.parts
    ]
    rows = [
        (
            f"part{p.part}",
            f"{sum(p.nodes.values()):,}",
            f"{sum(p.edges.values()):,}",
            f"{p.halo_nodes:,}",
            f"{size:.1f} MB",
        )
        for p, size in zip(report.parts, sizes, strict=True)
    ]
    CONSOLE.print(
        table("", (f"in {out}", "its nodes", "its edges", "neighbors of its nodes", "size"), rows)
    )
    CONSOLE.print(
        (
            f"in {report.seconds:.1f} s; dgl.distributed.load_partition({str(report.config)!r}, "
            "0) reads the first"
        ),
        soft_wrap=True,
    )


def print_summary(client: Client, users: list[int], seconds: float, deviation: float) -> None:
    manifest, schema = client.manifest(SPACE), client.describe(SPACE).schema
    grid = Table.grid(padding=(0, 2))
    for i, node_type in enumerate(schema.node_types):
        grid.add_row(
            node_type.name,
            f"{manifest.count('NODE', i):,} nodes",
            f"weight {manifest.weight('NODE', i):,.0f}",
        )
    for i, edge_type in enumerate(schema.edge_types):
        grid.add_row(
            edge_type.name,
            f"{manifest.count('EDGE', i):,} edges",
            f"weight {manifest.weight('EDGE', i):,.0f}",
        )
    grid.add_row(
        "draws against weights",
        f"{deviation:+.1f} sigma",
        "within 5 is right" if abs(deviation) < 5 else "[red]WRONG[/red]",
    )
    CONSOLE.print(Panel(grid, title=f"all of it in {seconds:.0f} s", expand=False))
    command = os.path.relpath(Path(sys.executable).with_name("asterism"))
    CONSOLE.print(
        "Go on, with what was just made:\n"
        f"  {command} --path demo-data/graph space describe shop\n"
        f"  {command} --path demo-data/graph sample neighbors shop "
        f"{' '.join(map(str, users))} --type clicks\n"
        f"  {command} serve demo-data/graph",
        soft_wrap=True,
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description="What Asterism does, in two minutes.")
    arguments.add_argument("--folder", type=Path, default=Path("demo-data"))
    arguments.add_argument(
        "--size", type=float, default=1.0, help="1 is 20,000 users and 250,000 clicks"
    )
    arguments.add_argument(
        "--address", help="of a running service; by default it runs in this process"
    )
    options = arguments.parse_args()
    started = time.perf_counter()
    shutil.rmtree(options.folder, ignore_errors=True)
    CONSOLE.print(
        Panel("[bold]Asterism[/bold]: sample from graphs that are larger than memory", expand=False)
    )
    source = make_files(options.folder / "files", options.size)
    with open_client(options.folder / "graph", options.address) as client:
        if options.address:
            client.drop_space(SPACE, if_exists=True)
        load(client, source)
        build(client)
        graph = client.graph(SPACE)
        sample(graph)
        deviation = check_draws(graph)
        export_parts(graph, options.folder / "partitions")
        print_summary(
            client,
            graph.sample_edges(3, "clicks", seed=1).src.tolist(),
            time.perf_counter() - started,
            deviation,
        )
    if abs(deviation) >= 5:
        raise SystemExit("the draws do not follow the weights")


if __name__ == "__main__":
    main()
