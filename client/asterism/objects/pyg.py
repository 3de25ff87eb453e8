"""Reader of PyG's ``Data`` and ``HeteroData``."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from asterism.name_conversion import as_name
from asterism.objects.columns import AttributeReader
from asterism.objects.graph_tables import EdgeTable, GraphTables, NodeTable
from asterism.objects.read_options import ReadOptions
from asterism_proto.errors import InvalidRequest

_TOPOLOGY = ("edge_index", "adj_t", "adj", "num_nodes")
_WEIGHT = ("edge_weight", "weight")


def read(data: Any, options: ReadOptions, attributes: AttributeReader) -> GraphTables:
    """Convert PyG data to tables; edges come from ``edge_index`` or ``adj_t``."""
    # PyG remembers each answer about an attribute in the object, and later ones follow from it.
    data = copy.copy(data)
    if hasattr(data, "node_types"):
        return _read_hetero(data, options, attributes)
    raw: dict[str, dict[str, Any]] = {"nodes": {}, "edges": {}}
    left_out = []
    for name, value in data.to_dict().items():
        if name in _TOPOLOGY:
            continue
        kind = _row_kind(data, name)
        if kind is None or not _has_rows(
            value, data.num_edges if kind == "edges" else data.num_nodes
        ):
            left_out.append(name)
        else:
            raw[kind][name] = value
    nodes = _read_nodes(options.node_type, data.num_nodes, raw["nodes"], attributes)
    edges = _read_edges(options.triple, data, raw["edges"], attributes)
    return GraphTables(
        source_name="PyG Data",
        nodes=(nodes,),
        edges=(edges,) if edges is not None else (),
        left_out=tuple(left_out),
    )


def _row_kind(data: Any, name: str) -> str | None:
    """Return "nodes" or "edges" for an attribute with a row for each, or None.

    If there are as many nodes as edges, the name decides, as in PyG for tensors: one with "edge" in
    it belongs to edges.
    """
    checks = {"nodes": data.is_node_attr, "edges": data.is_edge_attr}
    order = ("edges", "nodes") if "edge" in name else ("nodes", "edges")
    return next((kind for kind in order if checks[kind](name)), None)


def _read_hetero(data: Any, options: ReadOptions, attributes: AttributeReader) -> GraphTables:
    nodes, edges, left_out = [], [], []
    for node_type in data.node_types:
        store = data[node_type]
        raw, names = _split_attributes(store, store.is_node_attr, store.num_nodes)
        left_out += [f"{node_type}.{name}" for name in names]
        nodes.append(_read_nodes(as_name(node_type), store.num_nodes, raw, attributes))
    for triple in data.edge_types:
        store = data[triple]
        raw, names = _split_attributes(store, store.is_edge_attr, store.num_edges)
        left_out += [f"{':'.join(triple)}.{name}" for name in names]
        a, b, c = map(as_name, triple)
        edge_table = _read_edges((a, b, c), store, raw, attributes)
        if edge_table is not None:
            edges.append(edge_table)
    type_keys = {"_global_store"} | set(data.node_types) | set(data.edge_types)
    left_out += [name for name in data.to_dict().get("_global_store", {}) if name not in type_keys]
    return GraphTables(
        source_name="PyG HeteroData",
        nodes=tuple(nodes),
        edges=tuple(edges),
        left_out=tuple(left_out),
    )


def _split_attributes(
    store: Any, is_attribute: Callable[[str], bool], rows: int
) -> tuple[dict[str, Any], list[str]]:
    """Return the attributes of a type's rows by name, and the names of the remaining ones."""
    values = {name: value for name, value in store.items() if name not in _TOPOLOGY}
    raw = {
        name: value
        for name, value in values.items()
        if is_attribute(name) and _has_rows(value, rows)
    }
    return raw, [name for name in values if name not in raw]


def _has_rows(value: Any, rows: int) -> bool:
    """Return True if an attribute's rows are on its first axis, not, as of an index, its last."""
    shape = getattr(value, "shape", None)
    return (
        bool(len(shape) and shape[0] == rows)
        if shape is not None
        else hasattr(value, "__len__") and not isinstance(value, str) and len(value) == rows
    )


def _read_nodes(
    name: str, count: int | None, raw: dict[str, Any], attributes: AttributeReader
) -> NodeTable:
    if count is None:
        raise InvalidRequest(
            f"node type {name!r}: expected num_nodes or features of the nodes; set num_nodes"
        )
    type_attributes = attributes.read(name, count, raw, edges=False)
    return NodeTable(
        name=name, count=count, weights=type_attributes.weights, features=type_attributes.features
    )


def _read_edges(
    triple: tuple[str, str, str], store: Any, raw: dict[str, Any], attributes: AttributeReader
) -> EdgeTable | None:
    if "edge_index" in store:
        index = store["edge_index"]
        if index.dim() != 2 or index.shape[0] != 2:
            raise InvalidRequest(
                f"edge type {':'.join(triple)!r}: edge_index of shape {list(index.shape)}: "
                f"expected "
                "[2, edges]"
            )
        src, dst = index[0], index[1]
    elif "adj_t" in store:
        dst, src, values = _matrix_entries(store["adj_t"])
        raw = raw if values is None else {"edge_weight": values, **raw}
    elif "adj" in store:
        src, dst, values = _matrix_entries(store["adj"])
        raw = raw if values is None else {"edge_weight": values, **raw}
    else:
        return None
    type_attributes = attributes.read(":".join(triple), len(src), raw, edges=True, weight=_WEIGHT)
    return EdgeTable(
        triple=triple,
        src=src,
        dst=dst,
        weights=type_attributes.weights,
        features=type_attributes.features,
    )


def _matrix_entries(matrix: Any) -> tuple[Any, Any, Any]:
    """Return rows, columns and values of a sparse matrix of torch_sparse or torch."""
    if hasattr(matrix, "coo"):
        row, col, values = matrix.coo()
        return row, col, values
    coo = matrix.to_sparse_coo().coalesce()
    return coo.indices()[0], coo.indices()[1], coo.values()
