from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from asterism.calls import string_id_hashing, validation
from asterism_model.schema import Feature, NodeType, Schema
from asterism_proto.errors import AsterismError, InvalidRequest, NotFound

OWNER = NodeType(
    name="item",
    weighted=True,
    features=(
        Feature(name="price", dtype="float32", shape=(2,)),
        Feature(name="size", dtype="int8"),
        Feature(name="tags", kind="ragged", dtype="int64"),
        Feature(name="text", kind="bytes"),
    ),
)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1, -3], r"ids\[1\]=-3"),
        ([1.5], "1.5"),
        ([True], "True"),
        (np.array([1 << 63], np.uint64), "9223372036854775808"),
        ([1 << 70], str(1 << 70)),
        (["a"], "'a'"),
        ([[1, 2]], r"\[1, 2\]"),
        (3, r"shape \[\]"),
    ],
)
def test_invalid_ids_are_refused_with_the_value(values: Any, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        validation.ids("ids", values)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (pd.Series([4, None, 7], dtype="Int64"), r"nodes\[1\]=(<NA>|nan): .* a missing value"),
        ([4.0, float("nan")], r"nodes\[1\]=nan: expected an integer, found a missing value"),
        ([4, None], r"nodes\[1\]=None: expected an integer, found a missing value"),
        (np.array([1, 2], object), r"nodes of dtype object: .* astype\('int64'\)"),
    ],
)
def test_a_missing_id_is_named_in_the_error(values: Any, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        validation.ids("nodes", values)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1 << 63, -1], r"nodes\[0\]=9223372036854775808: expected an id below 2\^63"),
        ([0.5, 1 << 70], r"nodes\[0\]=0.5: expected an integer"),
        ([10**400], "expected an id below"),
        ([5, 10**400, 0.5], "expected an id below|too large for any dtype"),
    ],
)
def test_ids_that_numpy_makes_floats_are_named_as_given(values: Any, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        validation.ids("nodes", values)


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("text", [5], r"'text'\[0\]=5: expected bytes or a string"),
        ("text", np.array([3]), r"'text'\[0\]=np.int64\(3\): expected bytes or a string"),
        ("text", [True], "=True: expected bytes or a string"),
        ("text", [None], "=None: expected bytes or a string, found a missing value; use b''"),
        ("text", [float("nan")], "=nan: expected bytes or a string, found a missing value"),
        ("text", [pd.NA], "=<NA>: expected bytes or a string, found a missing value"),
        ("text", [[300]], "expected bytes or a string"),
        ("text", [np.array([65, 66.5])], "expected bytes or a string"),
        ("text", "a", "expected .* a list of rows, not str"),
        ("size", [None], r"'size'\[0\]=None: expected int8, found a missing value; drop or fill"),
        ("size", [np.nan], r"'size'\[0\]=nan: expected int8, found a missing value; drop or fill"),
        ("size", [pd.NA], "=<NA>: expected int8, found a missing value"),
        (
            "price",
            [[1.0, None]],
            r"\[0, 1\]=None: expected float32, found a missing value; use NaN",
        ),
        ("price", [[1e39, 0]], r"value 1e\+39 in row 0: expected a number in the range of float32"),
        ("tags", [[1, None]], "=None: expected int64, found a missing value; drop or fill"),
    ],
)
def test_features_refuse_missing_and_converted_values(name: str, values: Any, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        validation.features({name: values}, 1, OWNER)


def test_byte_strings_are_strings_bytes_or_small_integers() -> None:
    rows = ["é", b"a\0", bytearray(b"b"), [65, 255], np.array([1, 2], np.uint8), [], np.str_("c")]
    column = validation.features({"text": rows}, len(rows), OWNER)["text"]
    assert column[1].tobytes() == "é".encode() + b"a\0bA\xff\1\2c"
    assert validation.features({"price": [[np.nan, np.inf]]}, 1, OWNER)["price"].shape == (1, 2)  # type: ignore[union-attr]


def test_bytes_are_no_ids() -> None:
    for values in ([b"a"], np.array([b"a"]), np.array([b"a"], object)):
        with pytest.raises(InvalidRequest, match=r"ids\[0\]=.*b'a'.*: .* decode the bytes"):
            string_id_hashing.as_string_array("ids", values)
    assert string_id_hashing.as_string_array("ids", np.zeros(0, "S1")) is None


def test_integers_of_numpy_in_an_object_array_are_integers() -> None:
    with pytest.raises(InvalidRequest, match=r"dtype object: expected integers; .*astype"):
        validation.ids("ids", np.array([np.int64(3)], object))
    with pytest.raises(InvalidRequest, match=r"ids\[1\]=9223372036854775808: .* below 2\^63"):
        validation.ids("ids", np.array([np.int64(3), np.uint64(2**63)], object))


class GradTensor:
    """Stand-in for a tensor that requires grad, which NumPy cannot read."""

    requires_grad = True
    device = "cpu"

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


class DeviceTensor(GradTensor):
    """Stand-in for a tensor on an accelerator."""

    requires_grad = False
    device = "cuda:0"

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy.")


def test_values_that_numpy_cannot_read_are_refused_with_advice() -> None:
    for check in (
        lambda values: validation.ids("nodes", values),
        lambda values: validation.weights(values, 2, OWNER),
        lambda values: validation.times(values, 2),
        lambda values: validation.features({"size": values}, 2, OWNER),
        lambda values: string_id_hashing.as_string_array("nodes", values),
    ):
        with pytest.raises(InvalidRequest, match=r"requires grad; pass tensor\.detach\(\)"):
            check(GradTensor())
        with pytest.raises(InvalidRequest, match=r"on cuda:0; pass tensor\.cpu\(\)"):
            check(DeviceTensor())
        with pytest.raises(InvalidRequest, match="found row 0 of length 2 and row 1 of length 1"):
            check([[1, 2], [3]])
    with pytest.raises(InvalidRequest, match="row 0 without a length and row 1 of length 2"):
        validation.ids("nodes", [1, [2, 3]])


def test_a_range_may_exclude_its_minimum() -> None:
    assert validation.number("alpha", 0, 0, 1) == 0
    with pytest.raises(InvalidRequest, match="alpha=0: expected above 0 and at most 1"):
        validation.number("alpha", 0, 0, 1, above=True)
    assert validation.number("alpha", 1, 0, 1, above=True) == 1


def test_ids_may_be_any_integers() -> None:
    for values in (
        [3, 4],
        (3, 4),
        np.array([3, 4], np.uint8),
        np.array([3, 4], np.uint64),
        np.array([3, 4]),
    ):
        assert validation.ids("ids", values).tolist() == [3, 4]
        assert validation.ids("ids", values).dtype == np.int64
    assert validation.ids("ids", []).shape == (0,)
    assert validation.ids("nodes", [-1], minimum=-1).tolist() == [-1]


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 1e39])
def test_invalid_weights_are_refused_with_their_row(value: float) -> None:
    with pytest.raises(InvalidRequest, match=r"weights\[2\]"):
        validation.weights([0.0, 1.0, value], 3, OWNER)


