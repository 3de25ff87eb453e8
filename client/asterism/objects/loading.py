"""From an object in memory to a committed load."""

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
from asterism.objects.read_options import ReadOptions
from asterism.objects.string_ids import with_string_ids
from asterism.objects.tables import (
    ArrayColumn,
    EdgeTable,
    GraphTables,
    NodeTable,
    float_weights,
    row_spans,
)
from asterism.records.samples import FeatureValue
from asterism_model.schema import Schema
from asterism_proto.errors import AsterismError, InvalidRequest, NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedGraph:
    """What came of an object."""

    nodes: int
    edges: int
    """Written: an edge of an undirected graph counts twice, once each way, but for loops."""
    names: Mapping[str, NDArray[Any]]
    """By node type, object[n]: what the object calls the nodes 0, 1, 2, ...; types whose nodes are
    whole numbers there are not here.
    """
    left_out: tuple[str, ...]
    """What of the object was not loaded, for it belongs to no single node or edge."""
    load_id: int
    commit: int
    """Its place in the order of writes: a build asked for from now on includes it."""
    version: int
    """What was built and published; 0: nothing was asked to be."""
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
    only: Iterable[str] | None = None,
    fill: Mapping[str, Any] | None = None,
    node_type: str = "node",
    relation: str = "edge",
    parts: int = 8,
    direction: str = "both",
    ids: str = "per_type",
    salt: int = 0,
    build: bool = False,
) -> LoadedGraph:
    """Load a graph that another library has in memory into a space, and commit it;
    ``docs/loading.md`` says what becomes of what.

    It is read and checked as a whole, then travels in pieces of at most 16 MiB. A load that fails
    leaves nothing behind; one that was killed is given up after a week: load again.

    Parameters
    ----------
    client : Client
        Of the service.
    space : str
        Where it goes; made where it is not there.
    graph : object
        A PyG ``Data`` or ``HeteroData``, a ``DGLGraph``, a graph of NetworkX or igraph, a SciPy
        sparse matrix or a pandas frame of edges, or a mapping of edge types, as ``("user", "buys",
        "item")``, to matrices or frames. Edges of undirected graphs are written both ways.
    nodes : DataFrame or mapping of str to DataFrame, optional
        Beside frames of edges: those of nodes. A column ``id``, else the index, names them. Without
        a frame of a type its nodes are those that edges name.
    ends : (str, str)
        The columns of a frame of edges that name source and destination.
    weights : str or mapping, optional
        The attribute that is the weight: of every edge type, or by type, node types too. It stays a
        feature. Where left out an attribute ``weight`` is (PyG's: ``edge_weight``), and is no
        feature. Missing ones are 1.
    rename : mapping, optional
        New names of attributes.
    only : iterable of str, optional
        The attributes to take as features; None: all.
    fill : mapping, optional
        What a missing value is, by attribute; without it, it is refused.
    node_type, relation : str
        What the types are called where the object has none: ``node`` and ``node:edge:node``.
    parts, direction : int, {"out", "in", "both"}
        Of a space that is made; the second one says which neighbors can be asked for.
    ids, salt : {"per_type", "string"}, int
        Of a space that is made: whether labels are numbered (``names`` says how), or ids
        themselves; see `Schema`.
    build : bool
        Build and publish it too.

    Returns
    -------
    LoadedGraph
        With ``names``: what nodes are called that had to be numbered.

    Raises
    ------
    InvalidRequest
        Naming type, attribute, row and value: a weight that is NaN or negative, rows of different
        shapes, values that are neither numbers nor texts, ends that are no nodes, an object that is
        no graph. A space that is there and can not hold it.
    NotFound
        Where an attribute or type is named that the object does not have.

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
        string_ids=has_string_ids,
    )
    tables = _read_object(graph, options, salt if existing is None else existing.salt)
    _ensure_space(client, space, tables.schema(parts=parts, direction=direction), existing)
    return _load_tables(client, space, tables, started_at, build=build)


def _check_arguments(only: Iterable[str] | None, ends: tuple[str, str], ids: str) -> None:
    for option, value in (("only", only), ("ends", ends)):
        if isinstance(value, str):
            raise InvalidRequest(f"{option} {value!r}: expected several names")
    if ids not in ("per_type", "string"):
        raise InvalidRequest(f"ids {ids!r}: expected 'per_type' or 'string'")


def _check_salt(space: str, salt: int, ids: str, existing: Schema | None) -> None:
    """Refuse a salt that nothing would be salted with."""
    if not salt:
        return
    if existing is None and ids != "string":
        raise InvalidRequest(
            f"salt {salt} with ids {ids!r}: labels are numbered and no id is made of a text; "
            "say ids='string', or no salt"
        )
    if existing is not None and (not existing.has_string_ids or existing.salt != salt):
        description = (
            f"has salt {existing.salt}"
            if existing.has_string_ids
            else f"has ids {existing.ids!r}, which are made of no text"
        )
        raise InvalidRequest(
            f"salt {salt}: space {space!r} is there and {description}; say that one, or none"
        )


def _read_object(graph: Any, options: ReadOptions, salt: int) -> GraphTables:
    tables = read_tables(graph, options)
    return with_string_ids(tables, salt) if options.string_ids else tables


def _existing_schema(client: CatalogClient, space: str, ids: str, salt: int) -> Schema | None:
    """The schema of a space that the salt is right for; None where it is not there."""
    try:
        existing = client.describe(space).schema
    except NotFound:
        existing = None
    _check_salt(space, salt, ids, existing)
    return existing


def _ensure_space(
    client: CatalogClient, space: str, schema: Schema, existing: Schema | None
) -> None:
    """Make a space, or see that the one that is there can hold the graph."""
    if existing is None:
        client.create_space(space, schema)
        return
    try:
        check_schema_compatible(schema, existing)
    except NotFound as error:
        raise InvalidRequest(f"space {space!r} can not hold the graph: {error.message}") from error


def _load_tables(
    client: CatalogClient, space: str, tables: GraphTables, started_at: float, *, build: bool
) -> LoadedGraph:
    """Tables in a load of their own, committed; a load that does not succeed is given up."""
    load = client.begin_load(space, source=f"{tables.source_name} in memory")
    try:
        nodes, edges = _TableWriter(load).all(tables)
        commit = load.commit()
    except BaseException as failure:
        try:
            load.abandon()
        except AsterismError as error:  # what went wrong first is what whoever asked has to know
            failure.add_note(
                f"load {load.load_id} could not be given up ({error}); that happens by "
                "itself after a week"
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
    """Tables into a load, piece by piece: nodes first, then edges in the object's order, each
    numbered.
    """

    def __init__(self, load: Load) -> None:
        self._load = load
        self._index = 0

    def all(self, tables: GraphTables) -> tuple[int, int]:
        """Write everything; give back how many nodes and edges."""
        nodes = sum(self._nodes(table) for table in tables.nodes)
        counted = {table.name for table in tables.nodes if table.ids is None}
        # Ends that were held against 0 .. n - 1 need not be looked for.
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
    """Some rows of a column."""
    if not isinstance(value, tuple):
        return value[rows]
    indptr, values = value
    lengths = np.diff(indptr)[rows]
    picked = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=picked[1:])
    return picked, values[
        np.repeat(indptr[:-1][rows] - picked[:-1], lengths) + np.arange(picked[-1])
    ]
