"""Asyncio client: awaited calls. Needs ``asterism-graph[aio]``.

No call is implemented here. No other package imports this one, because it imports greenlet.
"""

from asterism.aio.clients import PendingClient, connect, open
from asterism.aio.wrappers import (
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
