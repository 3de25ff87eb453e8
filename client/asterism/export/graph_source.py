"""Port through which exports read a graph (`asterism.Graph`): schema and scans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from asterism_model.schema import Schema
from asterism_proto.errors import Internal

Array = NDArray[Any]
Ids = NDArray[np.int64]
ScanColumn = Array | tuple[Ids, Array]
"""A feature's rows: dense, or ``(indptr, values)``."""
ProgressCallback = Callable[[str, int, int | None], None]
"""Called with the phase, the rows that are done, and how many there are, if known."""


class ScannedNodes(Protocol):
    """A run of nodes of one type."""

    @property
    def ids(self) -> Ids:
        """int64[n]."""

    @property
    def weights(self) -> NDArray[np.float32]:
        """float32[n]."""

    @property
    def features(self) -> Mapping[str, ScanColumn]:
        """The columns that were asked for."""

    @property
    def version(self) -> int:
        """Of the graph that was read."""


class ScannedEdges(Protocol):
    """A run of edges of one type."""

    @property
    def src(self) -> Ids:
        """int64[n]."""

    @property
    def dst(self) -> Ids:
        """int64[n]."""

    @property
    def edge_ids(self) -> Ids:
        """int64[n]."""

    @property
    def weights(self) -> NDArray[np.float32]:
        """float32[n]."""

    @property
    def features(self) -> Mapping[str, ScanColumn]:
        """The columns that were asked for."""


class ScannableGraph(Protocol):
    """A graph that can be read from end to end, in the same order each time for one version."""

    @property
    def space(self) -> str:
        """Its name."""

    @property
    def schema(self) -> Schema:
        """Its types and their features."""

    def scan_nodes(
        self,
        ntype: str,
        names: Iterable[str] = (),
        *,
        version: int | None = None,
        rows: int = 65536,
    ) -> Iterator[ScannedNodes]:
        """Every node of a type once."""

    def scan_edges(
        self,
        etype: str,
        names: Iterable[str] = (),
        *,
        version: int | None = None,
        rows: int = 65536,
    ) -> Iterator[ScannedEdges]:
        """Every edge of a type once."""


class UnreadableSource:
    """Stands for the graph where a step reads none: in workers."""

    space = ""

    @property
    def schema(self) -> Schema:
        """No step of a worker asks for it: it has the plan."""
        raise Internal("a worker was to ask for the schema")

    def scan_nodes(
        self,
        ntype: str,
        names: Iterable[str] = (),
        *,
        version: int | None = None,
        rows: int = 65536,
    ) -> Iterator[ScannedNodes]:
        """No step of a worker scans."""
        raise Internal(f"a worker was to scan the nodes of {ntype}")

    def scan_edges(
        self,
        etype: str,
        names: Iterable[str] = (),
        *,
        version: int | None = None,
        rows: int = 65536,
    ) -> Iterator[ScannedEdges]:
        """No step of a worker scans."""
        raise Internal(f"a worker was to scan the edges of {etype}")


@runtime_checkable
class PinnableGraph(Protocol):
    """A graph whose versions come and go."""

    def pin(
        self, version: int | None = None, *, owner: str | None = None
    ) -> AbstractContextManager[ScannableGraph]:
        """The graph at one version, which stays while the block runs."""


class VersionSummary(Protocol):
    """What a graph tells of one of its versions."""

    @property
    def digest(self) -> str:
        """Of its content."""

    def count(self, element: str, type_id: int) -> int:
        """How many nodes (NODE) or edges (EDGE) of a type there are."""


@runtime_checkable
class VersionedGraph(Protocol):
    """A graph that knows what its versions hold."""

    def manifest(self, version: int | None = None) -> VersionSummary:
        """What a version holds."""


def count_rows(
    graph: ScannableGraph, element: str, type_ids: Iterable[int], version: int
) -> int | None:
    """How many nodes or edges of these types a scan will give, where the graph knows."""
    if not isinstance(graph, VersionedGraph):
        return None
    summary = graph.manifest(version)
    return sum(summary.count(element, type_id) for type_id in type_ids)


@runtime_checkable
class DigestSource(Protocol):
    """A graph that is part of one that knows what its versions hold."""

    def digest(self, version: int) -> str:
        """Of the whole of a version."""


def version_digest(graph: ScannableGraph, version: int) -> str:
    """The digest of a version's content, where the graph knows; else nothing."""
    if isinstance(graph, VersionedGraph):
        return graph.manifest(version).digest
    return graph.digest(version) if isinstance(graph, DigestSource) else ""


@runtime_checkable
class NodeFeatureSource(Protocol):
    """A graph that can be asked for columns of given nodes: for what they are called, where that is
    a string.
    """

    def node_features(
        self, nodes: Ids, names: Iterable[str], ntype: str, *, version: int | None = None
    ) -> Mapping[str, ScanColumn]:
        """Columns of nodes of a type, in their order."""


@runtime_checkable
class SampledSource(Protocol):
    """A graph that is a sample of another."""

    @property
    def sample(self) -> Mapping[str, Any]:
        """How it is sampled, in words that JSON has."""


def sample_parameters(graph: ScannableGraph) -> Mapping[str, Any] | None:
    """How a graph is sampled; None where it is whole."""
    return graph.sample if isinstance(graph, SampledSource) else None


def pin_version(
    graph: ScannableGraph, version: int | None, owner: str
) -> AbstractContextManager[ScannableGraph]:
    """The graph at a version that does not go while it is read, however long that takes; as it is
    where none ever goes.
    """
    return (
        graph.pin(version, owner=owner) if isinstance(graph, PinnableGraph) else nullcontext(graph)
    )
