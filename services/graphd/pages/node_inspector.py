"""Reads of single nodes for the node inspector: features, neighbors, a sampled neighborhood.

They are calls of the client to this graphd's own handlers, as those of statements are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.graph import Client, Graph
from asterism.records.samples import FeatureValue
from asterism_daemonkit.rpc.call_context import Handler, current_principal
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_model.schema import EdgeType, Feature, NodeType
from asterism_model.string_ids import ID_COLUMN
from asterism_proto.errors import InvalidRequest, NotFound
from graphd.pages import views

TIMEOUT_S = 20.0
"""Seconds for each call."""
PAGE_ROWS = 20
"""Neighbors of one edge type on a page."""
MAX_OFFSET = 980
"""Neighbors that can be passed over: pages show the heaviest thousand."""
FANOUTS = (6, 3)
"""Neighbors that are sampled per node, hop and direction."""
_MAX_VALUES = 16
_MAX_TEXT = 300
_EXAMPLES = 12
_EXAMPLE_SEED = 1


class NodeReader:
    """Reads nodes through the handlers of this graphd.

    Parameters
    ----------
    handlers : mapping
        Handlers of the Graph and Catalog services by method path.
    """

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers

    def node_types(self, space: str, node_type: str) -> views.NodeTypesView:
        """Return the node types of a space, and example ids of one; the first one by default."""
        with self._client() as client:
            info = client.describe(space)
            names = [owner.name for owner in info.schema.node_types]
            chosen = node_type or names[0]
            info.schema.node_type_id(chosen)
            examples: list[str] = []
            if info.version:
                graph = client.graph(space).at(info.version)
                if graph.count_nodes(chosen):
                    ids = graph.sample_nodes(
                        _EXAMPLES, chosen, weighted=False, seed=_EXAMPLE_SEED
                    ).nodes
                    examples = _id_texts(graph, np.unique(ids), chosen)
            return views.NodeTypesView(
                types=names,
                type=chosen,
                string_ids=info.schema.has_string_ids,
                version=info.version,
                examples=examples,
            )

    def node(
        self, space: str, node_type: str, id_text: str, *, page: tuple[str, str, int]
    ) -> views.NodeDetails:
        """Return a node with its features and neighbors.

        Parameters
        ----------
        space, node_type, id_text : str
        page : tuple of (str, str, int)
            Edge type, direction and offset of the neighbors that are paged. Those of other edge
            types start at the heaviest.
        """
        with self._client() as client:
            graph = self._current(client, space)
            node = _find_node(graph, node_type, id_text)
            owner = graph.schema.node_types[graph.schema.node_type_id(node_type)]
            return views.NodeDetails(
                space=space,
                type=node_type,
                id=id_text,
                version=graph.version or 0,
                features=_features(graph, owner, node),
                neighbors=[
                    _neighbor_group(
                        graph,
                        node,
                        node_type,
                        edge_type,
                        direction,
                        page[2] if page[:2] == (edge_type.name, direction) else 0,
                    )
                    for edge_type, direction in _incident_types(graph, node_type)
                ],
            )

    def neighborhood(
        self, space: str, node_type: str, id_text: str, seed: int
    ) -> views.NeighborhoodView:
        """Return a sampled neighborhood of a node."""
        with self._client() as client:
            graph = self._current(client, space)
            sample = _NeighborhoodSample(graph, seed)
            return sample.draw(node_type, _find_node(graph, node_type, id_text))

    def _client(self) -> Client:
        # Its calls have the rights of the route's caller, in other threads too.
        caller = current_principal()
        return Client(LocalTransport(self._handlers, lambda: caller), timeout_s=TIMEOUT_S)

    def _current(self, client: Client, space: str) -> Graph:
        """Return the graph of a space at its current version, so that all reads agree."""
        graph = client.graph(space)
        return graph.at(graph.manifest().version)


class _NeighborhoodSample:
    """A sampled neighborhood while it grows hop by hop."""

    def __init__(self, graph: Graph, seed: int) -> None:
        self._graph, self._seed = graph, seed
        self._position: dict[tuple[str, int], int] = {}
        self._hops: list[int] = []
        self._edges: dict[tuple[int, int, str], float | None] = {}

    def draw(self, node_type: str, node: int) -> views.NeighborhoodView:
        """Sample the hops, starting at a node."""
        self._add(node_type, node, 0)
        for hop, count in enumerate(FANOUTS, start=1):
            newest = [key for key, i in self._position.items() if self._hops[i] == hop - 1]
            for name in dict.fromkeys(name for name, _ in newest):
                nodes = np.array([i for other, i in newest if other == name], np.int64)
                for direction in ("out", "in"):
                    self._expand(name, nodes, direction, hop, count)
        graph = self._graph
        ids: dict[tuple[str, int], str] = {}
        for name in dict.fromkeys(name for name, _ in self._position):
            nodes = np.array([i for other, i in self._position if other == name], np.int64)
            texts = _id_texts(graph, nodes, name)
            ids |= {(name, i): text for i, text in zip(nodes.tolist(), texts, strict=True)}
        return views.NeighborhoodView(
            version=graph.version or 0,
            seed=self._seed,
            nodes=[
                views.PictureNode(type=key[0], id=ids[key], hop=self._hops[position])
                for key, position in self._position.items()
            ],
            edges=[
                views.PictureEdge(source=source, target=target, type=name, weight=weight)
                for (source, target, name), weight in self._edges.items()
            ],
        )

    def _add(self, node_type: str, node: int, hop: int) -> int:
        key = node_type, node
        if key not in self._position:
            self._position[key] = len(self._position)
            self._hops.append(hop)
        return self._position[key]

    def _expand(
        self, node_type: str, nodes: NDArray[np.int64], direction: str, hop: int, count: int
    ) -> None:
        """Sample neighbors of nodes of one type in one direction."""
        graph = self._graph
        edge_types = [
            edge_type.name
            for edge_type, way in _incident_types(graph, node_type)
            if way == direction
        ]
        if not edge_types:
            return
        sample = graph.sample_neighbors(
            nodes,
            edge_types,
            count,
            ntype=node_type,
            direction=direction,
            replace=False,
            seed=self._seed + hop,
        )
        assert sample.weights is not None
        for row, column in zip(*np.nonzero(sample.nodes >= 0), strict=True):
            edge_type = graph.schema.edge_types[int(sample.types[row, column])]
            neighbor_type = edge_type.dst_type if direction == "out" else edge_type.src_type
            local = self._position[node_type, int(nodes[row])]
            remote = self._add(neighbor_type, int(sample.nodes[row, column]), hop)
            ends = (local, remote) if direction == "out" else (remote, local)
            self._edges.setdefault(
                (*ends, edge_type.name),
                _shortest(sample.weights[row, column]) if edge_type.weighted else None,
            )


def _find_node(graph: Graph, node_type: str, id_text: str) -> int:
    """Return the integer id of a node; raise NotFound if the version has no such node."""
    schema = graph.schema
    schema.node_type_id(node_type)
    if schema.has_string_ids:
        return int(graph.node_ids([id_text], node_type)[0])
    try:
        node = int(id_text)
    except ValueError:
        node = -1
    if not 0 <= node < 1 << 63:
        raise InvalidRequest(f"id={id_text!r}: expected an integer from 0 to 2^63 - 1")
    if graph.node_types([node], node_type)[0] != schema.node_type_id(node_type):
        raise NotFound(
            f"type={node_type!r}, id={node}: version {graph.version} of space {graph.space!r} has "
            "no such node; choose another id or type"
        )
    return node


def _incident_types(graph: Graph, node_type: str) -> list[tuple[EdgeType, str]]:
    """Return the edge types at nodes of a type, each with a direction that is stored."""
    schema = graph.schema
    incident = [(edge, "out") for edge in schema.edge_types if edge.src_type == node_type]
    if schema.has_in:
        incident += [(edge, "in") for edge in schema.edge_types if edge.dst_type == node_type]
    return incident


def _neighbor_group(
    graph: Graph, node: int, node_type: str, edge_type: EdgeType, direction: str, offset: int
) -> views.NeighborGroup:
    """Return a page of the neighbors of a node along one edge type, heaviest first."""
    selection: dict[str, Any] = {"ntype": node_type, "direction": direction}
    degree = int(graph.degrees([node], edge_type.name, **selection).reshape(-1)[0])
    neighbor_type = edge_type.dst_type if direction == "out" else edge_type.src_type
    ids, weights = np.zeros(0, np.int64), np.zeros(0, np.float32)
    if degree > offset:
        top = graph.top_k_neighbors(
            [node], edge_type.name, min(degree, offset + PAGE_ROWS), **selection
        )
        ids, weights = top.nodes[0, offset:], top.weights[0, offset:]
    return views.NeighborGroup(
        edge_type=edge_type.name,
        direction="out" if direction == "out" else "in",
        neighbor_type=neighbor_type,
        degree=degree,
        offset=offset,
        rows=[
            views.NeighborRow(id=text, weight=_shortest(weight) if edge_type.weighted else None)
            for text, weight in zip(_id_texts(graph, ids, neighbor_type), weights, strict=True)
        ],
    )


def _id_texts(graph: Graph, ids: NDArray[np.int64], node_type: str) -> list[str]:
    """Return ids as text: string ids, or digits, because JavaScript rounds large numbers."""
    if graph.schema.has_string_ids and len(ids):
        return [str(name) for name in graph.node_names(ids, node_type)]
    return [str(node) for node in ids.tolist()]


def _features(graph: Graph, owner: NodeType, node: int) -> list[views.FeatureView]:
    """Return the weight and the features of a node."""
    names = [feature.name for feature in owner.features if feature.name != ID_COLUMN]
    if owner.weighted:
        names.insert(0, "weight")
    if not names:
        return []
    columns = graph.node_features([node], names, owner.name)
    kinds = {feature.name: feature for feature in owner.features}
    return [_feature(name, kinds.get(name), columns[name]) for name in names]


def _feature(name: str, feature: Feature | None, column: FeatureValue) -> views.FeatureView:
    """Return a feature of one node; ``feature`` is None for the weight."""
    values = column[1] if isinstance(column, tuple) else np.asarray(column).reshape(-1)
    if feature is not None and feature.kind == "bytes":
        data = np.asarray(values).astype(np.uint8).tobytes()
        return views.FeatureView(
            name=name, type="bytes", values=[_text(data)], length=len(data), scalar=True
        )
    scalar = feature is None or (feature.kind == "dense" and not feature.shape)
    return views.FeatureView(
        name=name,
        type="float32" if feature is None else _type_name(feature),
        values=[_number(value) for value in values[:_MAX_VALUES]],
        length=len(values),
        scalar=scalar,
    )


def _type_name(feature: Feature) -> str:
    shape: Sequence[int] = feature.shape
    return (
        f"list<{feature.dtype}>"
        if feature.kind == "ragged"
        else f"{feature.dtype}{''.join(f'[{size}]' for size in shape)}"
    )


def _text(data: bytes) -> str:
    """Return bytes as text, or as hexadecimal digits if they are not UTF-8; long ones are cut."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data[:_MAX_TEXT].hex()
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]} …"


def _number(value: Any) -> float | int | str | None:
    """Return a NumPy number for JSON; integers that JavaScript would round become text."""
    if isinstance(value, np.floating):
        return _shortest(value)
    integer = int(value)
    return integer if abs(integer) < 1 << 53 else str(integer)


def _shortest(value: Any) -> float | None:
    """Return a NumPy float by the shortest digits that identify it in its own precision.

    Numbers that are not finite become null, because JSON has none.
    """
    number = float(str(value))
    return number if math.isfinite(number) else None
