"""State that the walk kernels share: the walks of a request, and lanes of walks in flight."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.named_tuple_arguments import kernel_record
from storaged.kernels.adjacency_rows import COLUMNS

ACTIVE_WALKS, GROUP = 64, 8
"""Number of walks in flight, and of walks in a group that advances together."""
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
"""Columns of ``lanes``, int64[ACTIVE_WALKS, FIELDS].

``WALK`` is -1 for none. ``STEP_ROW`` is the row of ``steps`` that a step follows. ``TAG`` is the
`asterism_graphkit.random.rng.mix_tag` of the draw's position, without the node. ``SLOT`` is the
slot of the drawn column, then that of its alias if taken; -1 for none. ``LOW`` to ``NEIGHBORS``
belong to a search. ``TOSS`` is the toss of a biased step, in units of `TOSS_UNIT`.
"""
TOSS_UNIT = 2.0**-62
NOT_LOOKED_UP = -2
"""Degree of a node with a row that was not looked up yet; -1: bounds were not read yet."""
ACCEPTED, REJECTED, PENDING, RESTARTED, RETURNED, CHECKING, UNDRAWN = range(7)
"""Outcomes of a draw.

The step is accepted, is rejected, depends on an edge held by another host, returns to the start, or
returns to the previous node. Intermediate: the step depends on an edge held by this host, or is not
drawn yet.
"""

IDS, KINDS, POSITIONS, STEPS_DONE, ATTEMPTS, STARTS, START_KINDS, PREVIOUS_IDS, PREVIOUS_KINDS = (
    range(9)
)
"""Rows of ``walkers``, int64[9, m].

Current node and its type, position in the request, steps taken, first attempt of the next step,
start and its type, previous node (-1: none) and its type.
"""
LOCAL, REMOTE = range(2)
"""Rows of ``end_types``, int64[2, E].

The node types that each edge type starts at and leads to; -2 if no step follows the edge type.
"""
SLOT_KEY, TYPE_KEY, RESTART_KEY, RETURN_KEY = range(4)
"""Rows of ``keys``, uint64[4, length], which are results of `salt_keys`.

Keys of the draw within an edge type, of the choice of an edge type, of a restart, and of a biased
step.
"""
REJECTED_SLOTS, REJECTED_COUNT = range(COLUMNS, COLUMNS + 2)
"""Columns of a table of walks at which draws reject edges.

The address of the slots to reject, int64, ascending, and their number.
"""
IS_PENDING, PENDING_ID, PENDING_TYPE, PENDING_EID, PENDING_ATTEMPT = range(5)
"""Rows of ``pending``, int64[5, m].

Whether a walk's next step is pending, the edge it takes, and the attempt that drew it.
"""


@kernel_record
class WalkTables(NamedTuple):
    """Read-only arrays of a batch of walks.

    Attributes
    ----------
    table : ndarray of int64, shape (E * P, columns)
        Row e * P + p is that of edge type e at partition p; P is ``WalkParams.table_parts``.
        Columns of `storaged.kernels.adjacency_rows`, followed by those of
        `storaged.kernels.walks.bloom_filter`, or by `REJECTED_SLOTS` and `REJECTED_COUNT`.
    end_types : ndarray of int64, shape (2, E)
    local_parts : ndarray of bool, shape (P,)
        Whether this host holds each partition.
    walkers : ndarray of int64, shape (9, m)
        Fewer rows if walks neither restart nor are biased.
    steps : ndarray of int64, shape (s, w)
        Edge types of each step, padded with -1. Step t follows row t % s.
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
    """log2 of ``parts``, or -1 if ``parts`` is not a power of two."""
    mod: bool
    """True if the partition of a node is its id modulo ``parts``; else it follows from a hash."""
    needs_lookup: bool
    """True if rows do not follow from ids: there is an index, or rows without nodes."""
    length: np.int64
    uniform: bool
    restart: np.float64
    biased: bool
    excess_return: np.float64
    """(1/p) / max(1, 1/q) - 1, or 0 if negative.

    The excess bias of a step back, relative to the largest other bias.
    """
    return_limit: np.float64
    """Upper bound of tosses that accept a step back drawn like any other step."""
    accept_limit: np.float64
    """Upper bound of tosses that accept any other step; above, it depends on an edge."""
    accept_joined: bool
    """True if such a step is accepted if the nodes are joined; false if they are not."""
    row_stride: np.int64
    first_column: np.int64
    """First output of walk i in flat ids: i * ``row_stride`` + ``first_column``."""
    rounds: np.int64
    """Maximum number of turns of each walk per call, so that callers can check deadlines."""
    table_parts: np.int64
    """Rows of ``WalkTables.table`` per edge type: ``parts``, and one more with an overlay."""
    rejects: bool
    """True if draws reject edges that the table lists; only for walks that are not biased."""
