"""The client on an event loop: awaited calls. Needs ``asterism-graph[aio]``.
No call is written here, and no other package imports this one: greenlet is imported with it."""

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
