"""WriteBlocks requests: validation, then one block per partition.

No block reaches the store unless every value of the request is valid; see
`asterism_model.block_validation` for the rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.random.partition_choice import part_of
from asterism_model import block_validation
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest, Stale
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged.load_write_admission import BlockExtent, RegisteredChunk
from storaged.store.block_store import Block
from storaged.store.keys import COLUMNS

Sections = dict[str, NDArray[Any]]
_CHUNK_BOUNDED = {
    int(kind): ("eid",)
    for kind in (storaged_pb.OUT_EDGES, storaged_pb.IN_EDGES, storaged_pb.EDGE_FEATURES)
}
"""Block kinds with edge ids that `check_chunk` compares with the registered chunk."""
_BLOCK = 1 << 15
"""Number of edge ids that stay in a core's cache between two passes."""


def decode_blocks(
    request: Frame[storaged_pb.WriteBlocksRequest], schema: Schema, local_parts: Collection[int]
) -> list[Block]:
    """Return the blocks of a WriteBlocks request, one per partition.

    Parameters
    ----------
    request : Frame
        Frame with a WriteBlocksRequest as its head.
    schema : Schema
        Schema of the space.
    local_parts : collection of int
        Partitions held by this host.

    Returns
    -------
    list of Block
        One block per partition, in the order of the request.

    Raises
    ------
    InvalidRequest
        A value is invalid; the message names the section, the position and the value.
    Stale
        A partition is not held here.
    """
    head = request.head
    block_validation.block_type(schema, head.kind, head.type_id)
    parts = list(head.parts)
    _check_parts(head, parts, schema, local_parts)
    offsets = _offsets(request, parts)
    arrays = {name: array for name, array in request.arrays.items() if name != "offsets"}
    _check_rows(int(offsets[-1]), arrays)
    runs = [(part, int(offsets[i]), int(offsets[i + 1])) for i, part in enumerate(parts)]
    block_validation.check_block(
        schema,
        head.kind,
        head.type_id,
        arrays,
        runs,
        part_of,
        unchecked=_CHUNK_BOUNDED.get(head.kind, ()),
    )
    identity = {
        "load_id": head.load_id,
        "chunk": head.chunk,
        "kind": head.kind,
        "type_id": head.type_id,
    }
    return [
        Block(
            **identity,
            part=part,
            arrays=dict(_slice_rows(arrays, int(offsets[i]), int(offsets[i + 1]))),
        )
        for i, part in enumerate(parts)
    ]


def _check_parts(
    head: storaged_pb.WriteBlocksRequest,
    parts: Sequence[int],
    schema: Schema,
    local_parts: Collection[int],
) -> None:
    if not head.load_id:
        raise InvalidRequest("load_id=0: expected the id of an open load")
    for part in parts:
        if part >= schema.parts:
            raise InvalidRequest(
                f"parts={part}: expected a partition of the space, 0 to {schema.parts - 1}"
            )
        if part not in local_parts:
            raise Stale(
                f"part {part} of space {head.space_id} belongs to another host: expected one of "
                f"{list(local_parts)}"
            )
    if len(set(parts)) != len(parts):
        raise InvalidRequest(f"parts={parts}: expected each partition once")


def _offsets(
    request: Frame[storaged_pb.WriteBlocksRequest], parts: Sequence[int]
) -> NDArray[np.int64]:
    offsets: NDArray[np.int64] = request.array("offsets", "int64")
    if (
        offsets.size != len(parts) + 1
        or offsets[0] != 0
        or bool((offsets[1:] < offsets[:-1]).any())
    ):
        raise InvalidRequest(
            f"offsets={offsets[:8].tolist()}...: expected {len(parts) + 1} ascending values from 0"
        )
    # Checked before arrays of that size are allocated.
    rows = max((len(array) for array in request.arrays.values() if array.ndim), default=0)
    if offsets[-1] > rows:
        raise InvalidRequest(
            f"offsets[{len(parts)}] = {offsets[-1]}: expected at most {rows}, the rows of the "
            "longest section"
        )
    return offsets


