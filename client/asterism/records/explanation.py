"""Accounts of sampling calls: where draws fall, who is asked for what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRequest:
    """One request to a storaged."""

    round: int
    """Requests of one round are under way at the same time."""
    method: str
    """What it was asked: draw_nodes, draw_neighbors, walk, ..."""
    host: str
    """Uuid of the storaged."""
    address: str
    rows: int
    """Nodes, walks or draws that it was asked for."""
    sent: int
    """Bytes of the request, as a frame."""
    received: int
    """Bytes of its answer."""


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

    method: str
    asked: tuple[StorageRequest, ...]
    """By round, then host."""
    shares: tuple[DrawShare, ...]
    """Of nodes and edges by type and part; of neighbors, and of a fanout's first hop, by edge type;
    what has none is left out.
    """
    reply_bytes: int
    """Of the sample, as a frame from graphd."""
    condition: str
    """How what satisfies the call's condition is found, in words; "" where it has none."""
    seed: int
    version: int
    token: str
    price: RequestPrice | None = None
    """None where graphd is older than prices."""

    @property
    def rounds(self) -> int:
        """How often storageds were waited for, one after the other."""
        return 1 + max((request.round for request in self.asked), default=-1)

    @property
    def bytes(self) -> int:
        """Between graphd and storageds, both ways."""
        return sum(request.sent + request.received for request in self.asked)
