"""PecanPy's node2vec with one thread.

It uses SparseOTF, because the precomputed tables of the other modes exceed memory for millions of
edges.
"""

from __future__ import annotations

import importlib.metadata
import sys
from typing import Any

import numba
import numpy as np
from answering import Graph, answer, real
from numba_progress import ProgressBar
from numpy.typing import NDArray
from pecanpy import pecanpy


def main(folder: str) -> None:
    numba.set_num_threads(1)
    graph = Graph.at(folder)
    src, dst, weights, starts = (graph.column(name) for name in ("src", "dst", "weights", "starts"))
    order = np.lexsort((dst, src))
    walker = pecanpy.SparseOTF(p=graph.p, q=graph.q, workers=1, verbose=False)
    walker.set_node_ids([str(node) for node in range(graph.nodes)])
    walker.indptr = np.r_[0, np.cumsum(np.bincount(src, minlength=graph.nodes))].astype(np.uint32)
    walker.indices, walker.data = dst[order].astype(np.uint32), weights[order]
    del src, dst, weights, order
    walker.preprocess_transition_probs()
    walk_starts = starts[: graph.walkers][:: max(1, graph.walkers // 2000)].astype(
        np.uint32
    )  # type that a step takes
    move, neighbors = walker.get_move_forward(), walker.get_has_nbrs()

    def walk(seed: int) -> NDArray[Any]:
        with ProgressBar(total=walk_starts.size, disable=True) as progress:  # required argument
            padded_walks = walker._random_walks(
                walk_starts.size, graph.length, seed, walk_starts, neighbors, move, progress
            )
        walks = np.asarray(padded_walks)[:, : graph.length + 1].astype(np.int64)
        walk_lengths = np.asarray(padded_walks)[
            :, -1:
        ]  # the last column is the number of nodes of a walk
        return np.where(np.arange(walks.shape[1]) < walk_lengths, walks, -1)

    answer(f"PecanPy {importlib.metadata.version('pecanpy')}", {"node2vec by weight": (walk, real)})


if __name__ == "__main__":
    main(sys.argv[1])
