"""Indexed draws of nodes: nodes of the same types as given ones, and negative samples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.stable_sort import distinct
from asterism_graphkit.random import rng
from asterism_graphkit.random.exclusion import ExcludedIds
from asterism_graphkit.random.partition_choice import choose_entries_at
from asterism_graphkit.random.successive_probabilities import MIN_REMAINING_SHARE
from asterism_model.elements import NODE
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.operators import global_sampling, reads
from graphd.operators.global_sampling import GlobalDraw
from graphd.operators.negative_exclusions import RowExclusions
from graphd.operators.request_context import Ids, RequestContext, Sections, Types
from graphd.operators.without_replacement import smallest_key_rows
from graphd.routing import split_merge

MAX_ATTEMPTS = 512
"""Attempts to replace an excluded draw before exponential-key selection among all nodes.

The number is independent of the request. Part of the sampling contract: changing it changes results
for a given seed.
"""
_ATTEMPTS_PER_ROUND = 1 << 16
"""Approximate number of attempts per round, of all draws together."""
_NOTHING: dict[str, float] = {"ids": -1, "types": -1, "probabilities": 0.0}


def draw_by_index(
    context: RequestContext, draw: GlobalDraw, indices: Ids, draw_types: Types | None = None
) -> Sections:
    """Return the draws with these indices: sections ids, types and optionally probabilities.

    `draw.count` is ignored.

    Parameters
    ----------
    indices : ndarray of int64, shape (k,)
    draw_types : ndarray of int32, shape (k,), optional
        The single type of each draw, among ``draw.types``; the draws of a type are those under its
        seed, `rng.seed_of_type`. By default each draw is from all of them together.
    """
    space = context.space
    host_of_draw = np.zeros(len(indices), np.int32)
    groups = (
        [(draw.types, None)]
        if draw_types is None
        else [
            ((int(type_id),), np.flatnonzero(draw_types == type_id))
            for type_id in np.unique(draw_types)
        ]
    )
    for types, positions in groups:
        shares = context.version.totals.shares(NODE, types, uniform=draw.uniform)
        if not shares.total > 0:
            raise NotFound(global_sampling.nothing_to_draw(context, replace(draw, types=types)))
        if len(space.hosts) > 1:
            selected = slice(None) if positions is None else positions
            seed = draw.seed if positions is None else rng.seed_of_type(draw.seed, types[0])
            key = rng.key_of(seed, rng.PART, NODE)
            host_of_draw[selected] = space.host_of_part[
                shares.parts[choose_entries_at(key, indices[selected], shares)]
            ]
    head = storaged_pb.DrawNodesByNumberRequest(
        version_ref=context.version_ref(),
        types=draw.types,
        seed=draw.seed,
        uniform=draw.uniform,
        want_probabilities=draw.want_probabilities,
        weight=context.weight_name,
    )
    plan: list[tuple[int, Ids | None]] = [(0, None)]
    if len(space.hosts) > 1:
        plan = [
            (int(host), np.flatnonzero(host_of_draw == host)) for host in np.unique(host_of_draw)
        ] or plan
    requests = []
    for host, rows in plan:
        sections: Sections = {"numbers": split_merge.take_rows(indices, rows)}
        if draw_types is not None:
            sections["kinds"] = split_merge.take_rows(draw_types, rows)
        requests.append((host, Frame(head, sections)))
    replies = context.dispatch("draw_nodes_by_number", requests)
    return split_merge.merge_rows(
        len(indices),
        [(rows, reply.arrays) for (_, rows), reply in zip(plan, replies, strict=True)],
        context.call.remaining,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesLikeParams:
    """Parameters for sampling nodes of the same types; `draw.count` nodes per given node."""

    draw: GlobalDraw
    allow_unknown: bool
    """Give rows of -1 to nodes without a type, instead of raising NotFound."""


def sample_nodes_like(
    context: RequestContext,
    params: NodesLikeParams,
    nodes: Ids,
    node_type: int,
    types: Types | None,
) -> Sections:
    """Sample ``count`` nodes of the type of each node: sections of SampleNodesLikeReply.

    Notes
    -----
    Draw k of row i is draw ``i * count + k`` under the seed of its type. Part of the sampling
    contract: changing it changes results for a given seed.
    """
    draw, n = params.draw, params.draw.count
    _check_reply_size(len(nodes), draw)
    if node_type >= 0:
        types = np.where(nodes >= 0, np.int32(node_type), np.int32(-1))
    elif types is None:
        types = reads.node_types(context.without_filter(), nodes, -1, None)["types"]
    else:
        types = np.where(nodes >= 0, types, np.int32(-1))
    if not params.allow_unknown and (types < 0).any():
        index = int(np.argmax(types < 0))
        raise NotFound(
            f"nodes[{index}] = {nodes[index]}: version {context.version.version} has no such "
            "node; remove it, or allow unknown nodes, which have rows of -1"
        )
    rows = np.flatnonzero(types >= 0)
    out: Sections = {"ids": np.full((len(nodes), n), -1, np.int64), "types": types}
    if draw.want_probabilities:
        out["probabilities"] = np.zeros((len(nodes), n), np.float64)
    if rows.size and n:
        numbers = (rows[:, None] * n + np.arange(n)).reshape(-1)
        type_ids = tuple(int(type_id) for type_id in np.unique(types[rows]))
        sections = draw_by_index(
            context, replace(draw, types=type_ids), numbers, np.repeat(types[rows], n)
        )
        for name in out.keys() - {"types"}:
            out[name][rows] = sections[name].reshape(-1, n)
    return out


def sample_negatives(
    context: RequestContext, draw: GlobalDraw, rows: int, exclusions: RowExclusions | None
) -> Sections:
    """Sample ``count`` nodes per row that are not excluded: sections of SampleNegativesReply.

    Notes
    -----
    Draw k of row i is draw ``i * count + k`` of the seed, unless it is excluded. Otherwise it is
    the first of further attempts that is not excluded. After ``MAX_ATTEMPTS`` it comes from
    exponential-key selection among all nodes that are not excluded. Each draw is therefore
    proportional to the weights of the nodes that its row does not exclude; it is -1 if there are
    none. Part of the sampling contract: changing it changes results for a given seed."""
    n = draw.count
    _check_reply_size(rows, draw)
    samples = draw_by_index(context, draw, np.arange(rows * n, dtype=np.int64))
    if exclusions is not None and rows and n:
        if draw.want_probabilities:
            excluded_ids = exclusions.excluded_ids(rows, context.call.remaining)
            _redraw(context, draw, excluded_ids, samples)
            samples["probabilities"] = np.minimum(
                samples["probabilities"]
                * np.repeat(_renormalization(context, draw, excluded_ids), n),
                1.0,
            )
        else:
            _redraw(context, draw, exclusions, samples)
    return {name: array.reshape(rows, n) for name, array in samples.items()}


def _redraw(
    context: RequestContext,
    draw: GlobalDraw,
    exclusions: ExcludedIds | RowExclusions,
    samples: Sections,
) -> None:
    """Replace excluded draws in place."""
    n, columns = draw.count, {name: array.copy() for name, array in samples.items()}
    ids, checkpoint = columns["ids"], context.call.remaining
    retry_draw = replace(draw, seed=int(rng.key_of(draw.seed, rng.NEGATIVE)))
    pending = np.flatnonzero(
        exclusions.excluded_mask(np.arange(len(ids), dtype=np.int64) // max(n, 1), ids, checkpoint)
    )
    attempt, attempts_per_round = 0, 1
    while pending.size and attempt < MAX_ATTEMPTS:
        attempts_per_round = min(
            attempts_per_round, max(_ATTEMPTS_PER_ROUND // pending.size, 1), MAX_ATTEMPTS - attempt
        )
        indices = (
            pending[:, None] * MAX_ATTEMPTS + attempt + np.arange(attempts_per_round)
        ).reshape(-1)
        candidates = draw_by_index(context, retry_draw, indices)
        is_allowed = ~exclusions.excluded_mask(
            np.repeat(pending // n, attempts_per_round), candidates["ids"], checkpoint
        ).reshape(-1, attempts_per_round)
        is_done = is_allowed.any(axis=1)
        picks = (np.arange(len(pending)) * attempts_per_round + is_allowed.argmax(axis=1))[is_done]
        for name, column in columns.items():
            column[pending[is_done]] = candidates[name][picks]
        pending = pending[~is_done]
        attempt += attempts_per_round
        attempts_per_round *= 2
    exhausted_row = -1
    for position in pending.tolist():
        row = position // n
        winner = (
            None
            if row == exhausted_row
            else _draw_by_exponential_key(
                context, draw, exclusions.row_ids(row, checkpoint), position
            )
        )
        exhausted_row = row if winner is None else -1
        for name, column in columns.items():
            column[position] = _NOTHING[name] if winner is None else winner[name][0]
    samples.update(columns)


def _draw_by_exponential_key(
    context: RequestContext, draw: GlobalDraw, excluded_ids: NDArray[np.int64], position: int
) -> Sections | None:
    """Draw one node that is not excluded, by weight, with exponential-key selection.

    The selection covers all partitions. Returns None if there is no such node.
    """
    shares = context.version.totals.shares(NODE, draw.types, uniform=draw.uniform)
    single_draw = replace(draw, seed=int(rng.key_of(draw.seed, rng.NEGATIVE, position)), count=1)
    winner = smallest_key_rows(
        [
            reply.arrays
            for reply in global_sampling.draw_excluding(
                context,
                single_draw,
                shares,
                _excluded_sections(draw, excluded_ids),
                1,
                exponential_keys=True,
            )
        ],
        "ids",
        1,
    )
    return winner if len(winner["ids"]) else None


def _excluded_sections(draw: GlobalDraw, excluded_ids: NDArray[np.int64]) -> Sections:
    """Return excluded ids as sections, once for each type they may have."""
    return {
        "ids": np.tile(excluded_ids, len(draw.types)),
        "types": np.repeat(np.array(draw.types, np.int32), len(excluded_ids)),
    }


def _renormalization(
    context: RequestContext, draw: GlobalDraw, exclusions: ExcludedIds
) -> NDArray[np.float64]:
    """Return total weight over remaining weight per row, float64[rows]; 1 if nothing remains.

    If the remaining weight is small, a difference would be dominated by rounding. It is then summed
    again, once for all rows with the same exclusions."""
    shares = context.version.totals.shares(NODE, draw.types, uniform=draw.uniform)
    unique_ids, inverse = distinct(exclusions.ids, context.call.remaining)
    weights = np.zeros(len(unique_ids), np.float64)
    for type_id in draw.types:
        weights += reads.node_weights(
            context, type_id, unique_ids, uniform=draw.uniform
        )  # each id belongs to only one of the types
    remaining = shares.total - exclusions.excluded_weights(weights[inverse])
    imprecise_rows = (
        np.flatnonzero(remaining < MIN_REMAINING_SHARE * shares.total)
        if not draw.uniform
        else np.zeros(0, np.int64)
    )
    recomputed: dict[bytes, float] = {}
    for row in imprecise_rows.tolist():
        row_exclusions = exclusions.row_ids(row, context.call.remaining)
        if row_exclusions.tobytes() not in recomputed:
            recomputed[row_exclusions.tobytes()] = global_sampling.weight_excluding(
                context, draw, shares, _excluded_sections(draw, row_exclusions)
            )
        remaining[row] = recomputed[row_exclusions.tobytes()]
    return np.divide(shares.total, remaining, out=np.ones(len(remaining)), where=remaining > 0)


def _check_reply_size(rows: int, draw: GlobalDraw) -> None:
    if not 0 <= draw.count <= draw.max_rows or rows * draw.count > draw.max_rows:
        max_rows = draw.max_rows // max(draw.count, 1)
        raise InvalidRequest(
            f"{draw.count} nodes for each of {rows} rows do not fit into one reply; request "
            f"{max_rows} rows at a time"
        )
