"""Comparison of neighbor samples with the edges that scans found at the same nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism.records.samples import Ids, NeighborSample
from asterism.verification.hypothesis_tests import GTestResult, g_test
from asterism.verification.scan_statistics import Neighborhood, match_ids


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpectedEdges:
    """All edges at the chosen nodes, ordered by (node, weight).

    In this order, merged cells of light edges have similar weights.
    """

    starts: Ids
    """ndarray of int64, shape (m,): chosen nodes with complete edges."""
    start_index: Ids
    """ndarray of int64, shape (k,), ascending: position of each edge's node in ``starts``."""
    types: Ids
    remote: Ids
    edge_ids: Ids
    weights: NDArray[np.float32]


def expected_edges(
    starts: Ids, by_type: Mapping[int, Neighborhood], edge_types: Sequence[int]
) -> ExpectedEdges:
    """Collect the edges of some types at those of ``starts`` that are complete in all of them."""
    complete = ~np.any([by_type[e].incomplete for e in edge_types], axis=0)
    new_index = np.cumsum(complete) - 1
    columns: list[list[NDArray[np.generic]]] = [[], [], [], [], []]
    for edge_type in edge_types:
        positions, remote, edge_ids, weights = by_type[edge_type].edges()
        selected = complete[positions]
        for column, values in zip(
            columns,
            (
                new_index[positions[selected]],
                np.full(int(selected.sum()), edge_type),
                remote[selected],
                edge_ids[selected],
                weights[selected],
            ),
            strict=True,
        ):
            column.append(values)
    positions, types, remote, edge_ids, weights = (np.concatenate(column) for column in columns)
    order = np.lexsort((edge_ids, types, weights, positions))
    return ExpectedEdges(
        starts=starts[complete],
        start_index=positions[order].astype(np.int64),
        types=types[order].astype(np.int64),
        remote=remote[order].astype(np.int64),
        edge_ids=edge_ids[order].astype(np.int64),
        weights=weights[order].astype(np.float32),
    )


def compare_neighbors(
    expected: ExpectedEdges, samples: Sequence[NeighborSample], weighted: bool
) -> tuple[GTestResult, int]:
    """Test sampled edges per node, and count impossible draws.

    A draw is impossible if it is not an edge of its node, or is missing although the node has
    edges.

    Parameters
    ----------
    expected : ExpectedEdges
        All edges at the start nodes.
    samples : sequence of NeighborSample
        Samples with edge ids and weights, from repetitions of the start nodes.
    weighted : bool
        True if the samples should follow the weights; False if they should be uniform.

    Returns
    -------
    test : GTestResult
        G test, with one stratum per node.
    impossible : int
        Number of impossible draws.
    """
    shares = expected.weights.astype(np.float64) if weighted else np.ones(len(expected.start_index))
    has_edges = np.bincount(expected.start_index, shares, len(expected.starts)) > 0
    observed, impossible = np.zeros(len(expected.start_index)), 0
    sorted_by_type = {}
    for edge_type in np.unique(expected.types).tolist():
        selected = np.flatnonzero(expected.types == edge_type)
        order = np.argsort(expected.edge_ids[selected], kind="stable")
        sorted_by_type[edge_type] = selected[order], expected.edge_ids[selected][order]
    for sample in samples:
        assert sample.edge_ids is not None
        assert sample.weights is not None
        start_indices = np.broadcast_to(
            (np.arange(len(sample.nodes)) % max(len(expected.starts), 1))[:, None],
            sample.nodes.shape,
        )
        impossible += int((sample.mask != has_edges[start_indices]).sum())
        unmatched = sample.mask.copy()
        for edge_type, (edge_rows, edge_ids) in sorted_by_type.items():
            selected = np.flatnonzero((sample.types == edge_type) & sample.mask)
            rows, matches = match_ids(edge_ids, sample.edge_ids.ravel()[selected])
            rows_expected, rows_drawn = edge_rows[matches], selected[rows]
            agrees = (
                (expected.start_index[rows_expected] == start_indices.ravel()[rows_drawn])
                & (expected.remote[rows_expected] == sample.nodes.ravel()[rows_drawn])
                & (expected.weights[rows_expected] == sample.weights.ravel()[rows_drawn])
            )
            unmatched.ravel()[rows_drawn[agrees]] = False
            observed += np.bincount(rows_expected[agrees], minlength=len(observed))
        impossible += int(unmatched.sum())
    return g_test(observed, shares, expected.start_index), impossible
