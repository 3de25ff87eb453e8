"""Tests of fanouts by shares: each node's number of neighbors, and which they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from tests.distributions.checks.basis import require_counts
from tests.distributions.checks.hosts import request_context
from tests.kit.images import Edges, Nodes, version_of

from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators import fanout_sampling, neighbor_sampling
from storaged.sampling import LocalVersion

NODES = 12


@pytest.fixture(scope="module")
def version() -> LocalVersion:
    """Return nodes with 0 to 11 edges of each of two types; some weights are 0."""
    types = tuple(
        EdgeType(src_type="n", relation=f"e{t}", dst_type="n", weighted=True) for t in range(2)
    )
    schema = Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=3)
    src = np.repeat(np.arange(NODES), np.arange(NODES))
    dst = np.concatenate([np.arange(degree) for degree in range(NODES)])
    weights = np.where(dst % 5 == 4, 0, dst + 1).astype(np.float32)
    edges = Edges(src=src, dst=dst, weights=weights)
    nodes = {"n": Nodes(ids=np.arange(NODES))}
    return version_of(schema, nodes, {edge_type.name: edges for edge_type in types})


def neighbor_params(**options: Any) -> neighbor_sampling.NeighborParams:
    defaults: dict[str, Any] = {
        "edge_types": (0,),
        "count": 0,
        "replace": False,
        "uniform": False,
        "direction": common_pb.OUT,
        "seed": 7,
        "hop": 0,
        "want_weights": True,
        "want_edge_ids": True,
        "want_probabilities": True,
    }
    return neighbor_sampling.NeighborParams(**defaults | options)


def assert_equal(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].dtype == other[name].dtype
        np.testing.assert_array_equal(one[name], other[name])


@pytest.mark.parametrize("share", ["0.1", "0.34", "0.5", "1"])
@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("edge_types", [(0,), (0, 1)])
def test_each_node_has_the_neighbors_of_its_own_count(
    version: LocalVersion, share: str, uniform: bool, edge_types: tuple[int, ...]
) -> None:
    nodes = np.concatenate([np.arange(NODES)[::-1], [-1, 99, 7, 7]])
    params = neighbor_params(uniform=uniform, edge_types=edge_types, share=Fraction(share))
    context = request_context(version, 1)
    sampled = fanout_sampling.sample_hop(context, params, nodes, 0, None)
    degrees = np.where((nodes >= 0) & (nodes < NODES), nodes, 0) * len(edge_types)
    counts = [-(-Fraction(share) * int(degree) // 1) for degree in degrees]
    assert sampled["ids"].shape == (len(nodes), max(counts))
    for row, count in enumerate(map(int, counts)):
        whole = neighbor_sampling.sample_neighbors(
            context, replace(params, share=None, count=count), nodes, 0, None
        )
        for name, array in whole.items():
            np.testing.assert_array_equal(sampled[name][row, :count], array[row])
            padding = -1 if name in ("ids", "types", "eids") else 0
            assert (sampled[name][row, count:] == padding).all()
    for hosts in (2, 3):
        on_hosts = fanout_sampling.sample_hop(
            request_context(version, hosts), params, nodes, 0, None
        )
        assert_equal(on_hosts, sampled)


def test_nodes_without_edges_have_rows_of_length_0(version: LocalVersion) -> None:
    params = neighbor_params(share=Fraction("0.5"))
    for nodes in (np.array([0, 0, -1]), np.zeros(0, np.int64)):
        sampled = fanout_sampling.sample_hop(request_context(version, 2), params, nodes, 0, None)
        assert {array.shape for array in sampled.values()} == {(len(nodes), 0)}


def test_a_share_follows_a_count_and_the_reverse(version: LocalVersion) -> None:
    context, nodes = request_context(version, 3), np.array([11, 6, 3])
    by_share = neighbor_params(share=Fraction("0.25"), uniform=True)
    hops = [by_share, neighbor_params(count=2, hop=1), replace(by_share, hop=2)]
    out = fanout_sampling.sample_fanout(context, hops, nodes, 0, None)
    assert out["ids.0"].reshape(3, 3).tolist()[1][2:] == [-1]
    frontier = nodes
    for h, hop in enumerate(hops):
        expected = fanout_sampling.sample_hop(context, hop, frontier, 0, None)
        frontier = out[f"ids.{h}"]
        np.testing.assert_array_equal(frontier, expected["ids"].reshape(-1))


def test_a_share_of_a_hub_that_exceeds_a_reply_is_refused(
    version: LocalVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbor_sampling, "REPLY_BYTES", 1000)
    params = neighbor_params(share=Fraction(1))
    with pytest.raises(InvalidRequest, match="11 neighbors of 4 nodes do not fit into one reply"):
        fanout_sampling.sample_hop(
            request_context(version, 1), params, np.array([1, 2, 3, 11]), 0, None
        )


@pytest.mark.parametrize("uniform", [False, True])
def test_shares_are_successive_draws(version: LocalVersion, uniform: bool) -> None:
    """Half of 4 edges of weights 1 to 4: every ordered pair has its probability."""
    n, params = 6000, neighbor_params(uniform=uniform, share=Fraction("0.5"))
    nodes = np.tile([4, 7], n)
    ids = fanout_sampling.sample_hop(request_context(version, 1), params, nodes, 0, None)["ids"]
    assert ids.shape == (2 * n, 4)
    weights = [1.0] * 4 if uniform else [1.0, 2.0, 3.0, 4.0]
    pairs = list(permutations(range(4), 2))
    expected = [
        weights[a] / sum(weights) * weights[b] / (sum(weights) - weights[a]) for a, b in pairs
    ]
    rows = ids[::2, :2]
    observed = [int((rows == pair).all(axis=1).sum()) for pair in pairs]
    require_counts(observed, np.array(expected) * n, "half of the edges")
