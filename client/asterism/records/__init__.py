"""Records that calls return: samples, links, layers, rankings, catalog entries.

Calls belong to `asterism.calls`. Names are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asterism.records.access import AccessLimits, ApiKey, RoleGrant
    from asterism.records.arrays import (
        Features,
        FeatureValue,
        Ids,
        NodeFeatures,
        Probabilities,
        RaggedColumn,
        Types,
        Values,
        Weights,
    )
    from asterism.records.catalog import Host, Job, SpaceInfo, Task
    from asterism.records.explanation import DrawShare, Explanation, StorageRequest
    from asterism.records.layers import Adjacency, Layer, LayerSample, LayerStack, MultiHopNeighbors
    from asterism.records.links import EdgeRows, LinkSeeds
    from asterism.records.query_result import QueryResult, Stage
    from asterism.records.rankings import PageRanks, TopNeighbors, VisitSample
    from asterism.records.samples import (
        Cursor,
        EdgeBatch,
        EdgeSample,
        FanoutHop,
        FanoutSample,
        GraphLabels,
        GraphNodes,
        NeighborSample,
        NodeBatch,
        NodeRows,
        NodeSample,
        PairBatch,
        RaggedNeighbors,
        Subgraph,
        WalkSample,
    )
    from asterism.records.versions import PinInfo, VersionInfo
    from asterism_model.partition_stats import PartitionStats
    from asterism_model.task_results import ExportedFile, PartUnits, TaskResult, TypeAudit

__all__ = [
    "AccessLimits",
    "Adjacency",
    "ApiKey",
    "Cursor",
    "DrawShare",
    "EdgeBatch",
    "EdgeRows",
    "EdgeSample",
    "Explanation",
    "ExportedFile",
    "FanoutHop",
    "FanoutSample",
    "FeatureValue",
    "Features",
    "GraphLabels",
    "GraphNodes",
    "Host",
    "Ids",
    "Job",
    "Layer",
    "LayerSample",
    "LayerStack",
    "LinkSeeds",
    "MultiHopNeighbors",
    "NeighborSample",
    "NodeBatch",
    "NodeFeatures",
    "NodeRows",
    "NodeSample",
    "PageRanks",
    "PairBatch",
    "PartUnits",
    "PartitionStats",
    "PinInfo",
    "Probabilities",
    "QueryResult",
    "RaggedColumn",
    "RaggedNeighbors",
    "RoleGrant",
    "SpaceInfo",
    "Stage",
    "StorageRequest",
    "Subgraph",
    "Task",
    "TaskResult",
    "TopNeighbors",
    "TypeAudit",
    "Types",
    "Values",
    "VersionInfo",
    "VisitSample",
    "WalkSample",
    "Weights",
]

_MODULES = {
    "AccessLimits": "access",
    "Adjacency": "layers",
    "ApiKey": "access",
    "ArrayRecord": "arrays",
    "Cursor": "samples",
    "DrawShare": "explanation",
    "EdgeBatch": "samples",
    "EdgeRows": "links",
    "EdgeSample": "samples",
    "Explanation": "explanation",
    "ExportedFile": "asterism_model.task_results",
    "FanoutHop": "samples",
    "FanoutSample": "samples",
    "FeatureValue": "arrays",
    "Features": "arrays",
    "GraphLabels": "samples",
    "GraphNodes": "samples",
    "HeteroIds": "arrays",
    "Host": "catalog",
    "Ids": "arrays",
    "Job": "catalog",
    "Layer": "layers",
    "LayerSample": "layers",
    "LayerStack": "layers",
    "LinkSeeds": "links",
    "MultiHopNeighbors": "layers",
    "NeighborSample": "samples",
    "NodeBatch": "samples",
    "NodeFeatures": "arrays",
    "NodeRows": "samples",
    "NodeSample": "samples",
    "PageRanks": "rankings",
    "PairBatch": "samples",
    "PartUnits": "asterism_model.task_results",
    "PartitionStats": "asterism_model.partition_stats",
    "PinInfo": "versions",
    "Probabilities": "arrays",
    "QueryResult": "query_result",
    "RaggedColumn": "arrays",
    "RaggedNeighbors": "samples",
    "RequestLimit": "explanation",
    "RequestPrice": "explanation",
    "RoleGrant": "access",
    "SpaceInfo": "catalog",
    "Stage": "query_result",
    "StorageRequest": "explanation",
    "Subgraph": "samples",
    "Task": "catalog",
    "TaskResult": "asterism_model.task_results",
    "TopNeighbors": "rankings",
    "TypeAudit": "asterism_model.task_results",
    "Types": "arrays",
    "Value": "query_result",
    "Values": "arrays",
    "VersionInfo": "versions",
    "VisitSample": "rankings",
    "WalkSample": "samples",
    "Weights": "arrays",
}
_OLD_NAMES = {
    "Asked": "StorageRequest",
    "Ragged": "RaggedNeighbors",
    "MultiHop": "MultiHopNeighbors",
    "Result": "QueryResult",
    "Share": "PartitionStats",
    "Shown": "ArrayRecord",
    "Typed": "HeteroIds",
}
"""Names of earlier releases, which keep working."""


def __getattr__(name: str) -> Any:
    current = _OLD_NAMES.get(name, name)
    if current not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES[current]
    module = module if module.startswith("asterism_model.") else f"{__name__}.{module}"
    value = globals()[name] = getattr(import_module(module), current)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
