"""Loader over a graph in memory: PyG's NeighborLoader, or an equivalent in NumPy.

The NumPy sampler is used where PyG's is not built.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch_geometric.typing
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader, NodeLoader
from torch_geometric.sampler import BaseSampler, SamplerOutput

HAS_NATIVE_SAMPLER = torch_geometric.typing.WITH_PYG_LIB or torch_geometric.typing.WITH_TORCH_SPARSE


def cora(root: Path, word_count: int) -> Data:
    """Return the files as one `Data`, with both directions of each citation."""
    with (root / "papers.csv").open() as file:
        rows = list(csv.DictReader(file))
    x, y = torch.zeros(len(rows), word_count), torch.zeros(len(rows), dtype=torch.int64)
    for row in rows:
        x[int(row["paper"]), [int(word) for word in row["words"].split()]] = 1
        y[int(row["paper"])] = int(row["label"])
    pairs = torch.from_numpy(
        np.loadtxt(root / "edges.csv", np.int64, delimiter=",", skiprows=1)
    ).t()
    return Data(x=x, y=y, edge_index=torch.cat([pairs, pairs.flip(0)], dim=1))


class Sampler(BaseSampler):
    """Uniform neighbor sampler without replacement in NumPy, like PyG's.

    Each node expands in the hop after the one that visited it.
    """

    def __init__(self, data: Data, fanouts: list[int]) -> None:
        source, target = data.edge_index.numpy()
        order = np.argsort(target, kind="stable")
        self._source, self._fanouts = source[order], fanouts
        self._indptr = np.concatenate(
            [[0], np.cumsum(np.bincount(target, minlength=data.num_nodes))]
        )
        self.edge_permutation_ = torch.from_numpy(order)

    @property
    def edge_permutation(self) -> Any:
        return self.edge_permutation_

    def sample_from_nodes(self, index: Any) -> SamplerOutput:
        random = np.random.default_rng(int(torch.randint(1 << 62, (1,))))
        seeds = index.node.numpy()
        local_id = {int(node): position for position, node in enumerate(seeds)}
        nodes, frontier, row, col, edge = list(local_id), list(local_id), [], [], []
        nodes_of, edges_of = [len(nodes)], []
        for fanout in self._fanouts:
            new_nodes, before = [], len(row)
            for node in frontier:
                first, last = self._indptr[node], self._indptr[node + 1]
                edges = np.arange(first, last)
                if 0 <= fanout < len(edges):
                    edges = random.choice(edges, fanout, replace=False)
                for position in edges.tolist():
                    neighbor = int(self._source[position])
                    if neighbor not in local_id:
                        local_id[neighbor] = len(nodes)
                        nodes.append(neighbor)
                        new_nodes.append(neighbor)
                    row.append(local_id[neighbor])
                    col.append(local_id[node])
                    edge.append(position)
            frontier = new_nodes
            nodes_of.append(len(new_nodes))
            edges_of.append(len(row) - before)
        return SamplerOutput(
            node=torch.tensor(nodes),
            row=torch.tensor(row, dtype=torch.int64),
            col=torch.tensor(col, dtype=torch.int64),
            edge=torch.tensor(edge, dtype=torch.int64),
            num_sampled_nodes=nodes_of,
            num_sampled_edges=edges_of,
            metadata=(index.input_id, index.time),
        )

    def sample_from_edges(self, index: Any, neg_sampling: Any = None) -> Any:
        raise NotImplementedError


def loader_factory(data: Data, fanouts: list[int], batch: int) -> Any:
    """Return a factory of loaders over nodes, as in the example."""

    def make_loader(nodes: Any, shuffle: bool) -> Iterable[Any]:
        size = batch if shuffle else 500
        if HAS_NATIVE_SAMPLER:
            return NeighborLoader(
                data, fanouts, input_nodes=nodes, batch_size=size, shuffle=shuffle
            )
        return NodeLoader(
            data, Sampler(data, fanouts), input_nodes=nodes, batch_size=size, shuffle=shuffle
        )

    return make_loader
