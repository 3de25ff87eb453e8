"""Tests of temporal sampling from long rows, and of versions that do not support it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare
from tests.kit.images import Edges, Nodes, version_of

from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.errors import InvalidRequest, Unavailable
from storaged import sampling
from storaged.store.image import EMPTY_U32

HUB, GROUPS = 200_000, 40
ALPHA = 1e-6
"""Probability that a distribution test fails on correct code."""
RNG = np.random.default_rng(6)
TIMES = RNG.integers(0, 1000, HUB)
WEIGHTS = np.exp(RNG.normal(size=HUB) * 2).astype(np.float32) * (RNG.random(HUB) > 0.1)
ENDS = RNG.permutation(HUB)


@pytest.fixture(scope="module")
def hub() -> sampling.LocalVersion:
    """Return node 0 and its neighbors; a group of these has heavier edges."""
    edge_type = EdgeType(
        src_type="n",
        relation="e",
        dst_type="n",
        weighted=True,
        features=(Feature(name="t", dtype="int64"),),
        time="t",
    )
    schema = Schema(node_types=(NodeType(name="n"),), edge_types=(edge_type,), parts=1)
    edges = Edges(
        src=np.zeros(HUB, np.int64), dst=ENDS, weights=WEIGHTS.astype(np.float32), times=TIMES
    )
    return version_of(schema, {"n": Nodes(ids=np.arange(HUB))}, {"n:e:n": edges})


def sample_hub(
    hub: sampling.LocalVersion,
    count: int,
    *,
    nodes: int = 1,
    time: int = 499,
    last: bool = False,
    **options: Any,
) -> sampling.NeighborDraws:
    flags = {"replace": False, "uniform": False} | options
    return sampling.sample_temporal_neighbors(
        hub,
        edge_types=[0],
        node_type=0,
        ids=np.zeros(nodes, np.int64),
        positions=np.arange(nodes),
        count=count,
        direction=1,
        seed=2,
        hop=0,
        want_weights=False,
        want_edge_ids=True,
        temporal_filter=sampling.TemporalFilter(
            times=np.full(nodes, time), strict=False, last=last, want_times=True
        ),
        **flags,
    )


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("with_replacement", [False, True])
def test_hub_edges_are_sampled_by_eligible_weight(
    hub: sampling.LocalVersion, uniform: bool, with_replacement: bool
) -> None:
    """The test uses the first two draws of each position.

    Without replacement among many light edges, they are nearly like draws with replacement.
    """
    samples = sample_hub(hub, 2, nodes=20_000, uniform=uniform, replace=with_replacement)
    assert samples.eids is not None
    share = (np.ones(HUB) if uniform else WEIGHTS.astype(np.float64)) * (TIMES <= 499)
    observed = np.bincount(samples.eids[:, 0] * GROUPS // HUB, minlength=GROUPS)
    expected = share.reshape(GROUPS, -1).sum(axis=1) / share.sum() * 20_000
    assert chisquare(observed, expected).pvalue > ALPHA
    assert (share[samples.eids] > 0).all()
    assert with_replacement or (samples.eids[:, 0] != samples.eids[:, 1]).all()


def test_latest_and_all_eligible_edges_of_a_hub(hub: sampling.LocalVersion) -> None:
    eligible = sorted(
        np.flatnonzero(TIMES <= 499).tolist(), key=lambda edge: (TIMES[edge], ENDS[edge])
    )
    latest = sample_hub(hub, 3000, last=True)
    assert latest.eids is not None
    assert latest.times is not None
    assert latest.eids[0].tolist() == eligible[::-1][:3000]
    assert latest.times[0].tolist() == TIMES[eligible[::-1][:3000]].tolist()
    everything = sample_hub(hub, HUB, uniform=True).eids
    assert everything is not None
    assert everything[0, : len(eligible)].tolist() == eligible
    assert (everything[0, len(eligible) :] == -1).all()
    heavy = sample_hub(hub, 5000)
    assert heavy.eids is not None
    assert len(set(heavy.eids[0].tolist())) == 5000
    assert (WEIGHTS[heavy.eids[0]] > 0).all()


def test_a_version_without_times_is_refused(hub: sampling.LocalVersion) -> None:
    image = hub.parts[0]
    without_times = replace(
        image,
        edges=(
            replace(image.edges[0], outgoing=replace(image.edges[0].outgoing, order=EMPTY_U32)),
        ),
    )
    with pytest.raises(Unavailable, match="no times of 'n:e:n'; build the version again"):
        sample_hub(replace(hub, parts={0: without_times}), 1)
    with pytest.raises(InvalidRequest, match="the last neighbors: expected replace=False"):
        sample_hub(hub, 1, last=True, replace=True)
    plain = replace(hub.schema, edge_types=(replace(hub.schema.edge_types[0], time=""),))
    with pytest.raises(InvalidRequest, match="edge type 'n:e:n' and its neighbors have no time"):
        sample_hub(replace(hub, schema=plain), 1)
