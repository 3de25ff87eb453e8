"""Exclusions of negative sampling: listed ids, and neighbors of a row's source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.stable_sort import distinct, stable_order
from asterism_graphkit.random.exclusion import ExcludedIds
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.operators import neighbor_reads
from graphd.operators.request_context import Ids, RequestContext, Sections
from graphd.operators.schema_checks import check_types
from graphd.routing import split_merge
from graphd.routing.split_merge import Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NeighborExclusion:
    """Exclusion of each row's neighbors along some edge types.

    Instead of reading all neighbors of a source, it tests if an edge to a candidate exists.
    """

    context: RequestContext
    """Context without a filter: a filter on negatives does not apply to edges."""
    edge_types: tuple[int, ...]
    sources: Ids
    """ndarray of int64, shape (rows,); -1 and nodes that do not exist have no neighbors."""

    @classmethod
    def from_request(
        cls,
        context: RequestContext,
        edge_types: Sequence[int],
        sources: Ids,
        node_types: Sequence[int],
    ) -> NeighborExclusion:
        """Build the exclusion of a request.

        Raises
        ------
        InvalidRequest
            If ids are per type and the edges start at several types, or if edges lead to no node
            type that is sampled.
        """
        schema = context.space.schema
        check_types("edge", schema, edge_types)
        ends = [schema.edge_types[edge_type] for edge_type in edge_types]
        sampled_types = {schema.node_types[node_type].name for node_type in node_types}
        for edge in ends:
            if edge.dst_type not in sampled_types:
                raise InvalidRequest(
                    f"edges of {edge.name} do not lead to the sampled types, "
                    f"{', '.join(sorted(sampled_types))}; remove this edge type"
                )
        if schema.ids != "global" and len(starts := sorted({edge.src_type for edge in ends})) > 1:
            raise InvalidRequest(
                f"joined_by edges start at {', '.join(starts)}: expected one node type, because "
                "ids of this space are per type"
            )
        return cls(context=context.without_filter(), edge_types=tuple(edge_types), sources=sources)

    def excluded_mask(self, rows: Ids, ids: Ids) -> NDArray[np.bool_]:
        """Return bool[n]: True if an edge leads from a row's source to the id drawn for the row."""
        out = np.zeros(len(ids), np.bool_)
        candidates = np.flatnonzero((ids >= 0) & (self.sources[rows] >= 0))
        if not candidates.size:
            return out
        sources, targets, end_types = (
            self.sources[rows[candidates]],
            ids[candidates],
            self._end_types,
        )
        head = storaged_pb.HasEdgeRequest(
            version_ref=self.context.version_ref(),
            edge_types=self.edge_types,
            direction=common_pb.OUT,
        )
        requests, candidate_groups = [], []
        for host, host_rows in split_merge.rows_by_owner(self.context.space, sources):
            sections: Sections = {
                "ids": split_merge.take_rows(sources, host_rows),
                "targets": split_merge.take_rows(targets, host_rows),
            }
            if end_types is not None:
                sections |= {
                    name: np.full(len(sections["ids"]), type_id, np.int32)
                    for name, type_id in zip(("types", "target_types"), end_types, strict=True)
                }
            requests.append((host, Frame(head, sections)))
            candidate_groups.append(candidates if host_rows is None else candidates[host_rows])
        for group, reply in zip(
            candidate_groups, self.context.dispatch("has_edge", requests), strict=True
        ):
            out[group] = reply.array("joined", "uint8") > 0
        return out

    def neighbor_ids(self, rows: Ids) -> tuple[Ids, Ids]:
        """Return all excluded ids of some rows: indptr int64[n + 1] and ids.

        Raises InvalidRequest if they do not fit into a reply.
        """
        unique_sources, inverse = distinct(self.sources[rows], self.context.call.remaining)
        end_types = self._end_types
        edge_params = neighbor_reads.EdgeReadParams(
            edge_types=self.edge_types,
            direction=common_pb.OUT,
            want_weights=False,
            want_edge_ids=False,
            sort="",
        )
        neighbors = neighbor_reads.neighbors(
            self.context,
            edge_params,
            unique_sources,
            -1 if end_types is None else end_types[0],
            None,
        )
        return split_merge.gather_ragged(neighbors["indptr"], neighbors["ids"], inverse)

    @property
    def _end_types(self) -> tuple[int, int] | None:
        """Types of the sources and of the sampled nodes; None if ids are global."""
        schema = self.context.space.schema
        if schema.ids == "global":
            return None
        edge = schema.edge_types[self.edge_types[0]]
        return schema.node_type_id(edge.src_type), schema.node_type_id(edge.dst_type)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowExclusions:
    """Exclusions of each row."""

    listed: ExcludedIds | None
    neighbors: NeighborExclusion | None

    @classmethod
    def from_request(
        cls,
        context: RequestContext,
        request: Frame[graphd_pb.SampleNegativesRequest],
        node_types: Sequence[int],
    ) -> RowExclusions | None:
        """Build the exclusions of a request for negatives; None if nothing is excluded.

        Raises
        ------
        InvalidRequest
            If sections do not fit the rows, if several node types with ids per type have
            exclusions, or if edges do not lead to a sampled type.
        """
        head = request.head
        indptr, excluded, sources = (
            request.optional_array(name, "int64") for name in ("indptr", "excluded", "sources")
        )
        listed = None
        if indptr is not None and excluded is not None:
            if (
                len(indptr) != head.rows + 1
                or indptr[0] != 0
                or indptr[-1] != len(excluded)
                or bool((np.diff(indptr) < 0).any())
            ):
                raise InvalidRequest(
                    f"indptr has {len(indptr)} entries for {head.rows} rows: expected "
                    f"{head.rows + 1}, ascending from 0 to {len(excluded)}"
                )
            listed = ExcludedIds.from_rows(indptr, excluded, context.call.remaining)
        if listed is None and not head.exclude_edge_types:
            return None
        if len(node_types) > 1 and context.space.schema.ids != "global":
            raise InvalidRequest(
                "negatives of several node types with exclusions: expected one node type, "
                "because ids of this space are per type"
            )
        if not head.exclude_edge_types:
            return cls(listed=listed, neighbors=None)
        if sources is None or (len(sources) != head.rows and head.rows != 1):
            problem = "no section sources" if sources is None else f"{len(sources)} sources"
            raise InvalidRequest(
                f"joined_by with {problem}: expected one source for each of {head.rows} rows"
            )
        neighbors = NeighborExclusion.from_request(
            context, sorted(set(head.exclude_edge_types)), sources, node_types
        )
        if len(sources) == head.rows:
            return cls(listed=listed, neighbors=neighbors)
        # A single row for a whole batch excludes the neighbors of every source.
        _, ids = neighbors.neighbor_ids(np.arange(len(sources)))
        all_ids = ids if listed is None else np.concatenate([listed.ids, ids])
        return cls(
            listed=ExcludedIds.from_rows(
                np.array([0, len(all_ids)], np.int64), all_ids, context.call.remaining
            ),
            neighbors=None,
        )

    def excluded_mask(self, rows: Ids, ids: Ids, checkpoint: Checkpoint) -> NDArray[np.bool_]:
        """Return bool[n]: True if an id, drawn for a row, is excluded from that row."""
        out = (
            np.zeros(len(ids), np.bool_)
            if self.listed is None
            else self.listed.excluded_mask(rows, ids, checkpoint)
        )
        if self.neighbors is not None:
            undecided = np.flatnonzero(~out)
            out[undecided] = self.neighbors.excluded_mask(rows[undecided], ids[undecided])
        return out

    def row_ids(self, row: int, checkpoint: Checkpoint) -> Ids:
        """Return the distinct excluded ids of a row, ascending."""
        pieces = [] if self.listed is None else [self.listed.row_ids(row, checkpoint)]
        if self.neighbors is not None:
            pieces.append(self.neighbors.neighbor_ids(np.array([row], np.int64))[1])
        return distinct(np.concatenate(pieces), checkpoint)[0]

    def excluded_ids(self, rows: int, checkpoint: Checkpoint) -> ExcludedIds:
        """Return all excluded ids of each of ``rows`` rows, with neighbors read."""
        if self.neighbors is None:
            assert self.listed is not None
            return self.listed
        indptr, ids = self.neighbors.neighbor_ids(np.arange(rows, dtype=np.int64))
        if self.listed is None:
            return ExcludedIds.from_rows(indptr, ids, checkpoint)
        row = np.repeat(
            np.tile(np.arange(rows), 2),
            np.concatenate([np.diff(self.listed.indptr), np.diff(indptr)]),
        )
        all_ids = np.concatenate([self.listed.ids, ids])
        order = stable_order([row], checkpoint)
        return ExcludedIds.from_rows(self.listed.indptr + indptr, all_ids[order], checkpoint)
