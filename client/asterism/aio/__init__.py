"""Asyncio client: awaited calls. Needs ``asterism-graph[aio]``.

No call is implemented here. No other package imports this one, because it imports greenlet.
"""

from asterism.aio.clients import Opening, connect, open
from asterism.aio.wrappers import (
    AsyncClient,
    AsyncClusterPasses,
    AsyncEdgePasses,
    AsyncExplainer,
    AsyncGraph,
    AsyncLoad,
    AsyncNodePasses,
    AsyncPairPasses,
    AsyncPinned,
)

__all__ = [
    "AsyncClient",
    "AsyncClusterPasses",
    "AsyncEdgePasses",
    "AsyncExplainer",
    "AsyncGraph",
    "AsyncLoad",
    "AsyncNodePasses",
    "AsyncPairPasses",
    "AsyncPinned",
    "Opening",
    "connect",
    "open",
]
