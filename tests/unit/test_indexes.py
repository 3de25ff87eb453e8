"""Indexes: what of one satisfies a condition, the pieces that it is cut into, and the exact law of draws from them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kit.images import Nodes, version_of

from asterism_proto.condition import parse
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.indexes import Index, index_of
from asterism_proto.meaning import NODE, bound
from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from graphkit import alias
from graphkit.jit import settled
from graphkit.order import sort_keys
from storaged.draw import Conditions, Version, Where
from storaged.draw.covers import Cover, cover_of
from storaged.draw.intervals import Domain, answers, candidates, key_runs, runs_of
from storaged.draw.looking import nodes_that
from storaged.kernel.covered import decompose
from storaged.store.ordered import STEPS, levels_of

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
        "price": np.where(rng.random(size) < 0.1, np.nan, np.round(rng.normal(size=size) * 3, 1)).astype(np.float32),
        "stock": rng.integers(-3, 4, size) + np.where(rng.random(size) < 0.05, 2**53, 0),
        "age": rng.integers(0, 90, size).astype(np.uint8),
        "code": rng.integers(2**63 - 3, 2**63 + 3, size, dtype=np.uint64),
        "sold": rng.random(size) < 0.5,
        "brand": (np.append(0, np.cumsum([len(text) for text in texts])), np.frombuffer(b"".join(texts), np.uint8)),
    }


def _version(size: int = SIZE, *, weighted: bool = True) -> Version:
    rng = np.random.default_rng(8)
    weights = np.where(rng.random(size) < 0.2, 0, np.exp(rng.normal(size=size) * 5)).astype(np.float32)
    ids = np.sort(rng.choice(3 * size, size, replace=False)).astype(np.int64)  # sparse
    both = ("price", "stock", "age", "code", "sold", "id", "weight")
    indexes = (*((name, kind) for name in both for kind in ("range", "hash")), ("brand", "hash"))
    nodes = Nodes(ids=ids, weights=weights if weighted else None, features=_columns(size), indexes=indexes)
    return version_of(_SCHEMA, {"n": nodes})


WHOLE = _version()
CONDITIONS = {
    "price": ("price > 0.5", "price <= -1.2", "not price < 1e-3", "price != 0.1", "price in (0.1, 2, 99)", "price between 3 and 1", "price is null",
              "price is not null and price > 1 or price < -3", "price = 1e300"),
    "stock": ("stock == 9007199254740992", "stock > 9007199254740992.0", "stock < 18446744073709551615", "stock not in (1, 2)", "stock >= 0.5"),
    "age": ("age > -1", "age < 300", "age == 17", "age between 3 and 4", "not (age < 5 or age > 80)", "age == true"),
    "code": ("code >= 9223372036854775808", "code < 9223372036854775808", "code > -5"),
    "sold": ("sold", "not sold = true", "sold < 1"),
    "id": ("id between 100 and 4000", "id in (1, 2, 3, 5000)"),
    "weight": ("weight > 0", "weight == 0", "weight > 20"),
    "brand": ("brand == 'a'", "brand != \"it's\"", "brand in ('a', 'ü', 'nobody')", "brand is null", "brand is not null and brand != 'b'"),
}  # fmt: skip
ASKED = [(column, text.replace("sold", "sold == true") if text == "sold" else text) for column, texts in CONDITIONS.items() for text in texts]


@pytest.mark.parametrize("kind", ["range", "hash"])
@pytest.mark.parametrize(("column", "text"), ASKED)
def test_what_of_an_index_satisfies_a_condition_is_what_looking_finds(column: str, text: str, kind: str) -> None:
    tree = bound(parse(text), _SCHEMA, NODE, 0)
    for image in WHOLE.parts.values():
        node = image.nodes[0]
        for index in node.indexes:
            assert answers(index, tree) == (index.column == column)
            if (index.column, index.kind) == (column, kind):
                runs = runs_of(index, node, tree)
                assert all(low < high for low, high in runs)
                assert all(left[1] < right[0] for left, right in itertools.pairwise(runs))
                found = np.concatenate([np.empty(0, np.uint32), *(index.rows[low:high] for low, high in runs)])
                assert np.array_equal(np.sort(found), np.flatnonzero(nodes_that(WHOLE, image, 0, tree, lambda: None)))


NUMBERS = [(column, text) for column, text in ASKED if column not in ("brand", "id", "weight")]


@pytest.mark.parametrize(("column", "text"), NUMBERS)
def test_the_keys_that_satisfy_a_condition_are_those_of_the_values_that_do(column: str, text: str) -> None:
    tree = bound(parse(text), _SCHEMA, NODE, 0)
    for image in WHOLE.parts.values():
        values = image.nodes[0].columns[column].values
        keys, inside = sort_keys(values), np.zeros(values.size, np.bool_)
        runs = key_runs(tree, values.dtype)
        assert all(low <= high for low, high in runs)
        for low, high in runs:
            inside |= (keys >= low) & (keys <= high)
        assert np.array_equal(inside, nodes_that(WHOLE, image, 0, tree, lambda: None))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "float16"])
def test_a_domain_has_every_value_once_in_order(dtype: str) -> None:
    domain = Domain(np.dtype(dtype))
    values = np.concatenate([domain[at : at + 1] for at in range(domain.size)])
    assert values.dtype == dtype
    keys = sort_keys(values)
    assert (np.diff(keys) > 0).all()
    bits = 8 * values.dtype.itemsize
    every = np.array([0, 1], np.bool_) if dtype == "bool" else np.arange(1 << bits, dtype=f"u{bits // 8}").view(dtype)
    if every.dtype.kind == "f":  # of the many that are not a number one will do
        every = np.append(every[~np.isnan(every)], every.dtype.type(np.nan))
    assert np.array_equal(np.unique(sort_keys(every)), keys)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint64"])
def test_a_domain_ends_where_its_type_does(dtype: str) -> None:
    domain = Domain(np.dtype(dtype))
    ends = [domain[0:1][0], domain[domain.size // 2 : domain.size // 2 + 1][0], domain[domain.size - 1 : domain.size][0]]
    if dtype[0] == "f":
        assert (ends[0], float(domain[domain.size // 2 - 1 : domain.size // 2][0])) == (-np.inf, 0.0)
        assert np.isnan(ends[2])
        assert domain[domain.size - 2 : domain.size - 1][0] == np.inf
    else:
        assert (ends[0], ends[2]) == (np.iinfo(dtype).min, np.iinfo(dtype).max)


def test_an_index_answers_for_nothing_but_its_own_column_and_constants() -> None:
    price = next(index for index in WHOLE.parts[0].nodes[0].indexes if index.column == "price")
    for text in ("price > age", "price > 1 and age > 2", "age > 2", "id > price"):
        assert not answers(price, bound(parse(text), _SCHEMA, NODE, 0))
    assert answers(price, bound(parse("price > 1 and type == 'n'"), _SCHEMA, NODE, 0))


def test_rows_that_an_index_leaves_are_the_fewest_and_all_that_satisfy_a_condition() -> None:
    node = WHOLE.parts[1].nodes[0]
    found = candidates(node.indexes, node, bound(parse("price > age and stock > 0 and age == 17"), _SCHEMA, NODE, 0))
    ages = node.columns["age"].values
    assert found is not None
    assert np.array_equal(found, np.flatnonzero(ages == 17))
    assert candidates(node.indexes, node, bound(parse("price > age or stock > 0"), _SCHEMA, NODE, 0)) is None


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 4096, 4097, 300_000])
def test_pieces_of_a_run_are_whole_blocks_that_make_it_up(rows: int) -> None:
    rng, steps = np.random.default_rng(rows), settled(np.array(levels_of(rows), np.int64))
    for low, high in [(0, rows), *np.sort(rng.integers(0, rows + 1, (40, 2)), axis=1).tolist()]:
        out = np.empty((3, 1000), np.int64)
        count = int(decompose(np.int64(low), np.int64(high), np.int64(rows), steps, out[0], out[1], out[2]))
        starts, sizes, levels = out[:, :count]
        assert np.array_equal(np.append(starts, high), np.append(low, low + np.cumsum(sizes)))
        for start, size, level in zip(starts, sizes, levels, strict=True):
            step = 1 if level < 0 else STEPS[level]
            assert start % step == 0
            assert size == min(step, rows - start)
        assert count <= 2 * 63 * (len(steps) + 1) + rows // STEPS[-1] + 2


def _law(cover: Cover) -> NDArray[np.float64]:
    """The exact probability of each row of a cover's index: of its piece, then of it in the piece."""
    hot, cold = alias.thresholds(*alias.build(cover.measure))
    out = np.zeros(int(cover.index.rows.max()) + 1)
    tables = {
        table.hot.ctypes.data + 8 * at: (table, at) for of in cover.index.tables.values() for table in of.levels for at in range(table.hot.size)
    }
    for start, size, address, share in zip(cover.starts, cover.sizes, cover.hots, alias.law(hot, cold), strict=True):
        rows = cover.index.rows[start : start + size]
        if address:
            table, at = tables[int(address)]
            assert at == start
            out[rows] += share * alias.law(table.hot[at : at + size].copy(), table.cold[at : at + size])
        else:
            out[rows] += share / size
    return out


