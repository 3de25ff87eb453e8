"""Graphs for PyG: its own loaders over a graph that is not in memory. Needs ``asterism[pyg]``.

`stores` are what PyG's loaders call ``data``, `NeighborSampler` what they call ``node_sampler`` or
``link_sampler``, `HGTSampler` what an ``HGTLoader`` is made with, `SubgraphSampler` whatever else a
call of a graph makes of a batch. Nothing else here, and nobody inside `asterism` imports it: PyG is
imported with it."""

from asterism.pyg.hgt import HGTSampler
from asterism.pyg.sampler import NeighborSampler
from asterism.pyg.stores import FeatureStore, GraphStore, nodes, stores
from asterism.pyg.subgraphs import SubgraphSampler

__all__ = [
    "FeatureStore",
    "GraphStore",
    "HGTSampler",
    "NeighborSampler",
    "SubgraphSampler",
    "nodes",
    "stores",
]
