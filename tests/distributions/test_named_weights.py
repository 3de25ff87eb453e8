"""Tests of weight tables: distributions, alias rows and totals against NumPy arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kit.alias_tables import implied_distribution
from tests.kit.building import BuildResult, Op, run_build

from asterism_model.elements import Element
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest
from storaged.build.weights import summarize_weights
from storaged.store import block_store, keys
from storaged.store.alias_table_store import AliasTableStore
from storaged.store.image import AliasTable, NodeImage, RowWeights

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

TABLES = {
    "popular": "pow(clicks, 0.75)",
    "fresh": "weight * exp(-age / 30)",
    "few": {"expression": "log(clicks) - 1", "invalid": "zero"},
}
ORACLE: dict[str, Callable[[dict[str, F64]], F64]] = {
    "popular": lambda c: c["clicks"] ** 0.75,
    "fresh": lambda c: c["weight"] * np.exp(-c["age"] / 30),
    "few": lambda c: np.log(c["clicks"]) - 1,
}
TYPE = {
    "weighted": True,
    "features": {"clicks": "int32", "age": "float32", "look": {"shape": 2}},
    "tables": TABLES,
}


def schema_of(
    parts: int,
    *,
    edges: str = "multi",
    direction: str = "both",
    tables: dict[str, object] | None = None,
) -> Schema:
    edge = {**TYPE, "edges": edges, **({} if tables is None else {"tables": tables})}
    return Schema.from_dict(
        {
            "parts": parts,
            "direction": direction,
            "nodes": {"a": TYPE, "b": {}},
            "edges": {"a:r:a": edge},
        }
    )


def columns(rng: np.random.Generator, n: int) -> dict[str, NDArray[np.generic]]:
    clicks = np.minimum(rng.pareto(0.7, n), 1e6).astype(np.int32)
    return {
        "weight": rng.random(n, np.float32) * (rng.random(n) < 0.9),
        "f:clicks": clicks,
        "f:age": rng.integers(0, 400, n).astype(np.float32),
        "f:look": rng.random((n, 2), np.float32),
    }


def expected_weights(name: str, arrays: dict[str, NDArray[np.generic]]) -> F64:
    """Return the weights of a table by NumPy arithmetic, before float32."""
    with np.errstate(all="ignore"):
        values = ORACLE[name](
            {
                "weight": arrays["weight"].astype(np.float64),
                **{c: arrays[f"f:{c}"].astype(np.float64) for c in ("clicks", "age")},
            }
        )
    return np.where(np.isfinite(values) & (values >= 0), values, 0.0)


def table_probabilities(table: AliasTable, rows: int) -> F64:
    out = np.zeros(rows)
    columns = (
        implied_distribution(table.hot, table.cold)
        if table.hot.size
        else np.full(table.size, 1 / max(table.size, 1))
    )
    out[table.row_of if table.row_of.size else np.arange(table.size)] = columns
    return out


def take_rows(
    arrays: dict[str, NDArray[np.generic]], rows: NDArray[np.int64]
) -> dict[str, NDArray[np.generic]]:
    return {name: array[rows] for name, array in arrays.items()}


def node_loads(
    rng: np.random.Generator, n: int, stride: int = 1
) -> tuple[list[list[Op]], NDArray[np.int64], dict[str, NDArray[np.generic]]]:
    """Return nodes, a third of them rewritten without features, and some deleted.

    Also returns the live ids and their columns.
    """
    ids, arrays = np.arange(n, dtype=np.int64) * stride, columns(rng, n)
    rewritten, deleted = np.flatnonzero(rng.random(n) < 0.3), np.flatnonzero(rng.random(n) < 0.1)
    new_columns = {"weight": rng.random(rewritten.size, np.float32)}
    loads = [
        [Op(kind=block_store.NODES, type_id=0, arrays={"ids": ids, **arrays})],
        [Op(kind=block_store.NODES, type_id=0, arrays={"ids": ids[rewritten], **new_columns})],
        [Op(kind=block_store.NODE_DELETES, type_id=0, arrays={"ids": ids[deleted]})],
    ]
    arrays = {name: array.copy() for name, array in arrays.items()}
    arrays["weight"][rewritten] = new_columns["weight"]
    alive = np.setdiff1d(np.arange(n), deleted)
    return loads, ids[alive], take_rows(arrays, alive)


def part_rows(
    image: NodeImage, part: int, parts: int, ids: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ids that live in a partition, and their rows."""
    in_part = np.flatnonzero(ids % parts == part)
    return in_part, ids[in_part] // parts if image.dense else np.searchsorted(
        image.ids, ids[in_part]
    )


