"""Edge cases: types without rows, a single node, only loops, fewer nodes than partitions."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kit.flat_graph import FlatGraph, generate
from tests.kit.partitions import assert_partition, read_partition

from asterism import export
from asterism_model.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "parts": 2,
        "nodes": {"a": {"features": {"x": {"shape": [2]}}}, "b": {}},
        "edges": {"a:r:a": {"weighted": True}, "a:s:b": {"features": {"w": "int32"}}, "b:t:a": {}},
    }
)
COUNTS = {
    "a type without nodes": ((20, 0), (40, 0, 0)),
    "no edges": ((20, 5), (0, 0, 0)),
    "one node": ((1, 0), (3, 0, 0)),
    "loops": ((12, 3), (60, 0, 0)),
    "fewer nodes than parts": ((3, 2), (2, 1, 0)),
    "isolated nodes": ((200, 100), (5, 1, 1)),
}


def graph(kind: str) -> FlatGraph:
    (a, b), (r, s, t) = COUNTS[kind]
    flat = generate(
        SCHEMA, nodes={"a": a, "b": b}, edges={"a:r:a": r, "a:s:b": s, "b:t:a": t}, seed=1
    )
    if kind == "loops":
        flat.edges["a:r:a"].src[:] = flat.edges["a:r:a"].dst
    return flat


@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize("method", ["random", "metis", "fennel"])
def test_odd_graphs_are_complete_in_every_layout(tmp_path: Path, kind: str, method: str) -> None:
    flat = graph(kind)
    report = export.dgl(
        flat,
        tmp_path / "out",
        parts=7,
        assign=method,
        balance_edges=True,
        halo_hops=2,
        formats=("coo", "csr", "csc"),
    )
    assert_partition(read_partition(report.config), flat, hops=2)
    assert export.verify(tmp_path / "out").problems == ()
    export.dispatch(tmp_path / "out", f"{tmp_path}/at/{{part}}")
    assert export.verify(f"{tmp_path}/at/{{part}}").problems == ()
    pyg_report = export.pyg(tmp_path / "out", tmp_path / "pyg")
    assert (pyg_report.nodes, pyg_report.edges) == (report.nodes, report.edges)
    single = export.dgl(flat, tmp_path / "one", parts=1, assign=method)
    assert_partition(read_partition(single.config), flat)
    assert single.edge_cut == 0