@pytest.mark.parametrize("text", ["price > 0.5", "price != 0.1", "price is null or price > 7", "not price > -100", "price between 0.1 and 0.2"])
def test_the_law_of_a_cover_is_the_weights_among_what_satisfies_the_condition(text: str) -> None:
    tree = bound(parse(text), _SCHEMA, NODE, 0)
    for image in WHOLE.parts.values():
        node = image.nodes[0]
        mask = nodes_that(WHOLE, image, 0, tree, lambda: None)
        for index in node.indexes:
            if index.column == "price":
                cover = cover_of(index, node, runs_of(index, node, tree), "")
                law = np.where(mask, node.weights.astype(np.float64), 0)
                assert cover.share.count == mask.sum()
                assert cover.share.positive == (law > 0).sum()
                np.testing.assert_allclose(cover.share.weight, law.sum(), rtol=1e-15)
                found = np.zeros(node.rows)
                found[: _law(cover).size] = _law(cover)
                np.testing.assert_allclose(found, law / law.sum(), rtol=1e-9, atol=2.0**-60)
                assert not found[law == 0].any()


def test_light_rows_beside_heavy_ones_keep_their_shares() -> None:
    """Differences of running sums would have lost them."""
    weights = np.where(np.arange(200) < 100, 1e30, 1e-20).astype(np.float32)
    nodes = Nodes(ids=np.arange(200), weights=weights, features={"x": np.arange(200.0)}, indexes=(("x", "range"),))
    schema = Schema(node_types=(NodeType(name="n", weighted=True, features=(Feature(name="x", dtype="float64"),)),), parts=1)
    node = version_of(schema, {"n": nodes}).parts[0].nodes[0]
    cover = cover_of(node.indexes[0], node, [(100, 200)], "")
    np.testing.assert_allclose(cover.share.weight, weights[100:].astype(np.float64).sum(), rtol=1e-15)
    np.testing.assert_allclose(_law(cover)[100:], 1 / 100, rtol=1e-12)


