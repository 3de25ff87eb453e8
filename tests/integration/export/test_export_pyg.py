"""Partitions in the layout of `torch_geometric.distributed`, loaded by PyG's own stores.

Each node, edge and feature occurs once, at its position.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.integration.export.test_export_chunks import hetero_graph
from tests.integration.export.test_export_verify import USERS
from tests.kit.flat_graph import FlatGraph, generate
from tests.kit.waiting import HANG_S
from tests.kit.warm_interpreter import WarmInterpreter

from asterism import export
from asterism_proto.errors import InvalidRequest, NotFound

pytestmark = pytest.mark.pyg
LOADER = Path(__file__).parents[2] / "kit/pyg/load_partitions.py"


@pytest.fixture(scope="module")
def pyg(pyg_python: Path) -> Iterator[WarmInterpreter]:
    with WarmInterpreter(
        pyg_python,
        ["torch_geometric.distributed"],
        scripts=LOADER.parent,
        environment={"OMP_NUM_THREADS": "1"},  # idle threads of OpenMP spin
    ) as interpreter:
        yield interpreter


def load_in_pyg(python: WarmInterpreter, folder: Path, output: Path) -> list[dict[str, Any]]:
    output.mkdir()
    completed = python.run(
        LOADER, folder, output, environment={"OMP_NUM_THREADS": "1"}, timeout_s=HANG_S
    )
    assert completed.returncode == 0, completed.stdout[-3000:]
    return [
        dict(np.load(output / f"part{part}.npz")) for part in range(len(list(output.iterdir())))
    ]


def assert_partitions_match(
    parts: list[dict[str, Any]],
    out: Path,
    flat: FlatGraph,
    ntype: str,
    etype: str,
    names: tuple[str, str],
) -> None:
    """Compare one edge type and its destination type in PyG's stores with the flat graph."""
    node, edge = names
    src, _, dst = etype.split(":")
    nids = {name: np.load(out / f"node_ids/{name}.npy") for name in {src, dst, ntype}}
    eids = np.load(out / f"edge_ids/{etype}.npy")
    stored, order = flat.edges[etype], np.argsort(flat.edges[etype].eids)
    owners, edge_owners = parts[0][f"node_map|{node}"], parts[0][f"edge_map|{edge}"]
    np.testing.assert_array_equal(np.sort(nids[ntype]), np.sort(flat.nodes[ntype].ids))
    np.testing.assert_array_equal(np.sort(eids), np.sort(stored.eids))
    edge_count = 0
    for number, part in enumerate(parts):
        first = part[f"edge_id|{edge}"].min()
        own_edges = np.flatnonzero(edge_owners == number)
        np.testing.assert_array_equal(part[f"edge_id|{edge}"], own_edges + first - own_edges[0])
        rows = order[np.searchsorted(stored.eids[order], eids[own_edges])]
        np.testing.assert_array_equal(nids[src][part[f"row|{edge}"]], stored.src[rows])
        np.testing.assert_array_equal(nids[dst][part[f"col|{edge}"]], stored.dst[rows])
        assert (np.diff(part[f"col|{edge}"]) >= 0).all(), "not by destination"
        assert part[f"size|{edge}"].tolist() == [len(nids[src]), len(nids[dst])]
        assert (owners[part[f"col|{edge}"]] == number).all() if dst == ntype else True
        expected = {f"{edge}|{name}": values[rows] for name, values in stored.features.items()}
        node_order = np.argsort(flat.nodes[ntype].ids)
        node_rows = node_order[
            np.searchsorted(flat.nodes[ntype].ids[node_order], nids[ntype][owners == number])
        ]
        expected |= {
            f"{node}|{name}": values[node_rows]
            for name, values in flat.nodes[ntype].features.items()
        }
        for name, values in expected.items():
            actual = part[f"feat|{name}"]
            np.testing.assert_array_equal(actual, values.astype(actual.dtype))
            assert actual.dtype == {
                np.dtype(bool): np.dtype(np.uint8),
                np.dtype(np.uint16): np.dtype(np.int32),
            }.get(values.dtype, values.dtype)
        edge_count += len(own_edges)
    assert edge_count == len(stored.eids)


def test_pyg_loads_a_graph_of_several_types(tmp_path: Path, pyg: WarmInterpreter) -> None:
    flat = hetero_graph(sparse=True)
    export.dgl(flat, tmp_path / "dgl", parts=3, assign="metis")
    report = export.pyg(tmp_path / "dgl", tmp_path / "pyg")
    assert (report.parts, report.nodes, report.edges) == (3, 420, 2200)
    parts = load_in_pyg(pyg, tmp_path / "pyg", tmp_path / "loaded")
    for ntype, etype in (
        ("paper", "paper:cites:paper"),
        ("author", "author:writes:paper"),
        ("paper", "author:writes:paper"),
    ):
        assert_partitions_match(parts, tmp_path / "pyg", flat, ntype, etype, (ntype, etype))
    weights = np.concatenate([part["feat|paper:cites:paper|weight"] for part in parts])
    np.testing.assert_array_equal(
        np.sort(weights), np.sort(flat.edges["paper:cites:paper"].weights)
    )
    # Global node ids continue across types, as in PyG's own partitioner.
    np.testing.assert_array_equal(
        np.sort(np.concatenate([part["global|paper"] for part in parts])), np.arange(120, 420)
    )


def test_pyg_loads_a_graph_without_types(tmp_path: Path, pyg: WarmInterpreter) -> None:
    flat = generate(USERS, nodes={"user": 50}, edges={"user:knows:user": 200}, seed=2)
    export.dgl(flat, tmp_path / "dgl", parts=2)
    export.pyg(tmp_path / "dgl", tmp_path / "pyg")
    parts = load_in_pyg(pyg, tmp_path / "pyg", tmp_path / "loaded")
    assert "feat|_N|x" in parts[0]
    assert_partitions_match(parts, tmp_path / "pyg", flat, "user", "user:knows:user", ("_N", "_E"))


def test_pyg_layout_needs_an_export_in_a_local_folder(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no manifest"):
        export.pyg(tmp_path / "none", tmp_path / "pyg")
    with pytest.raises(InvalidRequest, match="expected a local folder"):
        export.pyg("memory://x", tmp_path / "pyg")
    flat = generate(USERS, nodes={"user": 50}, edges={"user:knows:user": 200}, seed=2)
    export.dgl(flat, tmp_path / "dgl", parts=2)
    first = export.pyg(tmp_path / "dgl", tmp_path / "pyg")
    manifest = (tmp_path / "pyg/manifest.json").read_bytes()
    assert export.pyg(tmp_path / "dgl", tmp_path / "pyg", overwrite=True).files == first.files
    assert (tmp_path / "pyg/manifest.json").read_bytes() == manifest, "not the same bytes"
