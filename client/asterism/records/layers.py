"""Records of layers, adjacencies and multi-hop neighborhoods."""

from __future__ import annotations

from dataclasses import dataclass

from asterism.records.arrays import ArrayRecord, Ids, Probabilities, Types, Weights

__all__ = ["Adjacency", "Layer", "LayerSample", "LayerStack", "MultiHopNeighbors"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Adjacency(ArrayRecord):
    """Edges between two lists of nodes, one entry each, in coordinate (COO) form.

    Entries are in canonical order: by (row, position of the edge type in the request, neighbor id,
    edge id, col). Each parallel edge has an entry, and so does each occurrence of a node in the
    lists; ``scipy.sparse.coo_array((a.weights, (a.rows, a.cols)), a.shape)`` adds them up.
    """

    rows: Ids
    """ndarray of int64, shape (k,): positions in the first list."""
    cols: Ids
    """ndarray of int64, shape (k,): positions in the second list."""
    types: Types
    """ndarray of int32, shape (k,): edge type ids."""
    weights: Weights | None
    """ndarray of float32, shape (k,): edge weights; None if not requested."""
    edge_ids: Ids | None
    """ndarray of int64, shape (k,): edge ids; None if not requested."""
    shape: tuple[int, int]
    """Lengths of the two lists."""
    version: int

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Layer(ArrayRecord):
    """Nodes sampled for a layer, with the edges to the previous layer."""

    nodes: Ids
    """ndarray of int64, shape (n,), or (b, n) for b layers; -1 where there is no node."""
    types: Types
    """ndarray of int32, same shape: node type ids, -1 where there is no node."""
    probabilities: Probabilities
    """ndarray of float64, same shape: probability of each draw, 0 where there is no node.

    Without replacement, it is conditional on the earlier draws.
    """
    adjacency: Adjacency
    """Edges between the layers, from positions in the previous one to positions in ``nodes``.

    Rows are positions in the previous layer, columns in ``nodes``, both flattened.
    """

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class LayerSample(Layer):
    """Sample of one layer."""

    seed: int
    version: int
    token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class LayerStack(ArrayRecord):
    """Sample of several layers."""

    seeds: Ids
    """ndarray of int64, shape (m,) or (b, w): start nodes."""
    layers: tuple[Layer, ...]
    seed: int
    version: int
    token: str = ""

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, hop: int) -> Layer:
        return self.layers[hop]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class MultiHopNeighbors(ArrayRecord):
    """Full multi-hop neighborhoods, hop by hop."""

    nodes: tuple[Ids, ...]
    """Start nodes, then the neighbors of each hop: ndarrays of int64, shape (m,), (n1,), ..

    Each node occurs once per hop, in order of first appearance.
    """
    types: tuple[Types, ...]
    """ndarrays of int32: node type ids; -1 for start nodes of unknown type."""
    adjacencies: tuple[Adjacency, ...]
    """Edges of each hop: rows are positions in ``nodes[h]``, columns in ``nodes[h + 1]``."""
    version: int

    def __len__(self) -> int:
        return len(self.adjacencies)