@pytest.mark.parametrize("stride", [1, 7919], ids=["dense", "sparse"])
def test_node_tables_follow_their_expressions(tmp_path: Path, stride: int) -> None:
    loads, ids, arrays = node_loads(np.random.default_rng(stride), 6000, stride)
    new_build = run_build(tmp_path, schema_of(3), loads)
    for part, image in enumerate(new_build.images):
        node = image.nodes[0]
        in_part, rows = part_rows(node, part, 3, ids)
        assert list(node.extra_weights) == list(TABLES)
        for name, named in node.extra_weights.items():
            exact = np.zeros(node.rows)
            exact[rows] = expected_weights(name, take_rows(arrays, in_part))
            assert np.allclose(named.weights, exact, rtol=2**-23, atol=0)
            assert (
                np.abs(table_probabilities(named.table, node.rows) - exact / exact.sum()).max()
                <= 1e-7
            )  # one rounding to float32
            stored = named.weights.astype(np.float64)
            assert (
                np.abs(table_probabilities(named.table, node.rows) - stored / stored.sum()).max()
                <= 1e-12
            )
        assert np.allclose(
            table_probabilities(node.table, node.rows)[rows],
            arrays["weight"][in_part] / arrays["weight"][in_part].sum(dtype=np.float64),
        )


@pytest.mark.parametrize("direction", ["out", "both"])
def test_edge_tables_and_alias_rows_follow_their_expressions(
    tmp_path: Path, direction: str
) -> None:
    rng = np.random.default_rng(11)
    n, m = 200, 20_000
    arrays = columns(rng, m)
    src, dst = np.where(rng.random(m) < 0.3, 5, rng.integers(0, n, m)), rng.integers(0, n, m)
    nodes = Op(kind=block_store.NODES, type_id=0, arrays={"ids": np.arange(n), **columns(rng, n)})
    cuts = [slice(low, low + 3000) for low in range(0, m, 3000)]
    edges = [
        Op(
            kind=block_store.OUT_EDGES,
            type_id=0,
            arrays={"src": src[c], "dst": dst[c], "eid": np.arange(m)[c], **take_rows(arrays, c)},
        )
        for c in cuts
    ]
    new_build = run_build(tmp_path, schema_of(2, direction=direction), [[nodes, *edges]])
    for image in new_build.images:
        edge = image.edges[0]
        sides = [
            (edge.outgoing, "outgoing"),
            *([(edge.incoming, "incoming")] if edge.incoming is not None else []),
        ]
        assert len(sides) == (2 if direction == "both" else 1)
        for name, named in edge.extra_weights.items():
            exact = expected_weights(name, take_rows(arrays, edge.outgoing.eid))
            assert np.allclose(named.outgoing.weights, exact, rtol=2**-23, atol=0)
            assert (
                np.abs(table_probabilities(named.table, exact.size) - exact / exact.sum()).max()
                <= 1e-7
            )
            for side, which in sides:
                assert side is not None
                assert_alias_rows(
                    side.indptr,
                    getattr(named, which),
                    expected_weights(name, take_rows(arrays, side.eid)),
                )


def assert_alias_rows(indptr: NDArray[np.int64], rows: RowWeights, exact: F64) -> None:
    assert np.allclose(rows.weights, exact, rtol=2**-23, atol=0)
    for row, (low, high) in enumerate(pairwise(indptr)):
        row_weights = rows.weights[low:high].astype(np.float64)
        assert rows.sums[row] == pytest.approx(float(row_weights.sum()), rel=1e-12)
        if row_weights.sum() > 0:
            assert (
                np.abs(
                    implied_distribution(rows.hot[low:high], rows.cold[low:high])
                    - row_weights / row_weights.sum()
                ).max()
                <= 1e-12
            )


