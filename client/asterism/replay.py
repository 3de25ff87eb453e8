"""Tokens: what a sampling call can be made again with, and the call that a token is of.

A token holds the request, with the version and the seed that were used, and the digest of that version: not the nodes
that were sent, which it only knows again.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import ArrayLike, NDArray

from asterism import answers, arguments
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.methods import GRAPH
from asterism_proto.v1 import graphd_pb2 as wire

_CRC_BYTES = 4
ANSWERS: Mapping[str, Callable[[answers.Answered], Any]] = {
    "sample_nodes": answers.node_sample,
    "sample_nodes_like": answers.nodes_like,
    "sample_negatives": answers.negatives,
    "sample_graph_labels": answers.graph_labels,
    "sample_layer": answers.layer_sample,
    "sample_layers": answers.layer_stack,
    "sample_edges": answers.edge_sample,
    "sample_neighbors": answers.neighbor_sample,
    "sample_fanout": answers.fanout_sample,
    "sample_subgraph": answers.subgraph,
    "sample_ego_subgraphs": answers.ego_subgraphs,
    "sample_labor": answers.labor,
    "sample_hgt": answers.hgt,
    "random_walk": answers.walk_sample,
    "sample_pinsage": answers.visit_sample,
}
"""What makes records of the replies to the calls that can be made again."""


def token_of(method: str, asked: Any, arrays: answers.Arrays, answered: Any) -> str:
    """The token of a call: its request, and the head of the reply that says which version it was answered from."""
    request = type(asked)()
    request.CopyFrom(asked)
    request.version = answered.version
    replay = wire.Replay(method=method, request=request.SerializeToString(), digest=answered.digest, nodes=_rows(arrays), crc=_crc(arrays))
    return packed(replay)


def packed(replay: wire.Replay) -> str:
    """A token: base64url of the message and its CRC-32, unpadded."""
    content = replay.SerializeToString()
    return base64.urlsafe_b64encode(content + zlib.crc32(content).to_bytes(_CRC_BYTES, "little")).decode().rstrip("=")


def call_of(token: str) -> tuple[wire.Replay, Any]:
    """A token's content, and the request in it; InvalidRequest where it is not a token."""
    damaged = f"token {_short(token)}: it is cut short, altered or no token at all; give what a sample's `token` says"
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        content, crc = raw[:-_CRC_BYTES], raw[-_CRC_BYTES:]
        if len(raw) < _CRC_BYTES or zlib.crc32(content) != int.from_bytes(crc, "little"):
            raise InvalidRequest(damaged)
        replay = wire.Replay.FromString(content)
        if replay.method not in ANSWERS:
            raise InvalidRequest(f"token {_short(token)}: a call of {replay.method!r} can not be made again; {', '.join(sorted(ANSWERS))} can")
        return replay, GRAPH[replay.method].request.FromString(replay.request)
    except (ValueError, DecodeError) as error:
        raise InvalidRequest(damaged) from error


def sections(replay: wire.Replay, asked: Any, nodes: ArrayLike | None, exclude: arguments.Excluded) -> dict[str, NDArray[Any]]:
    """The sections of a call that is made again with these nodes, but for their types."""
    if nodes is None:
        return {}
    if replay.method == "sample_negatives":
        found = arguments.left_out(nodes, exclude, shared=asked.rows == 1)
        return {**found, "sources": arguments.sources(nodes)} if asked.joined_by else found
    flat = np.asarray(nodes).reshape(-1) if replay.method in ("sample_layer", "sample_layers") else nodes
    return {"nodes": arguments.ids("nodes", flat, least=-1)}


def check_nodes(replay: wire.Replay, asked: Any, arrays: answers.Arrays) -> None:
    """Refuse nodes, or types or times of them, that are not those of the call."""
    rows = _rows(arrays)
    timed = "until" in asked.DESCRIPTOR.fields_by_name and asked.HasField("until")
    if timed != ("times" in arrays):
        raise InvalidRequest(f"times={'None' if timed else 'given'}: the call that the token is of had {'them' if timed else 'none'}")
    if rows != replay.nodes:
        raise InvalidRequest(f"{rows} nodes: the call that the token is of had {replay.nodes}; give the same ones again")
    if _crc(arrays) != replay.crc:
        raise InvalidRequest(
            f"{rows} nodes: the call that the token is of had others, or of other types or times, or in another order; give the same ones"
        )


def check_version(replay: wire.Replay, space: str, answered: Any) -> None:
    """Refuse an answer from a version of the same number that holds something else."""
    if answered.digest != replay.digest:
        raise NotFound(
            f"version {answered.version} of space {space!r} is not the one that the token is of: its digest begins with "
            f"{answered.digest[:12]}, not {replay.digest[:12]}; the space was made anew, or is another one"
        )


def _rows(arrays: answers.Arrays) -> int:
    return len(arrays["nodes"]) if "nodes" in arrays else 0


def _crc(arrays: answers.Arrays) -> int:
    """Of nodes, their types, what is left out and times, as they are on any machine."""
    crc = 0
    for name, dtype in (("nodes", "<i8"), ("types", "<i4"), ("indptr", "<i8"), ("excluded", "<i8"), ("sources", "<i8")):
        if name in arrays:
            crc = zlib.crc32(np.ascontiguousarray(arrays[name], dtype).data, crc)
    if "times" in arrays:
        times = arrays["times"]
        crc = zlib.crc32(np.ascontiguousarray(times, times.dtype.newbyteorder("<")).data, zlib.crc32(times.dtype.kind.encode(), crc))
    return crc


def _short(token: str) -> str:
    return repr(token if len(token) <= 24 else f"{token[:24]}...")
