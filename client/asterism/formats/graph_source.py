"""Port for graphs that are read in chunks, whatever the format of their files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from asterism.formats.chunks import EdgeChunk, ExistsCheck, NodeChunk
from asterism_model.schema import Schema


class GraphSource(Protocol):
    """Port of a graph in files. Every iteration yields the same chunks in the same order."""

    @property
    def schema(self) -> Schema:
        """Schema of a space that can hold this graph."""

    @property
    def options(self) -> Mapping[str, Any]:
        """Options, in addition to the files, on which the chunks depend.

        A load with other options is another load.
        """

    @property
    def files(self) -> tuple[Path, ...]:
        """File that describes the graph, followed by all files that it names."""

    @property
    def total_rows(self) -> int | None:
        """Total number of nodes and edges, or None if only reading reveals it."""

    @property
    def total_bytes(self) -> int:
        """Total input in bytes."""

    def node_chunks(self) -> Iterator[NodeChunk]:
        """Yield every node, type by type and file by file.

        Yields
        ------
        NodeChunk
        """

    def edge_chunks(self, exists: ExistsCheck | None = None) -> Iterator[EdgeChunk]:
        """Yield every edge, type by type and file by file.

        Parameters
        ----------
        exists : ExistsCheck, optional
            Lookup for the ends of edge types that reject edges to unknown nodes. It is called only
            after every node chunk was taken. Without it, such ends are not checked, except if the
            nodes are known to be 0 .. n - 1.

        Yields
        ------
        EdgeChunk
        """
