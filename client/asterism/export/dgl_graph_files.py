"""DGL's files of graphs (`save_graphs`), streamed on write, viewed on read.

Layout::

    bytes 0 to 4095: u64 magic, u64 version 2, u64 type 2 (heterograph), u64 number of graphs, zeros
    u64 offset of the first graph, labels, graphs
    u64 L, [u64 number of graphs, u64 offsets] of L bytes, u64 L

A graph consists of its meta graph (node types and edge types as an out-CSR), one relation per edge
type (each of COO, CSR and CSC that is present), node counts, node and edge data, and type names. A
partition is one graph with one node type ``_N`` and one edge type ``_E``, whatever types it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from asterism.export.dgl_tensor_files import ArrayStream, DglReader, DglWriter
from asterism_proto.errors import InvalidRequest

HEADER = 4096
FILE_MAGIC = 0xDD2E4FF046B4A13F
HETERO_MAGIC = 0xDD589FBE35224ABF
META_MAGIC = 0xDD3C5FFE20046ABF
CSR_MAGIC = 0xDD6CD31205DFF127
COO_MAGIC = 0xDD61FFD305DFF127
UNIT_MAGIC = 0xDD2E60F0F6B4A127
COO, CSR, CSC = 1, 2, 4
_FORMATS = 1 << 32
"""Flag in a word of formats, set by the DGL versions that treat the word as a bit mask."""
_NULL = ArrayStream.from_array(np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Coo:
    """Edges as pairs of ends."""

    rows: int
    cols: int
    row: ArrayStream
    """Sources; ndarray of int64, shape (E,)."""
    col: ArrayStream
    """Destinations; ndarray of int64, shape (E,)."""
    data: ArrayStream = _NULL
    """Edge ids, ndarray of int64, shape (E,); empty if an edge's id is its position."""
    row_sorted: bool = False
    col_sorted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Csr:
    """Edges grouped by one end: by source in a CSR, by destination in a CSC."""

    rows: int
    cols: int
    indptr: ArrayStream
    indices: ArrayStream
    data: ArrayStream = _NULL
    sorted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """Edges of one type, in each saved format."""

    src_type: int
    dst_type: int
    coo: Coo | None = None
    csr: Csr | None = None
    csc: Csr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DglGraph:
    """Typed graph with its data, one mapping per node type and edge type."""

    ntypes: tuple[str, ...]
    etypes: tuple[str, ...]
    num_nodes: tuple[int, ...]
    relations: tuple[Relation, ...]
    ndata: tuple[Mapping[str, ArrayStream], ...]
    edata: tuple[Mapping[str, ArrayStream], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFile:
    """Content of a file of graphs."""

    graphs: tuple[DglGraph, ...]
    labels: Mapping[str, ArrayStream] = field(default_factory=dict)


def write_graphs(file: BinaryIO, content: GraphFile) -> None:
    """Write a file for DGL's `load_graphs`."""
    writer = DglWriter(file)
    start = writer.position()
    writer.integers("4Q", FILE_MAGIC, 2, 2, len(content.graphs))
    file.write(bytes(HEADER - 32 + 8))
    writer.named_arrays(content.labels)
    offsets = []
    for graph in content.graphs:
        offsets.append(writer.position() - start)
        _write_graph(writer, graph)
    trailer_bytes = 8 + 8 * len(offsets)
    writer.integers(f"QQ{len(offsets)}QQ", trailer_bytes, len(offsets), *offsets, trailer_bytes)
    end = file.tell()
    file.seek(start + HEADER)
    writer.integers("Q", offsets[0] if offsets else end - start - trailer_bytes - 16)
    file.seek(end)


def _write_graph(writer: DglWriter, graph: DglGraph) -> None:
    if not len(graph.ntypes) == len(graph.num_nodes) == len(graph.ndata) or not len(
        graph.etypes
    ) == len(graph.relations) == len(graph.edata):
        raise InvalidRequest(
            "a graph has one count and one mapping per node type, one relation and one "
            "mapping per edge type"
        )
    writer.integers("Q", HETERO_MAGIC)
    _write_meta(writer, len(graph.ntypes), [(r.src_type, r.dst_type) for r in graph.relations])
    writer.integers("Q", len(graph.relations))
    for relation in graph.relations:
        _write_relation(writer, relation)
    writer.integers(f"Q{len(graph.num_nodes)}q", len(graph.num_nodes), *graph.num_nodes)
    for frames in (graph.ndata, graph.edata):
        writer.integers("Q", len(frames))
        for frame in frames:
            writer.named_arrays(frame)
    writer.strings(graph.ntypes)
    writer.strings(graph.etypes)


def _write_meta(writer: DglWriter, nodes: int, type_pairs: list[tuple[int, int]]) -> None:
    """Write the graph of types, as an out-CSR in which edge ids are edge types."""
    src, dst = np.array(type_pairs, np.int64).reshape(-1, 2).T
    order = np.argsort(src, kind="stable")
    indptr = np.searchsorted(src[order], np.arange(nodes + 1)).astype(np.int64)
    writer.integers("Q", META_MAGIC)
    _write_csr(
        writer,
        Csr(
            rows=nodes,
            cols=nodes,
            indptr=ArrayStream.from_array(indptr),
            indices=ArrayStream.from_array(dst[order]),
            data=ArrayStream.from_array(order),
        ),
    )


def _write_relation(writer: DglWriter, relation: Relation) -> None:
    mask = (
        (relation.coo is not None) * COO
        | (relation.csr is not None) * CSR
        | (relation.csc is not None) * CSC
    )
    writer.integers("Qqq", UNIT_MAGIC, _FORMATS | mask, _FORMATS | COO | CSR | CSC)
    same_type = relation.src_type == relation.dst_type
    for matrix in (relation.coo, relation.csr, relation.csc):
        if matrix is None:
            continue
        _write_meta(writer, 1 if same_type else 2, [(0, 0 if same_type else 1)])
        if isinstance(matrix, Coo):
            writer.integers("Qqq", COO_MAGIC, matrix.cols, matrix.rows)
            for column in (matrix.row, matrix.col, matrix.data):
                writer.array(column)
            writer.integers("BB", matrix.row_sorted, matrix.col_sorted)
        else:
            _write_csr(writer, matrix)


def _write_csr(writer: DglWriter, matrix: Csr) -> None:
    writer.integers("Qqq", CSR_MAGIC, matrix.cols, matrix.rows)
    for column in (matrix.indptr, matrix.indices, matrix.data):
        writer.array(column)
    writer.integers("B", matrix.sorted)


def read_graphs(path: Path) -> GraphFile:
    """Read a file of graphs, with arrays as read-only views of the file.

    Parameters
    ----------
    path : Path
        File written by `write_graphs` or DGL's `save_graphs`.

    Returns
    -------
    GraphFile

    Raises
    ------
    Corrupt
        The file is not a file of graphs; the message names the offset.
    """
    source = DglReader(path)
    source.expect(FILE_MAGIC, "a file of graphs")
    version, kind, count = source.integers("3Q")
    if (version, kind) != (2, 2):
        raise source.corrupt_error(
            f"version {version} and type {kind} of a file of graphs; this reads version 2 of type 2"
        )
    source.integers(f"{HEADER - 32}x")
    (first,) = source.integers("Q")
    labels = source.named_arrays()
    if count and first != source.offset:
        raise source.corrupt_error(f"the first graph should start at {first}")
    offsets, graphs = [], []
    for _ in range(count):
        offsets.append(source.offset)
        graphs.append(_read_graph(source))
    trailer_bytes = 8 + 8 * count
    if source.integers(f"QQ{count}QQ") != (trailer_bytes, count, *offsets, trailer_bytes):
        raise source.corrupt_error("the table of the graphs' offsets is wrong")
    source.end()
    return GraphFile(graphs=tuple(graphs), labels=labels)


def _read_graph(source: DglReader) -> DglGraph:
    source.expect(HETERO_MAGIC, "a heterograph")
    type_pairs = _read_meta(source)
    if source.count(24) != len(type_pairs):
        raise source.corrupt_error(f"expected {len(type_pairs)} relations")
    relations = tuple(_read_relation(source, src, dst) for src, dst in type_pairs)
    num_nodes = source.integers(f"{source.count(8)}q")
    ndata = tuple(source.named_arrays() for _ in range(source.count(8)))
    edata = tuple(source.named_arrays() for _ in range(source.count(8)))
    ntypes, etypes = source.strings(), source.strings()
    if not len(ntypes) == len(num_nodes) == len(ndata) or not len(etypes) == len(relations) == len(
        edata
    ):
        raise source.corrupt_error("the numbers of types, counts and frames differ")
    return DglGraph(
        ntypes=tuple(ntypes),
        etypes=tuple(etypes),
        num_nodes=num_nodes,
        relations=relations,
        ndata=ndata,
        edata=edata,
    )


def _read_meta(source: DglReader) -> list[tuple[int, int]]:
    """Return the source and destination node type of each edge type."""
    source.expect(META_MAGIC, "a meta graph")
    csr = _read_csr(source)
    indptr, dst, order = (
        np.asarray(column.array()) for column in (csr.indptr, csr.indices, csr.data)
    )
    is_valid = (
        all(each.ndim == 1 and each.dtype == np.int64 for each in (indptr, dst, order))
        and len(indptr) == csr.rows + 1
        and len(dst) == len(order)
    )
    degrees = np.diff(indptr) if is_valid else np.zeros(0, np.int64)
    if (
        not is_valid
        or (degrees < 0).any()
        or indptr[0] != 0
        or indptr[-1] != len(dst)
        or not np.array_equal(np.sort(order), np.arange(len(order)))
    ):
        raise source.corrupt_error("a meta graph with edges other than 0, 1, ...")
    src = np.repeat(np.arange(csr.rows), degrees)
    type_pairs = np.empty((len(order), 2), np.int64)
    type_pairs[order, 0], type_pairs[order, 1] = src, dst
    return [(int(a), int(b)) for a, b in type_pairs]


def _read_relation(source: DglReader, src_type: int, dst_type: int) -> Relation:
    source.expect(UNIT_MAGIC, "a relation")
    saved_formats, _ = source.integers("qq")
    coo: Coo | None = None
    compressed: dict[int, Csr] = {}
    for bit in (COO, CSR, CSC):
        if not saved_formats & bit:
            continue
        _read_meta(source)
        if bit == COO:
            source.expect(COO_MAGIC, "a COO matrix")
            cols, rows = source.integers("qq")
            row, col, data = (ArrayStream.from_array(source.array()) for _ in range(3))
            row_sorted, col_sorted = source.integers("BB")
            coo = Coo(
                rows=rows,
                cols=cols,
                row=row,
                col=col,
                data=data,
                row_sorted=bool(row_sorted),
                col_sorted=bool(col_sorted),
            )
        else:
            compressed[bit] = _read_csr(source)
    return Relation(
        src_type=src_type,
        dst_type=dst_type,
        coo=coo,
        csr=compressed.get(CSR),
        csc=compressed.get(CSC),
    )


def _read_csr(source: DglReader) -> Csr:
    source.expect(CSR_MAGIC, "a CSR matrix")
    cols, rows = source.integers("qq")
    indptr, indices, data = (ArrayStream.from_array(source.array()) for _ in range(3))
    (in_order,) = source.integers("B")
    return Csr(
        rows=rows, cols=cols, indptr=indptr, indices=indices, data=data, sorted=bool(in_order)
    )