def _check_rows(expected: int, arrays: Sections) -> None:
    """Raise InvalidRequest if the number of rows in the sections differs from the offsets."""
    rows = next(
        (
            len(arrays[name])
            for name in ("ids", "src", "eid")
            if name in arrays and arrays[name].ndim
        ),
        0,
    )
    if rows != expected:
        raise InvalidRequest(
            f"offsets[-1]={expected}: expected {rows}, the number of rows in the sections"
        )


def _slice_rows(arrays: Sections, start: int, stop: int) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield rows start .. stop of every section; row pointers are relative to the first row."""
    for name, array in arrays.items():
        if name.endswith(".values") and (indptr := arrays.get(f"{name[:-7]}.indptr")) is not None:
            yield name, array[indptr[start] : indptr[stop]]
        elif name.endswith(".indptr") and f"{name[:-7]}.values" in arrays:
            yield name, array[start : stop + 1] - array[start]
        else:
            yield name, array[start:stop]


def registered_chunk_number(head: storaged_pb.WriteBlocksRequest) -> int:
    """Return the number of the registered chunk that a request's blocks belong to."""
    return head.chunk // block_validation.PIECES_PER_CHUNK


def block_extents(blocks: Sequence[Block]) -> set[BlockExtent]:
    """Return (partition, kind, type) of every value that the blocks may be stored as."""
    return {
        (block.part, kind, block.type_id)
        for block in blocks
        for kind in (block.kind, block.kind | COLUMNS)
    }


def check_chunk(
    request: Frame[storaged_pb.WriteBlocksRequest], schema: Schema, chunk: RegisteredChunk
) -> None:
    """Raise InvalidRequest if the rows of a request do not belong to the registered chunk.

    Parameters
    ----------
    request : Frame
        Request that `decode_blocks` has accepted.
    schema : Schema
        Schema of the space.
    chunk : RegisteredChunk
        The chunk as registered at metad.
    """
    head = request.head
    nodes = head.kind in block_validation.NODE_KINDS
    max_rows = chunk.rows
    if nodes and not chunk.is_nodes:
        # Nodes that an edge type creates: at most two per edge.
        edge_type = schema.edge_types[chunk.type_id]
        ends = [schema.node_type_id(end) for end in (edge_type.src_type, edge_type.dst_type)]
        is_registered = (
            edge_type.missing == "create"
            and head.kind in (storaged_pb.NODES, storaged_pb.NODE_REVIVALS)
            and head.type_id in ends
        )
        max_rows *= 2
    else:
        is_registered = (nodes, head.type_id) == (chunk.is_nodes, chunk.type_id)
    number = registered_chunk_number(head)
    if not is_registered:
        registered = f"{'node' if chunk.is_nodes else 'edge'} type {chunk.type_id}"
        kind = storaged_pb.BlockKind.Name(head.kind)
        raise InvalidRequest(
            f"chunk {number} of load {head.load_id}: expected rows of {registered}, as "
            f"registered, found {kind} of type {head.type_id}"
        )
    lengths = np.diff(request.array("offsets", "int64"))
    if lengths.size and lengths.max() > max_rows:
        raise InvalidRequest(
            f"chunk {number} of load {head.load_id}: expected at most {chunk.rows} rows, as "
            f"registered, found {lengths.max()} for one partition"
        )
    if head.kind in _CHUNK_BOUNDED:
        eid = request.array("eid", "int64")
        stop = chunk.first_edge_id + chunk.rows
        blocks = (eid[position : position + _BLOCK] for position in range(0, eid.size, _BLOCK))
        if any(block.min() < chunk.first_edge_id or block.max() >= stop for block in blocks):
            position = int(np.argmax((eid < chunk.first_edge_id) | (eid >= stop)))
            raise InvalidRequest(
                f"eid[{position}] = {eid[position]}: expected {chunk.first_edge_id} to "
                f"{stop - 1}, the edge ids of chunk {number} of load {head.load_id}"
            )
