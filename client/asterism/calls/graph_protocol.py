"""Protocol of the graph calls that groups of calls use from each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from numpy.typing import ArrayLike

from asterism.calls.excluded_edges import EdgeExclusion
from asterism.calls.metapath_notation import Metapath
from asterism.calls.string_id_hashing import NodeTypes
from asterism.client_state import Session
from asterism.records.samples import (
    EdgeRows,
    Ids,
    NodeBatch,
    NodeRows,
    NodeSample,
    RaggedNeighbors,
    Subgraph,
    Types,
    WalkSample,
)
from asterism_model.schema import Schema

_Names = str | Iterable[str] | None
"""Copy of `asterism.calls.base.Names`; that module imports this one.
"""


class GraphProtocol(Protocol):
    """Calls of `asterism.graph.Graph` that its groups of calls and clusters need.

    It lists only the parameters that they use; `Graph` has more. `Graph` documents the calls.
    """

    _session: Session
    space: str

    @property
    def schema(self) -> Schema:
        """Schema of the graph space."""

    def _version(self, version: int | None) -> int:
        """Return the version to request; 0 is the current one."""

    def _require_ids(
        self, argument: str, nodes: ArrayLike, ntype: NodeTypes, version: int | None
    ) -> Ids:
        """Return node ids, translating names.

        Parameters
        ----------
        argument : str
            Name of the caller's argument, for messages.
        nodes : array_like of int64 or str, shape (n,)
            Ids or names.
        ntype : str, or array_like of int, shape (n,), optional
            Node types.
        version : int, optional
            Version to read. None: the current one.

        Returns
        -------
        ndarray of int64, shape (n,)
            Node ids.

        Raises
        ------
        NotFound
            If no node has one of the names.
        """

    def _nodes_at(self, ntype: str, positions: Ids, version: int | None) -> tuple[Ids, int, int]:
        """Return nodes by scan position.

        Parameters
        ----------
        ntype : str
            Node type.
        positions : ndarray of int64, shape (m,)
            Scan positions.
        version : int, optional
            Version to read. None: the current one.

        Returns
        -------
        ids : ndarray of int64, shape (m,)
            Node ids.
        count : int
            Number of nodes of the type.
        version : int
            Version that was read.
        """

    def _edges_at(
        self, etype: str, positions: Ids, weight: str, where: str, version: int | None
    ) -> tuple[EdgeRows, int]:
        """Return edges by scan position.

        Parameters
        ----------
        etype : str
            Edge type.
        positions : ndarray of int64, shape (m,)
            Scan positions among the edges that match ``where``.
        weight : str
            Name of the weights to return; "" for the edges' own.
        where : str
            Filter on the edges; "" for none.
        version : int, optional
            Version to read. None: the current one.

        Returns
        -------
        rows : EdgeRows
            The edges.
        count : int
            Number of edges that match.
        """

    def pin(self, version: int | None = None) -> AbstractContextManager[GraphProtocol]:
        """Return a context manager that holds a version."""

    def node_types(self, ids: ArrayLike, *, version: int | None = None) -> Types:
        """Return the type of each node."""

    def sample_nodes(
        self,
        n: int,
        ntype: _Names = None,
        *,
        weighted: bool = True,
        weight: str = "",
        seed: int | None = None,
        version: int | None = None,
    ) -> NodeSample:
        """Sample nodes by weight or uniformly."""

    def sample_negatives(
        self,
        pairs: ArrayLike,
        n: int,
        ntype: _Names = None,
        *,
        weighted: bool = True,
        weight: str = "",
        exclude_edges: _Names = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> NodeRows:
        """Sample negative nodes for each row."""

    def random_walk(
        self,
        nodes: ArrayLike,
        metapath: Sequence[str] | None = None,
        length: int | None = None,
        *,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        walks: int | None = None,
        first_step: str = "independent",
        seed: int | None = None,
        version: int | None = None,
    ) -> WalkSample:
        """Walk from nodes; return one walk per row."""

    def neighbors(
        self,
        nodes: ArrayLike,
        etypes: _Names,
        *,
        ntype: NodeTypes = None,
        direction: str = "out",
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        edge_ids: bool = True,
        version: int | None = None,
    ) -> RaggedNeighbors:
        """Return all neighbors of nodes."""

    def induced_subgraph(
        self,
        nodes: ArrayLike,
        etypes: _Names = None,
        *,
        ntype: NodeTypes = None,
        weight: str = "",
        where: str = "",
        direction: str = "out",
        weights: bool = False,
        edge_ids: bool = True,
        node_features: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        version: int | None = None,
    ) -> Subgraph:
        """Return the subgraph of nodes, with all edges among them."""

    def node_ids(
        self, names: ArrayLike, ntype: NodeTypes = None, *, version: int | None = None
    ) -> Ids:
        """Return the ids of nodes by name."""

    def scan_nodes(
        self, ntype: str, names: str | Iterable[str] = (), *, version: int | None = None
    ) -> Iterator[NodeBatch]:
        """Yield all nodes of a type in batches."""

    def nodes_at(self, ntype: str, places: ArrayLike, *, version: int | None = None) -> Ids:
        """Return nodes by their position in a scan."""

    def edges_at(
        self,
        etype: str,
        places: ArrayLike,
        *,
        weight: str = "",
        where: str = "",
        version: int | None = None,
    ) -> EdgeRows:
        """Return edges by their position in a scan."""

    def metapaths(self, text: str) -> tuple[Metapath, ...]:
        """Parse metapaths in PGLBox notation."""
