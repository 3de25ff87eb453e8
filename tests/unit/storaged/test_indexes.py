"""Tests of indexes: matching ranges, their pieces, and the exact distribution of draws."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kit.alias_tables import implied_distribution
from tests.kit.images import Nodes, version_of

from asterism_graphkit.arrays.sort_keys import sort_keys
from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.random import alias_build
from asterism_model.elements import NODE
from asterism_model.filters.binding import bind
from asterism_model.filters.syntax import parse
from asterism_model.indexes import Index, resolve_index
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.errors import InvalidRequest, NotFound
from storaged.kernels.global_sampling.index_range_sampling import cover_run
from storaged.sampling import FilterCache, LocalVersion, RowFilter
from storaged.sampling.filters.index_ranges import (
    ValueDomain,
    can_resolve,
    candidate_rows,
    key_runs,
    resolve_runs,
)
from storaged.sampling.filters.range_cover import RangeCover, build_range_cover
from storaged.sampling.filters.scan import scan_nodes
from storaged.store.column_index import BLOCK_SIZES, level_block_sizes

SIZE = 5000
TEXTS = ("a", "b", "", "it's", "ü")
_FEATURES = (
    Feature(name="price", dtype="float32"),
    Feature(name="stock", dtype="int64"),
    Feature(name="age", dtype="uint8"),
    Feature(name="code", dtype="uint64"),
    Feature(name="sold", dtype="bool"),
    Feature(name="brand", kind="bytes"),
)
_SCHEMA = Schema(node_types=(NodeType(name="n", weighted=True, features=_FEATURES),), parts=2)


def _columns(size: int) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    texts = [TEXTS[i].encode() for i in rng.integers(0, len(TEXTS), size)]
    return {
        "price": np.where(
            rng.random(size) < 0.1, np.nan, np.round(rng.normal(size=size) * 3, 1)
        ).astype(np.float32),
        "stock": rng.integers(-3, 4, size) + np.where(rng.random(size) < 0.05, 2**53, 0),
        "age": rng.integers(0, 90, size).astype(np.uint8),
        "code": rng.integers(2**63 - 3, 2**63 + 3, size, dtype=np.uint64),
        "sold": rng.random(size) < 0.5,
        "brand": (
            np.append(0, np.cumsum([len(text) for text in texts])),
            np.frombuffer(b"".join(texts), np.uint8),
        ),
    }


def _version(size: int = SIZE, *, weighted: bool = True) -> LocalVersion:
    rng = np.random.default_rng(8)
    weights = np.where(rng.random(size) < 0.2, 0, np.exp(rng.normal(size=size) * 5)).astype(
        np.float32
    )
    ids = np.sort(rng.choice(3 * size, size, replace=False)).astype(np.int64)  # sparse
    both = ("price", "stock", "age", "code", "sold", "id", "weight")
    indexes = (*((name, kind) for name in both for kind in ("range", "hash")), ("brand", "hash"))
    nodes = Nodes(
        ids=ids, weights=weights if weighted else None, features=_columns(size), indexes=indexes
    )
    return version_of(_SCHEMA, {"n": nodes})


VERSION = _version()
CONDITIONS = {
    "price": (
        "price > 0.5",
        "price <= -1.2",
        "not price < 1e-3",
        "price != 0.1",
        "price in (0.1, 2, 99)",
        "price between 3 and 1",
        "price is null",
        "price is not null and price > 1 or price < -3",
        "price = 1e300",
    ),
    "stock": (
        "stock == 9007199254740992",
        "stock > 9007199254740992.0",
        "stock < 18446744073709551615",
        "stock not in (1, 2)",
        "stock >= 0.5",
    ),
    "age": (
        "age > -1",
        "age < 300",
        "age == 17",
        "age between 3 and 4",
        "not (age < 5 or age > 80)",
        "age == true",
    ),
    "code": ("code >= 9223372036854775808", "code < 9223372036854775808", "code > -5"),
    "sold": ("sold", "not sold = true", "sold < 1"),
    "id": ("id between 100 and 4000", "id in (1, 2, 3, 5000)"),
    "weight": ("weight > 0", "weight == 0", "weight > 20"),
    "brand": (
        "brand == 'a'",
        'brand != "it\'s"',
        "brand in ('a', 'ü', 'unknown')",
        "brand is null",
        "brand is not null and brand != 'b'",
    ),
}
CASES = [
    (column, text.replace("sold", "sold == true") if text == "sold" else text)
    for column, texts in CONDITIONS.items()
    for text in texts
]


@pytest.mark.parametrize("kind", ["range", "hash"])
@pytest.mark.parametrize(("column", "text"), CASES)
def test_index_lookup_matches_full_scan(column: str, text: str, kind: str) -> None:
    tree = bind(parse(text), _SCHEMA, NODE, 0)
    for image in VERSION.parts.values():
        node = image.nodes[0]
        for index in node.indexes:
            assert can_resolve(index, tree) == (index.column == column)
            if (index.column, index.kind) == (column, kind):
                runs = resolve_runs(index, node, tree)
                assert all(low < high for low, high in runs)
                assert all(left[1] < right[0] for left, right in itertools.pairwise(runs))
                matching_rows = np.concatenate(
                    [np.empty(0, np.uint32), *(index.rows[low:high] for low, high in runs)]
                )
                assert np.array_equal(
                    np.sort(matching_rows),
                    np.flatnonzero(scan_nodes(VERSION, image, 0, tree, lambda: None)),
                )


NUMERIC_CASES = [
    (column, text) for column, text in CASES if column not in ("brand", "id", "weight")
]


@pytest.mark.parametrize(("column", "text"), NUMERIC_CASES)
def test_matching_sort_keys_are_those_of_matching_values(column: str, text: str) -> None:
    tree = bind(parse(text), _SCHEMA, NODE, 0)
    for image in VERSION.parts.values():
        values = image.nodes[0].columns[column].values
        keys, inside = sort_keys(values), np.zeros(values.size, np.bool_)
        runs = key_runs(tree, values.dtype)
        assert all(low <= high for low, high in runs)
        for low, high in runs:
            inside |= (keys >= low) & (keys <= high)
        assert np.array_equal(inside, scan_nodes(VERSION, image, 0, tree, lambda: None))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "float16"])
def test_a_domain_has_every_value_once_in_order(dtype: str) -> None:
    domain = ValueDomain(np.dtype(dtype))
    values = np.concatenate([domain[i : i + 1] for i in range(domain.size)])
    assert values.dtype == dtype
    keys = sort_keys(values)
    assert (np.diff(keys) > 0).all()
    bits = 8 * values.dtype.itemsize
    all_values = (
        np.array([0, 1], np.bool_)
        if dtype == "bool"
        else np.arange(1 << bits, dtype=f"u{bits // 8}").view(dtype)
    )
    if all_values.dtype.kind == "f":  # a single NaN represents all
        all_values = np.append(all_values[~np.isnan(all_values)], all_values.dtype.type(np.nan))
    assert np.array_equal(np.unique(sort_keys(all_values)), keys)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint64"])
def test_a_domain_ends_where_its_type_does(dtype: str) -> None:
    domain = ValueDomain(np.dtype(dtype))
    ends = [
        domain[0:1][0],
        domain[domain.size // 2 : domain.size // 2 + 1][0],
        domain[domain.size - 1 : domain.size][0],
    ]
    if dtype[0] == "f":
        assert (ends[0], float(domain[domain.size // 2 - 1 : domain.size // 2][0])) == (
            -np.inf,
            0.0,
        )
        assert np.isnan(ends[2])
        assert domain[domain.size - 2 : domain.size - 1][0] == np.inf
    else:
        assert (ends[0], ends[2]) == (np.iinfo(dtype).min, np.iinfo(dtype).max)


def test_index_resolves_only_its_own_column_and_constants() -> None:
    price = next(index for index in VERSION.parts[0].nodes[0].indexes if index.column == "price")
    for text in ("price > age", "price > 1 and age > 2", "age > 2", "id > price"):
        assert not can_resolve(price, bind(parse(text), _SCHEMA, NODE, 0))
    assert can_resolve(price, bind(parse("price > 1 and type == 'n'"), _SCHEMA, NODE, 0))


def test_candidates_come_from_the_most_selective_index() -> None:
    node = VERSION.parts[1].nodes[0]
    rows = candidate_rows(
        node.indexes, node, bind(parse("price > age and stock > 0 and age == 17"), _SCHEMA, NODE, 0)
    )
    ages = node.columns["age"].values
    assert rows is not None
    assert np.array_equal(rows, np.flatnonzero(ages == 17))
    assert (
        candidate_rows(
            node.indexes, node, bind(parse("price > age or stock > 0"), _SCHEMA, NODE, 0)
        )
        is None
    )


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 4096, 4097, 300_000])
def test_run_decomposes_into_aligned_blocks(rows: int) -> None:
    rng, steps = (
        np.random.default_rng(rows),
        as_kernel_array(np.array(level_block_sizes(rows), np.int64)),
    )
    for low, high in [(0, rows), *np.sort(rng.integers(0, rows + 1, (40, 2)), axis=1).tolist()]:
        out = np.empty((3, 1000), np.int64)
        count = int(
            cover_run(np.int64(low), np.int64(high), np.int64(rows), steps, out[0], out[1], out[2])
        )
        starts, sizes, levels = out[:, :count]
        assert np.array_equal(np.append(starts, high), np.append(low, low + np.cumsum(sizes)))
        for start, size, level in zip(starts, sizes, levels, strict=True):
            step = 1 if level < 0 else BLOCK_SIZES[level]
            assert start % step == 0
            assert size == min(step, rows - start)
        assert count <= 2 * 63 * (len(steps) + 1) + rows // BLOCK_SIZES[-1] + 2


def _row_probabilities(cover: RangeCover) -> NDArray[np.float64]:
    """Return the exact probability of each row of a cover's index.

    It is that of its piece times that of the row in the piece.
    """
    alias_thresholds, alias_indices = alias_build.pack_thresholds(*alias_build.build(cover.weights))
    probabilities = np.zeros(int(cover.index.rows.max()) + 1)
    tables = {
        table.alias_threshold.ctypes.data + 8 * offset: (table, offset)
        for weight_table in cover.index.tables.values()
        for table in weight_table.levels
        for offset in range(table.alias_threshold.size)
    }
    for start, size, address, share in zip(
        cover.starts,
        cover.sizes,
        cover.threshold_addresses,
        implied_distribution(alias_thresholds, alias_indices),
        strict=True,
    ):
        rows = cover.index.rows[start : start + size]
        if address:
            table, offset = tables[int(address)]
            assert offset == start
            probabilities[rows] += share * implied_distribution(
                table.alias_threshold[offset : offset + size].copy(),
                table.alias_fraction[offset : offset + size],
            )
        else:
            probabilities[rows] += share / size
    return probabilities


@pytest.mark.parametrize(
    "text",
    [
        "price > 0.5",
        "price != 0.1",
        "price is null or price > 7",
        "not price > -100",
        "price between 0.1 and 0.2",
    ],
)
def test_cover_probabilities_are_weights_of_matching_rows(text: str) -> None:
    tree = bind(parse(text), _SCHEMA, NODE, 0)
    for image in VERSION.parts.values():
        node = image.nodes[0]
        mask = scan_nodes(VERSION, image, 0, tree, lambda: None)
        for index in node.indexes:
            if index.column == "price":
                cover = build_range_cover(index, node, resolve_runs(index, node, tree), "")
                expected = np.where(mask, node.weights.astype(np.float64), 0)
                assert cover.totals.count == mask.sum()
                assert cover.totals.positive == (expected > 0).sum()
                np.testing.assert_allclose(cover.totals.weight, expected.sum(), rtol=1e-15)
                probabilities = np.zeros(node.rows)
                probabilities[: _row_probabilities(cover).size] = _row_probabilities(cover)
                np.testing.assert_allclose(
                    probabilities, expected / expected.sum(), rtol=1e-9, atol=2.0**-60
                )
                assert not probabilities[expected == 0].any()


def test_light_rows_beside_heavy_ones_keep_their_shares() -> None:
    """Differences of running sums would lose light rows."""
    weights = np.where(np.arange(200) < 100, 1e30, 1e-20).astype(np.float32)
    nodes = Nodes(
        ids=np.arange(200),
        weights=weights,
        features={"x": np.arange(200.0)},
        indexes=(("x", "range"),),
    )
    schema = Schema(
        node_types=(
            NodeType(name="n", weighted=True, features=(Feature(name="x", dtype="float64"),)),
        ),
        parts=1,
    )
    node = version_of(schema, {"n": nodes}).parts[0].nodes[0]
    cover = build_range_cover(node.indexes[0], node, [(100, 200)], "")
    np.testing.assert_allclose(
        cover.totals.weight, weights[100:].astype(np.float64).sum(), rtol=1e-15
    )
    np.testing.assert_allclose(_row_probabilities(cover)[100:], 1 / 100, rtol=1e-12)


@pytest.mark.parametrize("weighted", [True, False])
def test_filter_shares_are_same_with_and_without_index(weighted: bool) -> None:
    with_index = _version(1000, weighted=weighted)
    without_index = version_of(
        _SCHEMA, {"n": Nodes(ids=np.arange(1000), weights=None, features=_columns(1000))}
    )
    where = RowFilter(text="price > 0.5", element=NODE, types=(0,))
    filter_cache = FilterCache(1 << 30)
    assert filter_cache.describe_plan(with_index, where) == "index on price (range)"
    assert filter_cache.describe_plan(without_index, where) == "every row looked at once"
    assert filter_cache.describe_plan(
        with_index, RowFilter(text="price > age and stock < 0", element=NODE, types=(0,))
    ) == ("rows that the index on stock (range) leaves, looked at once")
    shares = filter_cache.filtered_totals(with_index, where, [0, 1], lambda: None)
    filtered = filter_cache.filtered_version(with_index, where, shares, lambda: None)
    for part, image in filtered.parts.items():
        share = shares[NODE, 0, part]
        assert (share.count, share.positive) == (image.nodes[0].count, image.nodes[0].table.size)
        np.testing.assert_allclose(share.weight, image.nodes[0].table.total, rtol=1e-14)
    assert not filtered.range_covers
    assert filter_cache.filtered_version(
        with_index, where, shares, lambda: None, for_global_draws=True
    ).range_covers


def test_keys_are_in_the_order_of_values() -> None:
    for values in (
        np.array([-np.inf, -1e300, -1.5, -5e-324, 0.0, 5e-324, 1.0, np.inf, np.nan]),
        np.array([-(2**63), -1, 0, 2**63 - 1], np.int64),
        np.array([0, 1, 2**63, 2**64 - 1], np.uint64),
        np.array([False, True]),
    ):
        assert (np.diff(sort_keys(values).astype(object)) > 0).all()
    assert sort_keys(np.array([-0.0]))[0] == sort_keys(np.array([0.0]))[0]


_ITEM = NodeType(
    name="item",
    features=(
        Feature(name="price"),
        Feature(name="in"),
        Feature(name="size", shape=(3,)),
        Feature(name="tags", kind="ragged", dtype="int64"),
        Feature(name="brand", kind="bytes"),
    ),
)
_SHOP = Schema(
    node_types=(_ITEM,),
    edge_types=(
        EdgeType(
            src_type="item", relation="like", dst_type="item", features=(Feature(name="stars"),)
        ),
    ),
)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("price", "range"),
        ("`in`", "hash"),
        ("size[2]", "range"),
        ("id", "range"),
        ("brand", "hash"),
    ],
)
def test_index_column_uses_filter_syntax(column: str, kind: str) -> None:
    assert resolve_index(_SHOP, type_name="item", column=f" {column} ", kind=kind) == Index(
        element=NODE, type_id=0, column=column, kind=kind
    )


@pytest.mark.parametrize(
    ("type_name", "column", "kind", "words"),
    [
        ("item", "price", "tree", "kind 'tree': expected hash or range"),
        ("item", "size", "range", r"shape \[3\]"),
        ("item", "tags", "hash", "numbers or strings"),
        ("item", "brand", "range", "use kind hash"),
        ("item", "price > 3 and price", "range", "one column"),
        ("item", "", "range", "one column"),
        ("item", "type", "hash", "numbers or strings"),
        ("like", "stars", "range", r"add `index: \[stars\]`"),
        ("like", "src.price", "range", "a column of the edge itself"),
        ("like", "type", "hash", "a column of the edge itself"),
    ],
)
def test_columns_without_an_index_order_are_refused(
    type_name: str, column: str, kind: str, words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words):
        resolve_index(_SHOP, type_name=type_name, column=column, kind=kind)


def test_index_of_missing_type_or_column_is_not_found() -> None:
    with pytest.raises(NotFound, match="no node type 'shop'"):
        resolve_index(_SHOP, type_name="shop", column="price", kind="range")
    with pytest.raises(NotFound, match="'weigth'"):
        resolve_index(_SHOP, type_name="item", column="weigth", kind="range")
