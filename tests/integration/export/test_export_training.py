"""Training on exported partitions with DGL's distributed loader.

It is as accurate as training on the whole graph in one process.
"""

from __future__ import annotations

import csv
import json
import statistics
from pathlib import Path

import numpy as np
import pytest
from tests.kit import dgl_env
from tests.kit.flat_graph import FlatEdges, FlatGraph, FlatNodes
from tests.kit.partitions import write_input
from tests.kit.waiting import HANG_S

from asterism import export
from asterism_model.schema import Schema

pytestmark = pytest.mark.dgl

WORDS = 1433
SPLITS = {"": 0, "train": 1, "val": 2, "test": 3}
SCHEMA = Schema.from_dict(
    {
        "nodes": {"paper": {"features": {"x": {"shape": [WORDS]}, "y": "int64", "split": "uint8"}}},
        "edges": {"paper:cites:paper": {}},
    }
)


def cora(shared: Path) -> FlatGraph:
    """Return Cora with each citation in both directions."""
    with (shared / "data/cora/papers.csv").open() as file:
        rows = list(csv.DictReader(file))
    x = np.zeros((len(rows), WORDS), np.float32)
    for row in rows:
        x[int(row["paper"]), [int(word) for word in row["words"].split()]] = 1
    ids = np.array([int(row["paper"]) for row in rows])
    labels = {
        "y": np.array([int(row["label"]) for row in rows]),
        "split": np.array([SPLITS[row["split"]] for row in rows], np.uint8),
    }
    assert (ids == np.arange(len(rows))).all()
    pairs = np.loadtxt(shared / "data/cora/edges.csv", np.int64, delimiter=",", skiprows=1)
    src, dst = np.concatenate([pairs, pairs[:, ::-1]]).T
    ones = np.ones(len(src), np.float32)
    return FlatGraph(
        schema=SCHEMA,
        nodes={
            "paper": FlatNodes(
                ids=ids, weights=np.ones(len(ids), np.float32), features={"x": x, **labels}
            )
        },
        edges={
            "paper:cites:paper": FlatEdges(src=src, dst=dst, eids=np.arange(len(src)), weights=ones)
        },
        space="cora",
    )


def accuracies(
    folder: Path, shared: Path, python: Path, *, seeds: int, epochs: int, parts: int
) -> tuple[list[float], list[float]]:
    """Return test accuracies by seed, on served partitions and on the whole graph.

    Real DGL servers serve the partitions.
    """
    flat = cora(shared)
    report = export.dgl(flat, folder / "out", parts=parts, assign="metis", homogeneous=True, seed=1)
    assert report.edge_cut > 0
    write_input(flat, folder / "input.npz", names={"paper": "_N", "paper:cites:paper": "_N:_E:_N"})
    script = dgl_env.SCRIPTS / "train_sage.py"
    with dgl_env.warm(python, folder) as dgl:  # the servers and the trainer share its import
        out = dgl_env.run(
            dgl,
            script,
            report.config,
            folder / "input.npz",
            folder,
            seeds,
            epochs,
            home=folder,
            timeout_s=HANG_S,
        )
    result = json.loads(out.splitlines()[-1])
    print(result)
    return result["served"], result["whole"]


def test_graphsage_learns_from_partitions_served_by_dgl(
    tmp_path: Path, shared: Path, dgl_python: Path
) -> None:
    (served,), (baseline,) = accuracies(tmp_path, shared, dgl_python, seeds=1, epochs=8, parts=2)
    assert served > 0.72
    assert abs(served - baseline) < 0.05, (
        "more than three standard errors of 1,000 answers, and what the start of a model makes"
    )


@pytest.mark.slow
def test_partitions_match_whole_graph_accuracy_over_20_seeds(
    tmp_path: Path, shared: Path, dgl_python: Path
) -> None:
    served, baseline = accuracies(
        tmp_path, shared, dgl_python, seeds=20, epochs=12, parts=3
    )  # five seeds would estimate the noise only to within a third
    noise = (statistics.variance(served) / 20 + statistics.variance(baseline) / 20) ** 0.5
    assert statistics.mean(served) > 0.76
    assert abs(statistics.mean(served) - statistics.mean(baseline)) < max(3 * noise, 0.01)
