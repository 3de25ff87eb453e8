"""Samples of a self-test: global draws, single draws, neighbors of chosen nodes."""

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
from asterism.verification.scan_statistics import EdgeEnds
from asterism_model.schema import Schema
from asterism_proto.v1 import metad_pb2 as metad_pb

NODE, EDGE = "NODE", "EDGE"
DRAWS_PER_REQUEST = 1 << 16
"""Number of draws per request."""
SINGLE_DRAWS = 256
"""Number of requests for one draw, where errors in the split over partitions show most."""
EDGE_STARTS, NODE_STARTS = 48, 16
"""Numbers of start nodes: ends of sampled edges, and nodes regardless of edges."""
_START_COPIES = 2
"""Repetitions of a start node per request: positions must be sampled independently."""
_NEIGHBORS_PER_REQUEST = 1 << 18


@dataclass(slots=True, kw_only=True, eq=False)
class GlobalDraws:
    """Global draws of one kind, in order, with the findings of a census."""

    element: str
    type_id: int | None
    """Type that was requested; None: several types together."""
    weighted: bool
    weight: str
    """Name of the weights; "": the rows' own."""
    block: int
    """Draws per request."""
    ids: Ids
    types: Types
    ends: EdgeEnds | None
    parts: NDArray[np.int32]
    """Partition of each draw; -1 until its row is found."""
    mismatched: NDArray[np.bool_]
    """True for a draw that does not match its row.

    Its source, destination or weight differs, or its type was not requested.
    """


class DrawSource:
    """Source of samples of one pinned version, each with its own seed, within a time limit.

    Parameters
    ----------
    client : Client
        Client of which the transport is used.
    space : str
        Name of the space.
    seed : int
        64-bit seed; the seed of every request is a hash of it and of the request's purpose.
    timeout_s : float
        Time limit of all calls together, in seconds.
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
        """Graph with the remaining time as timeout of its next call; Deadline if there is none."""
        self._session.timeout_s = min(self._call_timeout_s, seconds_left(self._deadline))
        return self._graph

    @property
    def schema(self) -> Schema:
        """Schema of the space."""
        return self.graph.schema

    def manifest(self, version: int) -> VersionInfo:
        """Return a version's manifest; samples and scans are pinned to it from now on."""
        info = VersionInfo.from_proto(
            self._session.catalog(
                "get_manifest", metad_pb.ManifestRequest(space=self.graph.space, version=version)
            )
        )
        self.version = info.version
        return info

    def seed_of(self, purpose: str, index: int) -> int:
        """Return the seed of request ``index`` of a kind."""
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
        """Sample nodes or edges, ``block`` per request, of one type or of several together.

        Parameters
        ----------
        element : {"NODE", "EDGE"}
            Kind of row.
        type_id : int or None
            Type. None: all of ``all_types`` together.
        all_types : sequence of int
            Types to sample from if ``type_id`` is None.
        weighted : bool
            Sample by weight, or uniformly.
        draws : int
            Total number of draws.
        weight : str, default ""
            Name of the weights. "": the rows' own.
        block : int
            Draws per request.

        Returns
        -------
        GlobalDraws
            The draws in order.
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
        """Choose start nodes of one type: ends of sampled edges, and sampled nodes.

        Returns
        -------
        ndarray of int64, shape (m,)
            Node ids, ascending and distinct.
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
        """Sample about ``draws`` neighbors of start nodes.

        Each request contains the list of start nodes `_START_COPIES` times in a row.
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
