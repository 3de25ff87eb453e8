"""Draws of neighbors, held against the edges that scans found at the same nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism.records import Ids, NeighborSample
from asterism.verification.census import Neighborhood, found
from asterism.verification.statistics import Outcome, g_test


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Truth:
    """Every edge at the chosen nodes, by (node, weight): cells of light edges that are taken together are of like weight."""

    starts: Ids
    """int64[m]: the nodes that are not left out."""
    at: Ids
    """int64[k], positions in ``starts``, ascending."""
    types: Ids
    far: Ids
    edge_ids: Ids
    weights: NDArray[np.float32]


def truth_of(starts: Ids, by_type: Mapping[int, Neighborhood], edge_types: Sequence[int]) -> Truth:
    """The edges of some types at those of ``starts`` that are complete in all of them."""
    kept = ~np.any([by_type[e].left_out for e in edge_types], axis=0)
    place = np.cumsum(kept) - 1
    columns: list[list[NDArray[np.generic]]] = [[], [], [], [], []]
    for edge_type in edge_types:
        at, far, edge_ids, weights = by_type[edge_type].edges()
        own = kept[at]
        for column, values in zip(columns, (place[at[own]], np.full(int(own.sum()), edge_type), far[own], edge_ids[own], weights[own]), strict=True):
            column.append(values)
    at, types, far, edge_ids, weights = (np.concatenate(column) for column in columns)
    order = np.lexsort((edge_ids, types, weights, at))
    return Truth(
        starts=starts[kept],
        at=at[order].astype(np.int64),
        types=types[order].astype(np.int64),
        far=far[order].astype(np.int64),
        edge_ids=edge_ids[order].astype(np.int64),
        weights=weights[order].astype(np.float32),
    )


def compared(truth: Truth, samples: Sequence[NeighborSample], weighted: bool) -> tuple[Outcome, int]:
    """The G test of drawn edges per node, and how many draws are none of the node's edges (or miss where it has some)."""
    shares = truth.weights.astype(np.float64) if weighted else np.ones(len(truth.at))
    has_some = np.bincount(truth.at, shares, len(truth.starts)) > 0
    observed, impossible = np.zeros(len(truth.at)), 0
    by_type = {}
    for edge_type in np.unique(truth.types).tolist():
        own = np.flatnonzero(truth.types == edge_type)
        order = np.argsort(truth.edge_ids[own], kind="stable")
        by_type[edge_type] = own[order], truth.edge_ids[own][order]
    for sample in samples:
        assert sample.edge_ids is not None
        assert sample.weights is not None
        at = np.broadcast_to((np.arange(len(sample.nodes)) % max(len(truth.starts), 1))[:, None], sample.nodes.shape)
        impossible += int((sample.mask != has_some[at]).sum())
        left = sample.mask.copy()
        for edge_type, (places, edge_ids) in by_type.items():
            own = np.flatnonzero((sample.types == edge_type) & sample.mask)
            rows, where = found(edge_ids, sample.edge_ids.ravel()[own])
            place, drawn = places[where], own[rows]
            right = (
                (truth.at[place] == at.ravel()[drawn])
                & (truth.far[place] == sample.nodes.ravel()[drawn])
                & (truth.weights[place] == sample.weights.ravel()[drawn])
            )
            left.ravel()[drawn[right]] = False
            observed += np.bincount(place[right], minlength=len(observed))
        impossible += int(left.sum())
    return g_test(observed, shares, truth.at), impossible
