"""The index of a part's rows by a column, as an image has it: rows in order of their values, alias tables over blocks of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEPS = (1 << 6, 1 << 12, 1 << 18)
"""Rows of a block, by level. They are part of the law of draws: never change them."""
OWN = ""
"""The name of a row's own weights."""


def levels_of(rows: int) -> tuple[int, ...]:
    """The steps of the levels that an index of so many rows has: of a level that had one block there is no need."""
    return tuple(step for step in STEPS if step < rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Alias tables of all blocks of one size, one behind another."""

    hot: NDArray[np.uint64]
    """uint64[rows]; aliases count from their block's first row. Of a block of sum 0: not to be drawn from."""
    cold: NDArray[np.uint32]
    """uint32[rows]."""
    sums: NDArray[np.float64]
    """float64[blocks], Neumaier sums of weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The tables of an index by weights of one name."""

    levels: tuple[Level, ...]
    """By `levels_of`."""
    positives: NDArray[np.int64]
    """int64[blocks of the first step + 1]: how many rows before each block weigh anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """The edges of each node, at one end, in order of a column."""

    order: NDArray[np.uint32]
    """uint32[slots], the slots of each row of the adjacency by (value, slot)."""
    keys: NDArray[np.int64]
    """int64[slots], in that order the values as `graphkit.order.sort_keys` has them."""
    trees: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """float64[slots], by the name of weights: of each row a tree of sums in that order, as `storaged.build.edge_indexes.grow_trees` lays it out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """The live rows of a node type, or the out-slots of an edge type, in order of a column."""

    column: str
    """As conditions write it, canonical."""
    kind: str
    """``hash`` or ``range``."""
    rows: NDArray[np.uint32]
    """uint32[n], by (value, row); NaN comes last, texts come by (hash, bytes)."""
    values: NDArray[Any]
    """``range``: [n], the value of each row; ``hash``: [groups], that of each group, of texts int64 hashes."""
    bounds: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """``hash`` only: int64[groups + 1], where each group of equal values begins."""
    tables: Mapping[str, Tables] = field(default_factory=dict)
    """By the name of weights, the rows' own under ``OWN``; a name that is not there is of a type without weights: every row weighs 1."""
    out: Near | None = None
    into: Near | None = None
    """Of edges, where they are kept: by source, and by destination."""

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.column} ({self.kind})"


def prefix_of(owner: str, kind: str, place: str) -> str:
    """What the names of an index's files begin with: ``place`` is the number of a feature, or ``id`` or ``weight``."""
    return f"{owner}.x{kind[0]}{place}"


def described(column: str, kind: str, prefix: str, names: Mapping[str, str]) -> dict[str, Any]:
    """What the manifest of an image says of an index: ``names`` of weights -> what the names of their files begin with."""
    return {"column": column, "kind": kind, "prefix": prefix, "weights": dict(names)}


def opened(entries: list[Mapping[str, Any]], arrays: Mapping[str, NDArray[Any]]) -> tuple[Ordered, ...]:
    """The indexes that a manifest describes, with the files that it names."""
    return tuple(_opened(entry, arrays) for entry in entries)


def _opened(entry: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Ordered:
    prefix = entry["prefix"]
    rows = arrays[f"{prefix}.rows"]

    def levels(at: str) -> Iterator[Level]:
        for i, _ in enumerate(levels_of(rows.size)):
            yield Level(hot=arrays[f"{at}.{i}.hot"], cold=arrays[f"{at}.{i}.cold"], sums=arrays[f"{at}.{i}.sums"])

    def near(side: str) -> Near | None:
        if side not in entry.get("sides", ()):
            return None
        at = f"{prefix}.{side}"
        trees = {name: arrays[f"{at}{of.removeprefix(prefix)}.tree"] for name, of in entry["weights"].items()}
        return Near(order=arrays[f"{at}.order"], keys=arrays[f"{at}.keys"], trees=trees)

    bounds = {"bounds": arrays[f"{prefix}.bounds"]} if f"{prefix}.bounds" in arrays else {}
    return Ordered(
        column=entry["column"],
        kind=entry["kind"],
        rows=rows,
        values=arrays[f"{prefix}.values"],
        **bounds,
        tables={name: Tables(levels=tuple(levels(at)), positives=arrays[f"{at}.positives"]) for name, at in entry["weights"].items()},
        out=near("out"),
        into=near("in"),
    )
