"""The groups of calls of a graph, combined into one class."""

from __future__ import annotations

from asterism.calls.epochs import EpochCalls
from asterism.calls.fanout_sampling import FanoutCalls
from asterism.calls.features import FeatureCalls
from asterism.calls.global_sampling import GlobalSamplingCalls
from asterism.calls.graph_labels import GraphLabelCalls
from asterism.calls.hgt import HgtCalls
from asterism.calls.labor import LaborCalls
from asterism.calls.layers import LayerCalls
from asterism.calls.links import LinkCalls
from asterism.calls.negatives import NegativeCalls
from asterism.calls.neighbor_queries import NeighborCalls
from asterism.calls.neighbor_sampling import NeighborSamplingCalls
from asterism.calls.pagerank import PageRankCalls
from asterism.calls.pinsage import VisitCountCalls
from asterism.calls.replay import ReplayCalls
from asterism.calls.scans import ScanCalls
from asterism.calls.string_ids import StringIdCalls
from asterism.calls.subgraphs import SubgraphCalls
from asterism.calls.walks import WalkCalls
from asterism.calls.writes import WriteCalls


class AllCalls(
    GlobalSamplingCalls,
    NeighborSamplingCalls,
    ReplayCalls,
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
    FeatureCalls,
    WriteCalls,
):
    """All calls that sample, read and write; `asterism.graph.Graph` adds versions and builds."""
