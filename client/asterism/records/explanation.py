"""Accounts of sampling calls: where draws fall, who is asked for what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRequest:
    """One request to a storaged."""

    DEPRECATED_NAMES: ClassVar[tuple[str, ...]] = ("sent", "received")
    """Properties that the command's JSON has beside the fields, for this release."""

    round: int
    """Requests of one round are under way at the same time."""
    method: str
    """What it was asked: draw_nodes, draw_neighbors, walk, ..."""
    host: str
    """Uuid of the storaged."""
    address: str
    rows: int
    """Nodes, walks or draws that it was asked for."""
    bytes_sent: int
    """Size of the request, as a frame."""
    bytes_received: int
    """Size of its reply, as a frame."""

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
    """Where draws fall: of nodes and edges on a type and part, of neighbors on an edge type."""

    type_id: int
    part: int | None
    """None: all parts."""
    host: str
    """Uuid of the storaged that answers for the part; "" where it is all of them."""
    share: float
    """Of all that is drawn from, by the version's weights, or by counts where it is uniform."""
    expected: float | None
    """How many draws fall here in the mean; None where they are without replacement."""
    drawn: int
    """How many do, with this seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimit:
    """A limit of requests and what one request takes of it."""

    setting: str
    """Setting of graphd: request_rows_limit, request_memory_limit_mib (in bytes here) or
    request_steps_limit.
    """
    value: int
    limit: int

    @property
    def share(self) -> float:
        """Share of the limit that the request takes."""
        return self.value / self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPrice:
    """What a request takes at most, computed before it runs."""

    formula: str
    """How the rows follow from the arguments."""
    rows: int
    bytes: int
    """Arrays of the reply."""
    scratch: int
    """Bytes of temporary arrays."""
    steps: int
    """Iterations of kernels."""
    exact: bool
    """Whether all of it follows from the arguments; else it depends on the graph too, and these are
    bounds.
    """
    limits: tuple[RequestLimit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What a sampling call takes. It was made; `Graph.replay` of ``token`` gives its sample."""

    DEPRECATED_NAMES: ClassVar[tuple[str, ...]] = ("asked", "condition")
    """Properties that the command's JSON has beside the fields, for this release."""

    method: str
    storage_requests: tuple[StorageRequest, ...]
    """By round, then host."""
    shares: tuple[DrawShare, ...]
    """Of nodes and edges by type and part; of neighbors, and of a fanout's first hop, by edge type;
    what has none is left out.
    """
    reply_bytes: int
    """Of the sample, as a frame from graphd."""
    filter_plan: str
    """How rows that satisfy the filter of the call are found, in words; empty without a filter."""
    seed: int
    version: int
    token: str
    price: RequestPrice | None = None
    """None where graphd is older than prices."""

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
        """How often storageds were waited for, one after the other."""
        return 1 + max((request.round for request in self.storage_requests), default=-1)

    @property
    def bytes(self) -> int:
        """Between graphd and storageds, both ways."""
        return sum(request.bytes_sent + request.bytes_received for request in self.storage_requests)
