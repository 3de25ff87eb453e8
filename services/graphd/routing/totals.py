"""Totals: rows and weight of each type in each partition of a version.

Global sampling derives the share of each partition from them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from asterism_graphkit.random import partition_choice
from asterism_model.elements import EDGE, NODE
from asterism_model.partition_stats import PartitionTotals, TotalsKey

_MAX_KEPT = 256
"""Maximum number of cached shares per version, one per distinct request."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VersionTotals:
    """Totals of one version. Shares are computed on first use."""

    parts: int
    part_totals: Mapping[TotalsKey, PartitionTotals]
    """(element, type, partition) -> total."""
    by_weight_name: Mapping[str, Mapping[TotalsKey, PartitionTotals]] = field(default_factory=dict)
    """The same totals for each further weight name, of the types that have it."""
    _by_weights: dict[str, VersionTotals] = field(default_factory=dict)
    _shares: dict[tuple[int, tuple[int, ...], bool], partition_choice.PartShares] = field(
        default_factory=dict
    )
    _rows: dict[tuple[int, int], int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def rows(self, element: int, types: Iterable[int]) -> int:
        """Return the number of live rows of some types in all partitions; no type means all."""
        if not self._rows:
            counts: dict[tuple[int, int], int] = {}
            for (entry_element, type_id, _), total in self.part_totals.items():
                counts[entry_element, type_id] = (
                    counts.get((entry_element, type_id), 0) + total.count
                )
            self._rows.update(counts)
        type_ids = set(types)
        return sum(
            count
            for (entry_element, type_id), count in self._rows.items()
            if entry_element == element and (not type_ids or type_id in type_ids)
        )

    def nodes(self, types: Iterable[int]) -> int:
        """Return the number of live nodes of some types; no type means all."""
        return self.rows(NODE, types)

    def edges(self, types: Iterable[int]) -> int:
        """Return the number of edges of some types; no type means all."""
        return self.rows(EDGE, types)

    def with_weights(self, weight_name: str) -> VersionTotals:
        """Return the totals by weights of that name, or by the rows' own weights for "".

        Types without weights of that name keep their own.
        """
        if not weight_name:
            return self
        totals = self._by_weights.get(weight_name)
        if totals is None:
            totals = VersionTotals(
                parts=self.parts,
                part_totals={**self.part_totals, **self.by_weight_name.get(weight_name, {})},
            )
            self._by_weights[weight_name] = totals
        return totals

    def shares(
        self, element: int, types: Sequence[int], *, uniform: bool
    ) -> partition_choice.PartShares:
        """Return each (type, partition)'s share in draws from ``types``, by rows or weight."""
        key = (element, tuple(sorted(set(types))), uniform)
        shares = self._shares.get(key)
        if shares is None:
            measure = {
                (type_id, part): float(total.count) if uniform else total.weight
                for (entry_element, type_id, part), total in self.part_totals.items()
                if entry_element == element and type_id in key[1]
            }
            shares = partition_choice.build_shares(key[1], measure, self.parts)
            with self._lock:
                while len(self._shares) >= _MAX_KEPT:
                    self._shares.pop(next(iter(self._shares)))
                self._shares[key] = shares
        return shares

    def part_counts(self, element: int, type_id: int) -> list[int]:
        """Return the number of live rows of a type in each partition."""
        totals = [self.part_totals.get((element, type_id, part)) for part in range(self.parts)]
        return [0 if total is None else total.count for total in totals]

    def drawable_count(self, element: int, types: Sequence[int], *, uniform: bool) -> int:
        """Return how many distinct rows a draw from ``types`` can return."""
        return sum(
            total.count if uniform else total.positive
            for (entry_element, type_id, _), total in self.part_totals.items()
            if entry_element == element and type_id in types
        )
