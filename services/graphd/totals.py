"""Totals: how much of each type every part holds in one version, and the shares of global draws made from that."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from graphkit import split

NODE, EDGE = 1, 2
OWN_WEIGHTS = ("", "weight")
"""Names of the weights that every row has; totals of further ones measure the same rows."""
_KEPT = 256
"""Shares of so many different requests are kept per version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """What one part holds of one type."""

    count: int
    """Live rows: the measure of uniform draws."""
    positive: int
    """Rows of positive weight: how many weighted draws can tell apart."""
    weight: float
    """The sum of their weights: the measure of weighted draws."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Totals:
    """All totals of one version; shares are made when first asked for."""

    parts: int
    by_share: Mapping[tuple[int, int, int], Total]
    """(element, type, part) -> total."""
    named: Mapping[str, Mapping[tuple[int, int, int], Total]] = field(default_factory=dict)
    """The same of each further weight name, of the types that have it."""
    _weighed: dict[str, Totals] = field(default_factory=dict)
    _shares: dict[tuple[int, tuple[int, ...], bool], split.Shares] = field(default_factory=dict)
    _rows: dict[tuple[int, int], int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def rows(self, element: int, types: Iterable[int]) -> int:
        """Return the live rows of some types over all parts; no type: of every one."""
        if not self._rows:
            found: dict[tuple[int, int], int] = {}
            for (of, type_id, _), total in self.by_share.items():
                found[of, type_id] = found.get((of, type_id), 0) + total.count
            self._rows.update(found)
        wanted = set(types)
        return sum(count for (of, type_id), count in self._rows.items() if of == element and (not wanted or type_id in wanted))

    def nodes(self, types: Iterable[int]) -> int:
        """Return the live nodes of some types; no type: of every one."""
        return self.rows(NODE, types)

    def edges(self, types: Iterable[int]) -> int:
        """Return the edges of some types; no type: of every one."""
        return self.rows(EDGE, types)

    def weighed(self, weights: str) -> Totals:
        """The totals by the weights of that name, in place of the rows' own (""); types that have none of it keep theirs."""
        if not weights:
            return self
        found = self._weighed.get(weights)
        if found is None:
            found = Totals(parts=self.parts, by_share={**self.by_share, **self.named.get(weights, {})})
            self._weighed[weights] = found
        return found

    def shares(self, element: int, types: Sequence[int], *, uniform: bool) -> split.Shares:
        """The shares of every (type, part) in draws from ``types``, by live rows or by weight."""
        wanted = (element, tuple(sorted(set(types))), uniform)
        made = self._shares.get(wanted)
        if made is None:
            measure = {
                (type_id, part): float(total.count) if uniform else total.weight
                for (of, type_id, part), total in self.by_share.items()
                if of == element and type_id in wanted[1]
            }
            made = split.shares(wanted[1], measure, self.parts)
            with self._lock:
                while len(self._shares) >= _KEPT:
                    self._shares.pop(next(iter(self._shares)))
                self._shares[wanted] = made
        return made

    def counts(self, element: int, type_id: int) -> list[int]:
        """The live rows of a type in each part."""
        found = [self.by_share.get((element, type_id, part)) for part in range(self.parts)]
        return [0 if total is None else total.count for total in found]

    def available(self, element: int, types: Sequence[int], *, uniform: bool) -> int:
        """How many different rows a draw from ``types`` can give."""
        return sum(
            total.count if uniform else total.positive for (of, type_id, _), total in self.by_share.items() if of == element and type_id in types
        )
