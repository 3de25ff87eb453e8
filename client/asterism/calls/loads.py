"""Loads: chunks of rows that become visible together after a commit and a build.

A chunk is registered (its number and the digest of its content) before it is sent; its edges get
their ids then. Sending a chunk again overwrites it with the same content. An interrupted load
therefore resumes: a chunk that was acknowledged under the same digest is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.calls import string_id_hashing, write_encoding
from asterism.calls.write_encoding import NO_FEATURES, Columns, WriteRows, column_sections
from asterism.client_state import Session
from asterism.records.samples import FeatureValue
from asterism.transport.waiters import FairSemaphore
from asterism_model import unicode_text
from asterism_model.block_validation import PIECES_PER_CHUNK
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

PIECE_BYTES = 24 << 20
"""Maximum bytes of one Write, which keeps it below 32 MiB.

The split of a chunk into pieces is part of the keys of its blocks: a load that began with another
value cannot resume with this one.
"""
PIECES = PIECES_PER_CHUNK
"""Maximum pieces per chunk.

Piece k of chunk i has the number i * PIECES + k in the keys of its blocks.
"""
MAX_CHUNK_ROWS = (1 << 32) // PIECES - 1


@unicode_text.refuse_surrogates
class Load:
    """An open load, returned by ``client.begin_load``.

    Chunks are numbered from 0 in manifest order. A resumed load must write the same content under
    the same numbers. Nodes come before the edges that refer to them.

    Examples
    --------
    >>> load = client.begin_load("papers", source="by hand")  # doctest: +SKIP
    >>> load.write_nodes(0, "paper", [0, 1, 2])  # doctest: +SKIP
    3
    >>> load.write_edges(1, "cites", [0, 1], [1, 2])  # doctest: +SKIP
    0
    >>> load.commit()  # doctest: +SKIP
    1
    """

    def __init__(self, session: Session, message: metad_pb.Load) -> None:
        self._session = session
        self.load_id = message.load_id
        self.space = message.space
        self._lock = FairSemaphore(session.waiter)
        self._commit = int(message.commit)
        self._chunks: dict[int, metad_pb.Chunk] = {chunk.index: chunk for chunk in message.chunks}
        self._unreported_chunks: list[int] = []
        """Numbers of chunks that are written but not yet reported to metad."""
        self.written: set[int] = {chunk.index for chunk in message.chunks if chunk.written}
        """Numbers of the chunks that every partition they touch has acknowledged."""

    def __repr__(self) -> str:
        return f"Load(load_id={self.load_id}, space={self.space!r}, written={len(self.written)})"

    @property
    def registered(self) -> frozenset[int]:
        """Numbers of the chunks that are registered, whether or not they are fully written."""
        return frozenset(self._chunks)

    @property
    def commit_number(self) -> int:
        """Commit number, the load's position in the order of writes; 0 while it is open."""
        return self._commit

    def write_nodes(
        self,
        index: int,
        ntype: str,
        ids: ArrayLike,
        weights: ArrayLike | None = None,
        features: Mapping[str, Any] = NO_FEATURES,
    ) -> int:
        """Write nodes of one type as a chunk.

        Parameters
        ----------
        index : int
            Number of the chunk.
        ntype : str
            Node type.
        ids : array_like of int64, shape (n,)
            Node ids, 0 or more. An existing node is replaced.
        weights : array_like of float32, shape (n,), optional
            Finite weights, 0 or more. None: 1.
        features : dict of str to array_like, optional
            Dense features as ``[n, *shape]``; ragged and bytes features as ``(indptr, values)``
            with ``indptr`` int64, shape (n + 1,), or as a list of rows. A feature that is left out
            is zero or empty.

        Returns
        -------
        int
            Number of nodes.

        Raises
        ------
        InvalidRequest
            If a value cannot be written; the message names the row and the value.
        Conflict
            If the chunk was registered with other content.
        """
        rows = write_encoding.node_upserts(self._session, self.space, ntype, ids, weights, features)
        self.write_rows(index, rows)
        return rows.count

    def write_edges(
        self,
        index: int,
        etype: str,
        src: ArrayLike,
        dst: ArrayLike,
        weights: ArrayLike | None = None,
        features: Mapping[str, Any] = NO_FEATURES,
        *,
        ends_known: bool = False,
    ) -> int:
        """Write edges of one type as a chunk.

        Parameters
        ----------
        index : int
            Number of the chunk.
        etype : str
            Edge type: its triple, or its relation if that is unambiguous.
        src, dst : array_like of int64, shape (n,)
            Ids of existing nodes, or of new ones if the schema says ``missing: create``.
        weights : array_like of float32, shape (n,), optional
            Finite weights, 0 or more. None: 1.
        features : dict of str to array_like, optional
            Features, as in `write_nodes`.
        ends_known : bool, default False
            Skip the service's check that the end nodes exist, because the caller already checked,
            for example with `find_nodes`.

        Returns
        -------
        int
            Id of the first edge; the ids of the rest follow it.

        Raises
        ------
        InvalidRequest
            If an end of an edge is not a node and the edge type says ``missing: reject``; the
            message names the first such edge.
        Conflict
            If the chunk was registered with other content.
        """
        rows = write_encoding.edge_upserts(
            self._session, self.space, etype, src, dst, weights, features
        )
        return self.write_rows(index, rows, ends_known=ends_known).first_edge_id

    def delete_nodes(self, index: int, ntype: str, ids: ArrayLike) -> int:
        """Delete nodes, and every edge that has one of them as an end.

        Parameters
        ----------
        index : int
            Number of the chunk.
        ntype : str
            Node type.
        ids : array_like of int64, shape (n,)
            Node ids.

        Returns
        -------
        int
            Number of ids that were sent.

        Raises
        ------
        Conflict
            If the chunk was registered with other content.
        """
        rows = write_encoding.node_deletes(self._session, self.space, ntype, ids)
        self.write_rows(index, rows)
        return rows.count

    def delete_edges(
        self, index: int, etype: str, src: ArrayLike, dst: ArrayLike, eids: ArrayLike | None = None
    ) -> int:
        """Delete edges by id, or all edges between pairs of nodes.

        Parameters
        ----------
        index : int
            Number of the chunk.
        etype : str
            Edge type.
        src, dst : array_like of int64, shape (n,)
            Ends of the edges.
        eids : array_like of int64, shape (n,), optional
            Edge ids. None, or -1 in a row: every edge between the two nodes.

        Returns
        -------
        int
            Number of rows that were sent.

        Raises
        ------
        Conflict
            If the chunk was registered with other content.
        """
        rows = write_encoding.edge_deletes(self._session, self.space, etype, src, dst, eids)
        self.write_rows(index, rows)
        return rows.count

    def find_nodes(self, ntype: str, ids: ArrayLike) -> NDArray[np.bool_]:
        """Return which nodes exist, committed or written by this load.

        Parameters
        ----------
        ntype : str
            Node type.
        ids : array_like of int64, shape (n,)
            Node ids.

        Returns
        -------
        ndarray of bool, shape (n,)
            True where the node exists.
        """
        type_id, _ = self._session.node_type(self.space, ntype)
        return find_nodes(
            self._session,
            self.space,
            type_id,
            string_id_hashing.ids_and_names("ids", ids, self._session.schema(self.space))[0],
            self.load_id,
        )

    def commit(self, rejected: int = 0) -> int:
        """Commit the load, so that the next build reads it.

        Parameters
        ----------
        rejected : int, default 0
            Number of invalid rows that were left out, for the record.

        Returns
        -------
        int
            Commit number.
        """
        with self._lock:
            request = metad_pb.CommitLoadRequest(
                load_id=self.load_id,
                rejected=rejected,
                written=self._unreported_chunks,
                space=self.space,
            )
            reply = self._session.catalog("commit_load", request)
            self._unreported_chunks.clear()
            self._commit = int(reply.commit)
        return self._commit

    def abandon(self) -> None:
        """Abandon the load; what it wrote is removed."""
        self._session.catalog("abandon_load", metad_pb.LoadRequest(load_id=self.load_id))

    def write_rows(
        self, index: int, rows: WriteRows, *, ends_known: bool = False
    ) -> metad_pb.Chunk:
        """Write rows that `asterism.calls.write_encoding` has validated; return their chunk."""
        if not 0 <= index <= MAX_CHUNK_ROWS:
            raise InvalidRequest(f"index={index}: expected 0 to {MAX_CHUNK_ROWS}")
        chunk = self._register(
            metad_pb.Chunk(
                index=index,
                element=rows.element,
                type_id=rows.type_id,
                rows=rows.count,
                digest=chunk_digest(rows.kind, rows.type_id, rows.columns),
            )
        )
        if chunk.written:
            return chunk
        for number, (start, stop) in enumerate(row_ranges(rows.count, rows.columns)):
            head = graphd_pb.WriteRequest(
                space=self.space,
                load_id=self.load_id,
                chunk=index * PIECES + number,
                kind=rows.kind,
                type_id=rows.type_id,
                first_edge_id=chunk.first_edge_id + start,
                ends_known=ends_known,
            )
            try:
                self._session.graph(
                    "write", head, column_sections(_slice_columns(rows.columns, start, stop))
                )
            except InvalidRequest as error:
                raise write_encoding.with_string_id(error, rows, start) from error
        with self._lock:
            self._unreported_chunks.append(index)
            self.written.add(index)
            chunk.written = True
        return chunk

    def _register(self, chunk: metad_pb.Chunk) -> metad_pb.Chunk:
        with self._lock:
            existing = self._chunks.get(chunk.index)
            if existing is not None and existing.digest == chunk.digest:
                return existing
            reply = self._session.catalog(
                "register_chunks",
                metad_pb.RegisterChunksRequest(
                    load_id=self.load_id, chunks=[chunk], written=self._unreported_chunks
                ),
            )
            self._unreported_chunks.clear()
            registered: metad_pb.Chunk = reply.chunks[0]
            self._chunks[chunk.index] = registered
            if registered.written:
                self.written.add(chunk.index)
            return registered


