"""What storaged is asked: the Store service. Decodes, checks, calls rooms, encodes; protobuf stops
here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from asterism_daemonkit.calls import CallContext
from asterism_daemonkit.tcp_client import TcpEndpoint
from asterism_model.schema import Schema
from asterism_proto.errors import Conflict, InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as pb
from storaged import received, sampling
from storaged.admission import Admissions
from storaged.api.filters import FILTER_CACHE_BYTES, FilterHandlers
from storaged.api.reads import (
    ReadHandlers,
    decode_importances,
    decode_labor_options,
    decode_temporal_filter,
)
from storaged.local_spaces import LocalSpaces
from storaged.requests import validate

Sections = dict[str, NDArray[Any]]


class StoreApi(FilterHandlers, ReadHandlers):
    """The handlers of the Store service.

    Parameters
    ----------
    local_spaces : LocalSpaces
        Spaces, stores and versions held here.
    stream_endpoint : callable
        Says where the stream door is.
    filter_cache_bytes : int
        Of memory for what satisfies the conditions of requests.
    admissions : Admissions, optional
        The loads that may be written; without it none may.
    """

    def __init__(
        self,
        local_spaces: LocalSpaces,
        stream_endpoint: Callable[[], TcpEndpoint] = TcpEndpoint,
        *,
        filter_cache_bytes: int = FILTER_CACHE_BYTES,
        admissions: Admissions | None = None,
    ) -> None:
        super().__init__(filter_cache_bytes)
        self._local_spaces = local_spaces
        self._stream_endpoint = stream_endpoint
        self._admissions = admissions or Admissions(_refuse_writes)

    def find_stream(self, request: pb.FindStreamRequest, call: CallContext) -> pb.FindStreamReply:
        """Where the stream door is."""
        endpoint = self._stream_endpoint()
        return pb.FindStreamReply(port=endpoint.port, key=endpoint.key, local=endpoint.socket_name)

    # -- blocks ------------------------------------------------------------------------------------

    def write_blocks(self, request: Frame, call: CallContext) -> Frame:
        """Keep blocks, durable once answered."""
        head: Any = request.head
        space = self._local_spaces.space(head.space_id)
        blocks = received.decode_blocks(request, space.schema, space.parts)
        chunk, extents = received.registered_chunk_number(head), received.block_extents(blocks)
        with self._admissions.admit_write(
            head.space_id, head.load_id, chunk, extents, call
        ) as registered:
            received.check_chunk(request, space.schema, registered)
            call.remaining()
            return Frame(
                pb.WriteBlocksReply(bytes=self._local_spaces.store(head.space_id).write(blocks))
            )

    def seal_load(self, request: Frame, call: CallContext) -> Frame:
        """End the writing of a load, and return the fingerprint of what was written."""
        head: Any = request.head
        local_parts = self._local_spaces.space(head.space_id).parts
        with self._admissions.seal(head.space_id, head.load_id, head.number, call) as seal:
            fingerprints = (
                self._local_spaces.store(head.space_id).fingerprints(head.load_id, seal.extents)
                if seal.has_writes
                else {}
            )
        parts = [
            fingerprint.to_proto()
            for part, fingerprint in sorted(fingerprints.items())
            if part in local_parts
        ]
        return Frame(pb.SealLoadReply(number=seal.number, parts=parts))

    def exists(self, request: Frame, call: CallContext) -> Frame:
        """Which ids are nodes."""
        head: Any = request.head
        _check_type(
            self._local_spaces.space(head.space_id).schema, nodes=True, type_id=head.type_id
        )
        ids = request.array("ids", "int64")
        mask = self._local_spaces.store(head.space_id).exists(
            head.type_id, ids, head.load_id, list(head.loads)
        )
        return Frame(pb.ExistsReply(), {"exists": mask})

    def list_births(self, request: Frame, call: CallContext) -> Frame:
        """Where a load writes nodes that are deleted so far."""
        head: Any = request.head
        store = self._local_spaces.store(head.space_id)
        type_chunks = np.array(store.revivals(head.load_id, list(head.loads)), np.int64).reshape(
            -1, 2
        )
        return Frame(
            pb.ListBirthsReply(deletes=store.deletes_nodes(head.load_id)),
            {"types": type_chunks[:, 0].astype(np.int32), "chunks": type_chunks[:, 1].copy()},
        )

    def read_births(self, request: Frame, call: CallContext) -> Frame:
        """The nodes of one chunk that are deleted so far."""
        head: Any = request.head
        _check_type(
            self._local_spaces.space(head.space_id).schema, nodes=True, type_id=head.type_id
        )
        ids = self._local_spaces.store(head.space_id).revived_ids(
            head.type_id, head.chunk, head.load_id, list(head.loads)
        )
        return Frame(pb.ReadBirthsReply(), {"ids": ids})

    # -- draws -------------------------------------------------------------------------------------

    def draw_nodes(self, request: Frame, call: CallContext) -> Frame:
        """This storaged's share of global draws of nodes."""
        head: Any = request.head
        checkpoint_argument: dict[str, Any] = {"checkpoint": call.remaining}
        version = self._version(
            request, call, globally=0 if head.rest or head.race else sampling.NODE
        ).with_weights(head.weight, sampling.NODE, head.types)
        if head.rest:
            rest = sampling.remaining_node_weight(
                version,
                types=list(head.types),
                parts=list(head.parts),
                **_excluded(request),
                **checkpoint_argument,
            )
            return Frame(pb.DrawNodesReply(), {"rest": rest})
        if head.race:
            keyed = sampling.sample_distinct_nodes(
                version, **_excluded(request), **_global_draw_arguments(head), **checkpoint_argument
            )
            sections = _present_sections(
                ids=keyed.ids, types=keyed.types, keys=keyed.keys, probabilities=keyed.probabilities
            )
            return Frame(pb.DrawNodesReply(), sections)
        sample = sampling.sample_nodes(
            version, start=head.start, **_global_draw_arguments(head), **checkpoint_argument
        )
        return Frame(
            pb.DrawNodesReply(),
            _present_sections(
                ids=sample.ids, types=sample.types, probabilities=sample.probabilities
            ),
        )

    def draw_edges(self, request: Frame, call: CallContext) -> Frame:
        """This storaged's share of global draws of edges."""
        head: Any = request.head
        checkpoint_argument: dict[str, Any] = {"checkpoint": call.remaining}
        version = self._version(
            request, call, globally=0 if head.rest or head.race else sampling.EDGE
        ).with_weights(head.weight, sampling.EDGE, head.types)
        if head.rest:
            rest = sampling.remaining_edge_weight(
                version,
                types=list(head.types),
                parts=list(head.parts),
                **_excluded(request),
                **checkpoint_argument,
            )
            return Frame(pb.DrawEdgesReply(), {"rest": rest})
        sections: Sections = {}
        if head.race:
            keyed = sampling.sample_distinct_edges(
                version, **_excluded(request), **_global_draw_arguments(head), **checkpoint_argument
            )
            edges, sections["keys"] = keyed.edges, keyed.keys
        else:
            edges = sampling.sample_edges(
                version, start=head.start, **_global_draw_arguments(head), **checkpoint_argument
            )
        sections |= {
            "src": edges.src,
            "dst": edges.dst,
            "eids": edges.eids,
            "types": edges.types,
            "weights": edges.weights,
        }
        return Frame(
            pb.DrawEdgesReply(), sections | _present_sections(probabilities=edges.probabilities)
        )

    def draw_neighbors(self, request: Frame, call: CallContext) -> Frame:
        """Neighbors of the nodes that live here."""
        head: Any = request.head
        temporal_filter = decode_temporal_filter(request)
        ranges = (
            self._filter_ranges(request) if temporal_filter is None and not head.different else {}
        )
        version = (
            self._validated_version(request) if ranges else self._version(request, call)
        ).with_weights(head.weight, sampling.EDGE, head.edge_types)
        arguments: dict[str, Any] = {
            "edge_types": list(head.edge_types),
            "node_type": head.node_type,
            "ids": request.array("ids", "int64"),
            "types": request.optional_array("types", "int32"),
            "positions": request.array("positions", "int64"),
            "count": head.count,
            "replace": head.replace,
            "uniform": head.uniform,
            "direction": head.direction,
            "seed": head.seed,
            "hop": head.hop,
            "want_weights": head.want_weights,
            "want_edge_ids": head.want_edge_ids,
            "checkpoint": call.remaining,
        }
        if temporal_filter is not None:
            sample = sampling.sample_temporal_neighbors(
                version, **arguments, temporal_filter=temporal_filter
            )
        elif ranges:
            sample = sampling.sample_indexed_neighbors(
                version,
                **arguments,
                want_probabilities=head.want_probabilities,
                weight_name=head.weight,
                ranges=ranges,
            )
        else:
            sample = sampling.sample_neighbors(
                version,
                **arguments,
                want_probabilities=head.want_probabilities,
                distinct_neighbors=head.different,
            )
        columns = {
            "ids": sample.ids,
            "types": sample.types,
            "weights": sample.weights,
            "eids": sample.eids,
            "times": sample.times,
        }
        return Frame(
            pb.DrawNeighborsReply(),
            _present_sections(**columns, probabilities=sample.probabilities),
        )

    def expand(self, request: Frame, call: CallContext) -> Frame:
        """A hop of a subgraph from the nodes that live here."""
        head: Any = request.head
        version = self._version(request, call).with_weights(
            head.weight, sampling.EDGE, [fanout.edge_type for fanout in head.along]
        )
        expansion, sections = _expansion(head), Sections()
        for fanout in head.along:
            local_type = sampling.end_types(version, fanout.edge_type, head.direction)[0]
            ids, trees = (
                request.array(f"ids.{local_type}", "int64"),
                request.optional_array(f"trees.{local_type}", "int32"),
            )
            temporal_filter = decode_temporal_filter(request, f"times.{local_type}")
            arguments = {
                "edge_type": fanout.edge_type,
                "hop": head.hop,
                "count": fanout.count,
                "checkpoint": call.remaining,
            }
            sample = sampling.expand(
                version,
                expansion,
                ids=ids,
                trees=trees,
                temporal_filter=temporal_filter,
                importance_state=decode_importances(request, fanout.edge_type),
                **arguments,
            )
            columns = _present_sections(
                sizes=sample.sizes,
                ids=sample.ids,
                eids=sample.eids,
                weights=sample.weights,
                times=sample.times,
            )
            sections |= {f"{name}.{fanout.edge_type}": column for name, column in columns.items()}
            call.remaining()
        return Frame(pb.ExpandReply(), sections)

    def grow(self, request: Frame, call: CallContext) -> Frame:
        """A whole subgraph from seeds, where all parts are held here."""
        head: Any = request.head
        version = self._version(request, call).with_weights(
            head.weight, sampling.EDGE, [fanout.edge_type for fanout in head.reach]
        )
        sections = sampling.sample_khop(
            version,
            _expansion(head),
            {fanout.edge_type: tuple(fanout.counts) for fanout in head.reach},
            request.array("ids", "int64"),
            request.array("types", "int32"),
            disjoint=head.disjoint,
            every=head.every,
            most_bytes=head.most_bytes,
            checkpoint=call.remaining,
            temporal_filter=decode_temporal_filter(request),
        )
        return Frame(pb.GrowReply(), sections)

    def walk(self, request: Frame, call: CallContext) -> Frame:
        """Walks, as far as they stay here."""
        head: Any = request.head
        version = self._version(request, call)
        ids, kinds = request.array("ids", "int64"), request.optional_array("types", "int32")
        kinds = (
            np.full(len(ids), head.node_type, np.int32)
            if kinds is None and head.node_type >= 0
            else kinds
        )
        spec = sampling.WalkSpec(
            steps=[list(step.edge_types) for step in head.steps],
            length=head.length,
            uniform=head.uniform,
            direction=head.direction,
            seed=head.seed,
            restart=head.restart,
            p=head.p or 1.0,
            q=head.q or 1.0,
            want_edge_ids=head.want_edge_ids,
        )
        edge_types = [edge_type for step in head.steps for edge_type in step.edge_types]
        version = version.with_weights(head.weight, sampling.EDGE, edge_types)
        if head.paths:
            walk_paths = sampling.sample_paths(
                version,
                spec,
                sampling.WalkState.at_start(ids, kinds, request.array("positions", "int64"), spec),
                call.remaining,
            )
            return Frame(
                pb.WalkReply(),
                _present_sections(
                    nodes=walk_paths.nodes, types=walk_paths.types, eids=walk_paths.eids
                ),
            )
        state = sampling.WalkState(
            ids=ids,
            kinds=kinds,
            positions=request.array("positions", "int64"),
            taken=request.array("taken", "int32"),
            starts=request.optional_array("starts", "int64"),
            start_kinds=kinds
            if head.node_type >= 0
            else request.optional_array("start_types", "int32"),
            before=request.optional_array("before", "int64"),
            before_kinds=request.optional_array("before_types", "int32"),
            attempts=request.optional_array("attempts", "int64"),
        )
        walks = sampling.continue_walks(version, spec, state, call.remaining)
        sections = _present_sections(
            indptr=walks.indptr, ids=walks.ids, types=walks.types, eids=walks.eids
        )
        if (pending := walks.pending) is not None:
            sections |= {
                "open": pending.is_pending.astype(np.uint8),
                **_present_sections(open_ids=pending.ids, open_types=pending.types),
            }
            sections |= _present_sections(open_eids=pending.eids, attempts=pending.attempts)
        return Frame(pb.WalkReply(), sections)

    def join(self, request: Frame, call: CallContext) -> Frame:
        """Which nodes that live here have an edge to their targets."""
        head: Any = request.head
        joined = sampling.has_edge(
            self._version(request, call),
            edge_types=list(head.edge_types),
            ids=request.array("ids", "int64"),
            kinds=request.optional_array("types", "int32"),
            targets=request.array("targets", "int64"),
            target_kinds=request.optional_array("target_types", "int32"),
            direction=head.direction,
            checkpoint=call.remaining,
        )
        return Frame(pb.JoinReply(), {"joined": joined.astype(np.uint8)})

    # -- reads -------------------------------------------------------------------------------------

    def read_neighbors(self, request: Frame, call: CallContext) -> Frame:
        """All neighbors of the nodes that live here, or the heaviest."""
        head: Any = request.head
        version, node_arguments = (
            self._version(request, call).with_weights(head.weight, sampling.EDGE, head.edge_types),
            _node_arguments(request),
        )
        if head.top:
            neighbors = sampling.top_neighbors(
                version,
                count=head.top,
                want_edge_ids=head.want_edge_ids,
                checkpoint=call.remaining,
                **node_arguments,
            )
        else:
            neighbors = sampling.read_neighbors(
                version,
                want_weights=head.want_weights,
                want_edge_ids=head.want_edge_ids,
                **node_arguments,
            )
        sections = _present_sections(
            indptr=neighbors.indptr,
            ids=neighbors.ids,
            types=neighbors.types,
            weights=neighbors.weights,
            eids=neighbors.eids,
        )
        return Frame(pb.ReadNeighborsReply(), sections)

    def read_degrees(self, request: Frame, call: CallContext) -> Frame:
        """How many edges the nodes that live here have, or what they weigh."""
        head: Any = request.head
        if head.measures:
            version = self._version(request, call).with_weights(
                head.weight, sampling.EDGE, head.edge_types
            )
            return Frame(
                pb.ReadDegreesReply(),
                {
                    "measures": sampling.type_weights(
                        version,
                        uniform=head.uniform,
                        checkpoint=call.remaining,
                        **_node_arguments(request),
                    )
                },
            )
        return Frame(
            pb.ReadDegreesReply(),
            {
                "degrees": sampling.degrees(
                    self._version(request, call),
                    checkpoint=call.remaining,
                    **_node_arguments(request),
                )
            },
        )

    def read_node_features(self, request: Frame, call: CallContext) -> Frame:
        """Feature columns of nodes that live here."""
        head: Any = request.head
        version = self._version(request, call).with_weights(
            head.weight, sampling.NODE, [head.type_id]
        )
        sections = sampling.node_features(
            version, head.type_id, list(head.names), request.array("ids", "int64")
        )
        return Frame(pb.ReadNodeFeaturesReply(), sections)

    def read_edge_features(self, request: Frame, call: CallContext) -> Frame:
        """Feature columns of edges whose features live here."""
        head: Any = request.head
        sections = sampling.edge_features(
            self._version(request, call),
            head.type_id,
            list(head.names),
            request.array("eids", "int64"),
        )
        return Frame(pb.ReadEdgeFeaturesReply(), sections)

    def read_nodes(self, request: Frame, call: CallContext) -> Frame:
        """A run of one part's nodes."""
        head: Any = request.head
        version = self._version(request, call).with_weights(
            head.weight, sampling.NODE, [head.type_id]
        )
        sections, cursor = sampling.read_nodes(
            version, head.type_id, head.part, head.cursor, head.limit, list(head.names)
        )
        return Frame(pb.ReadNodesReply(next_cursor=cursor), sections)

    def read_nodes_at(self, request: Frame, call: CallContext) -> Frame:
        """Nodes of parts that are held here, by place."""
        head: Any = request.head
        ids = sampling.read_nodes_at(
            self._version(request, call),
            head.type_id,
            request.array("parts", "int32"),
            request.array("places", "int64"),
        )
        return Frame(pb.ReadNodesAtReply(), {"ids": ids})

    def read_edges_at(self, request: Frame, call: CallContext) -> Frame:
        """Edges of parts that are held here, by place."""
        head: Any = request.head
        version = self._version(request, call).with_weights(
            head.weight, sampling.EDGE, [head.type_id]
        )
        return Frame(
            pb.ReadEdgesAtReply(),
            sampling.read_edges_at(
                version,
                head.type_id,
                request.array("parts", "int32"),
                request.array("places", "int64"),
            ),
        )

    def read_edges(self, request: Frame, call: CallContext) -> Frame:
        """A run of one part's edges."""
        head: Any = request.head
        version = self._version(request, call).with_weights(
            head.weight, sampling.EDGE, [head.type_id]
        )
        sections, cursor = sampling.read_edges(
            version, head.type_id, head.part, head.cursor, head.limit
        )
        return Frame(pb.ReadEdgesReply(next_cursor=cursor), sections)

    def _local_version(self, version_ref: pb.At) -> sampling.LocalVersion:
        return self._local_spaces.version(
            version_ref.space_id, version_ref.version, version_ref.digest
        )

    def _validated_version(self, request: Frame) -> sampling.LocalVersion:
        head: Any = request.head
        version = self._local_version(head.at)
        validate(request, version)
        return version

    def _version(
        self, request: Frame, call: CallContext, *, globally: int = 0
    ) -> sampling.LocalVersion:
        head: Any = request.head
        unfiltered = self._validated_version(request)
        if not head.at.HasField("where"):
            return unfiltered
        covers_types = (
            globally == head.at.where.element and set(head.types) <= set(head.at.where.types)
            if globally
            else False
        )
        return self._filtered_version(unfiltered, head.at.where, call, globally=covers_types)


