"""Loading of an object in memory: conversion, checks, writes and commit."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.calls.loads import Load
from asterism.calls.schema_compatibility import check_schema_compatible
from asterism.catalog_client import CatalogClient, build_space
from asterism.objects.detection import read_tables
from asterism.objects.graph_tables import (
    ArrayColumn,
    EdgeTable,
    GraphTables,
    NodeTable,
    float_weights,
    row_spans,
)
from asterism.objects.read_options import ReadOptions
from asterism.objects.string_ids import with_string_ids
from asterism.objects.type_renaming import TypeKey, rename_types
from asterism.records.samples import FeatureValue
from asterism.time_units import DEFAULT_UNIT, check_unit
from asterism_model.schema import Schema
from asterism_proto.errors import AsterismError, InvalidRequest, NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedGraph:
    """Summary of a loaded object."""

    nodes: int
    edges: int
    """Number of edges written.

    Each edge of an undirected graph counts twice, once per direction, except self-loops.
    """
    names: Mapping[str, NDArray[Any]]
    """Original labels of numbered nodes by node type: ndarray of object, shape (n,).

    Entry i is the label of node i. Types with integer labels are not included.
    """
    left_out: tuple[str, ...]
    """Names of data that was not loaded, because it belongs to no single node or edge."""
    load_id: int
    commit: int
    """Commit number; builds submitted from now on include it."""
    version: int
    """Version that was built and published; 0: no build was requested."""
    seconds: float


def load_graph(
    client: CatalogClient,
    space: str,
    graph: Any,
    *,
    nodes: Any = None,
    ends: tuple[str, str] = ("src", "dst"),
    weights: str | Mapping[str, str] | None = None,
    rename: Mapping[str, str] | None = None,
    types: Mapping[TypeKey, str] | None = None,
    only: Iterable[str] | None = None,
    fill: Mapping[str, Any] | None = None,
    time_unit: str = DEFAULT_UNIT,
    node_type: str = "node",
    relation: str = "edge",
    parts: int = 8,
    direction: str = "both",
    ids: str = "per_type",
    salt: int = 0,
    build: bool = False,
) -> LoadedGraph:
    """Load a graph of another library into a space, and commit it.

    ``docs/loading.md`` describes the mapping. The whole graph is read and checked first, then sent
    in pieces of at most 16 MiB. A load that fails leaves nothing in the space. A load of a killed
    process is abandoned after a week: load again.

    Parameters
    ----------
    client : Client
        Client of the service.
    space : str
        Name of the space; it is created if it does not exist.
    graph : object
        PyG ``Data`` or ``HeteroData``, ``DGLGraph``, NetworkX or igraph graph, SciPy sparse matrix,
        frame of edges (pandas, Polars, Arrow), integer array of edges of shape (2, E), or a dict of
        edge types, such as ``("user", "buys", "item")``, to matrices, frames or arrays. Edges of
        undirected graphs are written in both directions.
    nodes : DataFrame, int, or dict of str to DataFrame or int, optional
        Frames of nodes, for frames of edges. A column ``id``, or else the index of pandas or the
        row, holds the labels. The nodes of a type without a frame are those that edges refer to.
        For arrays of edges the number of nodes; the default is the largest id plus 1.
    ends : (str, str), default ("src", "dst")
        Columns of a frame of edges that hold source and destination.
    weights : str or dict of str to str, optional
        Attribute that holds the weight: of every edge type, or by type (node types too). It is also
        loaded as a feature. None: the attribute ``weight`` (PyG: ``edge_weight``), which then is
        not a feature. Missing weights are 1.
    rename : dict of str to str, optional
        New names of attributes.
    types : mapping, optional
        New names of types: ``{"Author": "author", ("Author", "writes", "Paper"): "wrote"}`` names a
        node type, and the relation of an edge type. All keys have the names of the object.
    only : iterable of str, optional
        Attributes to load as features. None: all.
    fill : dict of str to value, optional
        Replacement for missing values, by attribute. Without it, missing values are rejected.
    time_unit : {"d", "s", "ms", "us", "ns"}, default "us"
        Unit of datetimes, dates and durations, which become int64; see `asterism.arrow_types`.
    node_type, relation : str
        Names of the types if the object has none: ``node`` and ``node:edge:node``.
    parts : int, default 8
        Number of partitions of a new space.
    direction : {"out", "in", "both"}, default "both"
        Directions in which a new space keeps edges, and in which neighbors can be read.
    ids : {"per_type", "string"}, default "per_type"
        Ids of a new space: numbers of the labels (``names`` holds the labels), or the labels; see
        `Schema`.
    salt : int, default 0
        Salt of the string ids of a new space.
    build : bool, default False
        Build and publish the graph too.

    Returns
    -------
    LoadedGraph
        Counts, the labels of numbered nodes, commit number and version.

    Raises
    ------
    InvalidRequest
        If a value cannot be loaded; the message names type, attribute, row and value. Causes are a
        weight that is NaN or negative, rows of different shapes, values that are neither numbers
        nor text, and ends that are not nodes. Also if the object is not a graph, or an existing
        space cannot hold it.
    NotFound
        If a named attribute or type does not exist in the object.

    Examples
    --------
    >>> loaded = client.load_graph(  # doctest: +SKIP
    ...     "club", networkx.karate_club_graph(), build=True
    ... )
    """
    started_at = time.monotonic()
    _check_arguments(only, ends, ids)
    existing = _existing_schema(client, space, ids, salt)
    has_string_ids = ids == "string" if existing is None else existing.has_string_ids
    options = ReadOptions(
        node_type=node_type,
        relation=relation,
        weights=weights,
        rename=dict(rename or {}),
        only=None if only is None else frozenset(only),
        fill=dict(fill or {}),
        nodes=nodes,
        ends=ends,
        time_unit=check_unit("time_unit", time_unit),
        string_ids=has_string_ids,
    )
    tables = _read_object(graph, options, types or {}, salt if existing is None else existing.salt)
    _ensure_space(client, space, tables.schema(parts=parts, direction=direction), existing)
    return _load_tables(client, space, tables, started_at, build=build)


def _check_arguments(only: Iterable[str] | None, ends: tuple[str, str], ids: str) -> None:
    for option, value in (("only", only), ("ends", ends)):
        if isinstance(value, str):
            raise InvalidRequest(
                f"{option}={value!r}: expected a sequence of names, not one string"
            )
    if ids not in ("per_type", "string"):
        raise InvalidRequest(f"ids={ids!r}: expected 'per_type' or 'string'")


def _check_salt(space: str, salt: int, ids: str, existing: Schema | None) -> None:
    """Reject a salt that would have no effect, or that differs from the existing one."""
    if not salt:
        return
    if existing is None and ids != "string":
        raise InvalidRequest(
            f"salt={salt} with ids={ids!r}: expected 0, because only string ids have a salt; pass "
            "ids='string', or leave salt out"
        )
    if existing is not None and (not existing.has_string_ids or existing.salt != salt):
        description = (
            f"{existing.salt}, the salt"
            if existing.has_string_ids
            else f"0, because ids are {existing.ids!r},"
        )
        raise InvalidRequest(
            f"salt={salt}: expected {description} of the existing space {space!r}; leave salt out"
        )


def _read_object(
    graph: Any, options: ReadOptions, types: Mapping[TypeKey, str], salt: int
) -> GraphTables:
    tables = rename_types(read_tables(graph, options), types)
    return with_string_ids(tables, salt) if options.string_ids else tables


def _existing_schema(client: CatalogClient, space: str, ids: str, salt: int) -> Schema | None:
    """Return the schema of an existing space after checking the salt, or None."""
    try:
        existing = client.describe(space).schema
    except NotFound:
        existing = None
    _check_salt(space, salt, ids, existing)
    return existing


def _ensure_space(
    client: CatalogClient, space: str, schema: Schema, existing: Schema | None
) -> None:
    """Create the space, or check that the existing one can hold the graph."""
    if existing is None:
        client.create_space(space, schema)
        return
    try:
        check_schema_compatible(schema, existing)
    except NotFound as error:
        raise InvalidRequest(
            f"space={space!r}: expected a space with the types and features of the graph: "
            f"{error.message}"
        ) from error


def _load_tables(
    client: CatalogClient, space: str, tables: GraphTables, started_at: float, *, build: bool
) -> LoadedGraph:
    """Write tables as a load and commit it; abandon the load on failure."""
    load = client.begin_load(space, source=f"{tables.source_name} in memory")
    try:
        nodes, edges = _TableWriter(load).all(tables)
        commit = load.commit()
    except BaseException as failure:
        try:
            load.abandon()
        except AsterismError as error:  # Raise the original error, not one of the cleanup.
            failure.add_note(
                f"load {load.load_id} could not be abandoned ({error}); it is abandoned "
                "automatically after a week"
            )
        raise
    return LoadedGraph(
        nodes=nodes,
        edges=edges,
        names=tables.names,
        left_out=tables.left_out,
        load_id=load.load_id,
        commit=commit,
        version=build_space(client, space).version if build else 0,
        seconds=time.monotonic() - started_at,
    )


class _TableWriter:
    """Writer of tables into a load: nodes first, then edges in the object's order."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._index = 0

    def all(self, tables: GraphTables) -> tuple[int, int]:
        """Write everything; return the numbers of nodes and edges."""
        nodes = sum(self._nodes(table) for table in tables.nodes)
        counted = {table.name for table in tables.nodes if table.ids is None}
        # Ends that were checked against 0 .. n - 1 need no lookup by the service.
        return nodes, sum(
            self._edges(table, ends_known={table.triple[0], table.triple[2]} <= counted)
            for table in tables.edges
        )

    def _nodes(self, table: NodeTable) -> int:
        for start, stop in row_spans(table.count, _row_bytes(table)):
            ids = np.arange(start, stop) if table.ids is None else table.ids[start:stop]
            self._load.write_nodes(
                self._index,
                table.name,
                ids,
                _weights(table.weights, start, stop),
                _features(table.features, start, stop),
            )
            self._index += 1
        return table.count

    def _edges(self, table: EdgeTable, *, ends_known: bool) -> int:
        written = 0
        for is_reversed in (False, True) if table.both_ways else (False,):
            for start, stop in row_spans(len(table), _row_bytes(table)):
                src, dst = table.ends(start, stop)
                weights, features = (
                    _weights(table.weights, start, stop),
                    _features(table.features, start, stop),
                )
                if is_reversed:
                    keep = np.flatnonzero(src != dst)
                    src, dst = dst[keep], src[keep]
                    weights = None if weights is None else weights[keep]
                    features = {name: _select_rows(value, keep) for name, value in features.items()}
                if len(src):
                    self._load.write_edges(
                        self._index, table.name, src, dst, weights, features, ends_known=ends_known
                    )
                    self._index += 1
                    written += len(src)
        return written


def _row_bytes(table: NodeTable | EdgeTable) -> int:
    return 24 + sum(column.row_bytes for column in table.features.values())


def _weights(column: ArrayColumn | None, start: int, stop: int) -> NDArray[np.float32] | None:
    return None if column is None else float_weights(column, start, stop)


def _features(columns: Mapping[str, ArrayColumn], start: int, stop: int) -> dict[str, FeatureValue]:
    return {name: column.slice(start, stop) for name, column in columns.items()}


def _select_rows(value: FeatureValue, rows: NDArray[np.intp]) -> FeatureValue:
    """Return some rows of a column."""
    if not isinstance(value, tuple):
        return value[rows]
    indptr, values = value
    lengths = np.diff(indptr)[rows]
    picked = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=picked[1:])
    return picked, values[
        np.repeat(indptr[:-1][rows] - picked[:-1], lengths) + np.arange(picked[-1])
    ]
