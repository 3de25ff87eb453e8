"""PyG's stores over a graph: features of nodes, and edges by type."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
import torch
from torch_geometric.data import feature_store as pyg_features
from torch_geometric.data import graph_store as pyg_graphs

from asterism.graph import Graph
from asterism.pyg.view import GraphView, Triple
from asterism.records.samples import FeatureValue, Ids
from asterism.torch import tensor
from asterism.transport.read_retries import DEFAULT_PATIENCE_S, retry_read
from asterism_proto.errors import InvalidRequest, NotFound

Encoder = Callable[[FeatureValue], Any]
Columns = Mapping[str, Mapping[str, str] | Sequence[str]] | None
"""Features by node type: a list of names, or PyG's name for each feature."""

_ROWS_PER_REQUEST = 1 << 16
"""Nodes per request for features of a whole type."""


class FeatureStore(pyg_features.FeatureStore):  # type: ignore[misc]  # PyG has no types here
    """Node features of a graph as a PyG feature store.

    Each batch takes one request per node type.

    Parameters
    ----------
    graph : Graph
        Graph of one version, from `Graph.pin` or `Graph.at`.
    features : dict, optional
        Features of batches by node type: a list of names, or a dict of PyG's name to the feature,
        such as ``{"paper": {"x": "words", "y": "label"}}``. ``"weight"`` is the weight of the node.
        None: all dense features and all features with an encoder, under their own names.
    encode : dict of str to callable, optional
        Encoder of each feature. It receives the column, an array ``[m, *shape]`` or ``(indptr,
        values)``, and returns a tensor ``[m, ...]``. Required for ragged features and bytes.
    hetero : bool, optional
        True if types are named. None: True if there are several node types or edge types.
    patience_s : float
        Seconds for which a failed read is retried while the service is unavailable. Choose a value
        that covers a restart of the service.

    Raises
    ------
    InvalidRequest
        If a feature is not dense and has no encoder, or the graph is not of one version.
    NotFound
        If a node type or feature does not exist.
    """

    def __init__(
        self,
        graph: Graph,
        features: Columns = None,
        *,
        encode: Mapping[str, Encoder] | None = None,
        hetero: bool | None = None,
        patience_s: float = DEFAULT_PATIENCE_S,
    ) -> None:
        super().__init__()
        self._view = GraphView(graph, hetero, patience_s)
        self._encode = dict(encode or {})
        self._columns: dict[str, dict[str, str]] = {}
        for node_type in graph.schema.node_types:
            if features is None:
                feature_names = [
                    f.name
                    for f in node_type.features
                    if f.kind == "dense" or f.name in self._encode
                ]
                self._columns[node_type.name] = dict(zip(feature_names, feature_names, strict=True))
            elif node_type.name in features:
                selected = features[node_type.name]
                self._columns[node_type.name] = (
                    dict(selected)
                    if isinstance(selected, Mapping)
                    else dict(zip(selected, selected, strict=True))
                )
                for name in self._columns[node_type.name].values():
                    if (
                        name != "weight"
                        and node_type.feature(name).kind != "dense"
                        and name not in self._encode
                    ):
                        raise InvalidRequest(
                            f"feature {name!r} of {node_type.name!r}: expected a dense feature, "
                            f"this one is {node_type.feature(name).kind}; pass encode with a "
                            "function that returns a tensor"
                        )
        if features is not None and (unknown := set(features) - set(self._view.node_types)):
            raise NotFound(
                f"features with {sorted(unknown)}: expected node types, of "
                f"{', '.join(self._view.node_types)}"
            )

    def get_all_tensor_attrs(self) -> list[Any]:
        """Return the attributes of all features of batches.

        Returns
        -------
        list of TensorAttr
            One attribute per node type and feature.
        """
        return [
            pyg_features.TensorAttr(group_name=self._view.pyg_type(node_type), attr_name=name)
            for node_type, columns in self._columns.items()
            for name in columns
        ]

    def _multi_get_tensor(self, attrs: Sequence[Any]) -> list[Any]:
        tensors: list[Any] = [None] * len(attrs)
        groups: dict[tuple[str, int], list[int]] = {}
        for position, attr in enumerate(attrs):
            groups.setdefault((self._view.node_type(attr.group_name), id(attr.index)), []).append(
                position
            )
        for (node_type, _), positions in groups.items():
            names = {
                position: self._name(node_type, attrs[position].attr_name) for position in positions
            }
            ids = self._ids(node_type, attrs[positions[0]].index)
            columns = self._read(node_type, ids, list(dict.fromkeys(names.values())))
            for position, name in names.items():
                tensors[position] = columns[name]
        return tensors

    def _get_tensor(self, attr: Any) -> Any:
        return self._multi_get_tensor([attr])[0]

    def _get_tensor_size(self, attr: Any) -> tuple[int, ...]:
        node_type = self._view.node_type(attr.group_name)
        count = self._view.require_dense_ids(node_type, f"all nodes of {node_type!r}")
        return (
            count,
            *self._read(
                node_type, np.zeros(0, np.int64), [name := self._name(node_type, attr.attr_name)]
            )[name].shape[1:],
        )

    def _name(self, node_type: str, attr_name: str) -> str:
        name = self._columns.get(node_type, {}).get(attr_name)
        if name is None:
            raise NotFound(
                f"attribute {attr_name!r} of {node_type!r}: expected one of "
                f"{sorted(self._columns.get(node_type, {}))}"
            )
        return name

    def _ids(self, node_type: str, index: Any) -> Ids:
        if index is None or isinstance(index, slice):
            count = self._view.require_dense_ids(node_type, "features of a whole type")
            return np.arange(count, dtype=np.int64)[index if index is not None else slice(None)]
        return np.asarray(index.cpu() if isinstance(index, torch.Tensor) else index).reshape(-1)

    def _read(self, node_type: str, ids: Ids, names: list[str]) -> dict[str, Any]:
        pieces: dict[str, list[Any]] = {name: [] for name in names}
        for first in range(0, max(len(ids), 1), _ROWS_PER_REQUEST):
            read_chunk = partial(
                self._view.graph.node_features,
                ids[first : first + _ROWS_PER_REQUEST],
                names,
                node_type,
            )
            for name, column in retry_read(read_chunk, self._view.patience_s).items():
                encode = self._encode.get(name)
                pieces[name].append(
                    tensor(column) if encode is None else torch.as_tensor(encode(column))
                )
        return {
            name: chunks[0] if len(chunks) == 1 else torch.cat(chunks)
            for name, chunks in pieces.items()
        }

    def _put_tensor(self, value: Any, attr: Any) -> NoReturn:
        _refuse_writes()

    def _remove_tensor(self, attr: Any) -> NoReturn:
        _refuse_writes()


