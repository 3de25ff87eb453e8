"""Tests of prices: monotone, upper bounds of actual replies, and refusals.

A refusal has the limit and the remedy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.images import Edges, Nodes, version_of

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_model import graph_prices, prices
from asterism_model.prices import Limits, Price
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.methods import GRAPH, STORE
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.routing.totals import VersionTotals
from storaged import pricing, sampling
from storaged.api.service import StoreService

NUMBERS = st.integers(0, 1 << 40)
FAMILIES: dict[str, Callable[..., Price]] = {
    name: function
    for name, function in vars(prices).items()
    if inspect.isfunction(function) and inspect.signature(function).return_annotation == "Price"
}
FLAGS = {"distinct", "replace", "expand_all_hops", "disjoint", "ragged"}


def arguments(data: st.DataObject, name: str) -> dict[str, Any]:
    """Draw arguments of one family: numbers of any size, two hops of lists."""
    values: dict[str, Any] = {}
    for parameter in inspect.signature(FAMILIES[name]).parameters:
        if parameter in FLAGS:
            values[parameter] = data.draw(st.booleans())
        elif parameter == "fanouts":
            counts = st.lists(st.integers(0, 1 << 20), min_size=2, max_size=2)
            values[parameter] = [
                (0, data.draw(st.integers(0, 1)), data.draw(NUMBERS), data.draw(counts))
                for _ in range(2)
            ]
        elif parameter in ("counts", "widths") or (parameter == "types" and name == "fanout_price"):
            values[parameter] = data.draw(st.lists(st.integers(0, 1 << 20), min_size=2, max_size=2))
        elif parameter in ("alpha", "epsilon"):
            values[parameter] = data.draw(st.floats(1e-9, 1.0))
        else:
            values[parameter] = data.draw(NUMBERS)
    return values


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_prices_are_monotone_in_every_argument(name: str, data: st.DataObject) -> None:
    """A larger argument costs no less; smaller alpha and epsilon cost more."""
    values = arguments(data, name)
    base = FAMILIES[name](**values)
    for parameter, value in values.items():
        if parameter in FLAGS or parameter == "fanouts":
            continue
        if isinstance(value, list):
            more: Any = [item + data.draw(st.integers(0, 1 << 20)) for item in value]
        elif isinstance(value, float):
            more = value * data.draw(st.floats(0.01, 1.0))
        else:
            more = value + data.draw(NUMBERS)
        other = FAMILIES[name](**(values | {parameter: more}))
        for dimension in ("rows", "bytes", "scratch", "steps"):
            assert getattr(other, dimension) >= getattr(base, dimension) >= 0, (
                parameter,
                value,
                more,
                dimension,
            )


def test_prices_do_not_overflow() -> None:
    price = prices.fanout_price(1 << 40, [1 << 40] * 4, widths=[8] * 4, types=[1] * 4)
    assert price.rows > 1 << 200
    with pytest.raises(InvalidRequest, match="request_rows_limit"):
        prices.check(price, Limits())


def test_a_refusal_names_the_limit_the_value_and_the_remedy() -> None:
    """Each refusal is one line; prices that depend on the graph are not refused."""
    price = prices.neighbors_price(1, 1 << 26, width=8, types=1)
    with pytest.raises(InvalidRequest) as rows:
        prices.check(price, Limits())
    assert str(rows.value) == (
        "count=67108864 x nodes=1 = 67,108,864 rows: expected at most 16,777,216 rows per request; "
        "split the request or raise request_rows_limit"
    )
    with pytest.raises(
        InvalidRequest,
        match=(
            r"takes [\d,]+ bytes of memory: expected at most 1,048,576 bytes per request; .* "
            r"request_memory_limit_mib"
        ),
    ):
        prices.check(price, Limits(rows=1 << 27, memory=1 << 20))
    with pytest.raises(
        InvalidRequest,
        match=r"67,108,864 steps: expected at most 100 steps per request; .* request_steps_limit",
    ):
        prices.check(price, Limits(rows=1 << 27, memory=1 << 40, steps=100))
    with pytest.raises(
        InvalidRequest,
        match=(
            r"536,870,912 bytes do not fit into one reply of 67,108,864 bytes; .* at most "
            r"8,388,608 rows at a time"
        ),
    ):
        prices.check_reply(price)
    prices.check(prices.all_neighbors_price(1 << 30, edges=1 << 30, width=8), Limits())
    capped = prices.all_neighbors_price(1 << 30, edges=1 << 30, width=8).cap(Limits())
    assert (capped.rows, capped.bytes) == (Limits().rows, prices.REPLY_BYTES)
    assert capped.memory <= Limits().memory


def test_walks_of_no_nodes_are_priced_by_their_length() -> None:
    with pytest.raises(InvalidRequest, match="request_rows_limit"):
        prices.check(prices.walks_price(0, 1, 1 << 27, width=8), Limits())


def test_every_method_has_a_price_or_a_reason_for_none() -> None:
    priced = set(graph_prices._PRICES)
    assert {name for name, method in GRAPH.items() if method.request not in priced} == set(
        graph_prices.UNPRICED
    )
    assert set(STORE) == set(pricing.PRICES) | set(pricing.UNPRICED_METHODS)
    assert not set(pricing.PRICES) & set(pricing.UNPRICED_METHODS)


# -- prices are bounds of what is answered ---------------------------------------------------------

NODES, EDGES = 50, 400
RNG = np.random.default_rng(8)
VERSION_REF = storaged_pb.VersionRef(space_id=1, version=1, digest="d")


def version() -> sampling.LocalVersion:
    schema = Schema(
        node_types=(NodeType(name="n", weighted=True),),
        edge_types=tuple(
            EdgeType(src_type="n", relation=name, dst_type="n", weighted=True) for name in "ab"
        ),
        parts=2,
    )
    ends = [RNG.integers(0, NODES, EDGES) for _ in range(4)]
    edges = {
        f"n:{name}:n": Edges(
            src=ends[2 * i], dst=ends[2 * i + 1], weights=RNG.random(EDGES).astype(np.float32)
        )
        for i, name in enumerate("ab")
    }
    return version_of(
        schema,
        {"n": Nodes(ids=np.arange(NODES), weights=RNG.random(NODES).astype(np.float32))},
        edges,
    )


class SingleVersion:
    """Local spaces with one version."""

    def __init__(self) -> None:
        self._version = version()

    def version(self, *_: object) -> sampling.LocalVersion:
        return self._version


SINGLE_VERSION = SingleVersion()
HANDLERS = StoreService(SINGLE_VERSION).handlers  # type: ignore[arg-type]
SMALL, FLAG = st.integers(0, 30), st.booleans()
EDGE_TYPES = st.sampled_from([[0], [1], [0, 1]])


def request(name: str, data: st.DataObject) -> Frame:
    """Draw a small random request of a method."""
    ids = np.array(data.draw(st.lists(st.integers(-1, NODES + 5), max_size=20)), np.int64)
    draws = st.fixed_dictionaries({"want_weights": FLAG, "want_edge_ids": FLAG})
    if name in ("draw_nodes", "draw_edges"):
        race = data.draw(FLAG)
        kind: Any = (
            storaged_pb.DrawNodesRequest if name == "draw_nodes" else storaged_pb.DrawEdgesRequest
        )
        head = kind(
            version_ref=VERSION_REF,
            types=[0],
            parts=[0, 1],
            seed=3,
            count=data.draw(SMALL),
            uniform=data.draw(FLAG),
            exponential_keys=race,
            want_probabilities=data.draw(FLAG),
        )
        return Frame(
            head,
            {"excluded_ids": np.zeros(0, np.int64), "excluded_types": np.zeros(0, np.int32)}
            if race
            else {},
        )
    if name == "draw_nodes_by_number":
        return Frame(
            storaged_pb.DrawNodesByNumberRequest(
                version_ref=VERSION_REF, types=[0], seed=1, want_probabilities=data.draw(FLAG)
            ),
            {"numbers": np.abs(ids)},
        )
    if name in ("read_nodes", "read_edges"):
        scan: Any = (
            storaged_pb.ReadNodesRequest if name == "read_nodes" else storaged_pb.ReadEdgesRequest
        )
        return Frame(scan(version_ref=VERSION_REF, limit=data.draw(st.integers(1, 30))))
    if name in ("read_nodes_at", "read_edges_at"):
        page: Any = (
            storaged_pb.ReadNodesAtRequest
            if name == "read_nodes_at"
            else storaged_pb.ReadEdgesAtRequest
        )
        return Frame(
            page(version_ref=VERSION_REF), {"parts": np.zeros(5, np.int32), "places": np.arange(5)}
        )
    positions, types = np.arange(ids.size), data.draw(EDGE_TYPES)
    if name == "draw_neighbors":
        wants = data.draw(draws) | {
            "want_probabilities": data.draw(FLAG),
            "replace": data.draw(FLAG),
        }
        head = storaged_pb.DrawNeighborsRequest(
            version_ref=VERSION_REF,
            edge_types=types,
            count=data.draw(SMALL),
            direction=1,
            seed=5,
            **wants,
        )
        return Frame(head, {"ids": ids, "positions": positions})
    if name == "walk":
        steps = [storaged_pb.Step(edge_types=types)]
        head = storaged_pb.WalkRequest(
            version_ref=VERSION_REF,
            steps=steps,
            length=data.draw(SMALL),
            direction=1,
            paths=True,
            want_edge_ids=data.draw(FLAG),
            p=data.draw(st.sampled_from([1.0, 0.5])),
        )
        return Frame(head, {"ids": ids, "positions": positions})
    if name == "has_edge":
        return Frame(
            storaged_pb.HasEdgeRequest(version_ref=VERSION_REF, edge_types=types, direction=1),
            {"ids": ids, "types": np.zeros(ids.size, np.int32), "targets": ids[::-1].copy()},
        )
    if name == "read_neighbors":
        head = storaged_pb.ReadNeighborsRequest(
            version_ref=VERSION_REF,
            edge_types=types,
            direction=1,
            top=data.draw(st.integers(1, 40)),
            **data.draw(draws),
        )
        return Frame(head, {"ids": ids})
    if name == "read_degrees":
        return Frame(
            storaged_pb.ReadDegreesRequest(
                version_ref=VERSION_REF, edge_types=types, direction=1, type_weights=data.draw(FLAG)
            ),
            {"ids": ids},
        )
    if name == "read_node_types":
        return Frame(storaged_pb.ReadNodeTypesRequest(version_ref=VERSION_REF), {"ids": ids})
    assert name == "push_pagerank"
    head = storaged_pb.PushPagerankRequest(
        version_ref=VERSION_REF,
        edge_types=types,
        direction=1,
        alpha=0.5,
        epsilon=0.01,
        top=data.draw(st.integers(1, 40)),
    )
    return Frame(head, {"ids": ids, "types": np.zeros(ids.size, np.int32)})


@pytest.mark.parametrize("name", pricing.PRICES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_price_bounds_the_bytes_of_the_reply(name: str, data: st.DataObject) -> None:
    frame = request(name, data)
    price = pricing.PRICES[name](pricing._RequestSizes(frame, SINGLE_VERSION.version))
    reply: Any = HANDLERS[STORE[name].path](frame, CallContext.with_timeout(60))
    assert sum(array.nbytes for array in reply.arrays.values()) <= price.bytes


def test_a_request_beyond_the_limits_does_not_reach_its_handler() -> None:
    handled = []
    path = STORE["draw_neighbors"].path
    handlers = pricing.with_price_checks(
        {path: lambda *_: handled.append(1) or Frame(storaged_pb.DrawNeighborsReply())},
        Limits(rows=100),
        SINGLE_VERSION.version,
    )  # type: ignore[func-returns-value]
    head = storaged_pb.DrawNeighborsRequest(
        version_ref=VERSION_REF, edge_types=[0], count=10, direction=1
    )
    handlers[path](Frame(head, {"ids": np.arange(10)}), CallContext.with_timeout(1))
    with pytest.raises(
        InvalidRequest,
        match="count=10 x nodes=11 = 110 rows: expected at most 100 rows per request",
    ):
        handlers[path](Frame(head, {"ids": np.arange(11)}), CallContext.with_timeout(1))
    assert handled == [1]


def test_excluded_edges_are_priced_and_refused() -> None:
    head = graphd_pb.SampleNeighborsRequest(space="s", edge_types=[0], count=5)
    plain = graph_prices.price_request(head, {"nodes": 10})
    priced = graph_prices.price_request(head, {"nodes": 10, "exclude.src": 3000})
    assert plain is not None
    assert priced is not None
    assert priced.formula == "count=5 x nodes=10 + exclude=3000"
    assert (priced.rows, priced.bytes, priced.exact) == (plain.rows, plain.bytes, plain.exact)
    assert priced.steps == plain.steps + 3000
    assert priced.scratch >= plain.scratch + 28 * 3000
    prices.check(plain, Limits(memory=200_000))
    with pytest.raises(InvalidRequest, match=r"exclude=3000.* request_memory_limit_mib"):
        prices.check(priced, Limits(memory=200_000))
    handlers = pricing.with_price_checks(
        {STORE["draw_neighbors"].path: lambda *_: Frame(storaged_pb.DrawNeighborsReply())},
        Limits(steps=100),
        SINGLE_VERSION.version,
    )
    store_head = storaged_pb.DrawNeighborsRequest(
        version_ref=VERSION_REF, edge_types=[0], count=10, direction=1
    )
    sections = {"ids": np.arange(9), "exclude.src": np.arange(20)}
    with pytest.raises(InvalidRequest, match=r"\+ exclude=20.* at most 100 steps"):
        handlers[STORE["draw_neighbors"].path](
            Frame(store_head, sections), CallContext.with_timeout(1)
        )


def test_prices_of_shares_are_bounds() -> None:
    """A share is priced as one of all edges of its types, and checked when degrees are known."""
    whole = SINGLE_VERSION.version()
    counts = VersionTotals(parts=whole.schema.parts, part_totals=whole.totals)
    edges = counts.edges([0])
    assert edges > 10
    neighbors = graphd_pb.SampleNeighborsRequest(edge_types=[0], share="0.1")
    hops = [
        graphd_pb.Hop(edge_types=[0], count=3),
        graphd_pb.Hop(edge_types=[0], share="0.1"),
    ]
    most = -(-edges // 10)
    for head, rows in (
        (neighbors, 2 * most),
        (graphd_pb.SampleFanoutRequest(hops=hops), 6 + 6 * most),
    ):
        price = graph_prices.price_request(head, {"nodes": 2}, counts=counts)
        assert price is not None
        assert (price.exact, price.rows) == (False, rows)
        assert "0.1" in price.formula
    with pytest.raises(InvalidRequest, match="share=2: expected a share of each node's edges"):
        graph_prices.price_request(graphd_pb.SampleNeighborsRequest(share="2"), {"nodes": 2})


def test_client_refuses_only_what_no_service_can_answer() -> None:
    """Without a schema and counts, features cost their flags, and subgraphs are inexact."""
    head = graphd_pb.SampleSubgraphRequest(
        space="s", fanouts=[graphd_pb.EdgeTypeFanouts(edge_type=0, counts=[1 << 20, 1 << 20])]
    )
    price = graph_prices.price_request(head, {"nodes": 1 << 20})
    assert price is not None
    assert not price.exact
    prices.check_reply(price)
    walk = graph_prices.price_request(
        graphd_pb.RandomWalkRequest(steps=[storaged_pb.Step(edge_types=[0])], length=1 << 27),
        {"nodes": 0},
    )
    assert walk is not None
    with pytest.raises(InvalidRequest, match="one reply"):
        prices.check_reply(walk)
    assert graph_prices.price_request(graphd_pb.GetRoutesRequest(), {}) is None


def test_walks_of_visits_count_like_walks_in_the_reply() -> None:
    """A call of few rows may walk for minutes."""
    price = prices.visit_counts_price(100, 10, 1 << 20, 2, width=8)
    walks = prices.walks_price(100, 1 << 20, 2, width=8)
    assert (price.rows, price.steps) == (walks.rows, walks.steps)
    assert price.bytes == 100 * 10 * 20
    message = (
        r"^walks=104857600 x \(length=2 \+ 1\) = 314,572,800 rows: expected at most 16,777,216"
    )
    with pytest.raises(InvalidRequest, match=message):
        prices.check(price, Limits())
    few = prices.visit_counts_price(1000, 10, 200, 6, width=8)
    prices.check(few, Limits())
    assert few.formula == "walks=200000 x (length=6 + 1)"
    assert prices.visit_counts_price(7, 10, 1, 1, width=8).formula == "count=10 x nodes=7"
