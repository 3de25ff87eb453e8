"""Reference sampler: the distributions of system.md in plain Python integers and lists.

It works on edge lists, without CSR or images. Only alias tables come from asterism_graphkit,
because their bits are part of the result; `tests/distributions` checks their distribution
separately.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.random import alias_build
from asterism_model.schema import Schema
from tests.kit.images import Edges, Nodes

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
TYPE_STEP = 0xD1B54A32D192ED03
PART, NODE_ROW, EDGE_ROW, NEIGHBOR, NEIGHBOR_TYPE, EXPONENTIAL_KEY = range(1, 7)
REJECTIONS = 16


def mix64(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def unmix64(x: int) -> int:
    """Return the inverse of `mix64`."""

    def unshift(y: int, shift: int) -> int:
        result = y
        for _ in range(64 // shift):
            result = y ^ (result >> shift)
        return result

    x = unshift(x, 31) * pow(0x94D049BB133111EB, -1, 2**64) & MASK
    x = unshift(x, 27) * pow(0xBF58476D1CE4E5B9, -1, 2**64) & MASK
    return unshift(x, 30)


def mix_tag(tag: int) -> int:
    return mix64((tag + 1) * GOLDEN & MASK)


def derive_mixed(key: int, tag: int) -> int:
    return mix64((mix64(key ^ 0xD6E8FEB86659FD93) + tag) & MASK)


def derive(key: int, tag: int) -> int:
    return derive_mixed(key, mix_tag(tag))


def word(key: int, i: int) -> int:
    return mix64((key + (i + 1) * GOLDEN) & MASK)


def key_of(seed: int, *tags: int) -> int:
    key = mix64(seed & MASK)
    for tag in tags:
        key = derive(key, tag)
    return key


def node_offset(node: int, node_type: int) -> int:
    return (node * GOLDEN + node_type * TYPE_STEP) & MASK


def node_tag(position: int, node: int, node_type: int) -> int:
    return (mix_tag(position) + node_offset(node, node_type)) & MASK


def position_with_tag(tag: int, node: int, node_type: int) -> int:
    """Return the position, as int64, at which a node has ``tag`` as its `node_tag`."""
    mixed_position = (tag - node_offset(node, node_type)) & MASK
    position = (unmix64(mixed_position) * pow(GOLDEN, -1, 2**64) - 1) & MASK
    return position - 2**64 if position >= 2**63 else position


def unit_float(w: int) -> float:
    return ((w >> 12) + 0.5) * 2.0**-52


def key_with_word(target_word: int, i: int = 0) -> int:
    """Return a key with ``target_word`` as word ``i``."""
    return (unmix64(target_word) - (i + 1) * GOLDEN) & MASK


def parent_key(target_key: int, tag: int) -> int:
    """Return a key from which the key of the mixed ``tag`` is ``target_key``."""
    return unmix64((unmix64(target_key) - tag) & MASK) ^ 0xD6E8FEB86659FD93


def column_of(w: int, weights: Sequence[float] | NDArray[Any]) -> int:
    """Return the column that a word selects in the alias table of ``weights``."""
    n = len(weights)
    column, coin = w * n >> 64, w * n & MASK
    thresholds, alias_indices = alias_build.pack_thresholds(
        *alias_build.build(np.asarray(weights, np.float64))
    )
    threshold = (int(thresholds[column]) >> 32 << 32) | int(alias_indices[column])
    return column if coin < threshold else int(thresholds[column]) & 0xFFFFFFFF


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A graph as lists, with reference sampling."""

    schema: Schema
    nodes: Mapping[str, Nodes]
    edges: Mapping[str, Edges]

    def part(self, node: int) -> int:
        return (node if self.schema.placement == "mod" else mix64(node)) % self.schema.parts

    def rows(self, element: int, type_id: int, part: int) -> list[tuple[Any, float]]:
        """Return the rows of one (type, partition) in canonical order, with weights.

        A row is a node id, or (src, dst, eid).
        """
        if element == 1:
            nodes = self.nodes[self.schema.node_types[type_id].name]
            weights = np.ones(nodes.ids.size) if nodes.weights is None else nodes.weights
            rows = [
                (int(i), float(w))
                for i, w in zip(nodes.ids, weights, strict=True)
                if self.part(int(i)) == part
            ]
            return sorted(rows)
        edges = self.edges[self.schema.edge_types[type_id].name]
        weights = np.ones(edges.src.size) if edges.weights is None else edges.weights
        edge_rows = [
            ((int(s), int(d), int(e)), float(w))
            for s, d, e, w in zip(edges.src, edges.dst, edges.ids, weights, strict=True)
            if self.part(int(s)) == part
        ]
        return sorted(edge_rows)

    def draws(
        self,
        element: int,
        *,
        types: Sequence[int],
        seed: int,
        start: int,
        count: int,
        uniform: bool,
    ) -> list[tuple[int, int, Any]]:
        """Return (type, partition, row) of every draw."""
        entries = [(t, p) for t in sorted(set(types)) for p in range(self.schema.parts)]
        rows_by_entry = [self.rows(element, t, p) for t, p in entries]
        entry_weights = [
            float(len(rows))
            if uniform
            else alias_build.neumaier_sum(np.array([w for _, w in rows]))
            for rows in rows_by_entry
        ]
        part_key, row_key = (
            key_of(seed, PART, element),
            key_of(seed, NODE_ROW if element == 1 else EDGE_ROW),
        )
        result = []
        for i in range(start, start + count):
            entry = column_of(word(part_key, i), entry_weights)
            rows = (
                rows_by_entry[entry]
                if uniform
                else [row for row in rows_by_entry[entry] if row[1] > 0]
            )
            weights = [1.0 if uniform else w for _, w in rows]
            result.append((*entries[entry], rows[column_of(word(row_key, i), weights)][0]))
        return result

    def row_probability(
        self, element: int, *, types: Sequence[int], target_row: tuple[int, Any], uniform: bool
    ) -> float:
        """Return the probability of a row (type, row) in one draw."""
        rows = [
            (t, row, w)
            for t in set(types)
            for part in range(self.schema.parts)
            for row, w in self.rows(element, t, part)
        ]
        total = sum(Fraction(1 if uniform else w) for _, _, w in rows)
        return float(
            next(Fraction(1 if uniform else w) for t, row, w in rows if (t, row) == target_row)
            / total
        )

    def exponential_arrivals(
        self,
        element: int,
        *,
        types: Sequence[int],
        seed: int,
        count: int,
        excluded: set[tuple[int, int]],
        uniform: bool,
    ) -> list[tuple[float, int, int]]:
        """Return (key, type, id) of the ``count`` smallest exponential keys.

        ``excluded`` has (type, id).
        """
        arrivals = []
        for t in set(types):
            key = key_of(seed, EXPONENTIAL_KEY, element, t)
            for part in range(self.schema.parts):
                for row, w in self.rows(element, t, part):
                    ident = row if element == 1 else row[2]
                    if (uniform or w > 0) and (t, ident) not in excluded:
                        arrivals.append(
                            (
                                -math.log(unit_float(word(key, ident))) / (1.0 if uniform else w),
                                t,
                                ident,
                            )
                        )
        return sorted(arrivals)[:count]

    def adjacency(self, edge_type: int, node: int, direction: int) -> list[tuple[int, int, float]]:
        """Return (neighbor, edge id, weight), ordered by neighbor and edge id."""
        edges = self.edges[self.schema.edge_types[edge_type].name]
        local, remote = (edges.src, edges.dst) if direction == 1 else (edges.dst, edges.src)
        weights = np.ones(edges.src.size) if edges.weights is None else edges.weights
        selected = np.flatnonzero(local == node)
        return sorted((int(remote[i]), int(edges.ids[i]), float(weights[i])) for i in selected)

    def local_type(self, edge_type: int, direction: int) -> int:
        edge_spec = self.schema.edge_types[edge_type]
        return self.schema.node_type_id(
            edge_spec.src_type if direction == 1 else edge_spec.dst_type
        )

    def neighbors(
        self,
        *,
        edge_types: Sequence[int],
        node_type: int,
        node: int,
        position: int,
        count: int,
        replace: bool,
        uniform: bool,
        direction: int,
        seed: int,
        hop: int,
    ) -> list[tuple[int, int, int, float]]:
        """Return (edge type, neighbor, edge id, weight) of each draw.

        There are fewer than ``count`` if the node has no more neighbors.
        """
        types_here = [t for t in edge_types if self.local_type(t, direction) == node_type]
        rows = {t: self.adjacency(t, node, direction) for t in types_here}
        measured: Callable[[float], float] = (lambda _: 1.0) if uniform else (lambda w: w)
        weights = {t: [measured(w) for _, _, w in rows[t]] for t in types_here}

        def neighbor_at(t: int, column: int) -> tuple[int, int, int, float]:
            return (t, *rows[t][column])

        if not any(any(weights[t]) for t in types_here):
            return []
        tag = node_tag(position, node, node_type)
        key = derive_mixed(key_of(seed, NEIGHBOR, direction, hop), tag)
        if replace:
            type_key = derive_mixed(key_of(seed, NEIGHBOR_TYPE, direction, hop), tag)
            sums = [alias_build.neumaier_sum(np.array(weights[t])) for t in types_here]
            result = []
            for k in range(count):
                t = _pick_type(types_here, sums, unit_float(word(type_key, k)))
                result.append(neighbor_at(t, column_of(word(key, k), weights[t])))
            return result
        all_edges = [(t, c) for t in types_here for c in range(len(rows[t]))]
        if len(all_edges) <= count:
            return [neighbor_at(t, c) for t, c in all_edges if weights[t][c] > 0]
        selected: list[tuple[int, int]] = []
        if len(types_here) == 1:
            selected = _successive_draws(
                key,
                types_here[0],
                weights[types_here[0]],
                count,
                all_equal=uniform or self._all_equal(types_here[0]),
            )
        candidates = []
        for t in types_here:
            exponential_key = derive_mixed(key_of(seed, EXPONENTIAL_KEY, 3, direction, hop, t), tag)
            remaining = [
                c for c in range(len(rows[t])) if weights[t][c] > 0 and (t, c) not in selected
            ]
            # Ties are broken by the position of the type in the union, then by slot.
            candidates += [
                (
                    -math.log(unit_float(word(exponential_key, c))) / weights[t][c],
                    types_here.index(t),
                    c,
                )
                for c in remaining
            ]
        selected += [
            (types_here[type_index], c)
            for _, type_index, c in sorted(candidates)[: count - len(selected)]
        ]
        return [neighbor_at(t, c) for t, c in selected]

    def probabilities(
        self,
        samples: Sequence[tuple[int, int, int, float]],
        *,
        edge_types: Sequence[int],
        node_type: int,
        node: int,
        count: int,
        replace: bool,
        uniform: bool,
        direction: int,
    ) -> list[float]:
        """Return the probability of each draw of a node, in order.

        Without replacement, it is conditional on the earlier draws.
        """
        edges = [
            w
            for t in edge_types
            if self.local_type(t, direction) == node_type
            for _, _, w in self.adjacency(t, node, direction)
        ]
        remaining = sum((Fraction(1 if uniform else w) for w in edges), Fraction(0))
        result = []
        for *_, w in samples:
            weight = Fraction(1 if uniform else w)
            result.append(1.0 if not replace and len(edges) <= count else float(weight / remaining))
            remaining -= 0 if replace else weight
        return result

    def _all_equal(self, edge_type: int) -> bool:
        weights = self.edges[self.schema.edge_types[edge_type].name].weights
        return weights is None


def _pick_type(types: Sequence[int], sums: Sequence[float], u: float) -> int:
    point, cumulative = u * sum(sums), 0.0
    positive = [t for t, s in zip(types, sums, strict=True) if s > 0]
    for t, s in zip(types, sums, strict=True):
        cumulative += s
        if point < cumulative:
            return t
    return positive[-1]


def _successive_draws(
    key: int, edge_type: int, weights: Sequence[float], count: int, *, all_equal: bool
) -> list[tuple[int, int]]:
    """Draw without replacement from one row.

    The method is a shuffle of the row, or its alias table with repeats rejected until too many
    occur in a row.
    """
    if all_equal:
        pool = list(range(len(weights)))
        for k in range(count):
            j = k + (word(key, k) * (len(pool) - k) >> 64)
            pool[k], pool[j] = pool[j], pool[k]
        return [(edge_type, c) for c in pool[:count]]
    selected: list[tuple[int, int]] = []
    attempt = rejected = 0
    while len(selected) < count and rejected < REJECTIONS:
        candidate = (edge_type, column_of(word(key, attempt), weights))
        attempt += 1
        if candidate in selected:
            rejected += 1
        else:
            selected.append(candidate)
            rejected = 0
    return selected
