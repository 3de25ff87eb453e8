"""Records of two lists of nodes and the edges between them: layers, adjacencies, hops of whole
neighborhoods.
"""

from __future__ import annotations

from dataclasses import dataclass

from asterism.records.arrays import ArrayRecord, Ids, Probabilities, Types, Weights

__all__ = ["Adjacency", "Layer", "LayerSample", "LayerStack", "MultiHopNeighbors"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Adjacency(ArrayRecord):
    """Edges between two lists of nodes, one entry each, as a sparse matrix is made of them (COO).

    In canonical order: by (row, edge type as asked for, neighbor id, edge id, col). Parallel edges
    have an entry each, and so has every occurrence of a node in the lists;
    ``scipy.sparse.coo_array((a.weights, (a.rows, a.cols)), a.shape)`` adds them up."""

    rows: Ids
    """int64 [k], places in the first list."""
    cols: Ids
    """int64 [k], places in the second."""
    types: Types
    """int32 [k], edge type ids."""
    weights: Weights | None
    """float32 [k]; None where not asked for."""
    edge_ids: Ids | None
    """int64 [k]; None where not asked for."""
    shape: tuple[int, int]
    """How long the lists are."""
    version: int

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Layer(ArrayRecord):
    """Nodes drawn for a layer, and what joins them to the one before."""

    nodes: Ids
    """int64 [n], -1 where there is none; [b, n] where b layers were asked for."""
    types: Types
    """int32, likewise: node type ids, -1 where there is none."""
    probabilities: Probabilities
    """float64, likewise: of each draw; without replacement, given the earlier ones. 0 where there
    is none.
    """
    adjacency: Adjacency
    """Rows are places in the layer before, columns in ``nodes``, both counted through where they
    have two dimensions.
    """

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class LayerSample(Layer):
    """One layer."""

    seed: int
    version: int
    token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class LayerStack(ArrayRecord):
    """Layer upon layer."""

    seeds: Ids
    """int64 [m] or [b, w]: where it starts."""
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
    """Whole neighborhoods, hop after hop."""

    nodes: tuple[Ids, ...]
    """int64 [m], [n1], ..: where it starts, then each hop's neighbors, each node once, by first
    appearance.
    """
    types: tuple[Types, ...]
    """int32, their node type ids; -1 of seeds whose type was looked up and not found."""
    adjacencies: tuple[Adjacency, ...]
    """Of each hop: rows are places in ``nodes[h]``, columns in ``nodes[h + 1]``."""
    version: int

    def __len__(self) -> int:
        return len(self.adjacencies)
