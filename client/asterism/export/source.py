"""What an export asks of a graph: its schema, and scans of one version. `asterism.Graph` is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from asterism_proto.schema import Schema

Array = NDArray[Any]
Ids = NDArray[np.int64]
Column = Array | tuple[Ids, Array]
"""A feature's rows: dense, or ``(indptr, values)``."""
Progress = Callable[[str, int, int | None], None]
"""Called with the phase, the rows that are done, and how many there are, if known."""


class NodeRows(Protocol):
    """A run of nodes of one type."""

    @property
    def ids(self) -> Ids:
        """int64[n]."""

    @property
    def weights(self) -> NDArray[np.float32]:
        """float32[n]."""

    @property
    def features(self) -> Mapping[str, Column]:
        """The columns that were asked for."""

    @property
    def version(self) -> int:
        """Of the graph that was read."""


class EdgeRows(Protocol):
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
    def features(self) -> Mapping[str, Column]:
        """The columns that were asked for."""


class Scannable(Protocol):
    """A graph that can be read from end to end, in the same order each time for one version."""

    @property
    def space(self) -> str:
        """Its name."""

    @property
    def schema(self) -> Schema:
        """Its types and their features."""

    def scan_nodes(self, ntype: str, names: Iterable[str] = (), *, version: int | None = None, rows: int = 65536) -> Iterator[NodeRows]:
        """Every node of a type once."""

    def scan_edges(self, etype: str, names: Iterable[str] = (), *, version: int | None = None, rows: int = 65536) -> Iterator[EdgeRows]:
        """Every edge of a type once."""


@runtime_checkable
class Pinnable(Protocol):
    """A graph whose versions come and go."""

    def pin(self, version: int | None = None, *, owner: str | None = None) -> AbstractContextManager[Scannable]:
        """The graph at one version, which stays while the block runs."""


def held(graph: Scannable, version: int | None, owner: str) -> AbstractContextManager[Scannable]:
    """The graph at a version that does not go while it is read, however long that takes; as it is where none ever goes."""
    return graph.pin(version, owner=owner) if isinstance(graph, Pinnable) else nullcontext(graph)
