"""What the programs beside this one have in common: they load a graph, say what they can, and time
what they are told.

A line on standard input is ``first calls task``: call the task with the seeds first .. first +
calls - 1. A line of JSON on standard output answers: the seconds of each call, and how many draws,
steps or edges the last one gave. This module and those beside it need NumPy and what they measure,
and nothing of this project."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Graph:
    """The graph of a comparison, as `tests.benchmarks.rivals` wrote it: edges lead from src to
    dst.
    """

    folder: Path
    nodes: int
    draws: int
    """Of a task that draws nodes."""
    width: int
    """Neighbors of each node, of a task that draws neighbors."""
    walkers: int
    """Walks in a call, from the first of the starts: some rivals take long."""
    length: int
    """Steps of a walk."""
    fanouts: list[int]
    p: float
    q: float

    @classmethod
    def at(cls, folder: str) -> Graph:
        return cls(folder=Path(folder), **json.loads((Path(folder) / "graph.json").read_text()))

    def column(self, name: str) -> NDArray[Any]:
        """src, dst, weights, node_weights, starts (of neighbor draws and walks), or seeds (a row
        per batch).
        """
        column: NDArray[Any] = np.load(self.folder / f"{name}.npy")
        return column


@dataclass(frozen=True)
class Papers:
    """How the samplers of today's papers are asked, as `tests.benchmarks.papers` wrote it."""

    shadow: list[int]
    """Neighbors of each hop of ShaDow's subgraphs, from the first to the last."""
    walks: int
    """Of each node, of PinSAGE."""
    traversals: int
    neighbors: int
    """Of each node, by visits."""
    members: int
    """Nodes of an induced subgraph."""
    clusters: int
    """Of a batch of clusters."""
    budget: int
    """Nodes or edges of a subgraph of GraphSAINT."""
    roots: int
    """Of its walks."""
    length: int
    starts: int
    """Of a call for PageRank."""
    top: int
    alpha: float
    epsilon: float

    @classmethod
    def at(cls, folder: str) -> Papers:
        return cls(**json.loads((Path(folder) / "papers.json").read_text()))


TOGETHER = 8
"""Batches of a task that asks for several: one after another, or as many at a time as whoever is
asked can do.
"""
Task = tuple[Callable[[int], Any], Callable[[Any], int]]
"""What is timed, and how many draws, steps or edges its result holds."""


def answer(name: str, tasks: Mapping[str, Task]) -> None:
    """Answer until there is nothing more to read. ``name`` says what is measured, with its
    version.
    """
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries say what they like, elsewhere
    print(json.dumps({"name": name, "tasks": list(tasks)}), file=output, flush=True)
    for line in sys.stdin:
        first, calls, task = line.rstrip("\n").split(" ", 2)
        run, size = tasks[task]
        seconds, result = [], None
        for seed in range(int(first), int(first) + int(calls)):
            started = time.perf_counter()
            result = run(seed)
            seconds.append(time.perf_counter() - started)
        print(json.dumps({"seconds": seconds, "size": size(result)}), file=output, flush=True)


def real(walks: NDArray[Any]) -> int:
    """Steps of walks, a row each from its start on; -1 is none."""
    return int((walks[:, 1:] >= 0).sum())
