from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from asterism.calls.query import bind_parameter
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb


def bound(value: Any) -> Any:
    """Return a parameter as it travels."""
    head, arrays = graphd_pb.QueryRequest(), {}
    bind_parameter("x", value, head, arrays)
    if "$x" in arrays:
        return arrays["$x"]
    kind = head.parameters["x"].WhichOneof("value")
    found = getattr(head.parameters["x"], str(kind))
    return list(found.texts) if kind == "texts" else found


@pytest.mark.parametrize(
    "value",
    [True, -(2**63), 2**63 - 1, 5e-324, 1.7e308, math.inf, -math.inf, "inf", "'a' or 1 == 1", ""],
)
def test_scalars_travel_as_they_are(value: Any) -> None:
    assert bound(value) == value
    assert type(bound(value)) is type(value)


def test_integers_above_int64_travel_as_uint64() -> None:
    for value in (2**63, np.uint64(2**64 - 1)):
        array = bound(value)
        assert (array.dtype, array.shape, int(array)) == (np.uint64, (), int(value))


def test_strings_travel_from_any_array() -> None:
    texts = ["a", "1", "nan"]
    for value in (texts, tuple(texts), np.array(texts), np.array(texts, object)):
        assert bound(value) == texts


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (["a", 1], "with 1 at position 1: expected values of one type"),
        ([1, "a"], "with 1 at position 0: expected values of one type"),
        ([0.5, 2**53 + 1], "with 9007199254740993 at position 1: expected values of one type"),
        (2**64, "expected an integer of 64 bits"),
        (1j, "expected a number"),
        (None, "expected a number"),
        (b"a", "expected a number"),
        ([1, None], "expected a number"),
        ([[1], [2, 3]], "expected a number"),
        (np.datetime64("2020-01-01"), "expected a number"),
        (np.array(["a", 1], object), "expected a number"),
    ],
)
def test_values_that_would_change_are_refused(value: Any, said: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"parameter \$x.*{said}"):
        bound(value)


def test_names_of_parameters_are_strings() -> None:
    with pytest.raises(InvalidRequest, match="parameter 5: expected a name"):
        bind_parameter(5, 1, graphd_pb.QueryRequest(), {})  # type: ignore[arg-type]
