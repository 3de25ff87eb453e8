"""Nodes that are called by strings: from names to ids and back. Everything that goes over many
nodes is arrays.
"""

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
"""One node type's name, or type ids int[m] for a mixed batch, or None where the edge types leave no
choice.
"""


def as_string_array(values: ArrayLike) -> NDArray[Any] | None:
    """``values`` as an array of strings, of any shape; None where they are not strings."""
    array = np.asarray(values)
    if array.dtype.kind == "U" and not isinstance(values, np.ndarray):
        return np.asarray(
            values, dtype=object
        )  # as they were: NumPy's own strings end before a NUL, and take numbers for text
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
    """The id of each of some strings, whoever is called so, and the strings as a column of
    bytes.
    """
    if not schema.has_string_ids:
        raise InvalidRequest(
            f"{argument}: ids are whole numbers here, not strings such as "
            f"{strings.reshape(-1)[0]!r}; `ids: string` makes a space of those"
        )
    encoded = contract.encode_strings(argument, strings.reshape(-1).tolist())
    return contract.hash_strings(*encoded, schema.salt), encoded


def ids_and_names(
    argument: str, values: ArrayLike, schema: Schema
) -> tuple[Ids, contract.StringColumn | None]:
    """Ids as a write has them, and the names where they were given by these."""
    strings = as_string_array(values)
    if strings is None:
        return validation.ids(argument, values), None
    if strings.ndim != 1:
        raise InvalidRequest(
            f"{argument}: expected one dimension, got an array of shape {list(strings.shape)}"
        )
    return hash_names(argument, strings, schema)
