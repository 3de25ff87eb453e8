"""Conversion of string ids to integer ids, on whole arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.calls import validation
from asterism.records.arrays import Ids
from asterism_model import string_ids as contract
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from asterism_model.schema import Schema

NodeTypes = str | ArrayLike | None
"""Node types as a caller may pass them.

One type's name; or type ids, shape (m,), for a mixed batch; or None where the edge types leave no
choice.
"""


def as_string_array(argument: str, values: ArrayLike) -> NDArray[Any] | None:
    """Return ``values`` as an array of strings of any shape; None if they are not strings."""
    if isinstance(values, list | tuple) and values and all(isinstance(v, str) for v in values):
        # An array of NumPy's own strings would give each the width of the longest.
        return np.array(values, dtype=object)
    array = validation.as_array(argument, values, "ids")
    if array.dtype.kind == "U" and not isinstance(values, np.ndarray):
        return np.asarray(
            values,
            dtype=object,
            # Keep the strings as they are: NumPy's own strings drop trailing NULs, and turn numbers
            # into text.
        )
    if array.dtype.kind in "SO" and any(isinstance(x, bytes) for x in array.reshape(-1)[:1]):
        raise InvalidRequest(
            f"{argument}[0]={array.reshape(-1)[0]!r}: expected an integer or a string; decode the "
            "bytes, for example with numpy.strings.decode"
        )
    if array.dtype.kind in "UT":
        return array.astype(object)
    return (
        array
        if array.dtype.kind == "O"
        and any(isinstance(value, str) for value in array.reshape(-1)[:1])
        else None
    )


def hash_names(
    argument: str, strings: NDArray[Any], schema: Schema
) -> tuple[Ids, contract.StringColumn]:
    """Return the id of each string, existing or not, and the strings as a column of bytes."""
    if not schema.has_string_ids:
        raise InvalidRequest(
            f"{argument}[0]={strings.reshape(-1)[0]!r}: expected an integer, because ids of this "
            "space are integers; pass integers, or create the space with ids: string"
        )
    encoded = contract.encode_strings(argument, strings.reshape(-1).tolist())
    return contract.hash_strings(*encoded, schema.salt), encoded


def ids_and_names(
    argument: str, values: ArrayLike, schema: Schema
) -> tuple[Ids, contract.StringColumn | None]:
    """Return ids for a write, and the names if the ids were given as strings."""
    strings = as_string_array(argument, values)
    if strings is None and schema.has_string_ids:
        _check_not_bytes(argument, values)
    if strings is None:
        return validation.ids(argument, values), None
    validation.require_one_dimension(argument, strings)
    return hash_names(argument, strings, schema)


def _check_not_bytes(argument: str, values: ArrayLike) -> None:
    """Raise InvalidRequest if the first id is bytes, in a space of strings."""
    array = np.asarray(values)
    first = array.reshape(-1)[0] if array.size else None
    if isinstance(first, bytes):
        raise InvalidRequest(
            f"{argument}[0]={bytes(first)!r}: expected a string, found bytes; decode them"
        )
