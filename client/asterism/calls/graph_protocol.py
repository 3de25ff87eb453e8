"""The calls of a graph that groups of calls make of each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from asterism.client_state import Session
from asterism.records.samples import (
    EdgeBatch,
    EdgeRows,
    Ids,
    NodeBatch,
    NodeSample,
    RaggedNeighbors,
    WalkSample,
)
from asterism.records.versions import VersionInfo
from asterism_model.schema import Schema


class GraphProtocol(Protocol):
    """What `asterism.graph.Graph` offers to its own groups of calls; parameters are as there."""

    _session: Session
    space: str
    version: int | None

    @property
    def schema(self) -> Schema:
        """The schema of the graph space."""

    def _version(self, version: int | None) -> int:
        """Return the version to ask for."""

    def _require_ids(self, *args: Any, **kwargs: Any) -> Ids:
        """Return nodes as int64[n]."""

    def _nodes_at(self, *args: Any, **kwargs: Any) -> tuple[Ids, int, int]:
        """Return nodes by position, with their count and the version."""

    def _edges_at(self, *args: Any, **kwargs: Any) -> tuple[EdgeRows, int]:
        """Return edges by position, with their count."""

    def manifest(self, version: int | None = None) -> VersionInfo:
        """Return what a version holds."""

    def sample_nodes(self, *args: Any, **kwargs: Any) -> NodeSample:
        """Sample nodes."""

    def sample_negatives(self, *args: Any, **kwargs: Any) -> Any:
        """Sample negative nodes per row."""

    def random_walk(self, *args: Any, **kwargs: Any) -> WalkSample:
        """Walk from nodes."""

    def neighbors(self, *args: Any, **kwargs: Any) -> RaggedNeighbors:
        """Return all neighbors of nodes."""

    def node_ids(self, *args: Any, **kwargs: Any) -> Ids:
        """Return the ids of nodes by name."""

    def scan_nodes(self, *args: Any, **kwargs: Any) -> Iterator[NodeBatch]:
        """Scan nodes of a type."""

    def scan_edges(self, *args: Any, **kwargs: Any) -> Iterator[EdgeBatch]:
        """Scan edges of a type."""

    def nodes_at(self, *args: Any, **kwargs: Any) -> Any:
        """Return nodes by position."""

    def edges_at(self, *args: Any, **kwargs: Any) -> EdgeRows:
        """Return edges by position."""

    def metapaths(self, *args: Any, **kwargs: Any) -> Any:
        """Parse metapaths."""
