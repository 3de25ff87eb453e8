"""Personalised PageRank by rounds of forward push over SciPy sparse matrices.

All starts of a call are computed together.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy
from answering import Graph, Papers, answer
from numpy.typing import NDArray
from scipy import sparse


def main(folder: str) -> None:
    graph, papers = Graph.at(folder), Papers.at(folder)
    src, dst, weights, starts = (graph.column(name) for name in ("src", "dst", "weights", "starts"))
    transitions = sparse.csr_array(
        (weights.astype(np.float64), (src, dst)), shape=(graph.nodes, graph.nodes)
    )
    masses = np.asarray(transitions.sum(axis=1)).reshape(-1)
    transitions.data /= np.repeat(masses, np.diff(transitions.indptr))

    def ranks(seed: int) -> NDArray[Any]:
        batch_starts = starts[seed * papers.starts % (len(starts) - papers.starts) :][
            : papers.starts
        ]
        shape = (len(batch_starts), graph.nodes)
        residuals = sparse.csr_array(
            (np.ones(len(batch_starts)), (np.arange(len(batch_starts)), batch_starts)), shape=shape
        )
        scores = sparse.csr_array(shape)
        while True:
            above_threshold = residuals.data > papers.epsilon * masses[residuals.indices]
            if not above_threshold.any():
                break
            # A copy, because zeros are removed in place, and `residuals` would share the indices.
            frontier = sparse.csr_array(
                (
                    np.where(above_threshold, residuals.data, 0.0),
                    residuals.indices,
                    residuals.indptr,
                ),
                shape=shape,
                copy=True,
            )
            frontier.eliminate_zeros()
            is_dead_end = masses[frontier.indices] == 0
            settled_mass = sparse.csr_array(
                (
                    np.where(is_dead_end, 1.0, papers.alpha) * frontier.data,
                    frontier.indices,
                    frontier.indptr,
                ),
                shape=shape,
            )
            scores, residuals = (
                scores + settled_mass,
                residuals - frontier + (1 - papers.alpha) * (frontier @ transitions),
            )
            residuals.eliminate_zeros()
        top = np.full((len(batch_starts), papers.top), -1, np.int64)
        for row in range(len(batch_starts)):
            row_slice = slice(scores.indptr[row], scores.indptr[row + 1])
            best = np.argsort(-scores.data[row_slice], kind="stable")[: papers.top]
            top[row, : len(best)] = scores.indices[row_slice][best]
        return top

    answer(
        f"SciPy {scipy.__version__}",
        {"PageRank, the highest": (ranks, lambda found: int((found >= 0).sum()))},
    )


if __name__ == "__main__":
    main(sys.argv[1])