def begin_load(session: Session, space: str, *, source: str = "", resume_key: str = "") -> Load:
    """Begin a load into a space, or resume the one with this ``resume_key``.

    Parameters
    ----------
    session : Session
        Session to write with.
    space : str
        Name of the graph space.
    source : str, default ""
        Description of the source, for the record.
    resume_key : str, default ""
        Key of the load. An open load with the same key is resumed.

    Returns
    -------
    Load
        The load.
    """
    session.schema(space)
    request = metad_pb.BeginLoadRequest(space=space, source=source, resume_key=resume_key)
    return Load(session, session.catalog("begin_load", request))


def find_nodes(
    session: Session, space: str, type_id: int, ids: NDArray[np.int64], load_id: int = 0
) -> NDArray[np.bool_]:
    """Return which nodes of a type exist, committed or written by one load.

    Parameters
    ----------
    session : Session
        Session to read with.
    space : str
        Name of the space.
    type_id : int
        Id of the node type.
    ids : ndarray of int64, shape (n,)
        Node ids.
    load_id : int, default 0
        Load of which uncommitted nodes count too; 0: none.

    Returns
    -------
    ndarray of bool, shape (n,)
        True where the node exists.
    """
    reply = session.graph(
        "find_nodes",
        graphd_pb.FindNodesRequest(space=space, type_id=type_id, load_id=load_id),
        {"ids": ids},
    )
    return reply.array("exists", "uint8").astype(np.bool_)


