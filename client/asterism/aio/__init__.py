"""Asyncio client: awaited calls. Needs ``asterism-graph[aio]``.

No call is implemented here. No other package imports this one, because it imports greenlet.
"""

from typing import Any

from asterism.aio.async_clients import (
    AsyncClient,
    AsyncClusterEpochs,
    AsyncEdgeEpochs,
    AsyncExplainCalls,
    AsyncGraph,
    AsyncLoad,
    AsyncNodeEpochs,
    AsyncPairEpochs,
    AsyncPinned,
)
from asterism.aio.connections import PendingClient, connect, open

__all__ = [
    "AsyncClient",
    "AsyncClusterEpochs",
    "AsyncEdgeEpochs",
    "AsyncExplainCalls",
    "AsyncGraph",
    "AsyncLoad",
    "AsyncNodeEpochs",
    "AsyncPairEpochs",
    "AsyncPinned",
    "PendingClient",
    "connect",
    "open",
]
_OLD_NAMES = {
    "AsyncClusterPasses": "AsyncClusterEpochs",
    "AsyncEdgePasses": "AsyncEdgeEpochs",
    "AsyncExplainer": "AsyncExplainCalls",
    "AsyncNodePasses": "AsyncNodeEpochs",
    "AsyncPairPasses": "AsyncPairEpochs",
    "Opening": "PendingClient",
}
"""Names of earlier releases, which keep working."""


def __getattr__(name: str) -> Any:
    if name not in _OLD_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[_OLD_NAMES[name]]
