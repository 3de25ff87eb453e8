"""Campaigns of hostile requests against the services that clients call: Graph, Catalog, Beats.

Requests are recorded while a client works, mutated by `tests.kit.fuzzing.mutations`, encoded, decoded as a server decodes them, and handled.
A request may be answered or refused with a typed error. An `Internal`, any other exception, or more than `HANG_S` seconds is a fault.
"""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.arrays import Frame
from asterism_proto.errors import AsterismError, Internal
from asterism_proto.methods import Method
from daemonkit.calls import Call, Content, Handler, LocalTransport
from tests.kit.fuzzing.mutations import Donors, Mutation, mutations

HANG_S = 60.0
"""Seconds after which a request counts as hanging: a time limit that no request comes near, on however busy a machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A recorded request."""

    method: Method
    head: Any
    arrays: dict[str, NDArray[Any]]

    def shape(self) -> tuple[str, ...]:
        """Return what tells it from others of its method: the fields and arrays that it has."""
        return (self.method.path, *sorted(described.name for described, _ in self.head.ListFields()), *sorted(self.arrays))


class Recorder(LocalTransport):
    """A transport to handlers in this process that keeps the first request of each shape."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        super().__init__(handlers)
        self._kept: dict[tuple[str, ...], Request] = {}

    @property
    def requests(self) -> list[Request]:
        """The recorded requests."""
        return list(self._kept.values())

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """Handle a request, and keep it."""
        head, arrays = (
            (request.head, {name: np.array(array) for name, array in request.arrays.items()}) if isinstance(request, Frame) else (request, {})
        )
        kept = Request(method=method, head=head, arrays=arrays)
        self._kept.setdefault(kept.shape(), kept)
        return super().call(method, request, timeout_s)


@dataclass(slots=True)
class Outcome:
    """Results of a campaign."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(method, "answered" or the name of the error) -> number of requests."""
    faults: dict[str, str] = field(default_factory=dict)
    """Place of the fault in the code -> the first request that it happened to."""

    @property
    def requests(self) -> int:
        """Return the number of requests."""
        return sum(self.counts.values())

    def table(self) -> str:
        """Return the counts as text, a line for each method."""
        names = sorted({name for _, name in self.counts})
        lines = ["method".ljust(24) + "".join(name.rjust(16) for name in names)]
        for method in [*sorted({method for method, _ in self.counts}), "all"]:
            cells = [sum(count for (m, n), count in self.counts.items() if n == name and method in (m, "all")) for name in names]
            lines.append(method.ljust(24) + "".join(str(cell).rjust(16) for cell in cells))
        return "\n".join(lines)

    def observe(self, name: str, described: str, send: Callable[[], object]) -> None:
        """Send a request and count its outcome."""
        begun = time.monotonic()
        try:
            send()
            outcome = "answered"
        except Internal as error:
            outcome = self._fault(described, error)
        except AsterismError as error:
            outcome = type(error).__name__
        except Exception as error:  # a server answers Internal for it
            outcome = self._fault(described, error)
        took = time.monotonic() - begun
        if took > HANG_S:
            self.faults[f"{name} hangs"] = f"{described}: {took:.1f} s"
        self.counts[name, outcome] += 1

    def _fault(self, described: str, error: BaseException) -> str:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if "/services/" in frame.filename or "/asterism_proto/" in frame.filename] or list(frames)
        place = f"{type(error).__name__} at {Path(own[-1].filename).name}:{own[-1].name}:{own[-1].lineno}"
        self.faults.setdefault(place, f"{described}: {error!r}")
        return "FAULT"


def donors_of(corpus: Sequence[Request]) -> Donors:
    """Return what the requests of a corpus consist of."""
    made = Donors()
    for request in corpus:
        made.add(request.head, request.arrays)
    return made


def run(
    corpus: Sequence[Request],
    handlers: Mapping[str, Handler],
    *,
    count: int,
    seed: int,
    timeout_s: float = HANG_S / 3,
    before: Callable[[Request, Mutation], None] = lambda *_: None,
) -> Outcome:
    """Send mutations of recorded requests, each request of the corpus in turn.

    Parameters
    ----------
    corpus : sequence of Request
    handlers : mapping of str to Handler
        By path of the method.
    count, seed : int
        The same two give the same requests.
    timeout_s : float
        Deadline of each request, in seconds.
    before : callable
        Called before each request, for example to write it down for the case of a crash.
    """
    outcome, donors = Outcome(), donors_of(corpus)
    streams = [mutations(request.head, request.arrays, np.random.default_rng([seed, place]), donors) for place, request in enumerate(corpus)]
    for number in range(count):
        place = number % len(corpus)
        request, changed = corpus[place], next(streams[place])
        before(request, changed)
        described = f"seed {seed}, request {number}, {request.method.name}: {', '.join(changed.edits)}"
        outcome.observe(request.method.name, described, lambda r=request, c=changed: send(handlers, r.method, c.head, c.arrays, timeout_s))
    return outcome


def send(handlers: Mapping[str, Handler], method: Method, head: Any, arrays: Mapping[str, NDArray[Any]], timeout_s: float) -> Content:
    """Handle a request as a server does, and encode the reply."""
    data = method.pack(Frame(head, arrays) if method.framed else head)
    reply = handlers[method.path](method.unpack_request(data), Call.within(timeout_s))
    method.pack(reply)
    return reply