def test_weights_of_a_type_without_them_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="'plain' was declared without weights"):
        validation.weights([1.0], 1, NodeType(name="plain"))
    assert validation.weights(None, 1, NodeType(name="plain")) is None


@pytest.mark.parametrize(
    ("name", "column", "error", "said"),
    [
        ("price", np.zeros(2), InvalidRequest, r"shape \[2\]: expected shape \[2, 2\]"),
        (
            "price",
            np.array([["a", "b"]] * 2),
            InvalidRequest,
            "of <U1: expected float32, as in the schema",
        ),
        ("size", [1, 300], InvalidRequest, "with value 300: expected -128 to 127"),
        ("size", [1.5, 2.5], InvalidRequest, "of float64: expected int8, as in the schema"),
        ("tags", (np.array([0, 2]), np.array([1, 2])), InvalidRequest, r"expected int64\[3\]"),
        (
            "tags",
            (np.array([0, 2, 1]), np.array([1])),
            InvalidRequest,
            "expected indptr to rise from 0 to 1",
        ),
        ("text", (np.array([0, 1, 2]), np.array([1, 2])), InvalidRequest, "uint8"),
        ("colour", [1, 2], NotFound, "price, size, tags, text"),
    ],
)
def test_a_column_that_is_not_as_declared_is_refused(
    name: str, column: Any, error: type[AsterismError], said: str
) -> None:
    with pytest.raises(error, match=said):
        validation.features({name: column}, 2, OWNER)


NUMBERS = NodeType(
    name="numbers",
    features=(
        *(
            Feature(name=dtype, dtype=dtype)
            for dtype in ("float16", "float32", "float64", "int8", "int64", "uint64", "bool")
        ),
        Feature(name="vector", dtype="float16", shape=(2,)),
        Feature(name="list", kind="ragged", dtype="float32"),
        Feature(name="integers", kind="ragged", dtype="int64"),
    ),
)


@pytest.mark.parametrize("as_list", [True, False])
@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("float16", [1.0, 70000.0], "'float16' with value 70000.0 in row 1: expected a number in"),
        ("float16", [1, 70000], "'float16' with value 70000 in row 1: expected a number in"),
        ("float32", [1.0, -1e39], r"'float32' with value -1e\+39 in row 1: expected a number in"),
        ("float32", [1, 1 << 200], r"'float32' with value .* in row 1: expected a number in"),
        ("float64", [1, 10**400], "'float64': expected numbers in the range of float64"),
        ("vector", [[1.0, 2.0], [3.0, 1e39]], "'vector' with value 1e.39 in row 1: expected a"),
        ("int64", [1, 1 << 63], "'int64' with value 9223372036854775808: expected -9223372036854"),
        ("int64", [-1, 1 << 63], "'int64' with value 9223372036854775808: expected -9223372036854"),
        ("int64", [1, 1 << 70], "'int64' with value 1180591620717411303424: expected"),
        ("int8", [1, 1 << 70], "'int8' with value 1180591620717411303424: expected -128 to 127"),
        ("uint64", [1, -1], "'uint64' with value -1: expected 0 to 18446744073709551615"),
        ("uint64", [1, 1 << 64], "'uint64' with value 18446744073709551616: expected 0 to"),
        ("float32", [1.0, None], r"'float32'\[1\]=None: .* a missing value"),
        ("int64", [1, None], r"'int64'\[1\]=None: .* a missing value"),
        ("list", [[1.0], [2.0, 1e39]], r"'list' with value 1e\+39 in row 1: expected a number"),
        ("integers", [[1], [1 << 63]], "'integers' with value 9223372036854775808: expected -"),
    ],
)
def test_numbers_beyond_a_dtype_are_refused_with_their_row(
    name: str, values: list[Any], said: str, as_list: bool
) -> None:
    column: Any = values
    if not as_list and name == "list":
        column = (np.cumsum([0, *map(len, values)]), np.array([v for row in values for v in row]))
    elif not as_list and name != "integers":
        column = np.array(values)
        # NumPy makes floats of integers of both signs.
        column = np.array(values, object) if "expected -" in said else column
    with pytest.raises(InvalidRequest, match=f"feature {said}"):
        validation.features({name: column}, 2, NUMBERS)


