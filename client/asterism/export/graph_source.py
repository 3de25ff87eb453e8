"""Ports through which exports read a graph (`asterism.Graph`): schema and scans."""

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
"""Rows of a feature: a dense array, or ``(indptr, values)``."""
ProgressCallback = Callable[[str, int, int | None], None]
"""Callback that receives the phase, the rows done, and the total number of rows if known."""


class ScannedNodes(Protocol):
    """Batch of nodes of one type."""

    @property
    def ids(self) -> Ids:
        """Stored node ids; ndarray of int64, shape (n,)."""

    @property
    def weights(self) -> NDArray[np.float32]:
        """Node weights; ndarray of float32, shape (n,)."""

    @property
    def features(self) -> Mapping[str, ScanColumn]:
        """Requested features by name."""

    @property
    def version(self) -> int:
        """Version of the graph that was read."""


class ScannedEdges(Protocol):
    """Batch of edges of one type."""

    @property
    def src(self) -> Ids:
        """Stored source ids; ndarray of int64, shape (n,)."""

    @property
    def dst(self) -> Ids:
        """Stored destination ids; ndarray of int64, shape (n,)."""

    @property
    def edge_ids(self) -> Ids:
        """Stored edge ids; ndarray of int64, shape (n,)."""

    @property
    def weights(self) -> NDArray[np.float32]:
        """Edge weights; ndarray of float32, shape (n,)."""

    @property
    def features(self) -> Mapping[str, ScanColumn]:
        """Requested features by name."""


class ScannableGraph(Protocol):
    """Graph that can be scanned completely, in the same order each time for one version."""

    @property
    def space(self) -> str:
        """Name of the space."""

    @property
    def schema(self) -> Schema:
        """Schema of the space."""

    def scan_nodes(
        self,
        ntype: str,
        names: Iterable[str] = (),
        *,
        version: int | None = None,
        rows: int = 65536,
    ) -> Iterator[ScannedNodes]:
        """Yield every node of a type once.

        Parameters
        ----------
        ntype : str
            Node type.
        names : iterable of str
            Features to read.
        version : int, optional
            Version to read. None reads the current one.
        rows : int, default 65536
            Largest number of nodes per batch.

        Yields
        ------
        ScannedNodes
        """

    def scan_edges(
        self,
        etype: str,
        names: Iterable[str] = (),
        *,
        version: int | None = None,
        rows: int = 65536,
    ) -> Iterator[ScannedEdges]:
        """Yield every edge of a type once.

        Parameters
        ----------
        etype : str
            Edge type.
        names : iterable of str
            Features to read.
        version : int, optional
            Version to read. None reads the current one.
        rows : int, default 65536
            Largest number of edges per batch.

        Yields
        ------
        ScannedEdges
        """


class UnreadableSource:
    """Placeholder for the graph in workers, where no step reads it."""

    space = ""

    @property
    def schema(self) -> Schema:
        """Raise Internal: steps in a worker use the plan instead."""
        raise Internal("a worker was to ask for the schema")

    def scan_nodes(
        self,
        ntype: str,
        names: Iterable[str] = (),
        *,
        version: int | None = None,
        rows: int = 65536,
    ) -> Iterator[ScannedNodes]:
        """Raise Internal: steps in a worker do not scan."""
        raise Internal(f"a worker was to scan the nodes of {ntype}")

    def scan_edges(
        self,
        etype: str,
        names: Iterable[str] = (),
        *,
        version: int | None = None,
        rows: int = 65536,
    ) -> Iterator[ScannedEdges]:
        """Raise Internal: steps in a worker do not scan."""
        raise Internal(f"a worker was to scan the edges of {etype}")


@runtime_checkable
class PinnableGraph(Protocol):
    """Graph with versions that can be pinned."""

    def pin(
        self, version: int | None = None, *, owner: str | None = None
    ) -> AbstractContextManager[ScannableGraph]:
        """Provide the graph at one version, which is retained until the context ends.

        Parameters
        ----------
        version : int, optional
            Version to pin. None pins the current one.
        owner : str, optional
            Label of the pin.
        """


class VersionSummary(Protocol):
    """Summary of one version of a graph."""

    @property
    def digest(self) -> str:
        """Digest of the version's content."""

    def count(self, element: str, type_id: int) -> int:
        """Return the number of nodes (NODE) or edges (EDGE) of a type."""


@runtime_checkable
class VersionedGraph(Protocol):
    """Graph that provides summaries of its versions."""

    def manifest(self, version: int | None = None) -> VersionSummary:
        """Return the summary of a version, by default the current one."""


def count_rows(
    graph: ScannableGraph, element: str, type_ids: Iterable[int], version: int
) -> int | None:
    """Return the number of nodes or edges that scans of these types will yield, if known."""
    if not isinstance(graph, VersionedGraph):
        return None
    summary = graph.manifest(version)
    return sum(summary.count(element, type_id) for type_id in type_ids)


@runtime_checkable
class DigestSource(Protocol):
    """Graph derived from a versioned graph, which knows the digest of its source."""

    def digest(self, version: int) -> str:
        """Return the digest of the full version."""


def version_digest(graph: ScannableGraph, version: int) -> str:
    """Return the digest of a version's content, or an empty string if unknown."""
    if isinstance(graph, VersionedGraph):
        return graph.manifest(version).digest
    return graph.digest(version) if isinstance(graph, DigestSource) else ""


@runtime_checkable
class NodeFeatureSource(Protocol):
    """Graph that returns features of given nodes.

    Exports use it to read string ids.
    """

    def node_features(
        self, nodes: Ids, names: Iterable[str], ntype: str, *, version: int | None = None
    ) -> Mapping[str, ScanColumn]:
        """Return features of nodes of a type, in the order of ``nodes``.

        Parameters
        ----------
        nodes : ndarray of int64, shape (n,)
            Stored node ids.
        names : iterable of str
            Features to read.
        ntype : str
            Node type.
        version : int, optional
            Version to read. None reads the current one.

        Returns
        -------
        dict of str to ScanColumn
        """


@runtime_checkable
class SampledSource(Protocol):
    """Graph that is a sample of another graph."""

    @property
    def sample(self) -> Mapping[str, Any]:
        """Parameters of the sample, in JSON types."""


def sample_parameters(graph: ScannableGraph) -> Mapping[str, Any] | None:
    """Return the parameters of a sampled graph, or None for a complete one."""
    return graph.sample if isinstance(graph, SampledSource) else None


def pin_version(
    graph: ScannableGraph, version: int | None, owner: str
) -> AbstractContextManager[ScannableGraph]:
    """Provide the graph at a version that is retained while it is read.

    A graph that does not support pins is returned unchanged.
    """
    return (
        graph.pin(version, owner=owner) if isinstance(graph, PinnableGraph) else nullcontext(graph)
    )
