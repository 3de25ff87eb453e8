"""Draws and reads over the parts of a version that are held here: arrays in, arrays out.

What lives here: one function per call of `asterism.v1.Store` that draws or reads, each a pure function of a `Version`
and its arguments. Arguments are checked here, in words; the loops are `storaged.kernel`'s. What may not: the network,
a clock, protobuf, a database. `storaged.api` calls in.
"""

from storaged.draw.between import Between, edges_between
from storaged.draw.conditions import Conditions, Where
from storaged.draw.edge import EdgeDraws, EdgeRace, edges, race_edges, rest_of_edges
from storaged.draw.expand import Expansion, expand
from storaged.draw.features import edge_features, node_features
from storaged.draw.grow import grow
from storaged.draw.joined import are_joined
from storaged.draw.labels import read_labelled, read_labels
from storaged.draw.labor import Stepped, Variates
from storaged.draw.looking import Foreign, judged
from storaged.draw.lookup import ends, node_types
from storaged.draw.neighbor import NeighborDraws, neighbors
from storaged.draw.node import NodeDraws, NodeRace, nodes, race_nodes, rest_of_nodes
from storaged.draw.numbered import numbered_nodes
from storaged.draw.ragged import Ragged, read_neighbors
from storaged.draw.ranged import Ranges, ranged_neighbors
from storaged.draw.ranking import Ranks, rank
from storaged.draw.scans import edges_at, nodes_at, read_edges, read_nodes
from storaged.draw.spread import Spread, weight_spread
from storaged.draw.timed import Until, timed_neighbors
from storaged.draw.top import degrees, measures, top_neighbors
from storaged.draw.version import EDGE, NODE, Share, Version, by_name
from storaged.draw.walk import Paths, Places, Rules, Walks, paths, walk

__all__ = [
    "EDGE",
    "NODE",
    "Between",
    "Conditions",
    "EdgeDraws",
    "EdgeRace",
    "Expansion",
    "Foreign",
    "NeighborDraws",
    "NodeDraws",
    "NodeRace",
    "Paths",
    "Places",
    "Ragged",
    "Ranges",
    "Ranks",
    "Rules",
    "Share",
    "Spread",
    "Stepped",
    "Until",
    "Variates",
    "Version",
    "Walks",
    "Where",
    "are_joined",
    "by_name",
    "degrees",
    "edge_features",
    "edges",
    "edges_at",
    "edges_between",
    "ends",
    "expand",
    "grow",
    "judged",
    "measures",
    "neighbors",
    "node_features",
    "node_types",
    "nodes",
    "nodes_at",
    "numbered_nodes",
    "paths",
    "race_edges",
    "race_nodes",
    "ranged_neighbors",
    "rank",
    "read_edges",
    "read_labelled",
    "read_labels",
    "read_neighbors",
    "read_nodes",
    "rest_of_edges",
    "rest_of_nodes",
    "timed_neighbors",
    "top_neighbors",
    "walk",
    "weight_spread",
]
