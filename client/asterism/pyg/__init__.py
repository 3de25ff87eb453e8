"""Graphs for PyG: its own loaders over a graph that is not in memory. Needs ``asterism[pyg]``.

`stores` are what PyG's loaders call ``data``, `NeighborSampler` what they call ``node_sampler`` or ``link_sampler``. Nothing else here, and
nobody inside `asterism` imports it: PyG is imported with it.
"""

from asterism.pyg.sampler import NeighborSampler
from asterism.pyg.stores import FeatureStore, GraphStore, nodes, stores

__all__ = ["FeatureStore", "GraphStore", "NeighborSampler", "nodes", "stores"]
