"""Nodes that are called by strings: from names to ids and back. Everything that goes over many
nodes is arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.calls import feature_columns, validation
from asterism.records.arrays import Ids
from asterism_model import string_ids as contract
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.v1 import graphd_pb2 as wire

if TYPE_CHECKING:
    from asterism.client_state import Session
    from asterism_model.schema.schema import Schema

NodeTypes = str | ArrayLike | None
"""One node type's name, or type ids int[m] for a mixed batch, or None where the edge types leave no
choice.
"""


def as_string_array(values: ArrayLike) -> NDArray[Any] | None:
    """``values`` as an array of strings, of any shape; None where they are not strings."""
    array = np.asarray(values)
    if array.dtype.kind == "U" and not isinstance(values, np.ndarray):
        return np.asarray(
            values, dtype=object
        )  # as they were: NumPy's own strings end before a NUL, and take numbers for text
    if array.dtype.kind in "UT":
        return array.astype(object)
    return (
        array
        if array.dtype.kind == "O"
        and any(isinstance(value, str) for value in array.reshape(-1)[:1])
        else None
    )


def hash_names(
    argument: str, strings: NDArray[Any], schema: Schema
) -> tuple[Ids, contract.StringColumn]:
    """The id of each of some strings, whoever is called so, and the strings as a column of
    bytes.
    """
    if not schema.has_string_ids:
        raise InvalidRequest(
            f"{argument}: ids are whole numbers here, not strings such as "
            f"{strings.reshape(-1)[0]!r}; `ids: string` makes a space of those"
        )
    encoded = contract.encode_strings(argument, strings.reshape(-1).tolist())
    return contract.hash_strings(*encoded, schema.salt), encoded


def ids_and_names(
    argument: str, values: ArrayLike, schema: Schema
) -> tuple[Ids, contract.StringColumn | None]:
    """Ids as a write has them, and the names where they were given by these."""
    strings = as_string_array(values)
    if strings is None:
        return validation.ids(argument, values), None
    if strings.ndim != 1:
        raise InvalidRequest(
            f"{argument}: expected one dimension, got an array of shape {list(strings.shape)}"
        )
    return hash_names(argument, strings, schema)


class StringIdCalls:
    """The part of a graph that knows what its nodes are called."""

    _session: Session
    space: str

    if TYPE_CHECKING:  # what `asterism.calls.sampling.Sampler` has

        def _version(self, version: int | None) -> int: ...

        @property
        def schema(self) -> Schema: ...  # noqa: D102 - as there

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

    def _lookup_names(
        self, ids: Ids, kinds: list[int] | Ids, version: int | None
    ) -> NDArray[np.str_]:
        """The name of each node; "" where there is none."""
        names = np.zeros(len(ids), "<U1")
        for kind in kinds if isinstance(kinds, list) else np.unique(kinds[kinds >= 0]).tolist():
            rows = np.flatnonzero(
                ids >= 0 if isinstance(kinds, list) else (ids >= 0) & (kinds == kind)
            )
            decoded = contract.decode_strings(self._name_column(ids[rows], kind, version))
            has_name = decoded != ""
            conflicts = np.flatnonzero((names[rows] != "") & has_name & (names[rows] != decoded))
            if conflicts.size:
                row = int(conflicts[0])
                raise InvalidRequest(
                    f"ids: {ids[rows[row]]} is {names[rows[row]]!r} and, of another type, "
                    f"{decoded[row]!r}; say ntype"
                )
            if decoded.dtype.itemsize > names.dtype.itemsize:
                names = names.astype(decoded.dtype)
            names[rows[has_name]] = decoded[has_name]
        return names

    def _name_column(self, ids: Ids, kind: int, version: int | None) -> contract.StringColumn:
        """The column of names of some nodes of one type; empty where there is no such node."""
        head = wire.NodeFeaturesRequest(
            space=self.space,
            version=self._version(version),
            type_id=kind,
            names=[contract.ID_COLUMN],
        )
        owner = self.schema.node_types[kind]
        request = feature_columns.ColumnRequest(
            method="node_features",
            head=head,
            section="nodes",
            owner=owner,
            names=[contract.ID_COLUMN],
        )
        column = feature_columns.read_columns(self._session, request, ids)[contract.ID_COLUMN]
        assert isinstance(column, tuple)
        return column

    def _kinds(self, ntype: NodeTypes, rows: NDArray[Any]) -> list[int] | Ids:
        """Ids of the types that nodes may be of, or of each node's."""
        if isinstance(ntype, str):
            return [self.schema.node_type_id(ntype)]
        if ntype is None:
            return list(range(len(self.schema.node_types)))
        kinds = validation.ids("ntype", np.asarray(ntype).reshape(-1), minimum=-1)
        validation.require_length("ntype", kinds, len(rows))
        return kinds

    def _ids_of_names(
        self,
        argument: str,
        strings: NDArray[Any],
        ntype: NodeTypes | list[int],
        version: int | None,
    ) -> Ids:
        """int64[n]: the ids of names, flat; -1 where no node is called so."""
        flat = strings.reshape(-1)
        out = np.full(len(flat), -1, np.int64)
        non_empty = np.flatnonzero(flat != "")
        if not non_empty.size:
            return out
        ids, encoded = hash_names(argument, flat[non_empty], self.schema)
        kinds = ntype if isinstance(ntype, list) else self._kinds(ntype, flat)
        exists = np.zeros(len(non_empty), np.bool_)
        for kind in kinds if isinstance(kinds, list) else np.unique(kinds[kinds >= 0]).tolist():
            matches = contract.equal_mask(self._name_column(ids, kind, version), encoded)
            exists |= matches if isinstance(kinds, list) else matches & (kinds[non_empty] == kind)
        out[non_empty[exists]] = ids[exists]
        return out

    def _ids(
        self, argument: str, nodes: ArrayLike, ntype: NodeTypes | list[int], version: int | None
    ) -> Ids:
        """Nodes as int64[n], -1 among them; names as ids, where no node is called so -1."""
        strings = as_string_array(nodes)
        if strings is None:
            return validation.ids(argument, nodes, minimum=-1)
        if strings.ndim != 1:
            raise InvalidRequest(
                f"{argument}: expected one dimension, got an array of shape {list(strings.shape)}"
            )
        return self._ids_of_names(argument, strings, ntype, version)

    def _require_ids(
        self, argument: str, nodes: ArrayLike, ntype: NodeTypes, version: int | None
    ) -> Ids:
        """Nodes as int64[n]; a name that no node has is refused."""
        strings = as_string_array(nodes)
        return (
            validation.ids(argument, nodes)
            if strings is None
            else self.node_ids(strings, ntype, version=version)
        )

    def _as_ids(
        self, argument: str, nodes: ArrayLike, ntype: NodeTypes | list[int], version: int | None
    ) -> ArrayLike:
        """Nodes of any shape: names as ids, all else as it is."""
        strings = as_string_array(nodes)
        return (
            nodes
            if strings is None
            else self._ids_of_names(argument, strings, ntype, version).reshape(strings.shape)
        )

    def _resolve_pairs(
        self,
        pairs: ArrayLike,
        types: NodeTypes | list[int],
        edge_types: Sequence[int],
        version: int | None,
    ) -> ArrayLike:
        """Sources, or pairs, by id: where edges say of which types sources are, their names are of
        those.
        """
        source_types = (
            sorted(
                {
                    self.schema.node_type_id(self.schema.edge_types[edge].src_type)
                    for edge in edge_types
                }
            )
            or types
        )
        if np.ndim(pairs) != 2 or not self.schema.has_string_ids:
            return self._as_ids("pairs", pairs, source_types, version)
        ends = [
            self._as_ids("pairs", np.asarray(pairs)[:, column], kinds, version)
            for column, kinds in enumerate((source_types, types))
        ]
        return np.stack([np.asarray(end) for end in ends], axis=1)
