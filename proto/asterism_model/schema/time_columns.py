"""Time columns of edges and nodes: checks of their features and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_model.schema.features import Feature
from asterism_proto.errors import InvalidRequest

TIME_DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float32", "float64")
"""Dtypes of times: integers that fit into int64, and floats."""
MIN_TIME = np.iinfo(np.int64).min
"""Time that no row may have, so that a temporal filter at this time matches nothing."""


def check_time(owner: str, features: Sequence[Feature], name: str) -> None:
    """Raise InvalidRequest if no feature is called ``name``, or it is not a scalar time."""
    feature = next((feature for feature in features if feature.name == name), None)
    if feature is None:
        raise InvalidRequest(
            f"{owner}: time {name!r}: there is no such feature; features: "
            f"{', '.join(f.name for f in features) or 'none'}"
        )
    if feature.kind != "dense" or feature.shape or feature.dtype not in TIME_DTYPES:
        description = (
            f"{feature.kind} {feature.dtype} {list(feature.shape)}"
            if feature.kind == "dense"
            else feature.kind
        )
        raise InvalidRequest(
            f"{owner}: time {name!r}: expected a scalar of one of {', '.join(TIME_DTYPES)}, "
            f"found {description}"
        )


def is_float(dtype: str) -> bool:
    """Return whether times of this dtype are floats."""
    return dtype.startswith("float")


def invalid_times(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the values that are not times: NaN or `MIN_TIME`."""
    mask: NDArray[np.bool_] = (
        np.isnan(values)
        if values.dtype.kind == "f"
        else values == MIN_TIME
        if values.dtype == np.int64
        else np.zeros(len(values), np.bool_)
    )
    return mask


def check_time_values(name: str, values: NDArray[Any]) -> None:
    """Raise InvalidRequest for the first value that is not a time: NaN or `MIN_TIME`."""
    invalid = invalid_times(values)
    if invalid.any():
        index = int(np.argmax(invalid))
        raise InvalidRequest(
            f"{name}[{index}] = {values[index]}: expected a number, and for int64 not the minimum"
        )
