"""Explanations of sampling calls: shares of draws, requests to storageds, cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRequest:
    """One request to a storaged."""

    DEPRECATED_NAMES: ClassVar[tuple[str, ...]] = ("sent", "received")
    """Properties that the command's JSON includes with the fields in this release."""

    round: int
    """Number of the round; requests of one round run concurrently."""
    method: str
    """Name of the method: draw_nodes, draw_neighbors, walk, ..."""
    host: str
    """Uuid of the storaged."""
    address: str
    rows: int
    """Number of nodes, walks or draws in the request."""
    bytes_sent: int
    """Size of the request frame in bytes."""
    bytes_received: int
    """Size of the reply frame in bytes."""

    @property
    def sent(self) -> int:
        """Deprecated name of `bytes_sent`; the next release drops it."""
        return self.bytes_sent

    @property
    def received(self) -> int:
        """Deprecated name of `bytes_received`; the next release drops it."""
        return self.bytes_received


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawShare:
    """Share of the draws on a type and partition (nodes, edges) or edge type (neighbors)."""

    type_id: int
    part: int | None
    """Partition; None: all partitions."""
    host: str
    """Uuid of the storaged that serves the partition; "" for all of them."""
    share: float
    """Share of the total weight in the version, or of the count for uniform sampling."""
    expected: float | None
    """Expected number of draws; None if sampled without replacement."""
    drawn: int
    """Number of draws with this seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimit:
    """A limit on requests, and the amount that one request uses."""

    setting: str
    """Setting of graphd that holds the limit.

    One of request_rows_limit, request_memory_limit_mib (in bytes here) and request_steps_limit.
    """
    value: int
    limit: int

    @property
    def share(self) -> float:
        """Fraction of the limit that the request uses."""
        return self.value / self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPrice:
    """Upper bound on the cost of a request, computed before it runs."""

    formula: str
    """Formula of the rows in terms of the arguments."""
    rows: int
    bytes: int
    """Bytes of the arrays in the reply."""
    scratch: int
    """Bytes of temporary arrays."""
    steps: int
    """Iterations of kernels."""
    exact: bool
    """True if the cost follows from the arguments alone.

    False: it also depends on the graph, and the values are bounds.
    """
    limits: tuple[RequestLimit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Cost of a sampling call, which was executed; `Graph.replay` of ``token`` returns it."""

    DEPRECATED_NAMES: ClassVar[tuple[str, ...]] = ("asked", "condition")
    """Properties that the command's JSON includes with the fields in this release."""

    method: str
    storage_requests: tuple[StorageRequest, ...]
    """Requests to storageds, by round, then by host."""
    shares: tuple[DrawShare, ...]
    """Shares of nodes and edges by type and partition.

    Shares of neighbors, and of a fanout's first hop, are by edge type. Empty shares are left out.
    """
    reply_bytes: int
    """Size of the sample in bytes, as a frame from graphd."""
    filter_plan: str
    """Description of how rows that match the filter are found; empty without a filter."""
    seed: int
    version: int
    token: str
    price: RequestPrice | None = None
    """Price of the request; None if graphd is too old to compute it."""

    @property
    def asked(self) -> tuple[StorageRequest, ...]:
        """Deprecated name of `storage_requests`; the next release drops it."""
        return self.storage_requests

    @property
    def condition(self) -> str:
        """Deprecated name of `filter_plan`; the next release drops it."""
        return self.filter_plan

    @property
    def rounds(self) -> int:
        """Number of sequential rounds of requests to storageds."""
        return 1 + max((request.round for request in self.storage_requests), default=-1)

    @property
    def bytes(self) -> int:
        """Bytes between graphd and storageds, in both directions."""
        return sum(request.bytes_sent + request.bytes_received for request in self.storage_requests)
