"""What storaged is asked: the Store service. Decodes, checks, calls rooms, encodes; protobuf stops here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from asterism_proto.arrays import Frame
from asterism_proto.errors import Conflict, InvalidRequest
from asterism_proto.schema import Schema
from asterism_proto.v1 import storaged_pb2 as pb
from daemonkit.calls import Call
from daemonkit.streams import Door
from storaged import draw, received
from storaged.admission import Admissions
from storaged.holdings import Holdings
from storaged.operators import Operators, stepped_of, until_of, variates_of
from storaged.requests import validate
from storaged.restricting import CONDITIONS_BYTES, Restricting

Sections = dict[str, NDArray[Any]]


class StoreApi(Restricting, Operators):
    """The handlers of the Store service.

    Parameters
    ----------
    holdings : Holdings
        Spaces, stores and versions held here.
    stream : callable
        Says where the stream door is.
    conditions_bytes : int
        Of memory for what satisfies the conditions of requests.
    admissions : Admissions, optional
        The loads that may be written; without it none may.
    """

    def __init__(
        self,
        holdings: Holdings,
        stream: Callable[[], Door] = Door,
        *,
        conditions_bytes: int = CONDITIONS_BYTES,
        admissions: Admissions | None = None,
    ) -> None:
        super().__init__(conditions_bytes)
        self._holdings = holdings
        self._stream = stream
        self._admissions = admissions or Admissions(_admit_none)

    def find_stream(self, request: pb.FindStreamRequest, call: Call) -> pb.FindStreamReply:
        """Where the stream door is."""
        door = self._stream()
        return pb.FindStreamReply(port=door.port, key=door.key, local=door.local)

    # -- blocks ---------------------------------------------------------------------------------------------------

    def write_blocks(self, request: Frame, call: Call) -> Frame:
        """Keep blocks, durable once answered."""
        head: Any = request.head
        space = self._holdings.space(head.space_id)
        blocks = received.blocks_of(request, space.schema, space.parts)
        chunk, extents = received.registered_chunk(head), received.extents_of(blocks)
        with self._admissions.writing(head.space_id, head.load_id, chunk, extents, call) as registered:
            received.check_chunk(request, space.schema, registered)
            call.remaining()
            return Frame(pb.WriteBlocksReply(bytes=self._holdings.store(head.space_id).write(blocks)))

    def seal_load(self, request: Frame, call: Call) -> Frame:
        """End the writing of a load, and return the fingerprint of what was written."""
        head: Any = request.head
        held = self._holdings.space(head.space_id).parts
        with self._admissions.sealing(head.space_id, head.load_id, head.number, call) as sealed:
            found = self._holdings.store(head.space_id).fingerprints(head.load_id, sealed.extents) if sealed.written else {}
        parts = [fingerprint.to_proto() for part, fingerprint in sorted(found.items()) if part in held]
        return Frame(pb.SealLoadReply(number=sealed.number, parts=parts))

    def exists(self, request: Frame, call: Call) -> Frame:
        """Which ids are nodes."""
        head: Any = request.head
        _check_type(self._holdings.space(head.space_id).schema, nodes=True, type_id=head.type_id)
        ids = request.array("ids", "int64")
        found = self._holdings.store(head.space_id).exists(head.type_id, ids, head.load_id, list(head.loads))
        return Frame(pb.ExistsReply(), {"exists": found})

    def list_births(self, request: Frame, call: Call) -> Frame:
        """Where a load writes nodes that are deleted so far."""
        head: Any = request.head
        store = self._holdings.store(head.space_id)
        found = np.array(store.births(head.load_id, list(head.loads)), np.int64).reshape(-1, 2)
        return Frame(
            pb.ListBirthsReply(deletes=store.deletes_nodes(head.load_id)), {"types": found[:, 0].astype(np.int32), "chunks": found[:, 1].copy()}
        )

    def read_births(self, request: Frame, call: Call) -> Frame:
        """The nodes of one chunk that are deleted so far."""
        head: Any = request.head
        _check_type(self._holdings.space(head.space_id).schema, nodes=True, type_id=head.type_id)
        ids = self._holdings.store(head.space_id).born(head.type_id, head.chunk, head.load_id, list(head.loads))
        return Frame(pb.ReadBirthsReply(), {"ids": ids})

    # -- draws ----------------------------------------------------------------------------------------------------

    def draw_nodes(self, request: Frame, call: Call) -> Frame:
        """This storaged's share of global draws of nodes."""
        head: Any = request.head
        stops: dict[str, Any] = {"checkpoint": call.remaining}
        version = self._version(request, call, globally=0 if head.rest or head.race else draw.NODE).weighed(head.weight, draw.NODE, head.types)
        if head.rest:
            rest = draw.rest_of_nodes(version, types=list(head.types), parts=list(head.parts), **_taken(request), **stops)
            return Frame(pb.DrawNodesReply(), {"rest": rest})
        if head.race:
            race = draw.race_nodes(version, **_taken(request), **_shares(head), **stops)
            sections = _present(ids=race.ids, types=race.types, keys=race.keys, probabilities=race.probabilities)
            return Frame(pb.DrawNodesReply(), sections)
        drawn = draw.nodes(version, start=head.start, **_shares(head), **stops)
        return Frame(pb.DrawNodesReply(), _present(ids=drawn.ids, types=drawn.types, probabilities=drawn.probabilities))

    def draw_edges(self, request: Frame, call: Call) -> Frame:
        """This storaged's share of global draws of edges."""
        head: Any = request.head
        stops: dict[str, Any] = {"checkpoint": call.remaining}
        version = self._version(request, call, globally=0 if head.rest or head.race else draw.EDGE).weighed(head.weight, draw.EDGE, head.types)
        if head.rest:
            rest = draw.rest_of_edges(version, types=list(head.types), parts=list(head.parts), **_taken(request), **stops)
            return Frame(pb.DrawEdgesReply(), {"rest": rest})
        sections: Sections = {}
        if head.race:
            race = draw.race_edges(version, **_taken(request), **_shares(head), **stops)
            edges, sections["keys"] = race.edges, race.keys
        else:
            edges = draw.edges(version, start=head.start, **_shares(head), **stops)
        sections |= {"src": edges.src, "dst": edges.dst, "eids": edges.eids, "types": edges.types, "weights": edges.weights}
        return Frame(pb.DrawEdgesReply(), sections | _present(probabilities=edges.probabilities))

    def draw_neighbors(self, request: Frame, call: Call) -> Frame:
        """Neighbors of the nodes that live here."""
        head: Any = request.head
        until = until_of(request)
        ranges = self._ranges(request) if until is None and not head.different else {}
        version = (self._checked(request) if ranges else self._version(request, call)).weighed(head.weight, draw.EDGE, head.edge_types)
        asked: dict[str, Any] = {
            "edge_types": list(head.edge_types),
            "node_type": head.node_type,
            "ids": request.array("ids", "int64"),
            "types": request.optional("types", "int32"),
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
        if until is not None:
            drawn = draw.timed_neighbors(version, **asked, until=until)
        elif ranges:
            drawn = draw.ranged_neighbors(version, **asked, want_probabilities=head.want_probabilities, weight=head.weight, ranges=ranges)
        else:
            drawn = draw.neighbors(version, **asked, want_probabilities=head.want_probabilities, different=head.different)
        columns = {"ids": drawn.ids, "types": drawn.types, "weights": drawn.weights, "eids": drawn.eids, "times": drawn.times}
        return Frame(pb.DrawNeighborsReply(), _present(**columns, probabilities=drawn.probabilities))

    def expand(self, request: Frame, call: Call) -> Frame:
        """A hop of a subgraph from the nodes that live here."""
        head: Any = request.head
        version = self._version(request, call).weighed(head.weight, draw.EDGE, [along.edge_type for along in head.along])
        how, sections = _expansion(head), Sections()
        for along in head.along:
            near = draw.ends(version, along.edge_type, head.direction)[0]
            ids, trees = request.array(f"ids.{near}", "int64"), request.optional(f"trees.{near}", "int32")
            until = until_of(request, f"times.{near}")
            said = {"edge_type": along.edge_type, "hop": head.hop, "count": along.count, "checkpoint": call.remaining}
            met = draw.expand(version, how, ids=ids, trees=trees, until=until, stepped=stepped_of(request, along.edge_type), **said)
            columns = _present(sizes=met.sizes, ids=met.ids, eids=met.eids, weights=met.weights, times=met.times)
            sections |= {f"{name}.{along.edge_type}": column for name, column in columns.items()}
            call.remaining()
        return Frame(pb.ExpandReply(), sections)

    def grow(self, request: Frame, call: Call) -> Frame:
        """A whole subgraph from seeds, where all parts are held here."""
        head: Any = request.head
        version = self._version(request, call).weighed(head.weight, draw.EDGE, [reach.edge_type for reach in head.reach])
        sections = draw.grow(
            version,
            _expansion(head),
            {reach.edge_type: tuple(reach.counts) for reach in head.reach},
            request.array("ids", "int64"),
            request.array("types", "int32"),
            disjoint=head.disjoint,
            every=head.every,
            most_bytes=head.most_bytes,
            checkpoint=call.remaining,
            until=until_of(request),
        )
        return Frame(pb.GrowReply(), sections)

    def walk(self, request: Frame, call: Call) -> Frame:
        """Walks, as far as they stay here."""
        head: Any = request.head
        version = self._version(request, call)
        ids, kinds = request.array("ids", "int64"), request.optional("types", "int32")
        kinds = np.full(len(ids), head.node_type, np.int32) if kinds is None and head.node_type >= 0 else kinds
        rules = draw.Rules(
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
        followed = [edge_type for step in head.steps for edge_type in step.edge_types]
        version = version.weighed(head.weight, draw.EDGE, followed)
        if head.paths:
            whole = draw.paths(version, rules, draw.Places.begun(ids, kinds, request.array("positions", "int64"), rules), call.remaining)
            return Frame(pb.WalkReply(), _present(nodes=whole.nodes, types=whole.types, eids=whole.eids))
        places = draw.Places(
            ids=ids,
            kinds=kinds,
            positions=request.array("positions", "int64"),
            taken=request.array("taken", "int32"),
            starts=request.optional("starts", "int64"),
            start_kinds=kinds if head.node_type >= 0 else request.optional("start_types", "int32"),
            before=request.optional("before", "int64"),
            before_kinds=request.optional("before_types", "int32"),
            attempts=request.optional("attempts", "int64"),
        )
        walks = draw.walk(version, rules, places, call.remaining)
        sections = _present(indptr=walks.indptr, ids=walks.ids, types=walks.types, eids=walks.eids)
        if (hanging := walks.open) is not None:
            sections |= {"open": hanging.open.astype(np.uint8), **_present(open_ids=hanging.ids, open_types=hanging.types)}
            sections |= _present(open_eids=hanging.eids, attempts=hanging.attempts)
        return Frame(pb.WalkReply(), sections)

    def join(self, request: Frame, call: Call) -> Frame:
        """Which nodes that live here have an edge to their targets."""
        head: Any = request.head
        joined = draw.are_joined(
            self._version(request, call),
            edge_types=list(head.edge_types),
            ids=request.array("ids", "int64"),
            kinds=request.optional("types", "int32"),
            targets=request.array("targets", "int64"),
            target_kinds=request.optional("target_types", "int32"),
            direction=head.direction,
            checkpoint=call.remaining,
        )
        return Frame(pb.JoinReply(), {"joined": joined.astype(np.uint8)})

    # -- reads ----------------------------------------------------------------------------------------------------

    def read_neighbors(self, request: Frame, call: Call) -> Frame:
        """All neighbors of the nodes that live here, or the heaviest."""
        head: Any = request.head
        version, near = self._version(request, call).weighed(head.weight, draw.EDGE, head.edge_types), _near(request)
        if head.top:
            found = draw.top_neighbors(version, count=head.top, want_edge_ids=head.want_edge_ids, checkpoint=call.remaining, **near)
        else:
            found = draw.read_neighbors(version, want_weights=head.want_weights, want_edge_ids=head.want_edge_ids, **near)
        sections = _present(indptr=found.indptr, ids=found.ids, types=found.types, weights=found.weights, eids=found.eids)
        return Frame(pb.ReadNeighborsReply(), sections)

    def read_degrees(self, request: Frame, call: Call) -> Frame:
        """How many edges the nodes that live here have, or what they weigh."""
        head: Any = request.head
        if head.measures:
            version = self._version(request, call).weighed(head.weight, draw.EDGE, head.edge_types)
            return Frame(
                pb.ReadDegreesReply(), {"measures": draw.measures(version, uniform=head.uniform, checkpoint=call.remaining, **_near(request))}
            )
        return Frame(pb.ReadDegreesReply(), {"degrees": draw.degrees(self._version(request, call), checkpoint=call.remaining, **_near(request))})

    def read_node_features(self, request: Frame, call: Call) -> Frame:
        """Feature columns of nodes that live here."""
        head: Any = request.head
        version = self._version(request, call).weighed(head.weight, draw.NODE, [head.type_id])
        sections = draw.node_features(version, head.type_id, list(head.names), request.array("ids", "int64"))
        return Frame(pb.ReadNodeFeaturesReply(), sections)

    def read_edge_features(self, request: Frame, call: Call) -> Frame:
        """Feature columns of edges whose features live here."""
        head: Any = request.head
        sections = draw.edge_features(self._version(request, call), head.type_id, list(head.names), request.array("eids", "int64"))
        return Frame(pb.ReadEdgeFeaturesReply(), sections)

    def read_nodes(self, request: Frame, call: Call) -> Frame:
        """A run of one part's nodes."""
        head: Any = request.head
        version = self._version(request, call).weighed(head.weight, draw.NODE, [head.type_id])
        sections, cursor = draw.read_nodes(version, head.type_id, head.part, head.cursor, head.limit, list(head.names))
        return Frame(pb.ReadNodesReply(next_cursor=cursor), sections)

    def read_nodes_at(self, request: Frame, call: Call) -> Frame:
        """Nodes of parts that are held here, by place."""
        head: Any = request.head
        ids = draw.nodes_at(self._version(request, call), head.type_id, request.array("parts", "int32"), request.array("places", "int64"))
        return Frame(pb.ReadNodesAtReply(), {"ids": ids})

    def read_edges_at(self, request: Frame, call: Call) -> Frame:
        """Edges of parts that are held here, by place."""
        head: Any = request.head
        version = self._version(request, call).weighed(head.weight, draw.EDGE, [head.type_id])
        return Frame(pb.ReadEdgesAtReply(), draw.edges_at(version, head.type_id, request.array("parts", "int32"), request.array("places", "int64")))

    def read_edges(self, request: Frame, call: Call) -> Frame:
        """A run of one part's edges."""
        head: Any = request.head
        version = self._version(request, call).weighed(head.weight, draw.EDGE, [head.type_id])
        sections, cursor = draw.read_edges(version, head.type_id, head.part, head.cursor, head.limit)
        return Frame(pb.ReadEdgesReply(next_cursor=cursor), sections)

    def _whole(self, at: pb.At) -> draw.Version:
        return self._holdings.version(at.space_id, at.version, at.digest)

    def _checked(self, request: Frame) -> draw.Version:
        head: Any = request.head
        whole = self._whole(head.at)
        validate(request, whole)
        return whole

    def _version(self, request: Frame, call: Call, *, globally: int = 0) -> draw.Version:
        head: Any = request.head
        whole = self._checked(request)
        if not head.at.HasField("where"):
            return whole
        covers = globally == head.at.where.element and set(head.types) <= set(head.at.where.types) if globally else False
        return self._restricted(whole, head.at.where, call, globally=covers)


def _admit_none(space_id: int, load_id: int, chunk: int, timeout_s: float) -> NoReturn:
    raise Conflict(f"load {load_id} of space {space_id}: nothing is written here; write through a graphd")


def _check_type(schema: Schema, *, nodes: bool, type_id: int) -> None:
    known = len(schema.node_types if nodes else schema.edge_types)
    if type_id >= known:
        raise InvalidRequest(f"{'node' if nodes else 'edge'} type {type_id}: the schema has {known}")


def _shares(head: Any) -> dict[str, Any]:
    return {
        "types": list(head.types),
        "parts": list(head.parts),
        "seed": head.seed,
        "count": head.count,
        "uniform": head.uniform,
        "want_probabilities": head.want_probabilities,
    }


def _expansion(head: Any) -> draw.Expansion:
    return draw.Expansion(
        seed=head.seed,
        direction=head.direction,
        replace=head.replace,
        uniform=head.uniform,
        want_eids=head.want_edge_ids,
        want_weights=head.want_weights,
        variates=variates_of(head.variates) if head.HasField("variates") else None,
    )


def _near(request: Frame) -> dict[str, Any]:
    """Whose edges are read, and which."""
    head: Any = request.head
    return {
        "edge_types": list(head.edge_types),
        "node_type": head.node_type,
        "ids": request.array("ids", "int64"),
        "types": request.optional("types", "int32"),
        "direction": head.direction,
    }


def _taken(request: Frame) -> dict[str, Any]:
    return {"taken_ids": request.array("taken", "int64"), "taken_types": request.array("taken_types", "int32")}


def _present(**sections: NDArray[Any] | None) -> Sections:
    return {name: array for name, array in sections.items() if array is not None}
