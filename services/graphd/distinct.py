"""Draws without replacement: the first distinct ones of a stream of draws, and where to stop looking for more.

The stream is given up at the first run of more than ``MAX_REPEATS`` repeats; what is missing then comes from a race of
exponential keys over the rest. The rule looks at the stream alone, never at how many were asked for, so that the first
m of n distinct draws are those of a request for m.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkit import successive
from graphkit.alias import neumaier

Arrays = Mapping[str, NDArray[Any]]

MAX_REPEATS = 64


class FirstSeen:
    """The distinct draws of a stream, in the order of their first appearance.

    Parameters
    ----------
    identity : str
        The section that, with ``types``, tells draws apart.
    """

    def __init__(self, identity: str) -> None:
        self._identity = identity
        self._drawn = 0
        self._last = -1
        """Number of the newest distinct draw."""
        self.found: dict[str, NDArray[Any]] = {}
        self.given_up = False
        """Whether a run of repeats was too long: nothing after it counts."""

    def __len__(self) -> int:
        return len(self.found["types"]) if self.found else 0

    def add(self, block: Arrays) -> None:
        """Go on with the next draws of the stream."""
        if self.given_up:
            return
        size, known = len(block["types"]), len(self)
        joined = {name: np.concatenate([self.found[name], array]) if known else array for name, array in block.items()}
        at = _first_appearances(joined[self._identity], joined["types"])[known:] - known + self._drawn
        gaps = np.diff(np.concatenate([[self._last], at])) - 1
        long = np.flatnonzero(gaps > MAX_REPEATS)
        self._drawn += size
        if long.size:
            at = at[: long[0]]
        if at.size:
            self._last = int(at[-1])
        self.given_up = bool(long.size) or self._drawn - 1 - self._last > MAX_REPEATS
        keep = np.concatenate([np.arange(known, dtype=np.int64), at - (self._drawn - size) + known])
        self.found = {name: array[keep] for name, array in joined.items()}

    def first(self, count: int) -> dict[str, NDArray[Any]]:
        """The first ``count`` of them."""
        return {name: array[:count] for name, array in self.found.items()}


def _first_appearances(identity: NDArray[np.int64], types: NDArray[np.int32]) -> NDArray[np.int64]:
    """Positions at which a pair appears for the first time, ascending."""
    order = np.lexsort((identity, types))
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(identity[order]) != 0) | (np.diff(types[order]) != 0)
    return np.sort(order[new]).astype(np.int64)


def race_winners(answers: list[Arrays], identity: str, count: int) -> dict[str, NDArray[Any]]:
    """The ``count`` rows with the smallest keys over all hosts; ties by id."""
    joined = {name: np.concatenate([answer[name] for answer in answers]) for name in answers[0]}
    order = np.lexsort((joined["types"], joined[identity], joined["keys"]))[:count]
    return {name: array[order] for name, array in joined.items() if name != "keys"}


def given_earlier(shares: NDArray[np.float64], *, uniform: bool, available: int, rest: Callable[[], float]) -> NDArray[np.float64]:
    """The probability of each of some successive draws without replacement, given those before it.

    Parameters
    ----------
    shares : float64[n]
        Of the total, in the order of the draws.
    uniform : bool
        All shares are alike.
    available : int
        How many rows can be drawn.
    rest : callable
        The share of what was not drawn, summed up; asked for where too little is left to tell by a subtraction.

    Returns
    -------
    float64[n]
    """
    if uniform:
        return np.asarray(1.0 / (available - np.arange(len(shares), dtype=np.int64)))
    left = 0.0
    if len(shares) < available:
        left = 1.0 - neumaier(shares)
        if left < successive.LEAST:
            left = rest()
    return successive.given_earlier(shares, left)
