"""What rows of negatives leave out: ids that they name, and whatever edges lead to from their sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import storaged_pb2 as store
from graphd import read, split
from graphd.requests import check_types
from graphd.sample import Ids, Sampling, Sections
from graphkit.excluding import Excluded


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Joined:
    """What edges of some types lead to from the source of each row. A source is not asked for its neighbors, but whether a node is one of them."""

    sampling: Sampling
    """Of all rows: a condition on negatives is none on edges."""
    edge_types: tuple[int, ...]
    sources: Ids
    """int64[rows]; -1, and a node that is not there, is joined to none."""

    @classmethod
    def of(cls, sampling: Sampling, edge_types: Sequence[int], sources: Ids, node_types: Sequence[int]) -> Joined:
        """Of a request.

        Raises
        ------
        InvalidRequest
            Where edges begin at nodes of several types whose ids are per type, or lead to none that is drawn.
        """
        schema = sampling.space.schema
        check_types("edge", schema, edge_types)
        ends = [schema.edge_types[edge_type] for edge_type in edge_types]
        drawn = {schema.node_types[node_type].name for node_type in node_types}
        for edge in ends:
            if edge.dst_type not in drawn:
                raise InvalidRequest(f"edges of {edge.name} lead to no negative, which are of {', '.join(sorted(drawn))}; leave them out")
        if schema.ids != "global" and len(starts := sorted({edge.src_type for edge in ends})) > 1:
            raise InvalidRequest(f"joined_by edges that begin at {', '.join(starts)}: ids of this space are per type; ask for one at a time")
        return cls(sampling=sampling.of_all(), edge_types=tuple(edge_types), sources=sources)

    def refused(self, rows: Ids, ids: Ids) -> NDArray[np.bool_]:
        """Which of some ids, each drawn for a row, an edge leads to from the row's source; bool[n]."""
        out = np.zeros(len(ids), np.bool_)
        asked = np.flatnonzero((ids >= 0) & (self.sources[rows] >= 0))
        if not asked.size:
            return out
        sources, targets, kinds = self.sources[rows[asked]], ids[asked], self._kinds
        head = store.JoinRequest(at=self.sampling.at(), edge_types=self.edge_types, direction=pb.OUT)
        requests, places = [], []
        for host, own in split.owners(self.sampling.space, sources):
            sections: Sections = {"ids": split.taken(sources, own), "targets": split.taken(targets, own)}
            if kinds is not None:
                sections |= {name: np.full(len(sections["ids"]), kind, np.int32) for name, kind in zip(("types", "target_types"), kinds, strict=True)}
            requests.append((host, Frame(head, sections)))
            places.append(asked if own is None else asked[own])
        for at, reply in zip(places, self.sampling.ask("join", requests), strict=True):
            out[at] = reply.array("joined", "uint8") > 0
        return out

    def lists(self, rows: Ids) -> tuple[Ids, Ids]:
        """All that is left out of some rows: indptr int64[n + 1], and ids; what does not fit into a reply is an InvalidRequest."""
        once, at = np.unique(self.sources[rows], return_inverse=True)
        kinds = self._kinds
        what = read.Adjacent(edge_types=self.edge_types, direction=pb.OUT, want_weights=False, want_edge_ids=False, sort="")
        found = read.neighbors(self.sampling, what, once, -1 if kinds is None else kinds[0], None)
        return split.gathered(found["indptr"], found["ids"], at)

    @property
    def _kinds(self) -> tuple[int, int] | None:
        """The types of sources and of what is drawn; None where ids say them."""
        schema = self.sampling.space.schema
        if schema.ids == "global":
            return None
        edge = schema.edge_types[self.edge_types[0]]
        return schema.node_type_id(edge.src_type), schema.node_type_id(edge.dst_type)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Positives:
    """What each row leaves out."""

    named: Excluded | None
    joined: Joined | None

    @classmethod
    def of(cls, sampling: Sampling, request: Frame, node_types: Sequence[int]) -> Positives | None:
        """Of a request for negatives of some types; None where nothing is left out.

        Raises
        ------
        InvalidRequest
            Where sections do not fit the rows, something is left out among types whose ids are per type, or edges do not lead to what is drawn.
        """
        head: Any = request.head
        indptr, excluded, sources = (request.optional(name, "int64") for name in ("indptr", "excluded", "sources"))
        named = None
        if indptr is not None and excluded is not None:
            if len(indptr) != head.rows + 1 or indptr[0] != 0 or indptr[-1] != len(excluded) or bool((np.diff(indptr) < 0).any()):
                raise InvalidRequest(
                    f"indptr has {len(indptr)} entries for {head.rows} rows; expected them to rise from 0 to {len(excluded)}, one more than rows"
                )
            named = Excluded.of(indptr, excluded)
        if named is None and not head.joined_by:
            return None
        if len(node_types) > 1 and sampling.space.schema.ids != "global":
            raise InvalidRequest("negatives of several node types with something left out: ids of this space are per type; ask for one type")
        if not head.joined_by:
            return cls(named=named, joined=None)
        if sources is None or (len(sources) != head.rows and head.rows != 1):
            found = "no section sources" if sources is None else f"{len(sources)} sources"
            raise InvalidRequest(f"joined_by beside {found}: expected one for each of {head.rows} rows")
        joined = Joined.of(sampling, sorted(set(head.joined_by)), sources, node_types)
        if len(sources) == head.rows:
            return cls(named=named, joined=joined)
        # One row for a whole batch leaves out what any source is joined to.
        _, ids = joined.lists(np.arange(len(sources)))
        both = ids if named is None else np.concatenate([named.ids, ids])
        return cls(named=Excluded.of(np.array([0, len(both)], np.int64), both), joined=None)

    def refused(self, rows: Ids, ids: Ids) -> NDArray[np.bool_]:
        """Which of some ids, each drawn for a row, that row leaves out; bool[n]."""
        out = np.zeros(len(ids), np.bool_) if self.named is None else self.named.refused(rows, ids)
        if self.joined is not None:
            open_ = np.flatnonzero(~out)
            out[open_] = self.joined.refused(rows[open_], ids[open_])
        return out

    def of_row(self, row: int) -> Ids:
        """What a row leaves out, each once."""
        pieces = [] if self.named is None else [self.named.of_row(row)]
        if self.joined is not None:
            pieces.append(self.joined.lists(np.array([row], np.int64))[1])
        return np.unique(np.concatenate(pieces))

    def listed(self, rows: int) -> Excluded:
        """All that each of ``rows`` rows leaves out, read."""
        if self.joined is None:
            assert self.named is not None
            return self.named
        indptr, ids = self.joined.lists(np.arange(rows, dtype=np.int64))
        if self.named is None:
            return Excluded.of(indptr, ids)
        row = np.repeat(np.tile(np.arange(rows), 2), np.concatenate([np.diff(self.named.indptr), np.diff(indptr)]))
        both = np.concatenate([self.named.ids, ids])
        order = np.argsort(row, kind="stable")
        return Excluded.of(self.named.indptr + indptr, both[order])
