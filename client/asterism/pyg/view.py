"""View of a graph in PyG's terms: one version, triples, and types named or unnamed."""

from __future__ import annotations

import numpy as np

from asterism.graph import Graph
from asterism.records.samples import Ids
from asterism.transport.read_retries import DEFAULT_PATIENCE_S, check_patience
from asterism_proto.errors import InvalidRequest

Triple = tuple[str, str, str]
"""Edge type in PyG's form: source type, relation, destination type."""


class GraphView:
    """Properties of a graph that its stores and samplers share.

    Parameters
    ----------
    graph : Graph
        Graph of one version, from `Graph.pin` or `Graph.at`.
    hetero : bool, optional
        True if types are named. None: True if there are several node types or edge types.
    patience_s : float
        Seconds for which a failed read is retried while the service is unavailable. Choose a value
        that covers a restart of the service.

    Raises
    ------
    InvalidRequest
        If the graph is not of one version, or has several types and ``hetero`` is False.
    """

    def __init__(
        self, graph: Graph, hetero: bool | None = None, patience_s: float = DEFAULT_PATIENCE_S
    ) -> None:
        if graph.version is None:
            raise InvalidRequest(
                f"graph of space {graph.space!r} without a version: expected a graph of one "
                "version, so that the nodes and features of a batch belong together; use "
                "graph.pin() or graph.at(...)"
            )
        schema = graph.schema
        several = len(schema.node_types) > 1 or len(schema.edge_types) > 1
        if several and hetero is False:
            raise InvalidRequest(
                f"hetero=False: expected True, because space {graph.space!r} has "
                f"{len(schema.node_types)} node types and {len(schema.edge_types)} edge types"
            )
        self.graph = graph
        self.patience_s = check_patience(patience_s)
        self.version: int = graph.version
        self.hetero = several if hetero is None else hetero
        self.node_types = tuple(node_type.name for node_type in schema.node_types)
        self.edge_types: dict[Triple, str] = {
            (t.src_type, t.relation, t.dst_type): t.name for t in schema.edge_types
        }
        self._sizes: dict[str, tuple[int, bool]] = {}

    def node_type(self, group: str | None) -> str:
        """Return the node type that PyG calls ``group``; None is the type if types are unnamed."""
        if group is None and not self.hetero:
            return self.node_types[0]
        if group not in self.node_types:
            raise InvalidRequest(
                f"node type {group!r}: expected one of {', '.join(self.node_types)}"
            )
        return str(group)

    def pyg_type(self, node_type: str) -> str | None:
        """Return PyG's name of a node type."""
        return node_type if self.hetero else None

    def count(self, node_type: str) -> int:
        """Return the number of nodes of a type."""
        return self._size(node_type)[0]

    def has_dense_ids(self, node_type: str) -> bool:
        """Return whether the ids of a type are the integers from 0 on.

        PyG assumes so unless it receives explicit ids.
        """
        return self._size(node_type)[1]

    def require_dense_ids(self, node_type: str, description: str) -> int:
        """Return the number of nodes of a type with ids from 0 on.

        Raises
        ------
        InvalidRequest
            If ids are not the integers from 0 on: PyG would request nodes that do not exist.
        """
        if not self.has_dense_ids(node_type):
            raise InvalidRequest(
                f"{description}: expected ids of {node_type!r} to be the integers from 0 to "
                f"{self.count(node_type) - 1}; pass the ids, as asterism.pyg.nodes returns them"
            )
        return self.count(node_type)

    def _size(self, node_type: str) -> tuple[int, bool]:
        size = self._sizes.get(node_type)
        if size is None:
            shares = self.graph.client.manifest(self.graph.space, self.version).totals
            type_id = self.graph.schema.node_type_id(node_type)
            counts = [
                share.count
                for share in sorted(shares, key=lambda s: s.part)
                if (share.element, share.type_id) == ("NODE", type_id) and share.count
            ]
            # A scan orders nodes by partition, then by id: the largest id ends some partition.
            last: Ids = np.cumsum(counts, dtype=np.int64) - 1
            largest = int(self.graph.nodes_at(node_type, last).max()) if counts else -1
            size = self._sizes[node_type] = (sum(counts), largest + 1 == sum(counts))
        return size
