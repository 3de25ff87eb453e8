"""State of walks, as the kernels of walks share it: the walks of a request, and the lanes of those
under way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.records import kernel_record

ACTIVE_WALKS, GROUP = 64, 8
"""Walks under way at a time, and how many of them go a read further together."""
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
"""Outcomes: a step is taken, is not, depends on an edge that is held elsewhere, leads back to the
start, is taken back to the previous node; and while there is none, depends on an edge that is held
here, is not drawn yet."""

IDS, KINDS, POSITIONS, STEPS_DONE, ATTEMPTS, STARTS, START_KINDS, PREVIOUS_IDS, PREVIOUS_KINDS = (
    range(9)
)
"""Rows of ``walkers``, int64[9, m]: where walks are and its type, their numbers in the request,
steps taken, the attempt that the next one begins with, where they began, where they were a step ago
(-1: nowhere)."""
LOCAL, REMOTE = range(2)
"""Rows of ``end_types``, int64[2, E]: the node type that each edge type begins at and leads to; -2
where no step follows it.
"""
SLOT_KEY, TYPE_KEY, RESTART_KEY, RETURN_KEY = range(4)
"""Rows of ``keys``, uint64[4, length], salted: of the draw within an edge type, among edge types,
of a restart, of a biased step.
"""
IS_PENDING, PENDING_ID, PENDING_TYPE, PENDING_EID, PENDING_ATTEMPT = range(5)
"""Rows of ``pending``, int64[5, m]: whether a walk's next step is pending, on which edge, and the
attempt that it rests on.
"""


@kernel_record
class WalkTables(NamedTuple):
    """Read-only arrays of a batch of walks.

    Attributes
    ----------
    table : ndarray of int64, shape (E * P, columns)
        Line e * P + p is that of edge type e at part p, as `storaged.kernels.adjacency` and, after
        that, `storaged.kernels.walks.bloom_filter` lay it out.
    end_types : ndarray of int64, shape (2, E)
    local_parts : ndarray of bool, shape (P,)
        Parts that are held here.
    walkers : ndarray of int64, shape (9, m)
        With fewer rows where walks neither restart nor are biased.
    steps : ndarray of int64, shape (s, w)
        The edge types of each step, -1 after the last; step t follows line t % s.
    keys : ndarray of uint64, shape (4, length)
    """

    table: NDArray[np.int64]
    end_types: NDArray[np.int64]
    local_parts: NDArray[np.bool_]
    walkers: NDArray[np.int64]
    steps: NDArray[np.int64]
    keys: NDArray[np.uint64]


@kernel_record
class WalkParams(NamedTuple):
    """Parameters of walks; scalars only."""

    parts: np.int64
    shift: np.int64
    """log2 of ``parts``, -1 where that is no integer."""
    mod: bool
    """How a node finds its part: by remainder, or by hash."""
    needs_lookup: bool
    """Whether rows do not simply follow from ids: they are looked up, or there are holes."""
    length: np.int64
    uniform: bool
    restart: np.float64
    biased: bool
    excess_return: np.float64
    """(1/p) / max(1, 1/q) - 1: excess bias of a step back, relative to the largest other bias; 0 if
    not larger."""
    return_limit: np.float64
    """A step back that is drawn like any other is accepted by tosses below this."""
    accept_limit: np.float64
    """Any other step is accepted by tosses below this; above, it depends on an edge."""
    accept_joined: bool
    """Whether it is then accepted where there is that edge, or where there is none."""
    row_stride: np.int64
    first_column: np.int64
    """Where ids are flat: walk i's next nodes are written from i * ``row_stride`` +
    ``first_column`` on."""
    rounds: np.int64
    """How often each walk gets its turn in one call at most, so that a deadline may be checked
    between calls."""
