"""Campaigns: thousands of mutated requests, their outcomes, and the faults.

A request may be answered or refused with a typed error. An `Internal`, any other exception, or more
than `HANG_S` seconds is a fault."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import AsterismError, Internal
from tests.kit.fuzzing.mutations import Donors, Mutation, mutations

ANSWERED, FAULT = "answered", "FAULT"
HANG_S = 60.0
"""Seconds after which a request counts as hanging.

The limit is far above the time of any request on a busy machine.
"""


class RecordedRequest(Protocol):
    """A recorded request."""

    @property
    def name(self) -> str:
        """Name of the method."""

    @property
    def description(self) -> str:
        """Method and destination, for messages."""

    @property
    def head(self) -> Any:
        """Message of the request."""

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Sections of the request; empty for a plain message."""


Request = TypeVar("Request", bound=RecordedRequest)
Send = Callable[[Request, Mutation], object]
"""Function that sends a changed request to the original destination, or raises its error."""


@dataclass(slots=True)
class Outcome:
    """Results of a campaign."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of requests by (method, "answered" or the name of the error)."""
    faults: dict[str, str] = field(default_factory=dict)
    """First request of each fault, by the location of the fault in the code."""

    @property
    def requests(self) -> int:
        """Return the number of requests."""
        return sum(self.counts.values())

    def table(self) -> str:
        """Return the counts as text, a line for each method."""
        names = sorted({name for _, name in self.counts})
        lines = ["method".ljust(24) + "".join(name.rjust(16) for name in names)]
        for method in [*sorted({method for method, _ in self.counts}), "all"]:
            cells = [
                sum(
                    count
                    for (m, n), count in self.counts.items()
                    if n == name and method in (m, "all")
                )
                for name in names
            ]
            lines.append(method.ljust(24) + "".join(str(cell).rjust(16) for cell in cells))
        return "\n".join(lines)

    def observe(self, name: str, description: str, send: Callable[[], object]) -> None:
        """Send a request and count its outcome."""
        started = time.monotonic()
        try:
            send()
            outcome = ANSWERED
        except Internal as error:
            outcome = self._fault(description, error)
        except AsterismError as error:
            outcome = type(error).__name__
        except Exception as error:  # a server replies Internal
            outcome = self._fault(description, error)
        elapsed_s = time.monotonic() - started
        if elapsed_s > HANG_S:
            self.faults[f"{name} hangs"] = f"{description}: {elapsed_s:.1f} s"
        self.counts[name, outcome] += 1

    def _fault(self, description: str, error: BaseException) -> str:
        frames = traceback.extract_tb(error.__traceback__)
        service_frames = [
            frame
            for frame in frames
            if "/services/" in frame.filename or "/asterism_proto/" in frame.filename
        ] or list(frames)
        frame = service_frames[-1]
        fault_location = (
            f"{type(error).__name__} at {Path(frame.filename).name}:{frame.name}:{frame.lineno}"
        )
        self.faults.setdefault(fault_location, f"{description}: {error!r}")
        return FAULT


def collect_donors(corpus: Iterable[RecordedRequest]) -> Donors:
    """Return the messages, texts and arrays of all requests of a corpus."""
    donors = Donors()
    for request in corpus:
        donors.add(request.head, request.arrays)
    return donors


def run(
    corpus: Sequence[Request],
    send: Send[Request],
    *,
    count: int,
    seed: int,
    on_request: Callable[[str], None] = lambda _: None,
    max_faults: int = 50,
) -> Outcome:
    """Send ``count`` mutations of recorded requests, each request of the corpus in turn.

    Parameters
    ----------
    corpus : sequence of RecordedRequest
    send : callable
    count, seed : int
        The same two give the same requests.
    on_request : callable
        Called with a description before each request, for example to store it for the case of a
        crash.
    max_faults : int
        The campaign ends after this number of requests with faults.
    """
    outcome, donors = Outcome(), collect_donors(corpus)
    streams = [
        mutations(request.head, request.arrays, np.random.default_rng([seed, index]), donors)
        for index, request in enumerate(corpus)
    ]
    for request_number in range(count):
        index = request_number % len(corpus)
        request, changed = corpus[index], next(streams[index])
        description = (
            f"seed {seed}, request {request_number}, {request.description}: "
            f"{', '.join(changed.edits)}"
        )
        on_request(f"{description}\n{changed.head}"[:20000])
        outcome.observe(request.name, description, lambda r=request, c=changed: send(r, c))
        if (
            sum(fault_count for (_, name), fault_count in outcome.counts.items() if name == FAULT)
            >= max_faults
        ):
            break
    return outcome
