"""Replay tokens: their creation, decoding and checks.

A token holds the request with the version and seed that were used, the digest of that version, the
version of the keys of its draws, and a checksum of the nodes that were sent, but not the nodes
themselves.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import ArrayLike, NDArray

from asterism.calls import decoding, validation
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.methods import GRAPH, SamplingRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb

_CRC_BYTES = 4
DECODERS: Mapping[str, Callable[[decoding.SamplingCall[Any]], Any]] = {
    "sample_nodes": decoding.node_sample,
    "sample_nodes_like": decoding.nodes_like,
    "sample_negatives": decoding.negatives,
    "sample_graph_labels": decoding.graph_labels,
    "sample_layer": decoding.layer_sample,
    "sample_layers": decoding.layer_stack,
    "sample_edges": decoding.edge_sample,
    "sample_neighbors": decoding.neighbor_sample,
    "sample_fanout": decoding.fanout_sample,
    "sample_subgraph": decoding.subgraph,
    "sample_ego_subgraphs": decoding.ego_subgraphs,
    "sample_labor": decoding.labor_subgraph,
    "sample_hgt": decoding.hgt_subgraph,
    "random_walk": decoding.walk_sample,
    "sample_pinsage": decoding.visit_sample,
}
"""Decoders of the replies to calls that can be replayed, by method."""


def make_token(
    method: str,
    head: SamplingRequest,
    arrays: decoding.Arrays,
    reply_head: decoding.SamplingReply,
) -> str:
    """Return the token of a call from its request and the head of its reply."""
    request = type(head)()
    request.CopyFrom(head)  # type: ignore[arg-type]  # of the same type
    request.version = reply_head.version
    replay = graphd_pb.Replay(
        method=method,
        request=request.SerializeToString(),
        digest=reply_head.digest,
        node_count=_rows(arrays),
        crc=_crc(arrays),
        key_version=reply_head.key_version,
    )
    return encode_token(replay)


def encode_token(replay: graphd_pb.Replay) -> str:
    """Encode a token: base64url of the message and its CRC-32, without padding."""
    content = replay.SerializeToString()
    return (
        base64.urlsafe_b64encode(content + zlib.crc32(content).to_bytes(_CRC_BYTES, "little"))
        .decode()
        .rstrip("=")
    )


def decode_token(token: str) -> tuple[graphd_pb.Replay, SamplingRequest]:
    """Decode a token into its message and request; raise InvalidRequest if it is invalid."""
    message = (
        f"token={_shorten(token)}: expected the token of a sample, this one is cut short or "
        "altered; pass sample.token unchanged"
    )
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        content, crc = raw[:-_CRC_BYTES], raw[-_CRC_BYTES:]
        if len(raw) < _CRC_BYTES or zlib.crc32(content) != int.from_bytes(crc, "little"):
            raise InvalidRequest(message)
        replay = graphd_pb.Replay.FromString(content)
        if replay.method not in DECODERS:
            raise InvalidRequest(
                f"token={_shorten(token)}: expected a call that can be repeated, found "
                f"{replay.method!r}; these can: {', '.join(sorted(DECODERS))}"
            )
        request = GRAPH[replay.method].request.FromString(replay.request)
        return replay, cast(SamplingRequest, request)
    except (ValueError, DecodeError) as error:
        raise InvalidRequest(message) from error


def replay_sections(
    replay: graphd_pb.Replay,
    request: SamplingRequest,
    nodes: ArrayLike | None,
    exclude: validation.Exclusions,
) -> dict[str, NDArray[Any]]:
    """Return the sections of a replayed call with these nodes, without their types."""
    if nodes is None:
        return {}
    if isinstance(request, graphd_pb.SampleNegativesRequest):
        arrays = validation.exclusion_sections(nodes, exclude, shared=request.rows == 1)
        return (
            {**arrays, "sources": validation.pair_sources(nodes)}
            if request.exclude_edge_types
            else arrays
        )
    flat = (
        np.asarray(nodes).reshape(-1)
        if replay.method in ("sample_layer", "sample_layers")
        else nodes
    )
    return {"nodes": validation.ids("nodes", flat, minimum=-1)}


def followed_edge_types(request: SamplingRequest) -> list[int]:
    """Return the edge types that a call follows; none if it follows no edges."""
    fields = request.DESCRIPTOR.fields_by_name
    edge_types = list(getattr(request, "edge_types", ()))
    edge_types += getattr(request, "traversed_edge_types", ())
    for name in ("hops", "steps"):
        if name in fields:
            edge_types += [etype for step in getattr(request, name) for etype in step.edge_types]
    if "fanouts" in fields:
        edge_types += [fanout.edge_type for fanout in getattr(request, "fanouts", ())]
    return edge_types


def check_nodes(
    replay: graphd_pb.Replay, request: SamplingRequest, arrays: decoding.Arrays
) -> None:
    """Reject nodes, types or times that differ from those of the original call."""
    rows = _rows(arrays)
    has_times = "temporal_filter" in request.DESCRIPTOR.fields_by_name and request.HasField(
        "temporal_filter"
    )
    if has_times != ("times" in arrays):
        raise InvalidRequest(
            "times=None: expected the times of the call that the token belongs to; pass them again"
            if has_times
            else "times: expected None, because the call that the token belongs to had no times; "
            "leave them out"
        )
    if rows != replay.node_count:
        raise InvalidRequest(
            f"nodes of length {rows}: expected the {replay.node_count} nodes of the call that the "
            "token belongs to; pass the same nodes"
        )
    if _crc(arrays) != replay.crc:
        raise InvalidRequest(
            "nodes: expected those of the call that the token belongs to, with the same types, "
            "times and exclusions, in the same order; pass the same ones"
        )


def check_version(replay: graphd_pb.Replay, space: str, reply_head: decoding.SamplingReply) -> None:
    """Reject a reply by other keys, or from another version that has the same number."""
    if reply_head.key_version != replay.key_version:
        raise InvalidRequest(
            f"token of a sample by keys of version {replay.key_version or 1}: expected version "
            f"{reply_head.key_version or 1}, with which the service draws other samples for the "
            "same seed; make the call again, and keep the token of its sample"
        )
    if reply_head.digest != replay.digest:
        raise NotFound(
            f"version {reply_head.version} of space {space!r} with digest "
            f"{reply_head.digest[:12]}...: expected {replay.digest[:12]}..., the version that the "
            "token belongs to; it cannot be repeated if the space was created again"
        )


def _rows(arrays: decoding.Arrays) -> int:
    return len(arrays["nodes"]) if "nodes" in arrays else 0


def _crc(arrays: decoding.Arrays) -> int:
    """Return the CRC-32 of nodes, types, exclusions and times, equal on every machine."""
    crc = 0
    for name, dtype in (
        ("nodes", "<i8"),
        ("types", "<i4"),
        ("indptr", "<i8"),
        ("excluded", "<i8"),
        ("sources", "<i8"),
        ("exclude.types", "<i4"),
        ("exclude.src", "<i8"),
        ("exclude.dst", "<i8"),
        ("exclude.eids", "<i8"),
    ):
        if name in arrays:
            crc = zlib.crc32(np.ascontiguousarray(arrays[name], dtype).data, crc)
    if "times" in arrays:
        times = arrays["times"]
        crc = zlib.crc32(
            np.ascontiguousarray(times, times.dtype.newbyteorder("<")).data,
            zlib.crc32(times.dtype.kind.encode(), crc),
        )
    return crc


def _shorten(token: str) -> str:
    return repr(token if len(token) <= 24 else f"{token[:24]}...")