def chunk_digest(kind: int, type_id: int, arrays: Mapping[str, FeatureValue]) -> str:
    """Return the digest of a chunk's content as 32 hexadecimal digits.

    It covers the kind of write, the type, and every array with its name, dtype and shape.
    """
    state = blake2b(f"{kind}|{type_id}".encode(), digest_size=16)
    for name, array in sorted(column_sections(arrays).items()):
        state.update(f"|{name}|{array.dtype.str}|{array.shape}|".encode())
        state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return state.hexdigest()


def row_ranges(
    rows: int, arrays: Mapping[str, FeatureValue], limit: int = PIECE_BYTES
) -> Iterator[tuple[int, int]]:
    """Yield consecutive ranges of rows of bounded size.

    Parameters
    ----------
    rows : int
        Number of rows.
    arrays : dict of str to ndarray or (ndarray, ndarray)
        Columns of the rows.
    limit : int
        Maximum bytes per range.

    Yields
    ------
    (int, int)
        First row, and end (exclusive), of each range. Zero rows give one empty range.

    Raises
    ------
    InvalidRequest
        If one row is larger than ``limit``, or there would be more than `PIECES` ranges.
    """
    fixed, ends = 0, np.zeros(rows + 1, np.int64)
    for array in arrays.values():
        if isinstance(array, tuple):
            ends += array[0] * array[1].itemsize
            fixed += 8
        else:
            fixed += array.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
    ends += np.arange(rows + 1, dtype=np.int64) * fixed
    start = number = 0
    while start < rows or number == 0:
        stop = int(np.searchsorted(ends, ends[start] + limit, side="right")) - 1
        if stop <= start < rows:
            raise InvalidRequest(
                f"row {start} of {ends[start + 1] - ends[start]} bytes: expected at most {limit} "
                "bytes in a row; shorten its features"
            )
        if number == PIECES:
            raise InvalidRequest(
                f"chunk of {ends[-1]} bytes: expected at most {PIECES * limit} bytes; write fewer "
                "rows at a time"
            )
        yield start, stop
        start, number = stop, number + 1


def _slice_columns(arrays: Mapping[str, FeatureValue], start: int, stop: int) -> Columns:
    sliced: Columns = {}
    for name, array in arrays.items():
        if isinstance(array, tuple):
            indptr, values = array
            sliced[name] = (
                indptr[start : stop + 1] - indptr[start],
                values[indptr[start] : indptr[stop]],
            )
        else:
            sliced[name] = array[start:stop]
    return sliced
