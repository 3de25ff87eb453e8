"""Lanes: what is known of a walk under way, and of the walks of a request, as the kernels of walks
share it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

ACTIVE_WALKS, GROUP = 64, 8
"""Walks under way at a time, and which go a read further together."""
FIELDS = 26
(
    WALK,
    STEP,
    STEP_ROW,
    LAST_STEP_ROW,
    NODE,
    KIND,
    PART,
    ROW,
    TAG,
    EDGE,
    START,
    DEGREE,
    SLOT,
    COIN,
    OUTCOME,
    FOUND,
    ATTEMPT,
    PREVIOUS,
    PREVIOUS_KIND,
    PREVIOUS_PART,
    PREVIOUS_ROW,
    LOW,
    SIZE,
    END,
    NEIGHBORS,
    TOSS,
) = range(FIELDS)
"""Columns of ``lanes``, int64[LANES, FIELDS]. ``WALK``: -1 for none. A turn is the line of
``steps`` that a step follows. ``TAG``: that of the draw's position, as
`asterism_graphkit.random.rng.mix_tag` makes it. ``SLOT``: of the column on which a draw fell, then
of the one to which that led; -1 for none. ``LOW`` to ``NEIGHBORS`` belong to a search. ``TOSS``: of
a biased step, as `TOSS_UNIT` of 1."""
TOSS_UNIT = 2.0**-62
NOT_LOOKED_UP = -2
"""As a degree: the node's row has not been looked up. -1: where its edges are has not been read."""
ACCEPTED, REJECTED, PENDING, RESTARTED, RETURNED, CHECKING, UNDRAWN = range(7)
"""Fates: a step is taken, is not, hangs on an edge that is elsewhere, leads back to the start, is
taken back to the node before; and while there is none, hangs on an edge that is here, is not drawn
yet."""

IDS, KINDS, POSITIONS, STEPS_DONE, ATTEMPTS, STARTS, START_KINDS, PREVIOUS_IDS, PREVIOUS_KINDS = (
    range(9)
)
"""Rows of ``walkers``, int64[9, m]: where walks are and its type, their numbers in the request,
steps behind each, the attempt that the next one begins with, where they began, where they were a
step ago (-1: nowhere)."""
LOCAL, REMOTE = range(2)
"""Rows of ``end_types``, int64[2, E]: the node type that each edge type begins at and leads to; -2
where no step follows it.
"""
SLOT_KEY, TYPE_KEY, RESTART_KEY, RETURN_KEY = range(4)
"""Rows of ``keys``, uint64[4, length], salted: of the draw within an edge type, among edge types,
of a restart, of a biased step.
"""
IS_PENDING, PENDING_ID, PENDING_TYPE, PENDING_EID, PENDING_ATTEMPT = range(5)
"""Rows of ``pending``, int64[5, m]: whether a walk's next step hangs, on what, and the attempt that
it rests on.
"""


class WalkParams(NamedTuple):
    """How walks go. Numbers only: of arrays in a tuple numba counts who refers to each, at every
    use.
    """

    parts: np.int64
    shift: np.int64
    """log2 of ``parts``, -1 where that is no whole number."""
    mod: bool
    """How a node finds its part: by remainder, or by hash."""
    needs_lookup: bool
    """Whether rows do not simply follow from ids: they are looked up, or there are holes."""
    length: np.int64
    uniform: bool
    restart: np.float64
    biased: bool
    excess_return: np.float64
    """By what of the largest bias of other steps that of a step back is above it; 0 where it is
    not.
    """
    return_limit: np.float64
    """Of a step back that is drawn like any other: tosses below count."""
    accept_limit: np.float64
    """Tosses below count for any other step; from there on, it depends on an edge."""
    accept_joined: bool
    """Whether it counts where there is that edge, or where there is none."""
