"""What satisfies the conditions of recent requests: totals of versions, as the storageds told them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from asterism_proto.v1 import storaged_pb2 as store
from graphd.totals import Totals

_KEPT = 256
"""Conditions of all versions together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Of what totals are: a version, and the rows of it that a request is about."""

    space_id: int
    version: int
    digest: str
    text: str
    """The canonical text of the condition."""
    element: int
    types: tuple[int, ...]
    weight: str
    both: bool
    hosts: tuple[str, ...]
    """Who was asked: a part that has moved is looked at anew."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Known:
    """What satisfies a condition."""

    totals: Totals
    where: store.Where
    """As storageds are told it."""
    way: str
    """How they find it, in words."""


class Conditions:
    """Keeps what is known of the newest conditions; they are counted, for all that is kept is totals."""

    def __init__(self) -> None:
        self._known: dict[Asked, Known] = {}
        self._lock = threading.Lock()

    def find(self, asked: Asked) -> Known | None:
        """What is known, None where nothing is."""
        with self._lock:
            found = self._known.pop(asked, None)
            if found is not None:
                self._known[asked] = found
            return found

    def keep(self, asked: Asked, known: Known) -> None:
        """Take over what was found out; what was not asked for for the longest time goes."""
        with self._lock:
            self._known[asked] = known
            while len(self._known) > _KEPT:
                self._known.pop(next(iter(self._known)))

    def forget(self, space_id: int, version: int) -> None:
        """Forget a version: a storaged does not have of it what it should."""
        with self._lock:
            kept: Mapping[Asked, Known] = self._known
            self._known = {asked: known for asked, known in kept.items() if (asked.space_id, asked.version) != (space_id, version)}
