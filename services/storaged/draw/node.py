"""Global draws of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkit import rng
from graphkit.jit import addresses_of, settled
from storaged.draw.blocks import DRAWS, Checkpoint, blocks, never
from storaged.draw.entries import Entries, draw_ids, draw_rows, entries_of, read_ids, shares_of
from storaged.draw.race import Race
from storaged.draw.version import NODE, Version, checked_outputs
from storaged.kernel.probability import place_shares
from storaged.store.image import EMPTY_F32, NodeImage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeDraws:
    """Drawn nodes, in order of the draws."""

    ids: NDArray[np.int64]
    """int64[k]."""
    types: NDArray[np.int32] | None
    """int32[k]; None where all are of one type."""
    probabilities: NDArray[np.float64] | None
    """float64[k], each row's share of the total of all parts; when wanted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeRace:
    """The first of a race over nodes, in order of arrival."""

    ids: NDArray[np.int64]
    """int64[k], k less than asked for where there are no more."""
    types: NDArray[np.int32]
    """int32[k]."""
    keys: NDArray[np.float64]
    """float64[k], ascending; races over other parts merge by (key, type, id)."""
    probabilities: NDArray[np.float64] | None
    """float64[k], as in `NodeDraws`; when wanted."""


def nodes(
    version: Version,
    *,
    types: Sequence[int],
    parts: Sequence[int],
    seed: int,
    start: int,
    count: int,
    uniform: bool,
    want_probabilities: bool = False,
    checkpoint: Checkpoint = never,
) -> NodeDraws:
    """The draws start .. start + count - 1 that fall on ``parts``, in order.

    Parameters
    ----------
    version : Version
    types : sequence of int
        Node types to draw from, in proportion to their totals.
    parts : sequence of int
        Parts to answer for.
    seed : int
        64 bits.
    start, count : int
        Numbers of the draws; each is a function of (seed, its number) alone.
    uniform : bool
        Every live node alike, instead of by weight.
    want_probabilities : bool
    checkpoint : callable
        Called between blocks of draws; may raise.

    Raises
    ------
    InvalidRequest, NotFound, Unavailable
        Where a number is impossible, there is nothing to draw, or a part is not held here.
    """
    entries = entries_of(version, NODE, types=types, parts=parts, uniform=uniform)
    own: dict[str, Any] = {"uniform": uniform, "want_probabilities": want_probabilities}
    checked_outputs("count", count)
    found = [drawn(entries, seed, start + block.start, block.stop - block.start, **own) for block in blocks(count, DRAWS, checkpoint)]
    if len(found) == 1:
        return found[0]
    return NodeDraws(
        ids=np.concatenate([each.ids for each in found]),
        types=joined([each.types for each in found]),
        probabilities=joined([each.probabilities for each in found]),
    )


def joined(columns: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Return the columns of blocks one after another; None where there is none."""
    given = [column for column in columns if column is not None]
    return np.concatenate(given) if given else None


def drawn(
    entries: Entries, seed: int, start: int, count: int, *, numbers: NDArray[np.int64] | None = None, uniform: bool, want_probabilities: bool
) -> NodeDraws:
    """The draws start .. start + count - 1, or those of ``numbers``, that fall on local entries, in order."""
    part_key, row_key = rng.key_of(seed, rng.PART, NODE), rng.key_of(seed, rng.NODE_ROW)
    if not want_probabilities:
        ids, of_type = draw_ids(entries, part_key, row_key, start, count, numbers)
        return NodeDraws(ids=ids, types=None if entries.of_one_type else of_type, probabilities=None)
    rows, of_entry = draw_rows(entries, part_key, row_key, start, count, numbers)
    decisive = addresses_of(EMPTY_F32 if image is None else _decisive(image.nodes[type_id], uniform) for type_id, image in entries.images)
    return NodeDraws(
        ids=read_ids(entries, of_entry, rows),
        types=None if entries.of_one_type else entries.shares.types[of_entry],
        probabilities=shares_of(decisive, of_entry, rows, entries.shares.total),
    )


def race_nodes(
    version: Version,
    *,
    types: Sequence[int],
    parts: Sequence[int],
    seed: int,
    count: int,
    taken_ids: NDArray[np.int64],
    taken_types: NDArray[np.int32],
    uniform: bool = False,
    want_probabilities: bool = False,
    checkpoint: Checkpoint = never,
) -> NodeRace:
    """The ``count`` nodes of ``parts`` with the smallest exponential keys among those not taken.

    Parameters
    ----------
    version, types, parts, seed, uniform, want_probabilities
        As in `nodes`.
    count : int
        How many at most.
    taken_ids, taken_types : int64[t], int32[t]
        Nodes that do not take part.
    checkpoint : callable
        Called between blocks of rows; may raise.

    Raises
    ------
    InvalidRequest, Unavailable
        As `nodes`.
    """
    race = Race(version, NODE, types=types, parts=parts, count=count, taken_ids=taken_ids, taken_types=taken_types, checkpoint=checkpoint)
    for type_id, image in race.entries:
        node = image.nodes[type_id]
        race.run(seed, type_id, image, rows=node.rows, ids=node.ids, live=node.live, weights=node.weights, uniform=uniform)
    race.finish()
    probabilities = np.empty(race.tags.size, np.float64) if want_probabilities else None
    if probabilities is not None:
        total = version.shares(NODE, types, uniform).total
        for type_id, image in race.entries:
            rows, places = race.rows_of(type_id, image.part)
            place_shares(rows, places, _decisive(image.nodes[type_id], uniform), total, probabilities)
    return NodeRace(ids=race.items, types=race.tags, keys=race.keys, probabilities=probabilities)


def rest_of_nodes(
    version: Version,
    *,
    types: Sequence[int],
    parts: Sequence[int],
    taken_ids: NDArray[np.int64],
    taken_types: NDArray[np.int32],
    checkpoint: Checkpoint = never,
) -> NDArray[np.float64]:
    """The weight of the nodes that are not taken: float64[types, parts], both ascending and each once.

    Parameters
    ----------
    version, types, parts, taken_ids, taken_types, checkpoint
        As in `race_nodes`.

    Raises
    ------
    InvalidRequest, Unavailable
        As there.
    """
    race = Race(version, NODE, types=types, parts=parts, count=0, taken_ids=taken_ids, taken_types=taken_types, checkpoint=checkpoint)
    rests = []
    for type_id, image in race.entries:
        node = image.nodes[type_id]
        rests.append(race.rest(type_id, image, rows=node.rows, ids=node.ids, live=node.live, weights=node.weights))
    return np.array(rests, np.float64).reshape(len(set(types)), len(set(parts)))


def _decisive(node: NodeImage, uniform: bool) -> NDArray[np.float32]:
    """The weights that decide a draw, empty where all are 1."""
    return settled(EMPTY_F32) if uniform else node.weights