@pytest.mark.parametrize("edges", ["multi", "unique"])
def test_deletes_and_replacements_update_named_weights(tmp_path: Path, edges: str) -> None:
    rng = np.random.default_rng(3)
    n, m = 12, 900
    schema = schema_of(2, edges=edges)
    loads: list[list[Op]] = [
        [Op(kind=block_store.NODES, type_id=0, arrays={"ids": np.arange(n), **columns(rng, n)})]
    ]
    living: dict[tuple[int, int, int], dict[str, float]] = {}
    for load in range(3):
        src, dst, eid = (
            rng.integers(0, n, m // 3),
            rng.integers(0, n, m // 3),
            np.arange(m // 3) + load * 1000,
        )
        arrays = columns(rng, m // 3)
        loads.append(
            [
                Op(
                    kind=block_store.OUT_EDGES,
                    type_id=0,
                    arrays={"src": src, "dst": dst, "eid": eid, **arrays},
                )
            ]
        )
        for i, (s, d, e) in enumerate(zip(src.tolist(), dst.tolist(), eid.tolist(), strict=True)):
            if edges == "unique":
                living = {key: row for key, row in living.items() if key[:2] != (s, d)}
            living[s, d, e] = {
                name: float(array[i]) for name, array in arrays.items() if array.ndim == 1
            }
        deleted = rng.choice(len(living), 20, replace=False)
        deleted_keys = [list(living)[i] for i in deleted]
        triples = np.array(deleted_keys, np.int64)
        loads.append(
            [
                Op(
                    kind=block_store.OUT_EDGE_DELETES,
                    type_id=0,
                    arrays={"src": triples[:, 0], "dst": triples[:, 1], "eid": triples[:, 2]},
                )
            ]
        )
        for key in deleted_keys:
            living.pop(key, None)
    small, large = (
        run_build(tmp_path, schema, loads, memory_limit_mib=limit, name=f"out{limit}")
        for limit in (1, 512)
    )
    assert small.digests == large.digests
    by_eid = {eid: row for (_, _, eid), row in living.items()}
    seen = 0
    for image in large.images:
        edge = image.edges[0]
        assert edge.incoming is not None
        for side, which in ((edge.outgoing, "outgoing"), (edge.incoming, "incoming")):
            arrays = {
                name: np.array([by_eid[eid][name] for eid in side.eid.tolist()])
                for name in ("weight", "f:clicks", "f:age")
            }
            for name, named in edge.extra_weights.items():
                assert np.allclose(
                    getattr(named, which).weights,
                    expected_weights(name, arrays),
                    rtol=2**-23,
                    atol=0,
                )
        seen += edge.outgoing.eid.size
    assert seen == len(living)


def test_both_copies_of_an_edge_have_the_same_named_weights(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    m = 3000
    nodes = Op(kind=block_store.NODES, type_id=0, arrays={"ids": np.arange(50), **columns(rng, 50)})
    ends = {"src": rng.integers(0, 50, m), "dst": rng.integers(0, 50, m), "eid": np.arange(m)}
    new_build = run_build(
        tmp_path,
        schema_of(3),
        [[nodes, Op(kind=block_store.OUT_EDGES, type_id=0, arrays={**ends, **columns(rng, m)})]],
    )
    totals = [
        total
        for result in new_build.results
        for total in result.totals
        if total.element == Element.EDGE
    ]
    mixes = {}
    for name in ("weight", *TABLES):
        table_totals = [total for total in totals if total.weight_name == name]
        assert len(table_totals) == 3
        assert (
            sum(total.count for total in table_totals)
            == sum(total.count_in for total in table_totals)
            == m
        )
        mixes[name] = sum(total.mix_out for total in table_totals) % 2**64
        assert mixes[name] == sum(total.mix_in for total in table_totals) % 2**64
    assert len(set(mixes.values())) == 4


def test_the_stat_database_keeps_every_table_under_its_name(tmp_path: Path) -> None:
    loads, _, _ = node_loads(np.random.default_rng(2), 500)
    new_build = run_build(tmp_path, schema_of(1), loads)
    store = AliasTableStore.open(new_build.output)
    for name, named in new_build.images[0].nodes[0].extra_weights.items():
        blocks = store.blocks(0, keys.B1, 0, name, named.table.size, final=True)
        rows, _, _, _, _, weights = (np.concatenate(column) for column in zip(*blocks, strict=True))
        assert np.array_equal(weights, named.weights[rows])
        assert np.array_equal(rows, np.flatnonzero(named.weights))
    store.close()


def single_table_graph(
    values: Sequence[float], table: object, *, edges: bool = False
) -> tuple[Schema, list[list[Op]]]:
    """Return a schema of one column and one table, on nodes or on edges between two nodes."""
    type_fields = {"features": {"x": "float64"}, "tables": {"t": table}}
    x, ids = np.array(values, np.float64), np.arange(len(values))
    if not edges:
        return Schema.from_dict({"parts": 1, "nodes": {"a": type_fields}}), [
            [Op(kind=block_store.NODES, type_id=0, arrays={"ids": ids, "f:x": x})]
        ]
    ends = {"src": ids * 0, "dst": ids * 0 + 1, "eid": ids}
    ops = [
        Op(kind=block_store.NODES, type_id=0, arrays={"ids": np.arange(2)}),
        Op(kind=block_store.OUT_EDGES, type_id=0, arrays={**ends, "f:x": x}),
    ]
    return Schema.from_dict({"parts": 1, "nodes": {"a": {}}, "edges": {"a:r:a": type_fields}}), [
        ops
    ]


@pytest.mark.parametrize(
    ("values", "expression", "said"),
    [
        ([1, 2, -3], "x", r"node 2: weight 't' is -3.0 \(x\)"),
        ([1, 0, 2], "log(x)", r"node 1: weight 't' is -inf \(log\(x\)\)"),
        ([1, -2], "sqrt(x)", r"node 1: weight 't' is nan \(sqrt\(x\)\)"),
        ([1, 400, 5], "exp(x)", r"node 1: weight 't' is inf \(exp\(x\)\)"),
    ],
)
def test_invalid_weight_fails_the_build_and_is_located(
    tmp_path: Path, values: list[float], expression: str, said: str
) -> None:
    schema, loads = single_table_graph(values, expression)
    with pytest.raises(InvalidRequest, match=f"part 0, node type 'a', {said}"):
        run_build(tmp_path, schema, loads)


def test_invalid_edge_weight_fails_unless_the_edge_is_deleted(tmp_path: Path) -> None:
    schema, loads = single_table_graph([1, 2, -3, 4], "x", edges=True)
    with pytest.raises(
        InvalidRequest, match=r"part 0, edge type 'a:r:a', edge 2: weight 't' is -3.0 \(x\)"
    ):
        run_build(tmp_path / "kept", schema, loads)
    edge_deletes = Op(
        kind=block_store.OUT_EDGE_DELETES,
        type_id=0,
        arrays={"src": np.array([0]), "dst": np.array([1]), "eid": np.array([2])},
    )
    new_build = run_build(tmp_path / "gone", schema, [*loads, [edge_deletes]])
    assert new_build.images[0].edges[0].extra_weights["t"].outgoing.weights.tolist() == [1, 2, 4]


EDGE_CASE_WEIGHTS = [
    0.0,
    -0.0,
    1e-42,
    1e-45,
    1e-46,
    1.2e-38,
    1.0,
    3.5,
    7e37,
    -1.0,
    -1e-45,
    float("nan"),
    float("inf"),
    float("-inf"),
    1e39,
    2.0,
]


@pytest.mark.parametrize("edges", [False, True], ids=["nodes", "edges"])
def test_statistics_of_edge_case_weights_equal_numpy(tmp_path: Path, edges: bool) -> None:
    schema, loads = single_table_graph(
        EDGE_CASE_WEIGHTS, {"expression": "x", "invalid": "zero"}, edges=edges
    )
    new_build = run_build(tmp_path, schema, loads)
    total = next(total for total in new_build.results[0].totals if total.weight_name == "t")
    with np.errstate(over="ignore"):
        values = np.array(EDGE_CASE_WEIGHTS).astype(np.float32)
    positive = values[np.isfinite(values) & (values > 0)].astype(np.float64)
    assert (total.count, total.positive) == (16, positive.size)
    assert (total.negative, total.nan, total.infinite) == (2, 1, 3)
    assert total.zero == 3  # 0, -0, and a value too small for float32
    assert total.subnormal == np.count_nonzero(positive < np.finfo(np.float32).tiny) == 2
    assert total.largest == positive.max()
    assert total.squares == pytest.approx((positive**2).sum(), rel=1e-15)
    assert total.zero + total.negative + total.nan + total.infinite + total.positive == total.count
    default_total = next(
        total
        for total in new_build.results[0].totals
        if total.weight_name == "weight"
        and total.type_id == 0
        and total.element == (Element.EDGE if edges else Element.NODE)
    )
    assert (default_total.zero, default_total.squares, default_total.largest) == (0, 16.0, 1.0)


def test_weight_statistics_skip_holes_and_sum_fixed_blocks() -> None:
    rng = np.random.default_rng(1)
    weights = rng.random(200_000, np.float32) * (rng.random(200_000) < 0.8)
    live = (rng.random(200_000) < 0.7).astype(np.uint8)
    statistics = summarize_weights(weights, live, weights.size, int(live.sum()))
    live_weights = weights[live > 0].astype(np.float64)
    assert statistics.zero == np.count_nonzero(live_weights == 0)
    assert statistics.squares == pytest.approx((live_weights**2).sum(), rel=1e-14)
    assert statistics.largest == live_weights.max()


def test_type_without_tables_has_an_image_without_tables(tmp_path: Path) -> None:
    plain = Schema.from_dict({"parts": 2, "nodes": {"a": {**TYPE, "tables": {}}, "b": {}}})
    loads, _, _ = node_loads(np.random.default_rng(4), 400)
    new_build = run_build(tmp_path, plain, loads)
    assert "tables" not in (
        new_build.output / "parts" / "p00000" / "manifest.json"
    ).read_text().replace('"table"', "")
    assert all(
        total.weight_name == "weight" for result in new_build.results for total in result.totals
    )


def named_build(folder: Path, expression: str) -> BuildResult:
    schema, loads = single_table_graph([1.0, 2.0, 3.0], expression)
    return run_build(folder, schema, loads, name="out")


def test_another_expression_is_another_build(tmp_path: Path) -> None:
    first = named_build(tmp_path, "x")
    repeated = named_build(tmp_path, "x")
    other = named_build(tmp_path, "x ** 2")
    assert first.digests == repeated.digests != other.digests
    assert other.images[0].nodes[0].extra_weights["t"].weights.tolist() == [1, 4, 9]
