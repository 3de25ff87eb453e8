"""Reads of feature columns in chunks, several at a time, all from one version."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.calls import validation
from asterism.client_state import Session, VersionRequest, seconds_left
from asterism.records.samples import FeatureValue, Ids
from asterism_model.schema import EdgeType, NodeType

MAX_IN_FLIGHT = 4
"""Chunks in flight: some are gathered by the service while others are in transit."""
_RAGGED_GUESS = 256
"""Assumed bytes of a ragged or bytes value; its size is unknown before it is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRequest:
    """A request for feature columns."""

    method: str
    head: VersionRequest
    """Head of every chunk's request."""
    section: str
    """Name of the section that holds the ids."""
    owner: NodeType | EdgeType
    names: Sequence[str]


def read_columns(session: Session, request: ColumnRequest, ids: Ids) -> dict[str, FeatureValue]:
    """Return the feature columns of rows, in the order of the rows.

    Parameters
    ----------
    session : Session
        Session to read with.
    request : ColumnRequest
        Method, head and columns of the request. Its head is set to the version that was read.
    ids : ndarray of int64, shape (m,)
        Row ids.

    Returns
    -------
    dict of str to ndarray or (ndarray, ndarray)
        Dense columns as arrays, ragged columns as ``(indptr, values)``.

    Raises
    ------
    Deadline
        If the session's timeout expires before the last chunk is requested.
    """
    rows = max(session.transport.piece_bytes // _row_bytes(request), 1)
    if len(ids) <= rows + rows // 2:  # A small remainder is not worth a second request.
        reply = session.read(request.method, request.head, {request.section: ids})
        request.head.version = reply.head.version
        return validation.decode_columns(reply.arrays, request.names)
    bounds = [*range(0, len(ids), rows), len(ids)]
    deadline = time.monotonic() + session.timeout_s
    return _ChunkedRead(session, request, ids, bounds, deadline).read()


@dataclass(slots=True)
class _ChunkedRead:
    """State of a chunked read."""

    session: Session
    request: ColumnRequest
    ids: Ids
    bounds: Sequence[int]
    deadline: float
    dense: dict[str, NDArray[Any]] = field(default_factory=dict)
    ragged: dict[int, Mapping[str, NDArray[Any]]] = field(default_factory=dict)
    """Sections of columns that are not dense, by the first row of their chunk."""

    def read(self) -> dict[str, FeatureValue]:
        pieces = list(pairwise(self.bounds))
        for name in self.request.names:
            shape, dtype = _row_layout(self.request.owner, name)
            if dtype:
                self.dense[name] = np.empty((len(self.ids), *shape), dtype)
        map_concurrently = self.session.waiter.map_concurrently
        versions = map_concurrently(self._read_piece, pieces, MAX_IN_FLIGHT)
        # If a version was published meanwhile, read the chunks of older versions again at the
        # newest one.
        newest = max(versions)
        self.request.head.version = newest
        map_concurrently(
            self._read_piece,
            [piece for piece, version in zip(pieces, versions, strict=True) if version < newest],
            MAX_IN_FLIGHT,
        )
        return {
            name: self.dense[name] if name in self.dense else self._concatenate(name)
            for name in self.request.names
        }

    def _read_piece(self, piece: tuple[int, int]) -> int:
        """Read rows start .. stop - 1 and return the version that they came from."""
        start, stop = piece
        seconds_left(self.deadline)
        reply = self.session.read(
            self.request.method, self.request.head, {self.request.section: self.ids[start:stop]}
        )
        for name, column in self.dense.items():
            column[start:stop] = reply.arrays[f"f:{name}"]
        self.ragged[start] = {
            section: array
            for section, array in reply.arrays.items()
            if section.endswith((".indptr", ".values"))
        }
        return reply.head.version

    def _concatenate(self, name: str) -> FeatureValue:
        pieces = [self.ragged[start] for start in self.bounds[:-1]]
        lengths = np.concatenate([np.diff(piece[f"f:{name}.indptr"]) for piece in pieces])
        return np.concatenate([[0], np.cumsum(lengths)]), np.concatenate(
            [piece[f"f:{name}.values"] for piece in pieces]
        )


def _row_layout(owner: NodeType | EdgeType, name: str) -> tuple[tuple[int, ...], str]:
    """Return the shape and dtype of a dense column's row; dtype is "" for other columns."""
    if name == "weight" and isinstance(owner, NodeType):
        return (), "float32"
    feature = owner.feature(name)
    return (feature.shape, feature.dtype) if feature.kind == "dense" else ((), "")


def _row_bytes(request: ColumnRequest) -> int:
    size = 1
    for name in request.names:
        shape, dtype = _row_layout(request.owner, name)
        size += np.dtype(dtype).itemsize * math.prod(shape) if dtype else _RAGGED_GUESS
    return size
