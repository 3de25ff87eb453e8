"""What a self-test draws: streams of global draws, single draws, and the nodes whose neighbors are
looked at.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism.calls.all_calls import AllCalls
from asterism.catalog_client import CatalogClient
from asterism.client_state import Session, seconds_left
from asterism.records.samples import EdgeSample, Ids, NeighborSample, NodeSample, Types
from asterism.records.versions import VersionInfo
from asterism.verification.row_census import EdgeEnds
from asterism_model.schema import Schema
from asterism_proto.v1 import metad_pb2 as metad_pb

NODE, EDGE = "NODE", "EDGE"
DRAWS_PER_REQUEST = 1 << 16
"""Draws of one request."""
SINGLE_DRAWS = 256
"""Requests for one draw: where sloppy splits over parts show most."""
EDGE_STARTS, NODE_STARTS = 48, 16
"""Nodes whose neighbors are drawn: ends of so many edges, and so many nodes whatever they have."""
_START_COPIES = 2
"""A node stands so often in a request: positions must draw independently."""
_NEIGHBORS_PER_REQUEST = 1 << 18


@dataclass(slots=True, kw_only=True, eq=False)
class GlobalDraws:
    """Global draws of one kind, in their order, and what a census finds out about them."""

    element: str
    type_id: int | None
    """The one type asked for; None: several together."""
    weighted: bool
    weight: str
    """The name of the weights; "": the rows' own."""
    block: int
    """Draws per request."""
    ids: Ids
    types: Types
    ends: EdgeEnds | None
    parts: NDArray[np.int32]
    """The part of each; -1 until its row is found."""
    mismatched: NDArray[np.bool_]
    """Not the row that it says: another source, destination or weight, or of a type that was not
    asked for.
    """


class DrawSource:
    """Asks one pinned version for draws, each with a seed of its own, within the time that is left.

    Parameters
    ----------
    client : Client
        Whose transport is used.
    space : str
    seed : int
        64 bits; every request's seed is a hash of it and of what is asked.
    timeout_s : float
        Of everything together.
    """

    def __init__(self, client: CatalogClient, space: str, seed: int, timeout_s: float) -> None:
        self._call_timeout_s = client.session.timeout_s
        self._session = Session(client.session.transport, self._call_timeout_s)
        self._graph = AllCalls(self._session, space)
        self._deadline = time.monotonic() + timeout_s
        self.seed = seed
        self.version = 0

    @property
    def graph(self) -> AllCalls:
        """The graph, its next call within what is left of the time; Deadline where nothing is."""
        self._session.timeout_s = min(self._call_timeout_s, seconds_left(self._deadline))
        return self._graph

    @property
    def schema(self) -> Schema:
        """Of the space."""
        return self.graph.schema

    def manifest(self, version: int) -> VersionInfo:
        """A version's sealed totals; draws and scans are pinned to it from here on."""
        info = VersionInfo.from_proto(
            self._session.catalog(
                "get_manifest", metad_pb.ManifestRequest(space=self.graph.space, version=version)
            )
        )
        self.version = info.version
        return info

    def seed_of(self, purpose: str, index: int) -> int:
        """The seed of request ``index`` of a kind."""
        path = np.random.SeedSequence([self.seed, zlib.crc32(purpose.encode()), index])
        return int(path.generate_state(1, np.uint64)[0])

    def draw_global(
        self,
        element: str,
        type_id: int | None,
        all_types: Sequence[int],
        weighted: bool,
        draws: int,
        *,
        weight: str = "",
        block: int = DRAWS_PER_REQUEST,
    ) -> GlobalDraws:
        """``draws`` draws of nodes or edges, ``block`` a request: of one type, or (None) of those
        ``all_types`` together.
        """
        kinds = self.schema.node_types if element == NODE else self.schema.edge_types
        types = all_types if type_id is None else [type_id]
        names = [kinds[kind_id].name for kind_id in types]
        purpose = f"{element} {names} {weighted} {weight} {block}"
        samples: list[NodeSample | EdgeSample] = []
        for index, start in enumerate(range(0, draws, block)):
            sample: Callable[..., NodeSample | EdgeSample] = (
                self.graph.sample_nodes if element == NODE else self.graph.sample_edges
            )
            n = min(block, draws - start)
            samples.append(
                sample(
                    n,
                    names,
                    weighted=weighted,
                    weight=weight,
                    seed=self.seed_of(purpose, index),
                    version=self.version,
                )
            )
        type_ids = np.concatenate([s.types for s in samples])
        ends = None
        if element == EDGE:
            edges = [s for s in samples if isinstance(s, EdgeSample)]
            ends = EdgeEnds(
                src=np.concatenate([s.src for s in edges]),
                dst=np.concatenate([s.dst for s in edges]),
                weights=np.concatenate([s.weights for s in edges]),
            )
        return GlobalDraws(
            element=element,
            type_id=type_id,
            weighted=weighted,
            weight=weight,
            block=block,
            ids=np.concatenate(
                [s.nodes if isinstance(s, NodeSample) else s.edge_ids for s in samples]
            ),
            types=type_ids,
            ends=ends,
            parts=np.full(len(type_ids), -1, np.int32),
            mismatched=~np.isin(type_ids, types),
        )

    def choose_starts(
        self, node_type: int, edge_types: Sequence[int], direction: str, populated: Sequence[int]
    ) -> Ids:
        """int64[m], ascending: ends of edges of these types at nodes of this type, and some of the
        type's nodes whatever they have.
        """
        schema = self.schema
        name, ids = schema.node_types[node_type].name, []
        for edge_type in (e for e in edge_types if e in populated):
            purpose = f"starts {direction} {schema.edge_types[edge_type].name}"
            n = max(1, EDGE_STARTS // len(edge_types))
            sample = self.graph.sample_edges(
                n,
                schema.edge_types[edge_type].name,
                weighted=False,
                seed=self.seed_of(purpose, 0),
                version=self.version,
            )
            ids.append(sample.src if direction == "out" else sample.dst)
        seed = self.seed_of(f"starts {direction} {name}", 0)
        ids.append(
            self.graph.sample_nodes(
                NODE_STARTS, name, weighted=False, seed=seed, version=self.version
            ).nodes
        )
        return np.unique(np.concatenate(ids))

    def draw_neighbors(
        self,
        starts: Ids,
        node_type: int,
        edge_types: Sequence[int],
        direction: str,
        weighted: bool,
        draws: int,
        *,
        weight: str = "",
    ) -> list[NeighborSample]:
        """About ``draws`` draws of neighbors; every answer has the starts `_START_COPIES` times,
        one run after the other.
        """
        schema = self.schema
        names = [schema.edge_types[e].name for e in edge_types]
        nodes = np.tile(starts, _START_COPIES)
        max_count = max(1, _NEIGHBORS_PER_REQUEST // len(nodes))
        total_count = max(1, -(-draws // len(nodes)))
        samples = []
        for index, done in enumerate(range(0, total_count, max_count)):
            seed = self.seed_of(f"neighbors {direction} {names} {weighted} {weight}", index)
            samples.append(
                self.graph.sample_neighbors(
                    nodes,
                    names,
                    min(max_count, total_count - done),
                    ntype=schema.node_types[node_type].name,
                    direction=direction,
                    weighted=weighted,
                    weight=weight,
                    edge_ids=True,
                    seed=seed,
                    version=self.version,
                )
            )
        return samples
