"""Graphs for PyG's own loaders: stores and samplers. Needs ``asterism-graph[pyg]``.
Framework-free batches belong to `asterism.training`; no other package imports this one."""

from asterism.extras import required

with required("pyg", "asterism.pyg"):
    from asterism.pyg.hgt import HGTSampler
    from asterism.pyg.sampler import NeighborSampler
    from asterism.pyg.stores import FeatureStore, GraphStore, nodes, stores
    from asterism.pyg.subgraph_sampler import SubgraphSampler

__all__ = [
    "FeatureStore",
    "GraphStore",
    "HGTSampler",
    "NeighborSampler",
    "SubgraphSampler",
    "nodes",
    "stores",
]
