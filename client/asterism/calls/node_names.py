"""Calls between ids and strings, in a space with ``ids: string``."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.calls import validation
from asterism.calls.base import GraphCalls
from asterism.calls.string_ids import NodeTypes, as_string_array
from asterism.records.arrays import Ids
from asterism_proto.errors import InvalidRequest, NotFound


class StringIdCalls(GraphCalls):
    """Ids of nodes by name, and names by id."""

    def node_ids(
        self,
        names: ArrayLike,
        ntype: NodeTypes = None,
        *,
        missing: str = "fail",
        version: int | None = None,
    ) -> Ids:
        """The ids of nodes that are called by strings (``ids: string``).

        Every call that takes nodes takes their names too. For many calls about the same nodes take
        their ids once: whole numbers travel without a look at what they are called.

        Parameters
        ----------
        names : str[...]
            An array or list of any shape, or one string; ``""`` is no node.
        ntype : str or int[...], optional
            Of the nodes, or of each; None: of whatever type.
        missing : {"fail", "none"}
            Whether a name that no node has is refused, or -1.
        version : int, optional
            A published one; None: the current one.

        Returns
        -------
        int64[...]
            In the shape of ``names``.

        Raises
        ------
        NotFound
            With the first name that no node of the version has (``missing="fail"``).
        InvalidRequest
            Where ids of the space are no strings, or one is no name: longer than 256 bytes in
            UTF-8, or with a NUL character.

        Examples
        --------
        >>> graph.node_ids(["SFO", "JFK"], "airport")  # doctest: +SKIP
        array([5405137366318178033, 3107341164023113263])
        """
        if missing not in ("fail", "none"):
            raise InvalidRequest(f"missing {missing!r}: expected 'fail' or 'none'")
        strings = as_string_array(names)
        if strings is None:
            if np.size(np.asarray(names)):
                raise InvalidRequest(f"names: expected strings, not {np.asarray(names).dtype}")
            return np.zeros(np.shape(np.asarray(names)), np.int64)
        ids = self._ids_of_names("names", strings, ntype, version)
        unknown = np.flatnonzero((ids < 0) & (strings.reshape(-1) != ""))
        if missing == "fail" and unknown.size:
            position = int(unknown[0])
            description = f"node of type {ntype!r}" if isinstance(ntype, str) else "node"
            raise NotFound(
                f"names[{position}] = {strings.reshape(-1)[position]!r}: no {description} of "
                f"space {self.space!r} is called so ({len(unknown) - 1} more)"
            )
        return ids.reshape(strings.shape)

    def node_names(
        self, ids: ArrayLike, ntype: NodeTypes = None, *, version: int | None = None
    ) -> NDArray[np.str_]:
        """What nodes are called, in a space with ``ids: string``.

        Parameters
        ----------
        ids : int64[...]
            Of any shape, as records have them; -1 is no node.
        ntype : str or int[...], optional
            Of the nodes, or of each (ids of node types); None: of whatever type.
        version : int, optional
            That of the record which the ids are of; None: the current one.

        Returns
        -------
        str[...]
            In the shape of ``ids``; ``""`` for -1.

        Raises
        ------
        NotFound
            With the first id that is no node's in the version.
        InvalidRequest
            Where ids of the space are no strings.

        Examples
        --------
        >>> near = graph.sample_neighbors(["SFO"], "route", 3, seed=1)  # doctest: +SKIP
        >>> graph.node_names(near.nodes, "airport", version=near.version)  # doctest: +SKIP
        array([['LAX', 'JFK', 'SEA']], dtype='<U3')
        """
        if not self.schema.has_string_ids:
            raise InvalidRequest(
                f"ids of space {self.space!r} are whole numbers: nothing is called by a "
                "string; `ids: string` makes a space of those"
            )
        shape = np.shape(np.asarray(ids))
        flat = validation.ids("ids", np.asarray(ids).reshape(-1), minimum=-1)
        unique, first, inverse = np.unique(flat, return_index=True, return_inverse=True)
        kinds = self._kinds(ntype, flat)
        if not isinstance(kinds, list):  # a type for each: an id may be a node of several
            pairs, first, inverse = np.unique(
                np.stack([flat, kinds], axis=1), axis=0, return_index=True, return_inverse=True
            )
            unique, kinds = pairs[:, 0], pairs[:, 1]
        names = self._lookup_names(unique, kinds, version)
        unknown = np.flatnonzero((names == "") & (unique >= 0))
        if unknown.size:
            position = int(first[unknown].min())
            raise NotFound(
                f"ids[{position}] = {flat[position]}: no such node in space {self.space!r}; "
                "give the version that the ids are of"
            )
        return names[inverse.reshape(-1)].reshape(shape)
