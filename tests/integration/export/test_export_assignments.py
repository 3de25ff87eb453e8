"""Assignment of nodes to partitions in exports.

The tests cover the methods, what they balance, trainers within partitions, and the repair of
partitions that DGL cannot load.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.flat_graph import FlatEdges, FlatGraph, FlatNodes, generate
from tests.kit.partitions import assert_partition, read_partition

from asterism import export
from asterism.export.dgl_tensor_files import read_tensors
from asterism.export.partitioning import coarsening, metis
from asterism_model.schema import Schema
from asterism_proto.errors import Conflict, InvalidRequest, NotReady

SCHEMA = Schema.from_dict(
    {
        "parts": 3,
        "nodes": {
            "paper": {
                "features": {
                    "feat": {"shape": [3]},
                    "split": "int8",
                    "held": "bool",
                    "x": "float32",
                }
            },
            "author": {"weighted": True},
        },
        "edges": {"paper:cites:paper": {"weighted": True}, "author:writes:paper": {}},
    }
)
NODES = {"paper": 800, "author": 300}
EDGES = {"paper:cites:paper": 4000, "author:writes:paper": 1500}
METHODS = ("random", "hash", "metis", "ldg", "fennel")


def graph(*, sparse: bool = True) -> FlatGraph:
    """Return a graph in which papers cite nearby papers; the first tenth is one split."""
    flat = generate(SCHEMA, nodes=NODES, edges=EDGES, seed=3, sparse=sparse)
    papers, cites = flat.nodes["paper"], flat.edges["paper:cites:paper"]
    ids, generator = np.sort(papers.ids), np.random.default_rng(4)
    positions = generator.integers(0, 800, 4000)
    cites.src[:], cites.dst[:] = (
        ids[positions],
        ids[(positions + generator.integers(1, 30, 4000)) % 800],
    )
    papers.features["split"][:] = np.argsort(np.argsort(papers.ids)) < 80
    return flat


def read_owners(out: Path, parts: int, kind: str) -> dict[int, int]:
    """Return the owner of each node, by stored id."""
    return {
        int(node): part
        for part in range(parts)
        for node in read_tensors(out / f"part{part}/orig_nids.dgl")[kind]
    }


def count_per_part(
    out: Path, parts: int, flat: FlatGraph, kind: str, keep: np.ndarray
) -> np.ndarray:
    """Return how many of some nodes each partition owns."""
    owner = read_owners(out, parts, kind)
    return np.bincount([owner[int(i)] for i in flat.nodes[kind].ids[keep]], minlength=parts)


@pytest.mark.parametrize("trainers", [1, 3])
def test_metis_with_coarsening_gives_complete_low_cut_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trainers: int
) -> None:
    flat = graph()
    uncoarsened = export.dgl(
        flat, tmp_path / "whole", parts=2, assign="metis", seed=5, num_trainers_per_machine=trainers
    )
    monkeypatch.setattr(coarsening, "COARSE_NODES", 400)
    options: dict[str, Any] = {
        "parts": 2,
        "assign": "metis",
        "seed": 5,
        "num_trainers_per_machine": trainers,
    }
    report = export.dgl(flat, tmp_path / "out", **options, balance_edges=True)
    assert_partition(read_partition(report.config), flat, trainers=trainers)
    assert report.edge_cut < 1.2 * uncoarsened.edge_cut + 100
    assert (
        export.dgl(flat, tmp_path / "again", **options, balance_edges=True).edge_cut
        == report.edge_cut
    )
    manifests = [(tmp_path / name / "manifest.json").read_bytes() for name in ("out", "again")]
    assert manifests[0] == manifests[1], "not the same bytes"
    assert (
        export.dgl(flat, tmp_path / "vol", **options, objective="vol").edge_cut < report.edges / 2
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("trainers", [1, 3])
def test_every_method_fills_parts_and_balances_trainers(
    tmp_path: Path, method: str, trainers: int
) -> None:
    flat = graph()
    report = export.dgl(
        flat,
        tmp_path / "out",
        parts=2,
        assign=method,
        seed=5,
        num_trainers_per_machine=trainers,
        passes=2,
    )
    assert_partition(read_partition(report.config), flat, trainers=trainers)
    assert report.warnings == ()
    if trainers > 1:
        shares = [
            np.bincount(
                read_tensors(tmp_path / f"out/part{p}/node_feat.dgl")["paper/trainer_id"],
                minlength=6,
            )
            for p in range(2)
        ]
        assert (shares[0][:3] > 800 / 6 / 2).all()
        assert (shares[1][3:] > 800 / 6 / 2).all()


def test_one_part_of_several_trainers(tmp_path: Path) -> None:
    flat = graph()
    report = export.dgl(flat, tmp_path / "out", parts=1, assign="metis", num_trainers_per_machine=4)
    assert_partition(read_partition(report.config), flat, trainers=4)
    counts = np.bincount(read_tensors(tmp_path / "out/part0/node_feat.dgl")["paper/trainer_id"])
    assert counts.max() < 1.2 * 200


@pytest.mark.parametrize("method", ["random", "hash"])
def test_hash_parts_do_not_depend_on_the_trainer_count(tmp_path: Path, method: str) -> None:
    flat = graph()
    for trainers in (1, 4):
        export.dgl(
            flat,
            tmp_path / f"{trainers}",
            parts=3,
            assign=method,
            num_trainers_per_machine=trainers,
            seed=1,
        )
    assert read_owners(tmp_path / "1", 3, "author") == read_owners(tmp_path / "4", 3, "author")


@pytest.mark.parametrize("method", ["metis", "ldg", "fennel"])
def test_the_same_seed_gives_the_same_parts(tmp_path: Path, method: str) -> None:
    flat = graph()
    owners = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        export.dgl(flat, tmp_path / name, parts=3, assign=method, seed=seed)
        owners.append(read_owners(tmp_path / name, 3, "paper"))
    assert owners[0] == owners[1] != owners[2]


@pytest.mark.parametrize("method", ["metis", "ldg", "fennel"])
def test_few_edges_are_cut(tmp_path: Path, method: str) -> None:
    cut = export.dgl(graph(), tmp_path / "cut", parts=4, assign=method, passes=5).edge_cut
    assert cut < 0.6 * export.dgl(graph(), tmp_path / "random", parts=4).edge_cut


@pytest.mark.parametrize(("method", "slack"), [("metis", 1.3), ("ldg", 1.05), ("fennel", 1.05)])
def test_each_value_of_a_balance_feature_or_array_is_balanced(
    tmp_path: Path, method: str, slack: float
) -> None:
    flat = graph()
    few = flat.nodes["paper"].features["split"] == 1
    order = np.argsort(flat.nodes["paper"].ids)
    balances: dict[str, Any] = {
        "feature": {"paper": "split"},
        "array": {"paper": flat.nodes["paper"].features["split"][order]},
    }
    for name, balance in balances.items():
        export.dgl(flat, tmp_path / name, parts=4, assign=method, seed=1, balance_ntypes=balance)
        for keep in (few, ~few):
            assert (
                count_per_part(tmp_path / name, 4, flat, "paper", keep).max()
                <= slack * keep.sum() / 4
            )
        all_authors = np.ones(300, np.bool_)
        assert count_per_part(tmp_path / name, 4, flat, "author", all_authors).max() <= slack * 75
    assert read_owners(tmp_path / "feature", 4, "paper") == read_owners(
        tmp_path / "array", 4, "paper"
    )
    export.dgl(flat, tmp_path / "without", parts=4, assign=method, seed=1, balance_ntypes=False)
    assert count_per_part(tmp_path / "without", 4, flat, "paper", few).max() > 1.5 * few.sum() / 4


@pytest.mark.parametrize("method", ["metis", "ldg", "fennel"])
def test_in_degrees_are_balanced_on_request(tmp_path: Path, method: str) -> None:
    flat, generator = graph(), np.random.default_rng(6)
    ids = np.sort(flat.nodes["paper"].ids)
    heavy = generator.random(4000) < 0.7
    cites = flat.edges["paper:cites:paper"]
    cites.dst[heavy] = ids[generator.integers(0, 80, 4000)[heavy]]
    cites.src[heavy] = ids[generator.integers(0, 200, 4000)[heavy]]
    loads = []
    for balance_edges in (False, True):
        report = export.dgl(
            flat,
            tmp_path / f"{balance_edges}",
            parts=4,
            assign=method,
            seed=1,
            balance_edges=balance_edges,
            imbalance=0.1,
            passes=3,
        )
        loads.append(max(sum(part.edges.values()) for part in report.parts) / (report.edges / 4))
    assert loads[1] < 1.25
    assert loads[1] < loads[0]


def test_pymetis_replaces_missing_metis_and_warns_of_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metis, "_metis32", lambda: None)
    monkeypatch.setattr(metis, "_metis64", lambda: None)
    flat = graph()
    report = export.dgl(flat, tmp_path / "out", parts=3, assign="metis")
    assert_partition(read_partition(report.config), flat)
    assert [("one constraint" in warning) for warning in report.warnings] == [True]


def test_metis_is_refused_when_it_exceeds_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "asterism.export.partitioning.assignment_methods.available_bytes", lambda: 1 << 18
    )
    with pytest.raises(
        NotReady,
        match=r"assign='metis': expected .* GiB .* for 1100 nodes and 5\d\d\d edges, 0.0 GiB",
    ):
        export.dgl(graph(), tmp_path / "out", parts=2, assign="metis")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("made_for", [2, 6])
def test_assignment_folder_may_name_parts_or_trainers(tmp_path: Path, made_for: int) -> None:
    flat, generator = graph(), np.random.default_rng(5)
    owners_by_type = {name: generator.integers(0, made_for, n) for name, n in NODES.items()}
    (tmp_path / "parts").mkdir()
    for name, owners in owners_by_type.items():
        np.savetxt(tmp_path / f"parts/{name}.txt", owners, fmt="%d")
    (tmp_path / "parts/partition_meta.json").write_text(
        f'{{"num_parts": {made_for}, "algo_name": "metis"}}'
    )
    report = export.dgl(
        flat, tmp_path / "out", parts=2, assign=tmp_path / "parts", num_trainers_per_machine=3
    )
    assert_partition(read_partition(report.config), flat, trainers=3)
    for part in range(2):
        ids, trainers = (
            read_tensors(tmp_path / f"out/part{part}/{name}.dgl")
            for name in ("orig_nids", "node_feat")
        )
        for name in NODES:
            rank = np.searchsorted(np.sort(flat.nodes[name].ids), ids[name])
            expected = owners_by_type[name][rank]
            np.testing.assert_array_equal(
                trainers[f"{name}/trainer_id"]
                if made_for == 6
                else trainers[f"{name}/trainer_id"] // 3,
                expected,
            )


@pytest.mark.parametrize("method", METHODS)
def test_written_assignment_equals_the_one_export_computes(tmp_path: Path, method: str) -> None:
    flat = graph()
    report = export.assignment(flat, tmp_path / "given", parts=3, assign=method, seed=7)
    files = {f"{kind}.{end}" for kind in NODES for end in ("txt", "members.npy", "offsets.npy")}
    assert {path.name for path in (tmp_path / "given").iterdir()} == {
        *files,
        "partition_meta.json",
        "manifest.json",
    }
    for kind in NODES:
        members, offsets = (
            np.load(tmp_path / f"given/{kind}.{name}.npy") for name in ("members", "offsets")
        )
        owner = dict(
            zip(members.tolist(), np.repeat(np.arange(3), np.diff(offsets)).tolist(), strict=True)
        )
        assert [owner[node] for node in sorted(owner)] == [
            int(line) for line in (tmp_path / f"given/{kind}.txt").read_text().split()
        ]
        assert all((np.diff(members[a:b]) > 0).all() for a, b in pairwise(offsets.tolist()))
    export.dgl(flat, tmp_path / "at once", parts=3, assign=method, seed=7)
    export.dgl(flat, tmp_path / "in two", parts=3, assign=tmp_path / "given")
    for kind, count in NODES.items():
        owner = read_owners(tmp_path / "at once", 3, kind)
        assert owner == read_owners(tmp_path / "in two", 3, kind)
        assert list(report.nodes[kind]) == np.bincount(list(owner.values()), minlength=3).tolist()
        assert sum(report.nodes[kind]) == count
    with pytest.raises(Conflict, match="overwrite"):
        export.assignment(flat, tmp_path / "given", parts=4)
    export.assignment(flat, tmp_path / "given", parts=4, assign="random", overwrite=True)
    assert '"num_parts": 4' in (tmp_path / "given/partition_meta.json").read_text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_trainers_per_machine": 0}, "num_trainers_per_machine=0"),
        ({"num_trainers_per_machine": 1 << 15}, "num_trainers_per_machine=32768"),
        ({"imbalance": 0.0}, "imbalance=0"),
        ({"imbalance": 2.0}, "imbalance=2"),
        ({"passes": 0}, "passes=0"),
        ({"assign": "ldg", "balance_ntypes": {"papers": "split"}}, "papers"),
        (
            {"assign": "ldg", "balance_ntypes": {"paper": "x"}},
            "='x': expected a feature of one integer",
        ),
        ({"assign": "ldg", "balance_ntypes": {"paper": "feat"}}, "'feat': expected a feature"),
        ({"assign": "ldg", "balance_ntypes": {"paper": "gone"}}, "'gone': expected a feature"),
        ({"assign": "ldg", "balance_ntypes": {"paper": np.zeros(3, np.int64)}}, "800 nodes"),
        ({"assign": "ldg", "balance_ntypes": {"paper": np.zeros(800)}}, "float64"),
        ({"assign": "ldg", "balance_ntypes": {"paper": np.arange(800)}}, "800 different values"),
        (
            {"assign": "metis", "balance_ntypes": {"paper": np.arange(800) % 100}},
            "101 values to balance",
        ),
    ],
)
def test_invalid_option_is_refused(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        export.dgl(graph(), tmp_path / "out", parts=2, **options)
    assert list(tmp_path.iterdir()) == []


# -- the repair ------------------------------------------------------------------------------------

FEW = Schema.from_dict(
    {
        "parts": 2,
        "nodes": {"a": {"features": {"x": {}}}, "b": {}},
        "edges": {"a:r:a": {"features": {"w": {}}}, "a:s:b": {"features": {"w": {}}}, "b:t:a": {}},
    }
)


def small_graph(ends: dict[str, tuple[list[int], list[int]]], *, a: int, b: int) -> FlatGraph:
    nodes = {
        "a": FlatNodes(
            ids=np.arange(a),
            weights=np.ones(a, np.float32),
            features={"x": np.arange(a, dtype=np.float32)},
        ),
        "b": FlatNodes(ids=np.arange(b), weights=np.ones(b, np.float32)),
    }
    edges = {}
    for kind, (src, dst) in (
        {"a:r:a": ([], []), "a:s:b": ([], []), "b:t:a": ([], [])} | ends
    ).items():
        m = len(src)
        features = {} if kind == "b:t:a" else {"w": np.arange(m, dtype=np.float32)}
        edges[kind] = FlatEdges(
            src=np.array(src, np.int64),
            dst=np.array(dst, np.int64),
            eids=np.arange(m),
            weights=np.ones(m, np.float32),
            features=features,
        )
    return FlatGraph(schema=FEW, nodes=nodes, edges=edges)


def write_assignment(folder: Path, parts: int, **owners: list[int]) -> Path:
    folder.mkdir()
    for kind, node_parts in owners.items():
        (folder / f"{kind}.txt").write_text("".join(f"{part}\n" for part in node_parts))
    (folder / "partition_meta.json").write_text(f'{{"num_parts": {parts}, "algo_name": "given"}}')
    return folder


def test_repair_gives_each_part_an_edge_of_featured_types(tmp_path: Path) -> None:
    flat = small_graph({"a:r:a": ([0, 1, 2, 3], [4, 5, 6, 7]), "a:s:b": ([0, 0], [0, 1])}, a=8, b=2)
    assignment = write_assignment(tmp_path / "given", 2, a=[1, 1, 1, 1, 0, 0, 0, 0], b=[0, 1])
    report = export.dgl(flat, tmp_path / "out", parts=2, assign=assignment)
    assert_partition(read_partition(report.config), flat)
    assert [part.edges["a:r:a"] for part in report.parts] == [3, 1]
    assert read_owners(tmp_path / "out", 2, "a") == {0: 1, 1: 1, 2: 1, 3: 1, 4: 0, 5: 0, 6: 0, 7: 1}
    (warning,) = (warning for warning in report.warnings if "moved" in warning)
    assert "edge type a:r:a: part(s) 1 owned none" in warning
    assert not any(
        "own no edge" in warning or "owns no edge" in warning for warning in report.warnings
    )


def test_repair_never_takes_the_last_node_of_a_part(tmp_path: Path) -> None:
    # Only nodes 4 and 5 have in-edges of a:r:a, and they are the only nodes of type a in part 0.
    # The repair moves one of them and keeps the other.
    flat = small_graph({"a:r:a": ([0, 1], [4, 5]), "a:s:b": ([0, 0, 0], [0, 1, 2])}, a=6, b=3)
    assignment = write_assignment(tmp_path / "given", 2, a=[1, 1, 1, 1, 0, 0], b=[0, 0, 1])
    report = export.dgl(flat, tmp_path / "out", parts=2, assign=assignment)
    assert [part.edges["a:r:a"] for part in report.parts] == [1, 1]
    assert [part.nodes["a"] for part in report.parts] == [1, 5]
    assert [part.edges["a:s:b"] for part in report.parts] == [2, 1]


def test_unavoidable_parts_without_edges_give_a_warning(tmp_path: Path) -> None:
    flat = small_graph({"a:r:a": ([0, 1, 2], [4, 4, 4]), "a:s:b": ([0, 0], [0, 1])}, a=8, b=2)
    assignment = write_assignment(tmp_path / "given", 2, a=[0, 1] * 4, b=[0, 1])
    report = export.dgl(flat, tmp_path / "out", parts=2, assign=assignment)
    assert_partition(read_partition(report.config), flat)
    assert any("own no edge of type a:r:a" in warning for warning in report.warnings)
    assert not any("moved" in warning for warning in report.warnings)


def test_every_part_owns_an_edge_even_without_edge_features(tmp_path: Path) -> None:
    flat = small_graph({"b:t:a": ([0, 0, 1], [0, 1, 2])}, a=6, b=2)
    assignment = write_assignment(tmp_path / "given", 2, a=[0, 0, 0, 1, 1, 1], b=[0, 1])
    report = export.dgl(flat, tmp_path / "out", parts=2, assign=assignment)
    assert_partition(read_partition(report.config), flat)
    assert [sum(part.edges.values()) for part in report.parts] == [2, 1]
    assert any(warning.startswith("edges: part(s) 1 owned none") for warning in report.warnings)


@pytest.mark.parametrize("seed", range(20))
def test_repair_leaves_no_part_without_a_required_type(tmp_path: Path, seed: int) -> None:
    generator = np.random.default_rng(seed)
    ends = {
        kind: tuple(generator.integers(0, n, m).tolist() for n in sizes)
        for kind, sizes, m in (("a:r:a", (30, 12), 40), ("a:s:b", (30, 9), 20))
    }
    flat = small_graph(ends, a=30, b=9)  # type: ignore[arg-type]  # pairs of lists
    assignment = write_assignment(
        tmp_path / "given", 4, a=[0] * 12 + generator.integers(0, 4, 18).tolist(), b=[3] * 9
    )
    report = export.dgl(flat, tmp_path / "out", parts=4, assign=assignment)
    assert_partition(read_partition(report.config), flat)
    # For either type, at least as many nodes have in-edges as there are parts. A valid assignment
    # therefore exists, and the repair must find it.
    assert all(len(set(dst)) >= 4 for _, dst in ends.values())
    assert all(
        count > 0
        for part in report.parts
        for count in (part.nodes["a"], part.nodes["b"], part.edges["a:r:a"], part.edges["a:s:b"])
    )
    assert any("moved" in warning for warning in report.warnings)
