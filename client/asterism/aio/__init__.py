"""The client on an event loop: every call of `Client` and `Graph`, awaited. Needs
``asterism[aio]``.

``connect`` and ``open`` give what ``asterism.connect`` and ``asterism.open`` give, for coroutines.
No call is written here: `wrapping` makes them of the client's own, `greenlets` runs these. No other
module of `asterism` imports this package: greenlet is imported with it."""

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
