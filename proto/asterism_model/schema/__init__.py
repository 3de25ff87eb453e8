"""Schemas: node and edge types, features, weight tables, time columns, indexes.
Values that belong to a graph, such as counts and totals, do not belong here."""

from asterism_model.schema.features import STRING_ID_FEATURE, Feature
from asterism_model.schema.graph_schema import MAX_PARTS, Schema
from asterism_model.schema.node_edge_types import EdgeType, NodeType
from asterism_model.schema.weight_tables import WeightTable

__all__ = [
    "MAX_PARTS",
    "STRING_ID_FEATURE",
    "EdgeType",
    "Feature",
    "NodeType",
    "Schema",
    "WeightTable",
]
