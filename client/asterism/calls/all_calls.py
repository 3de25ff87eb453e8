"""The groups of calls of a graph, combined into one class."""

from __future__ import annotations

from asterism.calls.epochs import EpochCalls
from asterism.calls.fanouts import FanoutCalls
from asterism.calls.graph_labels import GraphLabelCalls
from asterism.calls.hgt import HgtCalls
from asterism.calls.labor import LaborCalls
from asterism.calls.layers import LayerCalls
from asterism.calls.links import LinkCalls
from asterism.calls.negatives import NegativeCalls
from asterism.calls.neighbors import NeighborCalls
from asterism.calls.node_and_neighbor_sampling import SamplingCalls
from asterism.calls.node_names import StringIdCalls
from asterism.calls.pagerank import PageRankCalls
from asterism.calls.pinsage import VisitCountCalls
from asterism.calls.scans import ScanCalls
from asterism.calls.subgraphs import SubgraphCalls
from asterism.calls.walks import WalkCalls


class AllCalls(
    SamplingCalls,
    StringIdCalls,
    FanoutCalls,
    WalkCalls,
    VisitCountCalls,
    PageRankCalls,
    NeighborCalls,
    SubgraphCalls,
    LaborCalls,
    HgtCalls,
    NegativeCalls,
    LinkCalls,
    LayerCalls,
    GraphLabelCalls,
    EpochCalls,
    ScanCalls,
):
    """All sampling and read calls; `asterism.graph.Graph` adds versions and writes."""
