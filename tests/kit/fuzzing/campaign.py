"""Campaigns: thousands of mutated requests, what became of each kind, and those that went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from asterism_proto.errors import AsterismError, Internal
from tests.kit.fuzzing.mutations import Donors, Mutation, mutations
from tests.kit.fuzzing.services import Recorded

ANSWERED, FAULT = "answered", "FAULT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A request that was not answered as a request may be."""

    host: int
    method: str
    number: int
    edits: tuple[str, ...]
    error: BaseException

    def __str__(self) -> str:
        return f"request {self.number}, {self.method} of host {self.host}, {', '.join(self.edits)}: {self.error!r}"


@dataclass(slots=True)
class Outcome:
    """What became of the requests of a campaign."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(method, "answered" or the name of the error) -> requests."""
    faults: list[Fault] = field(default_factory=list)

    @property
    def requests(self) -> int:
        """How many were sent."""
        return sum(self.counts.values())

    def table(self) -> str:
        """The counts by method and outcome, as lines of text."""
        outcomes = sorted({outcome for _, outcome in self.counts})
        head = "method".ljust(22) + "".join(name.rjust(16) for name in outcomes)
        rows = []
        for method in [*sorted({method for method, _ in self.counts}), "all"]:
            cells = [sum(n for (m, o), n in self.counts.items() if o == name and method in (m, "all")) for name in outcomes]
            rows.append(method.ljust(22) + "".join(str(n).rjust(16) for n in cells))
        return "\n".join([head, *rows])


Send = Callable[[Recorded, Mutation], object]
"""Sends a changed request to where the original went; raises what comes back as an error."""


def donors_of(corpus: Iterable[Recorded]) -> Donors:
    """What all requests of a corpus consist of."""
    made = Donors()
    for one in corpus:
        made.add(one.head, one.arrays)
    return made


def run(
    corpus: Sequence[Recorded], send: Send, *, count: int, seed: int, begun: Callable[[str], None] = lambda _: None, most_faults: int = 50
) -> Outcome:
    """Send ``count`` changed requests, each request of the corpus in turn.

    Parameters
    ----------
    corpus : sequence of Recorded
    send : callable
    count, seed : int
        The same two give the same requests.
    begun : callable
        Called with a description before each request, for whoever looks after a crash.
    most_faults : int
        The campaign ends with the last of these.
    """
    found, donors = Outcome(), donors_of(corpus)
    streams = [mutations(one.head, one.arrays, np.random.default_rng([seed, place]), donors) for place, one in enumerate(corpus)]
    for number in range(count):
        place = number % len(corpus)
        original, changed = corpus[place], next(streams[place])
        begun(f"seed {seed}, request {number}: {original.method} of host {original.host}: {', '.join(changed.edits)}\n{changed.head}"[:20000])
        outcome = ANSWERED
        try:
            send(original, changed)
        except Internal as error:
            outcome = FAULT
            found.faults.append(Fault(host=original.host, method=original.method, number=number, edits=changed.edits, error=error))
        except AsterismError as error:
            outcome = type(error).__name__
        except Exception as error:  # what a server would answer Internal for
            outcome = FAULT
            found.faults.append(Fault(host=original.host, method=original.method, number=number, edits=changed.edits, error=error))
        found.counts[original.method, outcome] += 1
        if len(found.faults) >= most_faults:
            break
    return found