def test_python_numbers_of_any_size_reach_the_dtype_that_holds_them() -> None:
    def written(name: str, values: Any) -> list[Any]:
        column = validation.features({name: values}, len(values), NUMBERS)[name]
        assert isinstance(column, np.ndarray)
        assert column.dtype == name
        return list(column.tolist())

    assert written("uint64", [(1 << 64) - 1, 1]) == [(1 << 64) - 1, 1]
    assert written("float64", [1 << 70, 1]) == [2.0**70, 1]
    assert written("float32", [float("inf"), float("nan")])[0] == float("inf")
    assert written("float16", [65504, 1]) == [65504, 1]
    assert written("int64", np.array([5, 6], object)) == [5, 6]
    assert validation.weights([1 << 70, 1.0], 2, OWNER) is not None
    with pytest.raises(InvalidRequest, match=r"weights\[1\]=1e\+39: expected a finite float32"):
        validation.weights([1.0, 1e39], 2, OWNER)
    with pytest.raises(InvalidRequest, match="weights: expected numbers in the range of float64"):
        validation.weights([1.0, 10**400], 2, OWNER)


def test_bytes_are_refused_as_names() -> None:
    schema = Schema(node_types=(NodeType(name="n"),), ids="string")
    for names in ([b"a"], np.array([b"a"]), np.array([b"a"], object)):
        with pytest.raises(
            InvalidRequest, match=r"ids\[0\]=.*b'a'.*: expected .* a string; decode the bytes"
        ):
            string_id_hashing.ids_and_names("ids", names, schema)


def test_columns_become_arrays_of_the_declared_types() -> None:
    columns = validation.features(
        {"price": [[1, 2], [3, 4]], "size": [7, -7], "tags": [[5], [6, 7]], "text": ["ä", b""]},
        2,
        OWNER,
    )
    price, size = columns["price"], columns["size"]
    assert isinstance(price, np.ndarray)
    assert isinstance(size, np.ndarray)
    assert (price.dtype, size.dtype) == (np.float32, np.int8)
    (tags_indptr, tags), (text_indptr, text) = columns["tags"], columns["text"]
    assert (tags_indptr.tolist(), tags.tolist(), tags.dtype) == ([0, 1, 3], [5, 6, 7], np.int64)
    assert (text_indptr.tolist(), text.tobytes()) == ([0, 2, 2], "ä".encode())
    sections = validation.feature_sections(columns)
    assert validation.decode_columns(sections, ["size"])["size"] is size
    assert validation.decode_columns(sections, ["tags"])["tags"][1] is tags


def test_seed_is_any_integer_and_random_by_default() -> None:
    assert validation.seed(-1) == (1 << 64) - 1
    assert validation.seed(np.int64(5)) == 5
    assert len({validation.seed(None) for _ in range(20)}) == 20


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (validation.seed, 1.0),
        (validation.seed, True),
        (validation.version, 0),
        (validation.version, -2),
        (lambda value: validation.count("n", value), -1),
        (lambda value: validation.count("n", value), 2.0),
    ],
)
def test_invalid_numbers_are_refused_with_the_value(
    check: Callable[[Any], object], value: Any
) -> None:
    with pytest.raises(InvalidRequest, match=str(value)):
        check(value)


def test_a_float_is_a_share_and_other_scalars_are_counts() -> None:
    class Scalar:
        def __index__(self) -> int:
            return 4

    scalar: Any = Scalar()
    for value, expected in (
        (3, (3, "")),
        (np.int16(3), (3, "")),
        (scalar, (4, "")),
        (0.1, (0, "0.1")),
        (np.float32(0.1), (0, "0.1")),
        (1.0, (0, "1.0")),
    ):
        assert validation.neighbors_per_node("n", value, replace=False) == expected
    for value in (True, "3", None, np.zeros(2)):
        with pytest.raises(InvalidRequest, match=r"n=.*: expected an integer"):
            validation.neighbors_per_node("n", value, replace=False)
