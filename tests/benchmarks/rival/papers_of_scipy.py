"""Personalised PageRank by rounds of forward push over sparse matrices, all starts of a call at a time: what one writes with SciPy."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy
from answering import Graph, Papers, answer
from numpy.typing import NDArray
from scipy import sparse


def main(folder: str) -> None:
    graph, how = Graph.at(folder), Papers.at(folder)
    src, dst, weights, starts = (graph.column(name) for name in ("src", "dst", "weights", "starts"))
    steps = sparse.csr_array((weights.astype(np.float64), (src, dst)), shape=(graph.nodes, graph.nodes))
    masses = np.asarray(steps.sum(axis=1)).reshape(-1)
    steps.data /= np.repeat(masses, np.diff(steps.indptr))

    def ranks(seed: int) -> NDArray[Any]:
        own = starts[seed * how.starts % (len(starts) - how.starts) :][: how.starts]
        shape = (len(own), graph.nodes)
        held = sparse.csr_array((np.ones(len(own)), (np.arange(len(own)), own)), shape=shape)
        scores = sparse.csr_array(shape)
        while True:
            ready = held.data > how.epsilon * masses[held.indices]
            if not ready.any():
                break
            # A copy: zeros are taken out in place, and the indices would be those of `held` too.
            front = sparse.csr_array((np.where(ready, held.data, 0.0), held.indices, held.indptr), shape=shape, copy=True)
            front.eliminate_zeros()
            dead = masses[front.indices] == 0
            settled = sparse.csr_array((np.where(dead, 1.0, how.alpha) * front.data, front.indices, front.indptr), shape=shape)
            scores, held = scores + settled, held - front + (1 - how.alpha) * (front @ steps)
            held.eliminate_zeros()
        top = np.full((len(own), how.top), -1, np.int64)
        for row in range(len(own)):
            mine = slice(scores.indptr[row], scores.indptr[row + 1])
            best = np.argsort(-scores.data[mine], kind="stable")[: how.top]
            top[row, : len(best)] = scores.indices[mine][best]
        return top

    answer(f"SciPy {scipy.__version__}", {"PageRank, the highest": (ranks, lambda found: int((found >= 0).sum()))})


if __name__ == "__main__":
    main(sys.argv[1])
