"""Seeds of calls: one request seed gives independent draws to different calls."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import IntEnum
from hashlib import blake2b

from asterism_graphkit.random import rng

KEY_VERSION = 2
"""Version of the keys of draws, which replay tokens carry.

Increase it with every change of the sampling contract. Tokens of other versions are refused,
because the same seed gives other samples.
"""


class Operator(IntEnum):
    """Kinds of sampling calls with separate draws under one seed.

    Calls of one kind share their draws on purpose: each hop of a fanout draws as `sample_neighbors`
    does, the walks of PinSAGE are those of `random_walk`, and an ego subgraph has the nodes of a
    subgraph. Part of the sampling contract: changing a number changes results for a given seed.
    """

    NODES = 1
    EDGES = 2
    NODES_LIKE = 3
    NEGATIVES = 4
    NEIGHBORS = 5
    WALK = 6
    LAYER = 7
    SUBGRAPH = 8
    LABOR = 9
    HGT = 10
    LABELS = 11
    BIDIRECTIONAL = 12


def call_seed(
    seed: int,
    operator: Operator,
    *,
    types: Iterable[int] = (),
    weighted: bool = True,
    direction: int = 0,
    weights: str = "",
    where: str = "",
) -> int:
    """Return the seed of the draws of a call, or of one of its hops.

    Draws of calls that differ in one of these fields are independent under one request seed.

    Parameters
    ----------
    seed : int
        Seed of the request.
    operator : Operator
    types : iterable of int
        Ids of the node or edge types that each draw is from, in any order. Empty (the default) in
        two cases. Draws of each type have keys of their own further on, as in `NODES_LIKE`, `WALK`
        and `SUBGRAPH`: then those of one type are equal whatever other types are requested. Or
        types share their variates, which is the method of `LABOR`. (`LABELS` draws from no type.)
    weighted : bool
        True (the default) if draws are by weight, False if they are uniform.
    direction : int
        1 for out-edges, 2 for in-edges, 0 (the default) if there is no direction.
    weights : str
        Canonical name of the weights; "" (the default) for the rows' own.
    where : str
        Canonical filter; "" (the default) for all rows.

    Returns
    -------
    int
        64-bit seed.

    Notes
    -----
    Part of the sampling contract: changing it changes results for a given seed.
    """
    type_ids, name = sorted(set(types)), weights.encode()
    # The lengths make it impossible that two different calls have the same bytes.
    fields = struct.pack(
        f"<{5 + len(type_ids)}q",
        operator,
        weighted,
        direction,
        len(name),
        len(type_ids),
        *type_ids,
    )
    digest = blake2b(fields + name + where.encode(), digest_size=8).digest()
    return int(rng.key_of(seed, rng.CALL, int.from_bytes(digest, "little")))


def first_step_seed(seed: int, edge_types: Iterable[int]) -> int:
    """Return the seed of first steps of walks that go to different neighbors."""
    return int(rng.key_of(seed, rng.FIRST_STEP, *sorted(set(edge_types))))


def statement_step_seed(seed: int, step: int) -> int:
    """Return the seed of sampling step ``step`` of a statement, from 1.

    That of the first step is the seed of the statement, so that a statement of one step equals the
    call that it stands for.
    """
    return seed if step == 1 else int(rng.key_of(seed, rng.STATEMENT_STEP, step))