def _refuse_writes(space_id: int, load_id: int, chunk: int, timeout_s: float) -> NoReturn:
    raise Conflict(
        f"load {load_id} of space {space_id}: nothing is written here; write through a graphd"
    )


def _check_type(schema: Schema, *, nodes: bool, type_id: int) -> None:
    type_count = len(schema.node_types if nodes else schema.edge_types)
    if type_id >= type_count:
        raise InvalidRequest(
            f"{'node' if nodes else 'edge'} type {type_id}: the schema has {type_count}"
        )


def _global_draw_arguments(head: Any) -> dict[str, Any]:
    return {
        "types": list(head.types),
        "parts": list(head.parts),
        "seed": head.seed,
        "count": head.count,
        "uniform": head.uniform,
        "want_probabilities": head.want_probabilities,
    }


def _expansion(head: Any) -> sampling.Expansion:
    return sampling.Expansion(
        seed=head.seed,
        direction=head.direction,
        replace=head.replace,
        uniform=head.uniform,
        want_eids=head.want_edge_ids,
        want_weights=head.want_weights,
        labor=decode_labor_options(head.variates) if head.HasField("variates") else None,
    )


def _node_arguments(request: Frame) -> dict[str, Any]:
    """Whose edges are read, and which."""
    head: Any = request.head
    return {
        "edge_types": list(head.edge_types),
        "node_type": head.node_type,
        "ids": request.array("ids", "int64"),
        "types": request.optional_array("types", "int32"),
        "direction": head.direction,
    }


def _excluded(request: Frame) -> dict[str, Any]:
    return {
        "taken_ids": request.array("taken", "int64"),
        "taken_types": request.array("taken_types", "int32"),
    }


def _present_sections(**sections: NDArray[Any] | None) -> Sections:
    return {name: array for name, array in sections.items() if array is not None}
