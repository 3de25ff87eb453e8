"""What a self-test draws: streams of global draws, single draws, and the nodes whose neighbors are looked at."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from asterism.records import EdgeSample, Ids, NeighborSample, NodeSample, Types
from asterism.session import Session, left
from asterism.verification.census import Ends
from asterism.versions import VersionInfo
from asterism_proto.schema import Schema
from asterism_proto.v1 import metad_pb2 as meta

if TYPE_CHECKING:
    from asterism.client import Client
    from asterism.graph import Graph

NODE, EDGE = "NODE", "EDGE"
BLOCK = 1 << 16
"""Draws of one request."""
SINGLES = 256
"""Requests for one draw: where sloppy splits over parts show most."""
EDGE_STARTS, NODE_STARTS = 48, 16
"""Nodes whose neighbors are drawn: ends of so many edges, and so many nodes whatever they have."""
_TWICE = 2
"""A node stands so often in a request: positions must draw independently."""
_NEIGHBOR_BLOCK = 1 << 18


@dataclass(slots=True, kw_only=True, eq=False)
class Drawn:
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
    ends: Ends | None
    parts: NDArray[np.int32]
    """The part of each; -1 until its row is found."""
    wrong: NDArray[np.bool_]
    """Not the row that it says: another source, destination or weight, or of a type that was not asked for."""


class Drawer:
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

    def __init__(self, client: Client, space: str, seed: int, timeout_s: float) -> None:
        from asterism.graph import Graph

        self._most_s = client.session.timeout_s
        self._session = Session(client.session.transport, self._most_s)
        self._graph = Graph(self._session, space, client)
        self._deadline = time.monotonic() + timeout_s
        self.seed = seed
        self.version = 0

    @property
    def graph(self) -> Graph:
        """The graph, its next call within what is left of the time; Deadline where nothing is."""
        self._session.timeout_s = min(self._most_s, left(self._deadline))
        return self._graph

    @property
    def schema(self) -> Schema:
        """Of the space."""
        return self.graph.schema

    def manifest(self, version: int) -> VersionInfo:
        """A version's sealed totals; draws and scans are pinned to it from here on."""
        found = VersionInfo.from_proto(self._session.catalog("get_manifest", meta.ManifestRequest(space=self.graph.space, version=version)))
        self.version = found.version
        return found

    def seed_of(self, what: str, number: int) -> int:
        """The seed of request ``number`` of a kind."""
        path = np.random.SeedSequence([self.seed, zlib.crc32(what.encode()), number])
        return int(path.generate_state(1, np.uint64)[0])

    def stream(
        self, element: str, type_id: int | None, among: Sequence[int], weighted: bool, draws: int, *, weight: str = "", block: int = BLOCK
    ) -> Drawn:
        """``draws`` draws of nodes or edges, ``block`` a request: of one type, or (None) of those ``among`` together."""
        kinds = self.schema.node_types if element == NODE else self.schema.edge_types
        types = among if type_id is None else [type_id]
        names = [kinds[wanted].name for wanted in types]
        what = f"{element} {names} {weighted} {weight} {block}"
        samples: list[NodeSample | EdgeSample] = []
        for number, start in enumerate(range(0, draws, block)):
            ask: Callable[..., NodeSample | EdgeSample] = self.graph.sample_nodes if element == NODE else self.graph.sample_edges
            n = min(block, draws - start)
            samples.append(ask(n, names, weighted=weighted, weight=weight, seed=self.seed_of(what, number), version=self.version))
        drawn = np.concatenate([s.types for s in samples])
        ends = None
        if element == EDGE:
            edges = [s for s in samples if isinstance(s, EdgeSample)]
            ends = Ends(
                src=np.concatenate([s.src for s in edges]),
                dst=np.concatenate([s.dst for s in edges]),
                weights=np.concatenate([s.weights for s in edges]),
            )
        return Drawn(
            element=element,
            type_id=type_id,
            weighted=weighted,
            weight=weight,
            block=block,
            ids=np.concatenate([s.nodes if isinstance(s, NodeSample) else s.edge_ids for s in samples]),
            types=drawn,
            ends=ends,
            parts=np.full(len(drawn), -1, np.int32),
            wrong=~np.isin(drawn, types),
        )

    def starts(self, node_type: int, edge_types: Sequence[int], direction: str, populated: Sequence[int]) -> Ids:
        """int64[m], ascending: ends of edges of these types at nodes of this type, and some of the type's nodes whatever they have."""
        schema = self.schema
        name, found = schema.node_types[node_type].name, []
        for edge_type in (e for e in edge_types if e in populated):
            what = f"starts {direction} {schema.edge_types[edge_type].name}"
            n = max(1, EDGE_STARTS // len(edge_types))
            sample = self.graph.sample_edges(n, schema.edge_types[edge_type].name, weighted=False, seed=self.seed_of(what, 0), version=self.version)
            found.append(sample.src if direction == "out" else sample.dst)
        seed = self.seed_of(f"starts {direction} {name}", 0)
        found.append(self.graph.sample_nodes(NODE_STARTS, name, weighted=False, seed=seed, version=self.version).nodes)
        return np.unique(np.concatenate(found))

    def neighbors(
        self, starts: Ids, node_type: int, edge_types: Sequence[int], direction: str, weighted: bool, draws: int, *, weight: str = ""
    ) -> list[NeighborSample]:
        """About ``draws`` draws of neighbors; every answer has the starts `_TWICE` times, one run after the other."""
        schema = self.schema
        names = [schema.edge_types[e].name for e in edge_types]
        nodes = np.tile(starts, _TWICE)
        most = max(1, _NEIGHBOR_BLOCK // len(nodes))
        wanted = max(1, -(-draws // len(nodes)))
        out = []
        for number, done in enumerate(range(0, wanted, most)):
            seed = self.seed_of(f"neighbors {direction} {names} {weighted} {weight}", number)
            out.append(
                self.graph.sample_neighbors(
                    nodes,
                    names,
                    min(most, wanted - done),
                    ntype=schema.node_types[node_type].name,
                    direction=direction,
                    weighted=weighted,
                    weight=weight,
                    edge_ids=True,
                    seed=seed,
                    version=self.version,
                )
            )
        return out
