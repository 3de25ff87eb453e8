"""State and request building that all groups of calls of a graph share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.calls import chunked_reads, decoding, replay_tokens, validation
from asterism.calls.excluded_edges import EdgeExclusion, ReverseTypes, excluded_edges
from asterism.calls.graph_protocol import GraphProtocol
from asterism.calls.pins import Lease
from asterism.calls.string_id_hashing import NodeTypes, as_string_array, hash_names
from asterism.client_state import Session, VersionReply
from asterism.records.arrays import Ids
from asterism.records.graph_display import graph_html, graph_lines
from asterism.records.samples import (
    EdgeRows,
    RaggedNeighbors,
    Types,
)
from asterism.records.versions import VersionInfo
from asterism_model import string_ids as contract
from asterism_model.excluded_edges import ExcludedEdges
from asterism_model.schema import EdgeType, Schema
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.methods import SamplingRequest
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb

Request = TypeVar("Request", bound=SamplingRequest)
Sample = TypeVar("Sample")
Names = str | Iterable[str] | None
TYPE_PER_NODE = -1
"""Node type id of a request without a single node type.

Its section ``types`` holds a type per node, or (global ids) storaged looks the types up.
"""


class CandidateTypes(list[int]):
    """Ids of node types, any of which each node may have; a plain list has one for each node."""


class GraphCalls:
    """Access to one graph space at one version, shared by all groups of calls.

    Groups derive from this class alone; none imports another. `asterism.graph.Graph` joins them.
    """

    def __init__(
        self,
        session: Session,
        space: str,
        *,
        version: int | None = None,
        lease: Lease | None = None,
        excluded: ExcludedEdges | None = None,
    ) -> None:
        self._session = session
        self._lease = lease
        self._excluded = excluded
        self.space = space
        self.version: int | None = version
        """Version that every call reads; None: the current one, or the one that a call names."""

    def __repr__(self) -> str:
        info = self._session.cached_manifest(self.space, self.version or 0)
        return "\n".join(
            [
                self._title(info),
                *(graph_lines(self.schema, info) if self._session.has_schema(self.space) else []),
            ]
        )

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks display."""
        info = self._session.cached_manifest(self.space, self.version or 0)
        return (
            graph_html(self._title(info), self.schema, info)
            if self._session.has_schema(self.space)
            else f"<pre>{escape(self._title(info))}</pre>"
        )

    def _title(self, info: VersionInfo | None) -> str:
        version = self.version or (info.version if info is not None else 0)
        return f"{type(self).__name__}({self.space!r}{f', version={version}' if version else ''})"

    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "_lease": None,
        }  # The lease stays here: the copy may read while this process holds the version.

    def _version(self, version: int | None) -> int:
        """Return the version to request; 0 is the current one.

        Raises
        ------
        InvalidRequest
            If this graph is at another version.
        AsterismError
            If this graph holds a lease and the lease was lost.
        """
        if self._lease is not None:
            self._lease.check()
        requested = validation.version(version)
        if self.version is None or requested == self.version:
            return requested
        if requested:
            raise InvalidRequest(
                f"version={requested}: expected {self.version}, the version of this graph; "
                "pass it to a graph without a version, such as client.graph(...)"
            )
        return self.version

    @property
    def schema(self) -> Schema:
        """Schema of the graph space; type ids are positions in it."""
        return self._session.schema(self.space)

    def _call(
        self,
        method: str,
        decode: Callable[[decoding.SamplingCall[Request]], Sample],
        head: Request,
        arrays: dict[str, NDArray[Any]],
        check: Callable[[decoding.SamplingReply], None] = lambda _: None,
    ) -> Sample:
        """Make a call and decode its reply; ``check`` may reject the reply's head."""
        reply = cast("Frame[decoding.SamplingReply]", self._session.read(method, head, arrays))
        check(reply.head)
        token = replay_tokens.make_token(method, head, arrays, reply.head)
        return decode(
            decoding.SamplingCall(
                request=head, arrays=arrays, reply=reply, schema=self.schema, token=token
            )
        )

    def _resolve_exclusions(
        self, exclude: validation.Exclusions, ntype: NodeTypes | CandidateTypes, version: int | None
    ) -> validation.Exclusions:
        """Return the exclusions with string ids replaced by integer ids."""
        if isinstance(exclude, tuple):
            return exclude[0], self._as_ids("exclude", exclude[1], ntype, version)
        return (
            exclude
            if exclude is None or isinstance(exclude, RaggedNeighbors)
            else self._as_ids("exclude", exclude, ntype, version)
        )

    def _exclusion_sections(
        self,
        exclude: EdgeExclusion,
        reverse_types: ReverseTypes,
        edge_types: Sequence[int],
        version: int | None,
    ) -> dict[str, NDArray[Any]]:
        """Return the edges that a call or this graph excludes, as sections of a request.

        ``edge_types`` are the edge types that the call follows.
        """
        excluded = self._excluded_edges(exclude, reverse_types, edge_types, version)
        return {} if excluded is None else excluded.sections()

    def _excluded_edges(
        self,
        exclude: EdgeExclusion,
        reverse_types: ReverseTypes,
        edge_types: Sequence[int],
        version: int | None,
    ) -> ExcludedEdges | None:
        """Return the edges that a call or this graph excludes; None for none."""
        excluded = excluded_edges(
            self.schema,
            exclude,
            reverse_types,
            edge_types,
            lambda nodes, ntype: self._ids("exclude", nodes, ntype, version),
        )
        pieces = [piece for piece in (self._excluded, excluded) if piece is not None]
        return ExcludedEdges.concatenate(pieces) if pieces else None

    def _seed_sections(
        self,
        nodes: ArrayLike,
        ntype: NodeTypes,
        edge_types: Sequence[int],
        direction: common_pb.Direction,
        *,
        argument: str = "nodes",
        version: int | None = None,
    ) -> tuple[int, dict[str, NDArray[Any]]]:
        """Return a request's node type id and sections for seed nodes."""
        schema = self.schema
        if ntype is not None and not isinstance(ntype, str):
            ids = self._ids(argument, nodes, ntype, version)
            return TYPE_PER_NODE, {"nodes": ids, "types": self._types(ntype, ids)}
        local_types = (
            {ntype}
            if ntype is not None
            else {self._local_type(schema.edge_types[e], direction) for e in edge_types}
        )
        if len(local_types) == 1:
            (local_type,) = local_types
            return self._session.node_type(self.space, local_type)[0], {
                "nodes": self._ids(argument, nodes, local_type, version)
            }
        if schema.ids == "global":
            return TYPE_PER_NODE, {"nodes": self._ids(argument, nodes, None, version)}
        end = "start" if direction == common_pb.OUT else "end"
        raise validation.node_type_required(
            f"etypes={[schema.edge_types[e].name for e in edge_types]}: expected edge types that "
            f"{end} at one node type, found {', '.join(sorted(local_types))}"
        )

    @staticmethod
    def _local_type(edge_type: EdgeType, direction: common_pb.Direction) -> str:
        """Return the node type at the local end of an edge type."""
        return edge_type.src_type if direction == common_pb.OUT else edge_type.dst_type

    def _types(self, ntype: ArrayLike, ids: Ids) -> Types:
        types = validation.ids("ntype", ntype, minimum=-1)
        validation.require_length("ntype", types, len(ids))
        self._require_type_ids(types)
        return types.astype(np.int32)

    def _require_type_ids(self, types: Ids) -> None:
        """Raise InvalidRequest for the first id that is not that of a node type."""
        type_count = len(self.schema.node_types)
        if types.size and types.max() >= type_count:
            position = int(np.argmax(types >= type_count))
            raise InvalidRequest(
                f"ntype[{position}]={types[position]}: expected the id of a node type, 0 to "
                f"{type_count - 1}"
            )

    def _lookup_names(
        self, ids: Ids, kinds: list[int] | Ids, version: int | None
    ) -> NDArray[np.str_]:
        """Return the name of each node; "" where it has none."""
        names = np.zeros(len(ids), "<U1")
        for kind in kinds if isinstance(kinds, list) else np.unique(kinds[kinds >= 0]).tolist():
            rows = np.flatnonzero(
                ids >= 0 if isinstance(kinds, list) else (ids >= 0) & (kinds == kind)
            )
            decoded = contract.decode_strings(self._name_column(ids[rows], kind, version))
            has_name = decoded != ""
            conflicts = np.flatnonzero((names[rows] != "") & has_name & (names[rows] != decoded))
            if conflicts.size:
                row = int(conflicts[0])
                raise InvalidRequest(
                    f"ids with {ids[rows[row]]}: expected one node, found "
                    f"{names[rows[row]]!r} and {decoded[row]!r} of different types; pass ntype"
                )
            if decoded.dtype == object or (
                names.dtype != object and decoded.dtype.itemsize > names.dtype.itemsize
            ):
                names = names.astype(decoded.dtype)
            names[rows[has_name]] = decoded[has_name]
        return names

    def _name_column(self, ids: Ids, kind: int, version: int | None) -> contract.StringColumn:
        """Return the string ids of nodes of one type; empty where a node does not exist."""
        head = graphd_pb.NodeFeaturesRequest(
            space=self.space,
            version=self._version(version),
            type_id=kind,
            names=[contract.ID_COLUMN],
        )
        owner = self.schema.node_types[kind]
        request = chunked_reads.ColumnRequest(
            method="node_features",
            head=head,
            section="nodes",
            owner=owner,
            names=[contract.ID_COLUMN],
        )
        column = chunked_reads.read_columns(self._session, request, ids)[contract.ID_COLUMN]
        assert isinstance(column, tuple)
        return column

    def _kinds(self, ntype: NodeTypes, rows: NDArray[Any]) -> list[int] | Ids:
        """Return the ids of the possible node types, or of each node's type."""
        if isinstance(ntype, str):
            return [self.schema.node_type_id(ntype)]
        if ntype is None:
            return list(range(len(self.schema.node_types)))
        kinds = validation.ids(
            "ntype", validation.as_array("ntype", ntype, "type ids").reshape(-1), minimum=-1
        )
        validation.require_length("ntype", kinds, len(rows))
        self._require_type_ids(kinds)
        return kinds

    def _ids_of_names(
        self,
        argument: str,
        strings: NDArray[Any],
        ntype: NodeTypes | CandidateTypes,
        version: int | None,
    ) -> Ids:
        """Return the ids of names as a flat ndarray of int64; -1 where no node has that name."""
        flat = strings.reshape(-1)
        out = np.full(len(flat), -1, np.int64)
        non_empty = np.flatnonzero(flat != "")
        if not non_empty.size:
            return out
        ids, encoded = hash_names(argument, flat[non_empty], self.schema)
        kinds = ntype if isinstance(ntype, CandidateTypes) else self._kinds(ntype, flat)
        exists = np.zeros(len(non_empty), np.bool_)
        for kind in kinds if isinstance(kinds, list) else np.unique(kinds[kinds >= 0]).tolist():
            matches = contract.equal_mask(self._name_column(ids, kind, version), encoded)
            exists |= matches if isinstance(kinds, list) else matches & (kinds[non_empty] == kind)
        out[non_empty[exists]] = ids[exists]
        return out

    def _ids(
        self,
        argument: str,
        nodes: ArrayLike,
        ntype: NodeTypes | CandidateTypes,
        version: int | None,
    ) -> Ids:
        """Return nodes as ndarray of int64, shape (n,).

        -1 marks a missing node: as given, or for a name that no node has.
        """
        strings = as_string_array(argument, nodes)
        if strings is None:
            return validation.ids(argument, nodes, minimum=-1)
        validation.require_one_dimension(argument, strings)
        return self._ids_of_names(argument, strings, ntype, version)

    def _require_ids(
        self, argument: str, nodes: ArrayLike, ntype: NodeTypes, version: int | None
    ) -> Ids:
        """Return nodes as ndarray of int64, shape (n,); a name that no node has raises."""
        strings = as_string_array(argument, nodes)
        if strings is None:
            return validation.ids(argument, nodes)
        if strings.size and not self.schema.has_string_ids:
            hash_names(argument, strings, self.schema)  # raises the error that names the argument
        return self._graph().node_ids(strings, ntype, version=version)

    def _as_ids(
        self,
        argument: str,
        nodes: ArrayLike,
        ntype: NodeTypes | CandidateTypes,
        version: int | None,
    ) -> ArrayLike:
        """Replace names by ids in an array of any shape; return other arrays unchanged."""
        strings = as_string_array(argument, nodes)
        return (
            nodes
            if strings is None
            else self._ids_of_names(argument, strings, ntype, version).reshape(strings.shape)
        )

    def _resolve_pairs(
        self,
        pairs: ArrayLike,
        types: NodeTypes | CandidateTypes,
        edge_types: Sequence[int],
        version: int | None,
    ) -> ArrayLike:
        """Return sources, or (source, destination) pairs, as integer ids.

        Names of sources belong to the source types of the edge types, if there are any.
        """
        source_types = (
            CandidateTypes(
                sorted(
                    {
                        self.schema.node_type_id(self.schema.edge_types[edge].src_type)
                        for edge in edge_types
                    }
                )
            )
            or types
        )
        if not self.schema.has_string_ids or validation.as_array("pairs", pairs, "ids").ndim != 2:
            return self._as_ids("pairs", pairs, source_types, version)
        ends = [
            self._as_ids("pairs", np.asarray(pairs)[:, column], kinds, version)
            for column, kinds in enumerate((source_types, types))
        ]
        return np.stack([np.asarray(end) for end in ends], axis=1)

    def _steps(self, metapath: Sequence[Names] | None, length: int | None) -> list[list[int]]:
        """Return the edge type ids of each step."""
        if isinstance(metapath, str) or (metapath is not None and not len(metapath)):
            raise InvalidRequest(
                f"metapath={metapath!r}: expected a list with the edge types of each step"
            )
        if length is None and metapath is None:
            raise InvalidRequest(
                "metapath=None, length=None: expected one of them; pass the number of steps as "
                "length"
            )
        return [
            self._session.edge_type_ids(self.space, validation.type_names("metapath", step))
            for step in ([None] if metapath is None else metapath)
        ]

    def _type_sections(
        self, argument: str, nodes: ArrayLike, ntype: NodeTypes, version: int | None
    ) -> tuple[int, dict[str, NDArray[Any]]]:
        """Return a request's node type id and sections for nodes with known types."""
        ids = self._ids(argument, nodes, ntype, version)
        if isinstance(ntype, str):
            return self._session.node_type(self.space, ntype)[0], {"nodes": ids}
        if ntype is not None:
            return TYPE_PER_NODE, {"nodes": ids, "types": self._types(ntype, ids)}
        if self.schema.ids != "global":
            raise validation.node_type_required(
                f"{argument}: expected nodes with a type, because ids of this space are per type"
            )
        return TYPE_PER_NODE, {"nodes": ids}

    def _fanouts(
        self, fanouts: Sequence[int] | Mapping[str, Sequence[int]], edge_types: Sequence[int]
    ) -> list[list[int]]:
        """Validate fanouts and return the counts per edge type and hop."""
        if isinstance(fanouts, Mapping):
            by_type = {
                self._session.edge_type(self.space, name)[0]: validation.counts("fanouts", hops)
                for name, hops in fanouts.items()
            }
            if set(by_type) != set(edge_types):
                type_names = [self.schema.edge_types[etype].name for etype in edge_types]
                raise InvalidRequest(
                    f"fanouts with {sorted(fanouts)}: expected a list of counts for each of the "
                    f"edge types {type_names}"
                )
            lists = [by_type[etype] for etype in edge_types]
        else:
            lists = [validation.counts("fanouts", fanouts)] * len(edge_types)
        for hops in lists:
            if not hops or len(hops) != len(lists[0]):
                raise InvalidRequest(
                    f"fanouts={fanouts!r}: expected a count for each hop, equally many for each "
                    f"type"
                )
            for hop, count in enumerate(hops):
                validation.count(f"fanouts[{hop}]", count, minimum=-1)
        return lists

    def _edges_at(
        self, etype: str, positions: Ids, weight: str, where: str, version: int | None
    ) -> tuple[EdgeRows, int]:
        """Return the edges at some scan positions, and the number of edges of the type."""
        type_id, _ = self._session.edge_type(self.space, etype)
        head = graphd_pb.EdgesAtRequest(
            space=self.space,
            version=self._version(version),
            type_id=type_id,
            weight=weight,
            where=where,
        )
        reply = self._session.read("edges_at", head, {"places": positions})
        total = reply.with_head(graphd_pb.EdgesAtReply).head.count
        rows = EdgeRows(
            src=reply.array("src", "int64"),
            dst=reply.array("dst", "int64"),
            edge_ids=reply.array("eids", "int64"),
            weights=reply.array("weights", "float32"),
            version=version_of(reply.head),
        )
        return rows, total

    def _nodes_at(self, ntype: str, positions: Ids, version: int | None) -> tuple[Ids, int, int]:
        """Return the nodes at some scan positions, the number of nodes, and the version read."""
        type_id, _ = self._session.node_type(self.space, ntype)
        head = graphd_pb.NodesAtRequest(
            space=self.space, version=self._version(version), type_id=type_id
        )
        reply = self._session.read("nodes_at", head, {"places": positions})
        total = reply.with_head(graphd_pb.NodesAtReply).head.count
        return reply.array("ids", "int64"), total, version_of(reply.head)

    def _graph(self) -> GraphProtocol:
        """Return the graph that this group belongs to, for calls of other groups."""
        return cast(GraphProtocol, self)


def parse_direction(direction: str) -> common_pb.Direction:
    """Return a direction in its wire form."""
    if direction not in ("out", "in"):
        raise InvalidRequest(f"direction={direction!r}: expected 'out' or 'in'")
    return common_pb.OUT if direction == "out" else common_pb.IN


def version_of(head: VersionReply) -> int:
    """Return the version that a reply was read from."""
    return head.version
