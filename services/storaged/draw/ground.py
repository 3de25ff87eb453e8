"""What walks along some edge types walk on: their adjacencies as one table, and what walks by p and q look at besides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import addresses_of, settled
from storaged.draw.lookup import ends, table_of
from storaged.draw.sieved import heads_of, shares_of, sieve_of
from storaged.draw.version import Version
from storaged.kernel import sieve, table
from storaged.kernel.lanes import FAR, NEAR

I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ground:
    """What walks along some edge types walk on, as `storaged.kernel.walk` takes it; not to outlive the version."""

    table: I64
    ends: I64
    held: NDArray[np.bool_]
    scattered: bool
    packs: NDArray[np.uint64]
    colds: NDArray[np.uint64]
    """Columns of ``table``."""

    def packed(self, uniform: bool) -> bool:
        """Whether all that walks read is there as `storaged.kernel.packed` reads it."""
        read = (
            self.table[:, table.NARROW]
            if uniform
            else np.where(self.table[:, table.HOT] > 0, self.table[:, table.PACKED], self.table[:, table.NARROW])
        )
        return not self.scattered and bool((read[self.table[:, table.NBR] > 0] > 0).all())

    def returns(self, edge_types: Sequence[int]) -> bool:
        """Whether an edge type leads to nodes of the type at which it begins."""
        return all(self.ends[NEAR, edge_type] == self.ends[FAR, edge_type] for edge_type in edge_types)


def ground_of(version: Version, edge_types: Sequence[int], direction: int) -> Ground:
    """Of these edge types, by the end that is near; ids are of nodes that live in parts held here."""
    schema = version.schema
    held = np.zeros(schema.parts, np.bool_)
    held[list(version.parts)] = True
    lines, near_far = np.zeros((len(schema.edge_types), schema.parts, table.COLUMNS), np.int64), np.full((2, len(schema.edge_types)), -2, np.int64)
    for edge_type in edge_types:
        lines[edge_type] = table_of(version, edge_type, direction)
        near_far[:, edge_type] = ends(version, edge_type, direction)
    scattered = bool(lines[:, :, [table.INDEX_IDS, table.LIVE]].any())
    lines = settled(lines.reshape(-1, table.COLUMNS))
    packs, colds = (settled(lines[:, column].astype(np.uint64)) for column in (table.PACKED, table.COLD))
    return Ground(table=lines, ends=settled(near_far), held=settled(held), scattered=scattered, packs=packs, colds=colds)


def sieved(
    version: Version, ground: Ground, edge_types: Sequence[int], direction: int, uniform: bool | None, checkpoint: Callable[[], object]
) -> Ground:
    """The same with sieves, and with the shares that steps back have uniformly or by weight; None: without those."""
    parts, lines = version.schema.parts, np.zeros((ground.table.shape[0], sieve.HEADS + 1), np.int64)
    lines[:, : table.COLUMNS] = ground.table
    for edge_type in edge_types:
        for part in version.parts:
            line = lines[edge_type * parts + part]
            words = sieve_of(version, part, edge_type, direction, checkpoint)
            line[sieve.SIEVE], line[sieve.WORDS] = addresses_of([words])[0], words.size
            if uniform is not None:
                line[sieve.SHARES] = addresses_of([shares_of(version, part, edge_type, direction, uniform, checkpoint)])[0]
            line[sieve.HEADS] = addresses_of([heads_of(version, part, edge_type, direction, uniform, checkpoint)])[0]
    return replace(ground, table=settled(lines))
