"""Draws and reads over the parts of a version that are held here: arrays in, arrays out.

What lives here: one function per call of `asterism.v1.Store` that draws or reads, each a pure function of a `Version`
and its arguments. Arguments are checked here, in words; the loops are `storaged.kernel`'s. What may not: the network,
a clock, protobuf, a database. `storaged.api` calls in.
"""

from storaged.draw.between import InducedEdges, find_induced_edges
from storaged.draw.conditions import FilterCache, RowFilter
from storaged.draw.edge import EdgeDraws, DistinctEdgeDraws, sample_edges, sample_distinct_edges, remaining_edge_weight
from storaged.draw.expand import Expansion, expand
from storaged.draw.features import edge_features, node_features
from storaged.draw.grow import sample_khop
from storaged.draw.joined import has_edge
from storaged.draw.labels import read_nodes_by_label, read_graph_labels
from storaged.draw.labor import ImportanceSteps, LaborOptions
from storaged.draw.looking import RemoteMatches, evaluate_term
from storaged.draw.lookup import end_types, node_types
from storaged.draw.neighbor import NeighborDraws, sample_neighbors
from storaged.draw.node import NodeDraws, DistinctNodeDraws, sample_nodes, sample_distinct_nodes, remaining_node_weight
from storaged.draw.numbered import sample_nodes_by_index
from storaged.draw.ragged import RaggedNeighbors, read_neighbors
from storaged.draw.ranged import IndexRanges, sample_indexed_neighbors
from storaged.draw.ranking import PageRankScores, rank_nodes
from storaged.draw.scans import read_edges_at, read_nodes_at, read_edges, read_nodes
from storaged.draw.spread import WeightHistogram, build_histogram
from storaged.draw.timed import TemporalFilter, sample_temporal_neighbors
from storaged.draw.top import degrees, type_weights, top_neighbors
from storaged.draw.version import EDGE, NODE, PartitionTotals, LocalVersion, split_by_weight_name
from storaged.draw.walk import WalkPaths, WalkState, WalkSpec, WalkSteps, sample_paths, continue_walks

__all__ = [
    "EDGE",
    "NODE",
    "InducedEdges",
    "FilterCache",
    "EdgeDraws",
    "DistinctEdgeDraws",
    "Expansion",
    "RemoteMatches",
    "NeighborDraws",
    "NodeDraws",
    "DistinctNodeDraws",
    "WalkPaths",
    "WalkState",
    "RaggedNeighbors",
    "IndexRanges",
    "PageRankScores",
    "WalkSpec",
    "PartitionTotals",
    "WeightHistogram",
    "ImportanceSteps",
    "TemporalFilter",
    "LaborOptions",
    "LocalVersion",
    "WalkSteps",
    "RowFilter",
    "has_edge",
    "split_by_weight_name",
    "degrees",
    "edge_features",
    "sample_edges",
    "read_edges_at",
    "find_induced_edges",
    "end_types",
    "expand",
    "sample_khop",
    "evaluate_term",
    "type_weights",
    "sample_neighbors",
    "node_features",
    "node_types",
    "sample_nodes",
    "read_nodes_at",
    "sample_nodes_by_index",
    "sample_paths",
    "sample_distinct_edges",
    "sample_distinct_nodes",
    "sample_indexed_neighbors",
    "rank_nodes",
    "read_edges",
    "read_nodes_by_label",
    "read_graph_labels",
    "read_neighbors",
    "read_nodes",
    "remaining_edge_weight",
    "remaining_node_weight",
    "sample_temporal_neighbors",
    "top_neighbors",
    "continue_walks",
    "build_histogram",
]
