"""Shared part of the rival programs: load a graph, list tasks, and time requested tasks.

A line on standard input is ``first calls task``: call the task with the seeds first .. first +
calls - 1. The reply is a line of JSON on standard output: the seconds of each call, and the number
of draws, steps or edges in the last result. This module and its siblings need NumPy and the library
that they measure, and nothing of this project."""

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
    """The graph of a comparison, as written by `tests.benchmarks.rivals`.

    Edges lead from src to dst.
    """

    folder: Path
    nodes: int
    draws: int
    """Number of draws of a task that samples nodes."""
    width: int
    """Number of neighbors per node of a task that samples neighbors."""
    walkers: int
    """Number of walks per call, from the first starts; fewer because some rivals are slow."""
    length: int
    """Number of steps of a walk."""
    fanouts: list[int]
    p: float
    q: float

    @classmethod
    def at(cls, folder: str) -> Graph:
        return cls(folder=Path(folder), **json.loads((Path(folder) / "graph.json").read_text()))

    def column(self, name: str) -> NDArray[Any]:
        """Return a column: src, dst, weights, node_weights, starts or seeds.

        Starts are for neighbor sampling and walks; seeds have one row per batch.
        """
        column: NDArray[Any] = np.load(self.folder / f"{name}.npy")
        return column


@dataclass(frozen=True)
class Papers:
    """Parameters of the samplers, as written by `tests.benchmarks.papers`."""

    shadow: list[int]
    """Neighbors per hop of ShaDow's subgraphs, from the first to the last hop."""
    walks: int
    """Walks per node of PinSAGE."""
    traversals: int
    neighbors: int
    """Neighbors per node by visit counts."""
    members: int
    """Number of nodes of an induced subgraph."""
    clusters: int
    """Number of clusters per batch."""
    budget: int
    """Number of nodes or edges of a GraphSAINT subgraph."""
    roots: int
    """Number of roots of GraphSAINT's walks."""
    length: int
    starts: int
    """Number of starts per PageRank call."""
    top: int
    alpha: float
    epsilon: float

    @classmethod
    def at(cls, folder: str) -> Papers:
        return cls(**json.loads((Path(folder) / "papers.json").read_text()))


TOGETHER = 8
"""Number of batches of a task that requests several.

They run one after another, or concurrently if the rival supports it.
"""
Task = tuple[Callable[[int], Any], Callable[[Any], int]]
"""A task: the timed function, and the number of draws, steps or edges in its result."""


def answer(name: str, tasks: Mapping[str, Task]) -> None:
    """Answer requests until the input ends.

    ``name`` describes the rival, with its version.
    """
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries goes to stderr
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
    """Return the number of steps in walks, one row each from its start; -1 is none."""
    return int((walks[:, 1:] >= 0).sum())
