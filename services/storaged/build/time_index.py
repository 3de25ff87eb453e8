"""Order the edges of each row by time, and compute running sums of their weights.

The edges visible at a time are a prefix of that order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.time_keys import encode_times, running_weight_sums
from asterism_graphkit.compile.jit import as_kernel_array, kernel
from asterism_model.schema import EdgeType
from storaged.build.block_reader import COLUMN_PREFIX, BuildContext, Sections
from storaged.build.build_steps import StepState

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

_SLOT_BYTES = 48
"""Bytes per slot in a sort: time, row, and two orders."""
_GOLDEN, _S32 = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


def edge_times(edge_type: EdgeType, sections: Sections, rows: int) -> I64:
    """Return the time of each edge of a block; 0 if not given, as for features."""
    times = sections.get(f"{COLUMN_PREFIX}{edge_type.time}")
    return np.zeros(rows, np.int64) if times is None else encode_times(times)


def time_bits(times: NDArray[Any]) -> U32:
    """Return the bits of times for `storaged.build.build_kernels.mix_records`."""
    mixed = np.ascontiguousarray(times, np.int64).view(np.uint64) * _GOLDEN
    return (mixed >> _S32).astype(np.uint32)


@kernel
def merge_slots(
    times: I64, source: U32, first: np.int64, middle: np.int64, end: np.int64, out: U32
) -> None:
    """Merge two adjacent sorted runs of slots into ``out[first:end]``.

    The runs are ``source[first:middle]`` and ``source[middle:end]``.

    Parameters
    ----------
    times : int64[..]
        Times by slot. Among equal times, slots of the first run, which are smaller, come first.
    source, out : uint32[..], uint32[..]
    first, middle, end : int64
    """
    a, b = first, middle
    for target in range(first, end):
        if b >= end or (a < middle and times[source[a]] <= times[source[b]]):
            out[target] = source[a]
            a += 1
        else:
            out[target] = source[b]
            b += 1


@kernel
def first_unsorted(indptr: I64, first: np.int64, end: np.int64, times: I64, order: U32) -> int:
    """Return the first position of some rows where the order is not that of times, or -1.

    Parameters
    ----------
    indptr : int64[rows + 1]
    first, end : int64
        Range of rows.
    times, order : int64[slots], uint32[slots]

    Notes
    -----
    An order that ascends by (time, slot) and stays in its row has every slot of the row once.
    """
    for row in range(first, end):
        start, stop = indptr[row], indptr[row + 1]
        for position in range(start, stop):
            slot = np.int64(order[position])
            if not start <= slot < stop:
                return position
            if position > start:
                previous = np.int64(order[position - 1])
                if times[previous] > times[slot] or (
                    times[previous] == times[slot] and previous >= slot
                ):
                    return position
    return -1


def row_ranges(indptr: I64, limit: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows with at most ``limit`` slots and rows, or of a single row."""
    low, rows = 0, indptr.size - 1
    while low < rows:
        high = max(
            min(
                int(np.searchsorted(indptr, indptr[low] + limit, side="right")) - 1,
                low + limit,
                rows,
            ),
            low + 1,
        )
        yield low, high
        low = high


def build_time_order(context: BuildContext, side: str) -> StepState:
    """Write the order of an adjacency's slots by time."""
    sort_row_slots(
        context,
        f"{side}.order",
        context.image.map(f"{side}.indptr"),
        as_kernel_array(context.image.map(f"{side}.when")),
    )
    return {}


def sort_row_slots(context: BuildContext, name: str, indptr: I64, slot_keys: I64) -> U32:
    """Write the order of each row's slots by ``slot_keys``.

    A row with more slots than fit in memory is sorted in runs, which are merged in files.
    """
    limit = max(context.task.row_limit(_SLOT_BYTES), 2)
    order = context.image.create(name, np.uint32, (slot_keys.size,))
    for low, high in row_ranges(indptr, limit):
        first, end = int(indptr[low]), int(indptr[high])
        if end - first <= limit:
            rows = np.repeat(
                np.arange(high - low, dtype=np.uint32), np.diff(indptr[low : high + 1])
            )
            order[first:end] = np.lexsort((slot_keys[first:end], rows)) + first
        else:
            _sort_heavy_row(context, name, slot_keys, order, first, end, limit)
    return order


def _sort_heavy_row(
    context: BuildContext, name: str, slot_keys: I64, order: U32, first: int, end: int, limit: int
) -> None:
    """Sort one row in runs of at most ``limit`` slots."""
    for low in range(first, end, limit):
        high = min(low + limit, end)
        order[low:high] = np.argsort(slot_keys[low:high], kind="stable") + low
    scratch = context.scratch.create(name, np.uint32, (end,))
    source, out, width = order, scratch, limit
    while width < end - first:
        for low in range(first, end, 2 * width):
            merge_slots(
                slot_keys,
                as_kernel_array(source),
                np.int64(low),
                np.int64(min(low + width, end)),
                np.int64(min(low + 2 * width, end)),
                out,
            )
        source, out, width = out, source, 2 * width
    if source is scratch:
        for low in range(first, end, limit):
            high = min(low + limit, end)
            order[low:high] = scratch[low:high]
    del source, out, scratch
    context.scratch.remove(name)


def build_time_sums(context: BuildContext, prefix: str, side: str) -> StepState:
    """Write the running sums of an adjacency's weights in the order of time.

    Parameters
    ----------
    context : BuildContext
    prefix, side : str
        Prefixes of the files of the weights, and of the adjacency.
    """
    image = context.image
    indptr, order, weights = (
        as_kernel_array(image.map(name))
        for name in (f"{side}.indptr", f"{side}.order", f"{prefix}.weights")
    )
    out = image.create(f"{prefix}.time_sums", np.float64, (weights.size,))
    running_weight_sums(indptr, np.int64(0), np.int64(indptr.size - 1), order, weights, out)
    return {}
