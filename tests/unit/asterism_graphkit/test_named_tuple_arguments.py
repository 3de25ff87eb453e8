"""Tests of records of scalars and arrays as arguments of kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import INTERPRETED, as_kernel_array, inlined, kernel
from asterism_graphkit.compile.named_tuple_arguments import kernel_record


@kernel_record
class Params(NamedTuple):
    key: np.uint64
    num_values: np.int64
    tag: np.int32
    share: np.float64
    negate: bool


@kernel_record
class Arrays(NamedTuple):
    values: NDArray[np.int64]
    weights: NDArray[np.float64]
    scale: np.int64


class Scratch(NamedTuple):
    sums: NDArray[np.float64]


@inlined
def add(params: Params, arrays: Arrays, scratch: Scratch) -> None:
    for i in range(params.num_values):
        scratch.sums[0] += arrays.values[i] * arrays.weights[i] * arrays.scale


@kernel
def weighted_sum(params: Params, arrays: Arrays) -> float:
    scratch = Scratch(np.zeros(1, np.float64))
    add(params, arrays, scratch)
    result = scratch.sums[0] * params.share + np.float64(params.tag) + np.float64(params.key)
    return -result if params.negate else result


def params_of(**changes: Any) -> Params:
    values = {"key": np.uint64(1 << 40), "num_values": np.int64(3), "tag": np.int32(2)}
    return Params(**{**values, "share": np.float64(0.5), "negate": False, **changes})


def arrays_of(*, read_only: bool) -> Arrays:
    values, weights = np.arange(1, 6), np.full(5, 2.0)
    if read_only:
        values, weights = as_kernel_array(values), as_kernel_array(weights)
    return Arrays(values=values, weights=weights, scale=np.int64(10))


def test_kernels_read_every_field_of_a_record() -> None:
    expected = (1 + 2 + 3) * 2.0 * 10 * 0.5 + 2 + (1 << 40)
    assert weighted_sum(params_of(), arrays_of(read_only=True)) == expected
    assert weighted_sum(params_of(negate=True), arrays_of(read_only=True)) == -expected
    assert weighted_sum(params_of(key=np.uint64(1 << 63)), arrays_of(read_only=True)) >= 2.0**63


def test_a_record_is_compiled_once_for_each_kind_of_arrays() -> None:
    """Scalars are typed by their annotations, whatever Python type they have."""
    results = {
        weighted_sum(params, arrays_of(read_only=read_only))
        for params in (params_of(), params_of(num_values=3, tag=2, share=0.5, key=1 << 40))
        for read_only in (True, False)
    }
    assert len(results) == 1
    if not INTERPRETED:
        assert len(weighted_sum.signatures) == 2  # type: ignore[attr-defined]
