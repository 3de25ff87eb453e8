"""Operators for the numbers of types, and the types of nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from asterism.euler.base import EulerCalls, flat_ids
from asterism.euler.type_ids import TypeSelector

UNKNOWN = np.int32(np.iinfo(np.int32).min)
"""Type of a node that does not exist: the smallest int32."""


class EulerTypeCalls(EulerCalls):
    """Numbers of node and edge types, and the types of nodes."""

    def get_node_type_id(self, types: TypeSelector) -> Any:
        """Return the numbers of node types.

        Parameters
        ----------
        types : str, int, or list of these
            Names or numbers; numbers are validated. If the first is -1: all types.

        Returns
        -------
        ndarray of int32, shape (t,)
            Number of each type.

        Raises
        ------
        NotFound
            If a type does not exist.
        """
        return self._framework.dense(np.array(self._types.node_type_ids(types), np.int32))

    def get_edge_type_id(self, types: TypeSelector) -> Any:
        """Return the numbers of edge types.

        Parameters
        ----------
        types : str, int, or list of these
            Names or numbers; numbers are validated. If the first is -1: all types.

        Returns
        -------
        ndarray of int32, shape (t,)
            Number of each type.

        Raises
        ------
        NotFound
            If a type does not exist.
        """
        return self._framework.dense(np.array(self._types.edge_type_ids(types), np.int32))

    def get_node_type(self, nodes: ArrayLike) -> Any:
        """Return the number of the type of each node.

        Parameters
        ----------
        nodes : array_like of int64
            Node ids, of any shape.

        Returns
        -------
        ndarray of int32
            Numbers in the shape of ``nodes``; -2^31 for a node that does not exist.
        """
        types = self.graph.node_types(flat_ids(nodes), self._types.single_node_type)
        return self._framework.dense(
            np.where(types < 0, UNKNOWN, types).reshape(np.asarray(nodes).shape)
        )
