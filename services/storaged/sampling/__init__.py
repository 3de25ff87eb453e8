"""Sampling and reads over this host's partitions: one function for each Store call.

Networks, clocks, protobuf and databases do not belong here; loops belong to `storaged.kernels`.
"""

from asterism_model.elements import EDGE, NODE
from storaged.kernels.pagerank import PageRankScores
from storaged.sampling.excluded_edge_overlay import RejectionParams, exclude_edges
from storaged.sampling.features import edge_features, node_features
from storaged.sampling.filters.cache import FilterCache, RowFilter
from storaged.sampling.filters.scan import RemoteMatches, evaluate_term
from storaged.sampling.global_sampling.edges import (
    DistinctEdgeDraws,
    EdgeDraws,
    remaining_edge_weight,
    sample_distinct_edges,
    sample_edges,
)
from storaged.sampling.global_sampling.nodes import (
    DistinctNodeDraws,
    NodeDraws,
    remaining_node_weight,
    sample_distinct_nodes,
    sample_nodes,
)
from storaged.sampling.global_sampling.nodes_by_index import sample_nodes_by_index
from storaged.sampling.graph_labels import read_graph_labels, read_nodes_by_label
from storaged.sampling.has_edge import has_edge
from storaged.sampling.neighbors.degrees import degrees, type_weights
from storaged.sampling.neighbors.filtered import IndexRanges, sample_indexed_neighbors
from storaged.sampling.neighbors.full_neighborhood import RaggedNeighbors, read_neighbors
from storaged.sampling.neighbors.sample_neighbors import NeighborDraws, sample_neighbors
from storaged.sampling.neighbors.temporal import TemporalFilter, sample_temporal_neighbors
from storaged.sampling.neighbors.top_k import top_neighbors
from storaged.sampling.node_lookup import end_types, node_types
from storaged.sampling.pagerank import rank_nodes
from storaged.sampling.scans import read_edges, read_edges_at, read_nodes, read_nodes_at
from storaged.sampling.subgraphs.expand import Expansion, expand
from storaged.sampling.subgraphs.induced import InducedEdges, find_induced_edges
from storaged.sampling.subgraphs.khop import sample_khop
from storaged.sampling.subgraphs.labor import ImportanceSteps, LaborOptions
from storaged.sampling.version import LocalVersion
from storaged.sampling.walks.random_walks import (
    WalkPaths,
    WalkSpec,
    WalkState,
    WalkSteps,
    continue_walks,
    sample_paths,
)
from storaged.sampling.weight_histogram import WeightHistogram, build_histogram

__all__ = [
    "EDGE",
    "NODE",
    "DistinctEdgeDraws",
    "DistinctNodeDraws",
    "EdgeDraws",
    "Expansion",
    "FilterCache",
    "ImportanceSteps",
    "IndexRanges",
    "InducedEdges",
    "LaborOptions",
    "LocalVersion",
    "NeighborDraws",
    "NodeDraws",
    "PageRankScores",
    "RaggedNeighbors",
    "RejectionParams",
    "RemoteMatches",
    "RowFilter",
    "TemporalFilter",
    "WalkPaths",
    "WalkSpec",
    "WalkState",
    "WalkSteps",
    "WeightHistogram",
    "build_histogram",
    "continue_walks",
    "degrees",
    "edge_features",
    "end_types",
    "evaluate_term",
    "exclude_edges",
    "expand",
    "find_induced_edges",
    "has_edge",
    "node_features",
    "node_types",
    "rank_nodes",
    "read_edges",
    "read_edges_at",
    "read_graph_labels",
    "read_neighbors",
    "read_nodes",
    "read_nodes_at",
    "read_nodes_by_label",
    "remaining_edge_weight",
    "remaining_node_weight",
    "sample_distinct_edges",
    "sample_distinct_nodes",
    "sample_edges",
    "sample_indexed_neighbors",
    "sample_khop",
    "sample_neighbors",
    "sample_nodes",
    "sample_nodes_by_index",
    "sample_paths",
    "sample_temporal_neighbors",
    "top_neighbors",
    "type_weights",
]