class GraphStore(pyg_graphs.GraphStore):  # type: ignore[misc]  # PyG has no types here
    """Edge types of a graph as a PyG graph store.

    If a loader requests the edges of a type, all of them are read.

    Parameters
    ----------
    graph : Graph
        Graph of one version, from `Graph.pin` or `Graph.at`.
    hetero : bool, optional
        True if types are named. None: True if there are several node types or edge types.
    """

    def __init__(self, graph: Graph, *, hetero: bool | None = None) -> None:
        super().__init__()
        self.__dict__["_view"] = GraphView(graph, hetero)
        self.__dict__["_attrs"] = None

    def get_all_edge_attrs(self) -> list[Any]:
        """Return the attributes of all edge types.

        Returns
        -------
        list of EdgeAttr
            One attribute per edge type, with its size if the ids at both ends are the integers from
            0 on.
        """
        if self._attrs is None:
            self.__dict__["_attrs"] = [
                pyg_graphs.EdgeAttr(
                    edge_type=triple if self._view.hetero else None,
                    layout="coo",
                    size=self._size(triple),
                )
                for triple in self._view.edge_types
            ]
        return [copy.copy(attr) for attr in self._attrs]

    def _size(self, triple: Triple) -> tuple[int, int] | None:
        src, _, dst = triple
        # If types are unnamed, PyG derives the number of nodes from the features.
        if not (
            self._view.hetero and self._view.has_dense_ids(src) and self._view.has_dense_ids(dst)
        ):
            return None
        return self._view.count(src), self._view.count(dst)

    def _get_edge_index(self, attr: Any) -> tuple[Any, Any] | None:
        if attr.layout != pyg_graphs.EdgeLayout.COO:
            return None
        name = (
            next(iter(self._view.edge_types.values()))
            if attr.edge_type is None
            else self._view.edge_types.get(tuple(attr.edge_type))
        )
        if name is None:
            return None
        batches = list(self._view.graph.scan_edges(name))
        none = [np.zeros(0, np.int64)]
        return tensor(np.concatenate([b.src for b in batches] or none)), tensor(
            np.concatenate([b.dst for b in batches] or none)
        )

    def _put_edge_index(self, edge_index: Any, edge_attr: Any) -> NoReturn:
        _refuse_writes()

    def _remove_edge_index(self, edge_attr: Any) -> NoReturn:
        _refuse_writes()


def stores(
    graph: Graph,
    features: Columns = None,
    *,
    encode: Mapping[str, Encoder] | None = None,
    hetero: bool | None = None,
    patience_s: float = DEFAULT_PATIENCE_S,
) -> tuple[FeatureStore, GraphStore]:
    """Return both stores of a graph, which PyG's loaders accept as ``data``.

    Parameters
    ----------
    graph, features, encode, hetero, patience_s
        Arguments of `FeatureStore`.

    Returns
    -------
    tuple of FeatureStore and GraphStore
        Stores of the graph.

    Examples
    --------
    >>> with graph.pin() as held:  # doctest: +SKIP
    ...     data = asterism.pyg.stores(held, {"paper": {"x": "words", "y": "label"}})
    ...     sampler = asterism.pyg.NeighborSampler(held, [10, 5])
    ...     loader = NodeLoader(
    ...         data, sampler, input_nodes=train, batch_size=64, shuffle=True, num_workers=2
    ...     )
    ...     for batch in loader:
    ...         step(batch.x, batch.edge_index, batch.y[: batch.batch_size])
    """
    return FeatureStore(
        graph, features, encode=encode, hetero=hetero, patience_s=patience_s
    ), GraphStore(graph, hetero=hetero)


def nodes(graph: Graph, node_type: str) -> Any:
    """Return every node of a type, in the order of a scan.

    Pass it to a loader as ``input_nodes`` if ids are not the integers from 0 on.

    Parameters
    ----------
    graph : Graph
        Graph to read.
    node_type : str
        Node type.

    Returns
    -------
    Tensor of int64, shape (n,)
        Node ids.
    """
    batches: Iterable[Ids] = [batch.ids for batch in graph.scan_nodes(node_type)]
    return tensor(np.concatenate([np.zeros(0, np.int64), *batches]))


def _refuse_writes() -> NoReturn:
    raise InvalidRequest(
        "stores: expected reads only; write with graph.upsert_nodes and graph.upsert_edges, and "
        "build a version"
    )
