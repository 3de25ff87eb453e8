"""Writes of given nodes and edges to a graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.calls import write_encoding
from asterism.calls.base import GraphCalls
from asterism.calls.loads import begin_load, find_nodes
from asterism.calls.string_id_hashing import ids_and_names as written_ids
from asterism.calls.write_encoding import NO_FEATURES, WriteRows
from asterism.records.samples import Features


class WriteCalls(GraphCalls):
    """Calls that insert, replace and delete nodes and edges, visible with the next build."""

    def upsert_nodes(
        self,
        ids: ArrayLike,
        ntype: str,
        weights: ArrayLike | None = None,
        features: Features | None = None,
    ) -> int:
        """Insert nodes, or replace existing ones.

        The write is durable on return, and visible with the next build.

        Parameters
        ----------
        ids : array_like of int64, shape (n,)
            Node ids, 0 or more; strings in a space with string ids.
        ntype : str
            Node type.
        weights : array_like of float32, shape (n,), optional
            Finite weights, 0 or more. None: 1.
        features : dict of str to array_like, optional
            Dense features as ``[n, *shape]``; ragged and bytes features as ``(indptr, values)``, or
            as a list of rows. A feature that is left out is zero or empty.

        Returns
        -------
        int
            Commit number.

        Raises
        ------
        InvalidRequest
            If a value cannot be written; the message names the row and the value.

        Examples
        --------
        >>> graph.upsert_nodes([17, 4], "item", features={"price": [1.5, 26.79]})  # doctest: +SKIP
        6
        """
        return self._write(
            "upsert_nodes",
            write_encoding.node_upserts(
                self._session, self.space, ntype, ids, weights, features or NO_FEATURES
            ),
        )

    def upsert_edges(
        self,
        src: ArrayLike,
        dst: ArrayLike,
        etype: str,
        weights: ArrayLike | None = None,
        features: Features | None = None,
    ) -> int:
        """Insert edges, or replace those between the same nodes.

        With ``edges: multi`` edges are added; with ``edges: unique`` an edge between the same nodes
        is replaced. The write is durable on return, and visible with the next build.

        Parameters
        ----------
        src, dst : array_like of int64, shape (n,)
            Ids of the end nodes; strings in a space with string ids.
        etype : str
            Edge type.
        weights : array_like of float32, shape (n,), optional
            Finite weights, 0 or more. None: 1.
        features : dict of str to array_like, optional
            Features, as in `upsert_nodes`.

        Returns
        -------
        int
            Commit number.

        Raises
        ------
        InvalidRequest
            If an end is not a node, unless the edge type says ``missing: create``; or if a value
            cannot be written.
        Unavailable
            If there was no reply; edges may have been written all the same.

        Examples
        --------
        >>> graph.upsert_edges([1, 2], [17, 4], "buys", weights=[1.0, 0.5])  # doctest: +SKIP
        7
        """
        return self._write(
            "upsert_edges",
            write_encoding.edge_upserts(
                self._session, self.space, etype, src, dst, weights, features or NO_FEATURES
            ),
        )

    def delete_nodes(self, ids: ArrayLike, ntype: str) -> int:
        """Delete nodes, and every edge that has one of them as an end.

        Parameters
        ----------
        ids : array_like of int64, shape (n,)
            Node ids.
        ntype : str
            Node type.

        Returns
        -------
        int
            Commit number.

        Raises
        ------
        InvalidRequest
            If a value is not an id.
        NotFound
            If there is no such node type.

        Examples
        --------
        >>> graph.delete_nodes([17, 4], "item")  # doctest: +SKIP
        9
        """
        return self._write(
            "delete_nodes", write_encoding.node_deletes(self._session, self.space, ntype, ids)
        )

    def delete_edges(
        self, src: ArrayLike, dst: ArrayLike, etype: str, edge_ids: ArrayLike | None = None
    ) -> int:
        """Delete edges by id, or all edges between pairs of nodes.

        Parameters
        ----------
        src, dst : array_like of int64, shape (n,)
            Ends of the edges.
        etype : str
            Edge type.
        edge_ids : array_like of int64, shape (n,), optional
            Edge ids. None, or -1 in a row: every edge between the two nodes.

        Returns
        -------
        int
            Commit number.

        Raises
        ------
        InvalidRequest
            If a value is not an id, or the arrays differ in length.
        NotFound
            If there is no such edge type.

        Examples
        --------
        >>> graph.delete_edges([1, 2], [17, 4], "buys")  # doctest: +SKIP
        8
        """
        return self._write(
            "delete_edges",
            write_encoding.edge_deletes(self._session, self.space, etype, src, dst, edge_ids),
        )

    def _write(self, source: str, rows: WriteRows) -> int:
        if rows.is_small:
            return write_encoding.write_small(self._session, self.space, rows)
        load = begin_load(self._session, self.space, source=source)
        try:
            load.write_rows(0, rows)
            return load.commit()
        except BaseException:
            load.abandon()
            raise

    def find_nodes(self, ids: ArrayLike, ntype: str) -> NDArray[np.bool_]:
        """Return which nodes of a type are committed, whether published or not.

        Parameters
        ----------
        ids : array_like of int64, shape (n,)
            Node ids.
        ntype : str
            Node type.

        Returns
        -------
        ndarray of bool, shape (n,)
            True where the node exists.

        Raises
        ------
        InvalidRequest
            If a value is not an id.
        NotFound
            If there is no such node type.

        Examples
        --------
        >>> graph.find_nodes([1, 999], "user")  # doctest: +SKIP
        array([ True, False])
        """
        type_id, _ = self._session.node_type(self.space, ntype)
        return find_nodes(
            self._session, self.space, type_id, written_ids("ids", ids, self.schema)[0]
        )
