"""Tests that subgraphs sampled in one call equal those sampled hop by hop."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kit.images import Edges, Nodes, restrict_to_parts, version_of

from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.errors import InvalidRequest, Unavailable
from storaged import sampling

khop = importlib.import_module("storaged.sampling.subgraphs.khop")
Sections = dict[str, NDArray[Any]]


def graph(form: str) -> tuple[sampling.LocalVersion, NDArray[np.int64]]:
    """Return nodes with ids that are rows, have holes, are partitioned by hash, or are sparse."""
    random = np.random.default_rng(len(form))
    ids = {
        "mod": np.arange(200),
        "holes": np.delete(np.arange(200), np.arange(3, 200, 11)),
        "mix64": np.arange(200),
    }.get(form, np.arange(200) * 10**9)
    schema = Schema(
        node_types=(NodeType(name="n"), NodeType(name="m")),
        edge_types=tuple(
            EdgeType(src_type="n", relation=name, dst_type=to, weighted=True)
            for name, to in (("e", "n"), ("f", "m"))
        ),
        parts=3,
        placement="mix64" if form == "mix64" else "mod",
        direction="both",
    )
    src, dst = random.choice(ids, (2, 2500))
    weights = np.exp(random.normal(size=2500) * 2).astype(np.float32)
    weights[::5] = 0
    edges = {
        "n:e:n": Edges(src=src, dst=dst, weights=weights),
        "n:f:m": Edges(src=src[:300], dst=np.arange(300) % 20, weights=weights[:300]),
    }
    return version_of(
        schema,
        {
            "n": Nodes(ids=ids, dense=True if form == "holes" else None),
            "m": Nodes(ids=np.arange(20)),
        },
        edges,
    ), ids


def sample_sections(
    version: sampling.LocalVersion,
    seeds: NDArray[np.int64],
    counts: tuple[int, ...],
    max_reply_bytes: int = 1 << 24,
    edge_type: int = 0,
    **options: Any,
) -> Sections:
    overrides = {
        name: options.pop(name) for name in ("disjoint", "expand_all_hops") if name in options
    }
    expansion_options = {
        "seed": 3,
        "direction": 1,
        "replace": False,
        "uniform": False,
        "want_eids": True,
        "want_weights": True,
    } | options
    khop_options = {"disjoint": False, "expand_all_hops": False} | overrides
    types = np.zeros(seeds.size, np.int32)
    return sampling.sample_khop(
        version,
        sampling.Expansion(**expansion_options),
        {edge_type: counts},
        seeds,
        types,
        max_reply_bytes=max_reply_bytes,
        checkpoint=lambda: None,
        **khop_options,
    )


def sample_both_ways(
    monkeypatch: pytest.MonkeyPatch, *args: Any, **options: Any
) -> tuple[Sections, Sections, bool]:
    """Return the result in one call and hop by hop, and whether one call was possible."""
    original, results = khop.sample_khop_single_type, []

    def record(*arguments: Any) -> Sections | None:
        results.append(original(*arguments))
        return results[-1]

    monkeypatch.setattr(khop, "sample_khop_single_type", record)
    single_call = sample_sections(*args, **options)
    monkeypatch.setattr(khop, "sample_khop_single_type", lambda *given: None)
    hop_by_hop = sample_sections(*args, **options)
    monkeypatch.setattr(khop, "sample_khop_single_type", original)
    return single_call, hop_by_hop, results[0] is not None


@pytest.mark.parametrize("form", ["mod", "holes", "mix64", "far"])
@pytest.mark.parametrize("counts", [(3, 2), (4,), (0, 3), (2, 0, 3), (0,), (30, 30)], ids=str)
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"uniform": True, "direction": 2, "want_eids": False},
        {"replace": True, "expand_all_hops": True},
        {
            "uniform": True,
            "replace": True,
            "want_weights": False,
            "expand_all_hops": True,
            "direction": 2,
        },
    ],
    ids=str,
)
def test_at_once_and_hop_by_hop_are_the_same(
    monkeypatch: pytest.MonkeyPatch, form: str, counts: tuple[int, ...], how: dict[str, Any]
) -> None:
    version, ids = graph(form)
    seeds = np.r_[ids[:30:2], -1, ids[4:9], ids[-1]].astype(np.int64)
    single_call, hop_by_hop, at_once = sample_both_ways(monkeypatch, version, seeds, counts, **how)
    assert at_once == (form in ("mod", "holes"))
    assert single_call.keys() == hop_by_hop.keys()
    for name, array in hop_by_hop.items():
        assert single_call[name].dtype == array.dtype, name
        np.testing.assert_array_equal(single_call[name], array, err_msg=name)


def test_other_requests_are_sampled_hop_by_hop(monkeypatch: pytest.MonkeyPatch) -> None:
    version, ids = graph("mod")
    seeds = ids[:20].astype(np.int64)
    for request_seeds, counts, options in (
        (seeds, (2, -1), {}),
        (seeds, (2, 2), {"disjoint": True}),
        (seeds[:0], (2, 2), {}),
        (seeds, (2,), {"edge_type": 1}),
        (np.r_[seeds, 1 << 40], (2, 2), {}),
        (np.resize(seeds, 2000), (200, 200), {}),
    ):
        single_call, hop_by_hop, at_once = sample_both_ways(
            monkeypatch, version, request_seeds, counts, **options
        )
        assert not at_once
        assert all((single_call[name] == hop_by_hop[name]).all() for name in hop_by_hop)


def test_errors_equal_those_of_hop_by_hop_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    version, ids = graph("mod")
    seeds = ids[:20].astype(np.int64)
    sections = sample_sections(version, seeds, (5, 5))
    needed_bytes = 12 * sections["nodes.0"].size + sum(
        sections[f"{name}.0"].nbytes for name in ("rows", "cols", "eids", "weights")
    )
    assert sample_sections(version, seeds, (5, 5), max_reply_bytes=needed_bytes)["seeds"].size == 20
    with pytest.raises(
        InvalidRequest, match=f"more than the {needed_bytes - 1} bytes of one reply"
    ):
        sample_sections(version, seeds, (5, 5), max_reply_bytes=needed_bytes - 1)
    with pytest.raises(Unavailable, match="of another host"):
        sample_sections(restrict_to_parts(version, [0, 2]), seeds, (5, 5))
