"""Statement queries: requests, parameters, and effects of results on the session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.client_state import Session
from asterism.records.query_result import QueryResult, decode_result
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import DTYPES
from asterism_proto.v1 import graphd_pb2 as graphd_pb

_DTYPES = frozenset(np.dtype(name) for name in DTYPES)
"""Fast check of an array's dtype: asking for ``dtype.name`` takes several times as long."""


def query(
    session: Session,
    statement: str,
    parameters: Mapping[str, Any] | None,
    *,
    space: str,
    language: str,
    version: int = 0,
) -> QueryResult:
    """Run statements and return the table of the last one.

    Parameters
    ----------
    session : Session
        Session to query with.
    statement : str
        One statement or several.
    parameters : dict of str to value, optional
        Values of the statement's parameters; see `bind_parameter`.
    space : str
        Name of the graph space.
    language : str
        Query language.
    version : int, default 0
        Version to read; 0 is the current one.

    Returns
    -------
    QueryResult
        Result of the last statement.
    """
    head = graphd_pb.QueryRequest(
        space=space,
        version=version,
        statement=statement,
        language=language,
        seen_versions=session.newest_versions(),
    )
    arrays: dict[str, NDArray[Any]] = {}
    for name, value in (parameters or {}).items():
        bind_parameter(name, value, head, arrays)
    reply = session.graph("query", head, arrays).with_head(graphd_pb.QueryReply)
    result = decode_result(reply)
    for changed in reply.head.changed_spaces:
        session.forget(changed)
    if result.space and result.version:
        session.note_version(result.space, result.version)
    return result


def bind_parameter(
    name: str, value: Any, head: graphd_pb.QueryRequest, arrays: dict[str, NDArray[Any]]
) -> None:
    """Add a parameter to a request: scalars and strings to its head, arrays to its sections.

    Raises
    ------
    InvalidRequest
        If the value is not a number, a string, or a rectangular array of either.
    """
    if not isinstance(name, str):
        raise InvalidRequest(f"parameter {name!r}: expected a name as the key, a string")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        head.parameters[name].boolean = value
    elif isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise InvalidRequest(f"parameter ${name}={value}: expected an integer of 64 bits")
        if value >= 1 << 63:
            arrays[f"${name}"] = np.array(value, np.uint64)
        else:
            head.parameters[name].integer = value
    elif isinstance(value, float):
        head.parameters[name].number = value
    elif isinstance(value, str):
        head.parameters[name].text = value
    elif isinstance(value, list | tuple) and value and all(isinstance(item, str) for item in value):
        head.parameters[name].texts.texts.extend(value)
    else:
        try:
            array = np.asarray(value)
        except (
            ValueError,
            OverflowError,
            TypeError,
            RuntimeError,
        ) as error:  # For example lists of different lengths.
            raise InvalidRequest(
                f"parameter ${name}: expected a number, a string, or a rectangular array of "
                f"either ({error})"
            ) from error
        if isinstance(value, list | tuple) and array.ndim == 1:
            _require_unchanged(name, value, array)
        items = array.reshape(-1).tolist() if array.dtype.kind in "UTO" else []
        if items and all(isinstance(item, str) for item in items):
            head.parameters[name].texts.texts.extend(items)
            return
        if array.dtype not in _DTYPES and array.dtype.name not in DTYPES:
            raise InvalidRequest(
                f"parameter ${name} of {type(value).__name__} of {array.dtype}: expected a number, "
                "a string, or an array of either"
            )
        arrays[f"${name}"] = (
            array.astype(np.int64)
            if array.size == 0 and not isinstance(value, np.ndarray)
            else array
        )


def _require_unchanged(name: str, values: Sequence[Any], array: NDArray[Any]) -> None:
    """Reject a list of which NumPy changes values to store them as one dtype.

    It turns numbers beside strings into strings, and large integers beside floats into floats.
    """
    if array.dtype.kind in "UT":
        position = next(i for i, item in enumerate(values) if not isinstance(item, str))
    elif array.dtype.kind == "f":
        position = next(
            (
                i
                for i, (item, stored) in enumerate(zip(values, array.tolist(), strict=True))
                if isinstance(item, int | np.integer) and int(item) != stored
            ),
            -1,
        )
    else:
        return
    if position >= 0:
        raise InvalidRequest(
            f"parameter ${name} with {values[position]!r} at position {position}: expected values "
            "of one type, only numbers that fit one dtype or only strings"
        )
