"""Translation between string ids and integer ids, in a space with ``ids: string``."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.calls import validation
from asterism.calls.base import GraphCalls
from asterism.calls.string_id_hashing import NodeTypes, as_string_array
from asterism.records.arrays import Ids
from asterism_model.string_ids import shortened
from asterism_proto.errors import InvalidRequest, NotFound


class StringIdCalls(GraphCalls):
    """Calls that translate between node names and ids."""

    def node_ids(
        self,
        names: ArrayLike,
        ntype: NodeTypes = None,
        *,
        missing: str = "fail",
        version: int | None = None,
    ) -> Ids:
        """Return the ids of nodes by name, in a space with ``ids: string``.

        Every call that takes nodes also takes their names. For many calls about the same nodes, get
        their ids once: integer ids skip the name lookup.

        Parameters
        ----------
        names : array_like of str, any shape
            Names; a single string is allowed. ``""`` means "no node".
        ntype : str, or array_like of int, shape of ``names``, optional
            Node type of all nodes by name, or of each by type id. None: any type.
        missing : {"fail", "none"}, default "fail"
            Raise for a name that no node has, or return -1.
        version : int, optional
            Published version to read. None: the version of this graph, or the current one.

        Returns
        -------
        ndarray of int64, shape of ``names``
            Node ids.

        Raises
        ------
        NotFound
            If no node of the version has a name (with ``missing="fail"``); the message has the
            first such name.
        InvalidRequest
            If the space has no string ids, or a name is longer than 4096 bytes in UTF-8 or
            contains NUL.

        Examples
        --------
        >>> graph.node_ids(["SFO", "JFK"], "airport")  # doctest: +SKIP
        array([5405137366318178033, 3107341164023113263])
        """
        if missing not in ("fail", "none"):
            raise InvalidRequest(f"missing={missing!r}: expected 'fail' or 'none'")
        strings = as_string_array("names", names)
        if strings is None:
            if np.size(np.asarray(names)):
                raise InvalidRequest(f"names of {np.asarray(names).dtype}: expected strings")
            return np.zeros(np.shape(np.asarray(names)), np.int64)
        ids = self._ids_of_names("names", strings, ntype, version)
        unknown = np.flatnonzero((ids < 0) & (strings.reshape(-1) != ""))
        if missing == "fail" and unknown.size:
            position = int(unknown[0])
            description = f"node of type {ntype!r}" if isinstance(ntype, str) else "node"
            raise NotFound(
                f"names[{position}]={shortened(strings.reshape(-1)[position])}: expected a "
                f"{description} of space {self.space!r} ({len(unknown) - 1} more); pass "
                "missing='none' to get -1 for unknown names"
            )
        return ids.reshape(strings.shape)

    def node_names(
        self, ids: ArrayLike, ntype: NodeTypes = None, *, version: int | None = None
    ) -> NDArray[np.str_]:
        """Return the names of nodes by id, in a space with ``ids: string``.

        Parameters
        ----------
        ids : array_like of int64, any shape
            Node ids, as records have them. -1 means "no node".
        ntype : str, or array_like of int, shape of ``ids``, optional
            Node type of all nodes by name, or of each by type id. None: any type.
        version : int, optional
            Version of the record that the ids come from. None: the version of this graph, or the
            current one.

        Returns
        -------
        ndarray of str, shape of ``ids``
            Names; ``""`` for -1. The dtype is object if one has more than 256 characters.

        Raises
        ------
        NotFound
            If an id is not a node of the version; the message has the first such id.
        InvalidRequest
            If the space has no string ids, or an id has different names in several types.

        Examples
        --------
        >>> sample = graph.sample_neighbors(["SFO"], "route", 3, seed=1)  # doctest: +SKIP
        >>> graph.node_names(sample.nodes, "airport", version=sample.version)  # doctest: +SKIP
        array([['LAX', 'JFK', 'SEA']], dtype='<U3')
        """
        if not self.schema.has_string_ids:
            raise InvalidRequest(
                f"space={self.space!r}: expected a space with string ids, this one has integer "
                "ids; create the space with ids: string"
            )
        array = validation.as_array("ids", ids, "integers")
        shape, flat = array.shape, validation.ids("ids", array.reshape(-1), minimum=-1)
        unique, first, inverse = np.unique(flat, return_index=True, return_inverse=True)
        kinds = self._kinds(ntype, flat)
        # With a type per node, one id may occur with several types.
        if not isinstance(kinds, list):
            pairs, first, inverse = np.unique(
                np.stack([flat, kinds], axis=1), axis=0, return_index=True, return_inverse=True
            )
            unique, kinds = pairs[:, 0], pairs[:, 1]
        names = self._lookup_names(unique, kinds, version)
        unknown = np.flatnonzero((names == "") & (unique >= 0))
        if unknown.size:
            position = int(first[unknown].min())
            raise NotFound(
                f"ids[{position}]={flat[position]}: expected a node of space {self.space!r}; "
                "pass the version that the ids come from"
            )
        return names[inverse.reshape(-1)].reshape(shape)
