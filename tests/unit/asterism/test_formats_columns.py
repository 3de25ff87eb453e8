"""Tests of conversions of columns: slices of Arrow arrays, and ids that are bad."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from asterism.formats import columns


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_texts_of_a_slice_are_its_own(kind: pa.DataType) -> None:
    for texts, ends in ((["ab", "c", "def"], [0, 1, 4]), (["ab", "c", None, "def"], [0, 1, 1, 4])):
        indptr, values = columns.parse_strings(pa.array(texts, kind).slice(1), len(texts) - 1)
        assert indptr.tolist() == ends
        assert bytes(values) == b"cdef"


@pytest.mark.parametrize(
    "column", [pa.array([5, -1, None]), pa.array(["5", "-1", "x"])], ids=["numbers", "text"]
)
def test_bad_ids_are_0_for_later_lookups(column: pa.Array) -> None:
    values, bad = columns.parse_ids(column)
    assert values.tolist() == [5, 0, 0]
    assert bad is not None
    assert bad.tolist() == [False, True, True]


def test_negative_ids_of_arrays_are_0_in_a_copy() -> None:
    array = np.array([-3, 4])
    assert columns.parse_ids(array)[0].tolist() == [0, 4]
    assert array.tolist() == [-3, 4]
