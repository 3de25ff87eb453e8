"""Benchmark of samplers from recent papers, embedded and over gRPC, against alternatives.

All run on one generated graph.

    make rivals-env                                        the alternatives, each in its own
                                                           environment, if it can be installed
    python -m tests.benchmarks.papers                      R-MAT of 1M nodes and 16M edges,
                                                           log-normal weights, times
    python -m tests.benchmarks.papers --nodes 100000 --edges 1600000
    python -m tests.benchmarks.papers --only costs         how costs grow with batch, fanout and
                                                           degree

Every rival is a separate process, pinned to one core, with one thread; the daemons that serve gRPC
run on the same core. All have the same graph, and take turns, as in `rivals`. The code of each
rival is in `tests/benchmarks/rival`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from tests.benchmarks.costs import SCHEMA, Row, best_s, fill, report
from tests.benchmarks.rivals import PROGRAMS, PYTHONS, Rival, compare
from tests.benchmarks.rivals import write as write_graph

import asterism
from asterism import saint
from asterism.graph import Graph

RIVALS: dict[str, tuple[Path, str, tuple[str, ...]]] = {
    "asterism": (Path(sys.executable), "asterism", ()),
    "grpc": (Path(sys.executable), "asterism", ("grpc",)),
    "dgl": (PYTHONS["dgl"], "dgl", ()),
    "pyg": (PYTHONS["pyg"], "pyg", ()),
    "scipy": (Path(sys.executable), "scipy", ()),
}
"""Interpreter, program and arguments of each rival."""
SPACING = 128
"""Distance between nodes with edges in `regular` graphs."""


def write(folder: Path, args: argparse.Namespace) -> None:
    """Write the graph's files and the parameters, for `tests.benchmarks.rival.answering`."""
    write_graph(folder, args)
    generator = np.random.default_rng(2)
    np.save(folder / "node_times.npy", generator.integers(0, 1 << 30, args.nodes))
    members = [np.sort(generator.choice(args.nodes, args.members, replace=False)) for _ in range(8)]
    np.save(folder / "members.npy", np.stack(members))
    parameters = {
        name: getattr(args, name)
        for name in (
            "shadow",
            "walks",
            "traversals",
            "neighbors",
            "members",
            "clusters",
            "budget",
            "roots",
            "length",
        )
    }
    parameters |= {"starts": args.ranked, "top": args.top, "alpha": 0.15, "epsilon": args.epsilon}
    (folder / "papers.json").write_text(json.dumps(parameters))