@pytest.mark.parametrize("weighted", [True, False])
def test_conditions_tell_the_same_of_rows_with_an_index_and_without(weighted: bool) -> None:
    with_index = _version(1000, weighted=weighted)
    bare = version_of(_SCHEMA, {"n": Nodes(ids=np.arange(1000), weights=None, features=_columns(1000))})
    where = Where(text="price > 0.5", element=NODE, types=(0,))
    conditions = Conditions(1 << 30)
    assert conditions.way(with_index, where) == "index on price (range)"
    assert conditions.way(bare, where) == "every row looked at once"
    assert conditions.way(with_index, Where(text="price > age and stock < 0", element=NODE, types=(0,))) == (
        "rows that the index on stock (range) leaves, looked at once"
    )
    told = conditions.shares(with_index, where, [0, 1], lambda: None)
    looked = conditions.version(with_index, where, told, lambda: None)
    for part, image in looked.parts.items():
        share = told[NODE, 0, part]
        assert (share.count, share.positive) == (image.nodes[0].count, image.nodes[0].table.size)
        np.testing.assert_allclose(share.weight, image.nodes[0].table.total, rtol=1e-14)
    assert not looked.covers
    assert conditions.version(with_index, where, told, lambda: None, globally=True).covers


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
_SHOP = Schema(node_types=(_ITEM,), edge_types=(EdgeType(src_type="item", relation="like", dst_type="item", features=(Feature(name="stars"),)),))


@pytest.mark.parametrize(("column", "kind"), [("price", "range"), ("`in`", "hash"), ("size[2]", "range"), ("id", "range"), ("brand", "hash")])
def test_an_index_is_of_a_column_as_conditions_write_it(column: str, kind: str) -> None:
    assert index_of(_SHOP, type_name="item", column=f" {column} ", kind=kind) == Index(element=NODE, type_id=0, column=column, kind=kind)


@pytest.mark.parametrize(
    ("type_name", "column", "kind", "words"),
    [
        ("item", "price", "tree", "kind 'tree': expected hash or range"),
        ("item", "size", "range", r"shape \[3\]"),
        ("item", "tags", "hash", "numbers or texts"),
        ("item", "brand", "range", "make it of kind hash"),
        ("item", "price > 3 and price", "range", "one column"),
        ("item", "", "range", "one column"),
        ("item", "type", "hash", "numbers or texts"),
        ("like", "stars", "range", r"declare `index: \[stars\]` there"),
        ("like", "src.price", "range", "a column of the edge itself"),
        ("like", "type", "hash", "a column of the edge itself"),
    ],
)
def test_what_can_not_be_kept_in_order_is_refused(type_name: str, column: str, kind: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        index_of(_SHOP, type_name=type_name, column=column, kind=kind)


def test_an_index_of_what_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound, match="no node type 'shop'"):
        index_of(_SHOP, type_name="shop", column="price", kind="range")
    with pytest.raises(NotFound, match="'weigth'"):
        index_of(_SHOP, type_name="item", column="weigth", kind="range")
