"""From an object in memory to a committed load."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from asterism.fitting import check_fits
from asterism.objects.asked import Asked
from asterism.objects.named import called
from asterism.objects.opening import read_tables
from asterism.objects.tables import Column, EdgeTable, NodeTable, Tables, float_weights, spans
from asterism.records import FeatureValue
from asterism_proto.errors import AsterismError, InvalidRequest, NotFound
from asterism_proto.schema import Schema

if TYPE_CHECKING:
    from asterism.client import Client
    from asterism.loading import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedGraph:
    """What came of an object."""

    nodes: int
    edges: int
    """Written: an edge of an undirected graph counts twice, once each way, but for loops."""
    names: Mapping[str, NDArray[Any]]
    """By node type, object[n]: what the object calls the nodes 0, 1, 2, ...; types whose nodes are whole numbers there are not here."""
    left_out: tuple[str, ...]
    """What of the object was not loaded, for it belongs to no single node or edge."""
    load_id: int
    commit: int
    """Its place in the order of writes: a build asked for from now on includes it."""
    version: int
    """What was built and published; 0: nothing was asked to be."""
    seconds: float


def load_graph(
    client: Client,
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
    """Load a graph that another library has in memory into a space, and commit it; ``docs/loading.md`` says what becomes of what.

    It is read and checked as a whole, then travels in pieces of at most 16 MiB. A load that fails leaves nothing behind; one that was
    killed is given up after a week: load again.

    Parameters
    ----------
    client : Client
        Of the service.
    space : str
        Where it goes; made where it is not there.
    graph : object
        A PyG ``Data`` or ``HeteroData``, a ``DGLGraph``, a graph of NetworkX or igraph, a SciPy sparse matrix or a pandas frame of edges, or
        a mapping of edge types, as ``("user", "buys", "item")``, to matrices or frames. Edges of undirected graphs are written both ways.
    nodes : DataFrame or mapping of str to DataFrame, optional
        Beside frames of edges: those of nodes. A column ``id``, else the index, names them. Without a frame of a type its nodes are those
        that edges name.
    ends : (str, str)
        The columns of a frame of edges that name source and destination.
    weights : str or mapping, optional
        The attribute that is the weight: of every edge type, or by type, node types too. It stays a feature. Where left out an
        attribute ``weight`` is (PyG's: ``edge_weight``), and is no feature. Missing ones are 1.
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
        Of a space that is made: whether labels are numbered (``names`` says how), or ids themselves; see `Schema`.
    build : bool
        Build and publish it too.

    Returns
    -------
    LoadedGraph
        With ``names``: what nodes are called that had to be numbered.

    Raises
    ------
    InvalidRequest
        Naming type, attribute, row and value: a weight that is NaN or negative, rows of different shapes, values that are neither numbers nor
        texts, ends that are no nodes, an object that is no graph. A space that is there and can not hold it.
    NotFound
        Where an attribute or type is named that the object does not have.

    Examples
    --------
    >>> loaded = client.load_graph("club", networkx.karate_club_graph(), build=True)  # doctest: +SKIP
    """
    began = time.monotonic()
    _check(only, ends, ids)
    there = _space(client, space, ids, salt)
    named = ids == "string" if there is None else there.named
    asked = Asked(
        node_type=node_type,
        relation=relation,
        weights=weights,
        rename=dict(rename or {}),
        only=None if only is None else frozenset(only),
        fill=dict(fill or {}),
        nodes=nodes,
        ends=ends,
        named=named,
    )
    tables = _read(graph, asked, salt if there is None else there.salt)
    _make_room(client, space, tables.schema(parts=parts, direction=direction), there)
    return _loaded(client, space, tables, began, build=build)


def _check(only: Iterable[str] | None, ends: tuple[str, str], ids: str) -> None:
    for word, said in (("only", only), ("ends", ends)):
        if isinstance(said, str):
            raise InvalidRequest(f"{word} {said!r}: expected several names")
    if ids not in ("per_type", "string"):
        raise InvalidRequest(f"ids {ids!r}: expected 'per_type' or 'string'")


def _check_salt(space: str, salt: int, ids: str, there: Schema | None) -> None:
    """Refuse a salt that nothing would be salted with."""
    if not salt:
        return
    if there is None and ids != "string":
        raise InvalidRequest(f"salt {salt} with ids {ids!r}: labels are numbered and no id is made of a text; say ids='string', or no salt")
    if there is not None and (not there.named or there.salt != salt):
        has = f"has salt {there.salt}" if there.named else f"has ids {there.ids!r}, which are made of no text"
        raise InvalidRequest(f"salt {salt}: space {space!r} is there and {has}; say that one, or none")


def _read(graph: Any, asked: Asked, salt: int) -> Tables:
    tables = read_tables(graph, asked)
    return called(tables, salt) if asked.named else tables


def _space(client: Client, space: str, ids: str, salt: int) -> Schema | None:
    """The schema of a space that the salt is right for; None where it is not there."""
    try:
        there = client.describe(space).schema
    except NotFound:
        there = None
    _check_salt(space, salt, ids, there)
    return there


def _make_room(client: Client, space: str, schema: Schema, there: Schema | None) -> None:
    """Make a space, or see that the one that is there can hold the graph."""
    if there is None:
        client.create_space(space, schema)
        return
    try:
        check_fits(schema, there)
    except NotFound as error:
        raise InvalidRequest(f"space {space!r} can not hold the graph: {error.message}") from error


def _loaded(client: Client, space: str, tables: Tables, began: float, *, build: bool) -> LoadedGraph:
    """Tables in a load of their own, committed; a load that does not succeed is given up."""
    load = client.begin_load(space, source=f"{tables.what} in memory")
    try:
        nodes, edges = _Writer(load).all(tables)
        commit = load.commit()
    except BaseException as failed:
        try:
            load.abandon()
        except AsterismError as error:  # what went wrong first is what whoever asked has to know
            failed.add_note(f"load {load.load_id} could not be given up ({error}); that happens by itself after a week")
        raise
    return LoadedGraph(
        nodes=nodes,
        edges=edges,
        names=tables.names,
        left_out=tables.left_out,
        load_id=load.load_id,
        commit=commit,
        version=client.graph(space).build().version if build else 0,
        seconds=time.monotonic() - began,
    )


class _Writer:
    """Tables into a load, piece by piece: nodes first, then edges in the object's order, each numbered."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._index = 0

    def all(self, tables: Tables) -> tuple[int, int]:
        """Write everything; give back how many nodes and edges."""
        nodes = sum(self._nodes(table) for table in tables.nodes)
        counted = {table.name for table in tables.nodes if table.ids is None}
        # Ends that were held against 0 .. n - 1 need not be looked for.
        return nodes, sum(self._edges(table, ends_known={table.triple[0], table.triple[2]} <= counted) for table in tables.edges)

    def _nodes(self, table: NodeTable) -> int:
        for start, stop in spans(table.count, _row_bytes(table)):
            ids = np.arange(start, stop) if table.ids is None else table.ids[start:stop]
            self._load.write_nodes(self._index, table.name, ids, _weights(table.weights, start, stop), _features(table.features, start, stop))
            self._index += 1
        return table.count

    def _edges(self, table: EdgeTable, *, ends_known: bool) -> int:
        written = 0
        for back in (False, True) if table.both_ways else (False,):
            for start, stop in spans(len(table), _row_bytes(table)):
                src, dst = table.ends(start, stop)
                weights, features = _weights(table.weights, start, stop), _features(table.features, start, stop)
                if back:
                    keep = np.flatnonzero(src != dst)
                    src, dst = dst[keep], src[keep]
                    weights = None if weights is None else weights[keep]
                    features = {name: _rows(value, keep) for name, value in features.items()}
                if len(src):
                    self._load.write_edges(self._index, table.name, src, dst, weights, features, ends_known=ends_known)
                    self._index += 1
                    written += len(src)
        return written


def _row_bytes(table: NodeTable | EdgeTable) -> int:
    return 24 + sum(column.row_bytes for column in table.features.values())


def _weights(column: Column | None, start: int, stop: int) -> NDArray[np.float32] | None:
    return None if column is None else float_weights(column, start, stop)


def _features(columns: Mapping[str, Column], start: int, stop: int) -> dict[str, FeatureValue]:
    return {name: column.cut(start, stop) for name, column in columns.items()}


def _rows(value: FeatureValue, rows: NDArray[np.intp]) -> FeatureValue:
    """Some rows of a column."""
    if not isinstance(value, tuple):
        return value[rows]
    indptr, values = value
    lengths = np.diff(indptr)[rows]
    picked = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=picked[1:])
    return picked, values[np.repeat(indptr[:-1][rows] - picked[:-1], lengths) + np.arange(picked[-1])]