def calls(graph: Graph, batch: int, fanout: int, spacing: int = 1) -> dict[str, Any]:
    """Return each sampler by name.

    Seeds are every ``spacing``-th node; each has ``fanout`` neighbors or walks.
    """
    nodes = np.random.default_rng(3).integers(0, (1 << 16) // spacing, batch) * spacing
    seeds: dict[int, Any] = {seed: np.roll(nodes, seed) for seed in range(8)}
    walk_sampler = saint.RandomWalkSampler(graph, "to", batch, fanout)
    return {
        "LABOR-0 by weight": lambda seed: graph.sample_labor(
            seeds[seed % 8], [fanout], "to", seed=seed
        ),
        "LABOR-1 by weight": lambda seed: graph.sample_labor(
            seeds[seed % 8], [fanout], "to", importance=1, seed=seed
        ),
        "PinSAGE": lambda seed: graph.sample_pinsage(
            seeds[seed % 8], ["to"], 3, walks=fanout, weighted=False, seed=seed
        ),
        "ShaDow": lambda seed: graph.sample_ego_subgraphs(
            seeds[seed % 8], [fanout], "to", seed=seed
        ),
        "induced subgraph": lambda seed: graph.induced_subgraph(np.unique(seeds[seed % 8]), "to"),
        "SAINT by walks": walk_sampler.batch,
        "PageRank": lambda seed: graph.personalized_pagerank(
            seeds[seed % 8][: batch // 16], "to", 10, epsilon=1e-3
        ),
    }


def show_costs(args: argparse.Namespace) -> None:
    """Print the growth of each sampler's cost with the request and with node degrees."""
    with tempfile.TemporaryDirectory() as folder, asterism.open(folder) as client:
        graph = fill(client, "costs", nodes=args.nodes, edges=args.edges, parts=8)
        for task in calls(graph, 64, 1):
            rows: list[Row] = [
                (batch, best_s(calls(graph, batch, 10)[task]), 0.0)
                for batch in (64, 256, 1024, 4096)
            ]
            report(f"{task} of 10 neighbors, walks or steps", "batch size", rows)
        for task in calls(graph, 64, 1):
            rows = [
                (fanout, best_s(calls(graph, 1024, fanout)[task]), 0.0) for fanout in (2, 8, 32)
            ]
            report(f"{task} of 1024 seeds", "fanout", rows)
        rows_by_task: dict[str, list[Row]] = {}
        for degree in (16, 128, 1024, 8192):
            graph = regular(client, degree)
            for task, call in calls(graph, 256, 10, SPACING).items():
                rows_by_task.setdefault(task, []).append((degree, best_s(call, 3), 0.0))
        for task, rows in rows_by_task.items():
            report(f"{task} of 256 seeds, 10 neighbors, walks or steps", "degree", rows)


def regular(client: asterism.Client, degree: int, nodes: int = (1 << 16) // SPACING) -> Graph:
    """Create a graph with ``degree`` edges at every `SPACING`-th node, to nodes of all ids."""
    name = f"regular{degree}"
    client.create_space(name, {**SCHEMA, "parts": 1, "nodes": {"n": {}}})
    load = client.begin_load(name, source="generated")
    load.write_nodes(0, "n", np.arange(1 << 16))
    generator = np.random.default_rng(degree)
    for chunk, start in enumerate(range(0, nodes, 64)):
        src = np.repeat(np.arange(start, start + 64) * SPACING, degree)
        load.write_edges(
            chunk + 1,
            "to",
            src,
            generator.integers(0, 1 << 16, src.size),
            weights=generator.lognormal(size=src.size),
            ends_known=True,
        )
    load.commit()
    graph = client.graph(name)
    graph.build(timeout_s=3600)
    return graph


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=16_000_000)
    parser.add_argument("--batch", type=int, default=1024, help="seeds of a batch")
    parser.add_argument("--fanouts", type=int, nargs="+", default=[15, 10])
    parser.add_argument(
        "--shadow",
        type=int,
        nargs="+",
        default=[10, 5],
        help="neighbors of each hop of ShaDow's subgraphs",
    )
    parser.add_argument("--walks", type=int, default=10, help="of each node, of PinSAGE")
    parser.add_argument("--traversals", type=int, default=2)
    parser.add_argument("--neighbors", type=int, default=3)
    parser.add_argument("--members", type=int, default=16_384, help="nodes of an induced subgraph")
    parser.add_argument(
        "--clusters", type=int, default=16, help="clusters of 1,024 nodes or so, of a batch of them"
    )
    parser.add_argument(
        "--budget",
        type=int,
        default=8192,
        help="nodes, or twice the edges, of a subgraph of GraphSAINT",
    )
    parser.add_argument("--roots", type=int, default=3000, help="walks of one")
    parser.add_argument("--length", type=int, default=2)
    parser.add_argument("--ranked", type=int, default=64, help="starts of a call for PageRank")
    parser.add_argument("--top", type=int, default=32)
    parser.add_argument("--epsilon", type=float, default=1e-4)
    parser.add_argument("--rounds", type=int, default=3, help="turns that each rival has at a task")
    parser.add_argument("--calls", type=int, default=3, help="calls in a turn")
    parser.add_argument(
        "--only",
        nargs="*",
        default=list(RIVALS),
        help="which rivals, the first one being what others are compared with; or costs",
    )
    parser.add_argument("--tasks", nargs="*", help="which tasks, by the beginning of their names")
    parser.add_argument("--core", type=int, default=os.cpu_count() - 1 if os.cpu_count() else 0)
    parser.add_argument(
        "--folder", type=Path, help="keep the graph here, and take it from here where it is already"
    )
    args = parser.parse_args()
    if args.only == ["costs"]:
        show_costs(args)
        return
    # Tasks of `rivals` that do not exist here.
    args.draws, args.walkers = 1000, 1000
    args.starts = max(1000, 16 * args.ranked)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "papers.json").exists():
            write(folder, args)
        rivals: list[Rival] = []
        for name in args.only:
            python, program, extra = RIVALS[name]
            if not python.exists():
                print(f"{name}: no environment; say `make rivals-env`")
                continue
            try:
                rivals.append(
                    Rival(python, PROGRAMS / f"papers_of_{program}.py", folder, args.core, *extra)
                )
            except RuntimeError as error:
                print(f"{name} is left out: {str(error).strip().splitlines()[-1]}")
        print(
            f"{args.nodes:,} nodes, {args.edges:,} edges; one thread each, on core "
            f"{args.core}; load {os.getloadavg()[0]:.1f}"
        )
        all_tasks = list(dict.fromkeys(task for rival in rivals for task in rival.tasks))
        tasks = [task for task in all_tasks if not args.tasks or task.startswith(tuple(args.tasks))]
        compare(rivals, tasks, args.rounds, args.calls, batches=("",))
        for rival in rivals:
            rival.close()


if __name__ == "__main__":
    main()
