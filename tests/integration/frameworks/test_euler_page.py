"""The page for users of Euler: its code runs unchanged, from the JSON to the operators.

It runs with NumPy, real torch and real TensorFlow.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.kit import pyg_env

from asterism.euler import Euler

TENSORS = """
import numpy as np

with asterism.open("euler.db", space="graph", mode="r") as graph:
    arrays, tensors = Euler(graph), Euler(graph, framework="torch")

    def same(array, tensor):
        if isinstance(array, (list, tuple)) and not hasattr(array, "indices"):
            assert type(array) is type(tensor) and len(array) == len(tensor)
            for one, other in zip(array, tensor):
                same(one, other)
        elif hasattr(array, "indices"):
            assert tensor.is_sparse and tuple(tensor.shape) == array.dense_shape
            assert np.array_equal(tensor._indices().numpy().T, array.indices)
            same(array.values, tensor._values())
        else:
            assert isinstance(tensor, torch.Tensor) and tensor.numpy().dtype == array.dtype
            assert np.array_equal(tensor.numpy(), array)

    calls = {
        "get_node_type_id": lambda e: e.get_node_type_id("-1"),
        "sample_node": lambda e: e.sample_node(9, "item", seed=1),
        "sample_node_with_src": lambda e: e.sample_node_with_src(torch.tensor([0, 4]), 3, seed=1),
        "sample_edge": lambda e: e.sample_edge(9, seed=1),
        "sample_neighbor": lambda e: e.sample_neighbor(torch.tensor([0, 77]), -1, 3, 9, seed=1),
        "get_top_k_neighbor": lambda e: e.get_top_k_neighbor([0, 1], -1, 2),
        "get_full_neighbor": lambda e: e.get_full_neighbor([0, 77, 1], ["buys"]),
        "sample_fanout": lambda e: e.sample_fanout([0, 1], ["knows", "buys"], [2, 2], seed=1),
        "sample_fanout_with_feature": lambda e: e.sample_fanout_with_feature(
            [0, 1], ["knows"], [2], -1, ["x"], [2], [], None, seed=1
        ),
        "sample_neighbor_layerwise": lambda e: e.sample_neighbor_layerwise(
            torch.tensor([[0, 1]]), "buys", 3, seed=1
        ),
        "sparse_get_adj": lambda e: e.sparse_get_adj([0, 1], [3, 4, 5], "buys"),
        "get_multi_hop_neighbor": lambda e: e.get_multi_hop_neighbor([0], ["knows", "buys"]),
        "random_walk": lambda e: e.random_walk([0, 1], ["knows", "buys"], seed=1),
        "gen_pair": lambda e: e.gen_pair([[1, 2, 3]], 1, 1),
        "get_dense_feature": lambda e: e.get_dense_feature(torch.tensor([0, 77]), ["x"], [2]),
        "get_node_type": lambda e: e.get_node_type(torch.tensor([[0, 77]])),
        "inflate_idx": lambda e: e.inflate_idx([0, 1, 0]),
        "sparse_gather": lambda e: e.sparse_gather([1], [[0, 3], [1, 2]], [7, 8], [2, 4]),
    }
    for name, call in calls.items():
        print(name)
        same(call(arrays), call(tensors))
print("OK")
"""
"""Program that calls each operator with NumPy and with torch, and compares the results."""


def page_code(root: Path, language: str) -> str:
    return "\n".join(
        re.findall(
            rf"^```{language}\n(.*?)^```$",
            (root / "docs/euler.md").read_text(),
            re.MULTILINE | re.DOTALL,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRun:
    """The page's program after its end."""

    folder: Path
    """The folder in which it ran."""
    names: dict[str, Any]
    """Its variables."""


@pytest.fixture(scope="module")
def page_run(root: Path, tmp_path_factory: pytest.TempPathFactory) -> PageRun:
    """Run the page's program; the programs for frameworks read the graph that it leaves."""
    folder = tmp_path_factory.mktemp("page")
    names: dict[str, Any] = {}
    with contextlib.chdir(folder):
        try:
            exec(compile(page_code(root, "python"), "docs/euler.md", "exec"), names)
        finally:
            if "client" in names:
                names["client"].close()
    return PageRun(folder=folder, names=names)


def framework_code(root: Path, page_run: PageRun, language: str) -> str:
    """Return the page's program for a framework, which runs in the folder of the page's graph."""
    return f"import os\nos.chdir({str(page_run.folder)!r})\n" + page_code(root, language)


def test_page_code_runs(page_run: PageRun) -> None:
    assert set(page_run.names["nodes"].tolist()) <= {0, 1, 2}
    assert (page_run.folder / "euler.db").is_dir()


@pytest.mark.pyg
def test_the_code_for_torch_runs_with_torch(
    root: Path, pyg_python: Path, page_run: PageRun, tmp_path: Path
) -> None:
    program = tmp_path / "page.py"
    program.write_text(framework_code(root, page_run, "python torch") + TENSORS)
    assert pyg_env.run(pyg_python, program, home=tmp_path).splitlines()[-1] == "OK"


@pytest.mark.tensorflow
def test_the_code_for_tensorflow_runs_with_tensorflow(
    root: Path, tf_python: Path, page_run: PageRun, tmp_path: Path
) -> None:
    program = tmp_path / "page.py"
    program.write_text(framework_code(root, page_run, "python tensorflow") + "\nprint('OK')\n")
    assert pyg_env.run(tf_python, program, home=tmp_path).splitlines()[-1] == "OK"


def test_the_table_of_names_has_every_operator(root: Path) -> None:
    table = (
        (root / "docs/euler.md").read_text().split("## Names")[1].split("## What is different")[0]
    )
    operators = [
        name for name in dir(Euler) if not name.startswith("_") and callable(getattr(Euler, name))
    ]
    assert len(operators) == 36
    assert [name for name in operators if f"`{name}" not in table] == []
