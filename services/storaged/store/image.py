"""Image records: the arrays of one partition of one version, as sampling sees them.

An image is a folder of raw little-endian files, one per array, and a ``manifest.json`` that is
written last. In a running storaged the records are views of mapped files; in kernel tests they are
plain arrays. Code that reads them cannot distinguish the two. `open_part` maps a folder;
`storaged.build` writes one.

Rows
    A node row is a position in the type's node list of the partition, ordered by id. A *dense* type
    has id = row * parts + part and no id array; deleted ids are holes, marked in ``live``. A sparse
    type has sorted ``ids`` and an open-addressing index. An edge *slot* is a position in the
    partition's out-adjacency of a type, ordered by (source row, neighbor id, edge id).
Alias thresholds
    A draw multiplies a 64-bit random word by n. The high half of the product is the column r, the
    low half is the coin. The draw keeps r if coin < T, else takes the alias, where T = acceptance
    probability * 2^64. ``hot`` stores (T >> 32) << 32 | alias. ``cold`` stores T & 0xFFFFFFFF,
    which is read only if the coin's high half equals T's. A column that is always accepted is its
    own alias.
Redundant copies
    They turn two random reads into one. If the neighbor ids of an adjacency fit into 32 bits,
    ``narrow`` stores them in half the memory. If its edge ids fit too, ``pairs`` stores both ids of
    each edge next to each other. ``packed`` stores the two candidate neighbors next to each
    ``hot``. For sparse nodes, ``keyed`` stores the id of each column next to its ``hot``.
Times
    For edges with a time, ``order`` has the slots of each row from the earliest edge to the latest.
    The edges visible at a time are a prefix of it, found by bisection, and ``time_sums`` has the
    weight of each prefix.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import Corrupt, NotFound
from storaged.store.checksums import MANIFEST, holds_offsets, map_array
from storaged.store.column_index import ColumnIndex, open_indexes
from storaged.store.huge_pages import reload_into_huge_pages

FORMAT, READABLE_FORMATS = 4, (1, 2, 3, 4)
"""Format of written files, and the formats that can be read.

Format 1 has no redundant copies; formats 2 and 3 have no ``pairs``. The version number is not part
of an image: the same content has the same bytes.
"""
NO_NEIGHBOR = 0xFFFFFFFF
"""Marker for "no neighbor" in ``packed``. Arrays of 32-bit ids have no id from here on."""

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]
U8 = NDArray[np.uint8]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

EMPTY_I64 = np.zeros(0, np.int64)
EMPTY_I32 = np.zeros(0, np.int32)
EMPTY_U64 = np.zeros(0, np.uint64)
EMPTY_U32 = np.zeros(0, np.uint32)
EMPTY_U8 = np.zeros(0, np.uint8)
EMPTY_F32 = np.zeros(0, np.float32)
EMPTY_F64 = np.zeros(0, np.float64)


def interleave_ids(alias_threshold: U64, ids: I64) -> U64:
    """Interleave the columns of a table with the ids of their rows: uint64, shape (2 * n,)."""
    return np.column_stack([alias_threshold, ids.astype(np.uint64)]).reshape(-1)


def pack_pairs(nbr: I64, eid: I64) -> U64:
    """Pack neighbor ids and edge ids, all below 2^32, into one word each: uint64, shape (n,)."""
    return eid.astype(np.uint64) << np.uint64(32) | nbr.astype(np.uint64)


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasTable:
    """An alias table over the rows (or slots) of one (partition, type, weight name)."""

    size: int
    """Number of columns: rows of positive weight."""
    total: float
    """Neumaier sum of their weights, in float64."""
    hot: U64 = field(default_factory=lambda: EMPTY_U64)
    """Thresholds and aliases: uint64, shape (size,).

    Empty if all positive weights are equal, since every column is then always accepted.
    """
    cold: U32 = field(default_factory=lambda: EMPTY_U32)
    """Low halves of the thresholds: uint32, shape (size,); empty if ``hot`` is."""
    row_of: U32 = field(default_factory=lambda: EMPTY_U32)
    """Row of each column: uint32, shape (size,); empty if column i is row i."""
    keyed: U64 = field(default_factory=lambda: EMPTY_U64)
    """``hot`` and the row's id of each column, interleaved: uint64, shape (2 * size,).

    Empty if ``hot`` is, and for dense nodes and edges.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureColumn:
    """The values of a feature of a type, in row order."""

    values: NDArray[Any]
    """Values. Dense: shape (rows, ...); ragged: shape (total,); bytes: uint8, shape (total,)."""
    indptr: I64 | None = None
    """Row pointers of ragged and bytes features: int64, shape (rows + 1,); None if dense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWeights:
    """Additional weights of the nodes of one type, identified by a name."""

    weights: F32
    """Weights: float32, shape (rows,)."""
    table: AliasTable


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeImage:
    """The nodes of one type in one partition."""

    rows: int
    """Number of rows, holes included."""
    count: int
    """Number of live rows, which is the total of uniform sampling."""
    dense: bool
    ids: I64 = field(default_factory=lambda: EMPTY_I64)
    """Ids, ascending, sparse types only: int64, shape (rows,)."""
    index_ids: I64 = field(default_factory=lambda: EMPTY_I64)
    """Open-addressing hash table of ids, sparse types only: int64, shape (2^k,).

    Linear probing starts at mix64(id) >> (64 - k); -1 marks a free place.
    """
    index_rows: U32 = field(default_factory=lambda: EMPTY_U32)
    """Row of each id in ``index_ids``: uint32, shape (2^k,)."""
    live: U8 = field(default_factory=lambda: EMPTY_U8)
    """Liveness: uint8, shape (rows,), 0 for a hole; empty without holes."""
    live_rows: U32 = field(default_factory=lambda: EMPTY_U32)
    """Live rows, ascending: uint32, shape (count,); empty without holes."""
    weights: F32 = field(default_factory=lambda: EMPTY_F32)
    """Weights: float32, shape (rows,); empty for an unweighted type, where all weigh 1."""
    table: AliasTable
    extra_weights: Mapping[str, NodeWeights] = field(default_factory=dict)
    """Additional weights, by the names of the type's weight tables."""
    columns: Mapping[str, FeatureColumn] = field(default_factory=dict)
    indexes: tuple[ColumnIndex, ...] = ()
    """Column indexes for sampling with filters, by (column, kind)."""
    label_hash: I64 = field(default_factory=lambda: EMPTY_I64)
    """Hashes of the graph labels in this partition, ascending: int64, shape (labels,).

    Only types with a graph label have it.
    """
    label_indptr: I64 = field(default_factory=lambda: EMPTY_I64)
    """Start of each label's rows: int64, shape (labels + 1,)."""
    label_rows: U32 = field(default_factory=lambda: EMPTY_U32)
    """Rows of each label, ascending: uint32, shape (labelled nodes,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWeights:
    """The weights of an adjacency and the alias tables derived from them."""

    weights: F32
    """Same arrays as those of `AdjacencyImage`, as are the following fields."""
    sums: F64
    hot: U64 = field(default_factory=lambda: EMPTY_U64)
    cold: U32 = field(default_factory=lambda: EMPTY_U32)
    packed: U64 = field(default_factory=lambda: EMPTY_U64)
    time_sums: F64 = field(default_factory=lambda: EMPTY_F64)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeWeights:
    """Additional weights of the edges of one type, identified by a name."""

    table: AliasTable
    outgoing: RowWeights
    incoming: RowWeights | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjacencyImage:
    """The edges of one type in one partition, grouped by the row of the local end.

    ``nbr`` is the id of the remote end.
    """

    indptr: I64
    """Row pointers over the local end's node type in this partition: int64, shape (rows + 1,)."""
    nbr: I64
    """Neighbor ids, ascending in a row, ties by edge id: int64, shape (slots,)."""
    eid: I64
    """Edge ids: int64, shape (slots,)."""
    weights: F32 = field(default_factory=lambda: EMPTY_F32)
    """Weights: float32, shape (slots,); empty for an unweighted type."""
    sums: F64 = field(default_factory=lambda: EMPTY_F64)
    """Neumaier sum of each row's weights: float64, shape (rows,).

    Empty for an unweighted type, where the sum is the degree.
    """
    hot: U64 = field(default_factory=lambda: EMPTY_U64)
    """Alias tables of the rows: uint64, shape (slots,).

    Aliases count from the row's first slot. Empty for an unweighted type, or if all weights of the
    array are equal and positive. A zero weight has T = 0 and an alias of positive weight; in a row
    of sum 0 it is its own alias.
    """
    cold: U32 = field(default_factory=lambda: EMPTY_U32)
    """Low halves of the thresholds: uint32, shape (slots,); empty if ``hot`` is."""
    narrow: U32 = field(default_factory=lambda: EMPTY_U32)
    """Copy of ``nbr``: uint32, shape (slots,).

    Empty if an id does not fit, and in images derived from other images.
    """
    pairs: U64 = field(default_factory=lambda: EMPTY_U64)
    """``eid`` << 32 | ``nbr``: uint64, shape (slots,).

    Empty if ``narrow`` is, and if an edge id does not fit.
    """
    packed: U64 = field(default_factory=lambda: EMPTY_U64)
    """``hot``, then the alias's neighbor << 32 | the slot's own: uint64, shape (2 * slots,).

    Both neighbors are `NO_NEIGHBOR` in a row of sum 0. Empty if ``hot`` or ``narrow`` is.
    """
    when: I64 = field(default_factory=lambda: EMPTY_I64)
    """Encoded edge times: int64, shape (slots,); empty for a type without a time.

    The encoding is that of `asterism_graphkit.arrays.time_keys.encode_times`.
    """
    order: U32 = field(default_factory=lambda: EMPTY_U32)
    """Slots of each row by (``when``, slot): uint32, shape (slots,); empty if ``when`` is."""
    time_sums: F64 = field(default_factory=lambda: EMPTY_F64)
    """Neumaier prefix sums of a row's weights in that order: float64, shape (slots,).

    Empty if ``when`` is, or for an unweighted type.
    """
    edge_columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Indexed features by slot: shape (slots,); a copy of those stored by edge id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeImage:
    """The edges of one type in one partition."""

    outgoing: AdjacencyImage
    """Edges by source. Totals, global draws and scans read it."""
    incoming: AdjacencyImage | None
    """Edges by destination, if the schema keeps in-copies."""
    src_row: U32
    """Row of each edge's source: uint32, shape (slots of ``outgoing``,)."""
    table: AliasTable
    """Alias table for global draws, over the slots of ``outgoing``."""
    feature_eids: I64 = field(default_factory=lambda: EMPTY_I64)
    """Edge ids e with e % parts == part and with features stored here.

    int64, shape (n,), ascending. Empty without features, or if row = e // parts without holes.
    """
    feature_rows: int = 0
    """Number of rows of each column."""
    extra_weights: Mapping[str, EdgeWeights] = field(default_factory=dict)
    """Additional weights, by the names of the type's weight tables."""
    columns: Mapping[str, FeatureColumn] = field(default_factory=dict)
    indexes: tuple[ColumnIndex, ...] = ()
    """Column indexes for sampling with filters, by (column, kind), over slots of ``outgoing``.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class PartImage:
    """One partition of one version. Type ids index the tuples."""

    part: int
    parts: int
    mod: bool
    """True for placement by modulo; only then can types be dense."""
    nodes: tuple[NodeImage, ...]
    edges: tuple[EdgeImage, ...]
    digest: str = ""
    """sha256 of the image's manifest."""


def with_weights(image: PartImage, weight_name: str) -> PartImage:
    """Return the partition with the weights of a name in place of the rows' own.

    Types without weights of that name keep their own.
    """
    return replace(
        image,
        nodes=tuple(
            replace(
                node,
                weights=node.extra_weights[weight_name].weights,
                table=node.extra_weights[weight_name].table,
            )
            if weight_name in node.extra_weights
            else node
            for node in image.nodes
        ),
        edges=tuple(
            _edges_with_weights(edge, edge.extra_weights[weight_name])
            if weight_name in edge.extra_weights
            else edge
            for edge in image.edges
        ),
    )


def _edges_with_weights(edge: EdgeImage, weights: EdgeWeights) -> EdgeImage:
    incoming = (
        edge.incoming
        if edge.incoming is None or weights.incoming is None
        else _rows_with_weights(edge.incoming, weights.incoming)
    )
    return replace(
        edge,
        table=weights.table,
        outgoing=_rows_with_weights(edge.outgoing, weights.outgoing),
        incoming=incoming,
    )


def _rows_with_weights(side: AdjacencyImage, weights: RowWeights) -> AdjacencyImage:
    return replace(
        side,
        weights=weights.weights,
        sums=weights.sums,
        hot=weights.hot,
        cold=weights.cold,
        packed=weights.packed,
        time_sums=weights.time_sums,
    )


def open_part(
    folder: Path,
    *,
    verify: bool,
    offsets: bool = False,
    huge_pages: bool = False,
    digest: str | None = None,
) -> PartImage:
    """Map the image in a folder, read-only.

    Parameters
    ----------
    folder : Path
        Folder written by `storaged.store.image_writer`.
    verify : bool
        Read every byte and compare checksums. Otherwise, only the manifest and the file sizes are
        checked.
    offsets : bool
        Read the files with positions in other files, and compare their checksums. Damage in the
        remaining files may then cause wrong values, but no reads beyond the end of an array.
        Default False.
    huge_pages : bool
        Map in huge pages, for images that fit into memory
        (`storaged.store.huge_pages.fits_memory`). Default False.
    digest : str, optional
        sha256 of the manifest, in hexadecimal digits. By default, any manifest is accepted.

    Raises
    ------
    NotFound
        There is no manifest, so the image was never finished, or the digest of the manifest is not
        ``digest``.
    Corrupt
        The manifest is damaged, or a file is missing or has another size, or (``verify``) is
        altered.
    """
    try:
        raw = (folder / MANIFEST).read_bytes()
    except FileNotFoundError as error:
        raise NotFound(
            f"image file {folder / MANIFEST}: missing: the build did not finish, or the file "
            "was removed; build the version again"
        ) from error
    try:
        manifest = json.loads(raw)
        if manifest["format"] not in READABLE_FORMATS:
            raise Corrupt(
                f"image file {folder / MANIFEST}: format={manifest['format']}: expected "
                f"{READABLE_FORMATS[0]} to {READABLE_FORMATS[-1]}; run the release that wrote "
                "it, or build the version again"
            )
        found_digest = hashlib.sha256(raw).hexdigest()
        if digest is not None and found_digest != digest:
            # Checked before any file: an altered manifest may name files that never existed.
            raise NotFound(
                f"image file {folder / MANIFEST}: its digest is {found_digest}: expected "
                f"{digest}, as in the version; build the version again"
            )
        if verify and huge_pages:
            reload_into_huge_pages(folder)
        arrays = {
            name: map_array(
                folder / f"{name}.bin",
                entry,
                verify=verify or (offsets and holds_offsets(name)),
                huge_pages=huge_pages,
            )
            for name, entry in manifest["files"].items()
        }
        return PartImage(
            part=int(manifest["part"]),
            parts=int(manifest["parts"]),
            mod=bool(manifest["mod"]),
            nodes=tuple(
                _nodes(entry, f"n{i}", arrays) for i, entry in enumerate(manifest["nodes"])
            ),
            edges=tuple(
                _edges(entry, f"e{i}", arrays) for i, entry in enumerate(manifest["edges"])
            ),
            digest=found_digest,
        )
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError) as error:
        cause = f"{type(error).__name__}: {error}"  # Not its repr, which may quote the whole file.
        raise Corrupt(
            f"image file {folder / MANIFEST}: damaged ({cause}); build the version again"
        ) from error


def _present_arrays(
    arrays: Mapping[str, NDArray[Any]], prefix: str, *names: str
) -> dict[str, NDArray[Any]]:
    """Return the arrays of a record that have a file; missing ones keep their empty default."""
    return {name: arrays[f"{prefix}.{name}"] for name in names if f"{prefix}.{name}" in arrays}


def _table(entry: Mapping[str, Any], prefix: str, arrays: Mapping[str, NDArray[Any]]) -> AliasTable:
    return AliasTable(
        size=int(entry["size"]),
        total=float(entry["total"]),
        **_present_arrays(arrays, f"{prefix}.table", "hot", "cold", "row_of", "keyed"),
    )


def _columns(
    names: list[str], prefix: str, arrays: Mapping[str, NDArray[Any]]
) -> dict[str, FeatureColumn]:
    return {
        name: FeatureColumn(
            values=arrays[f"{prefix}.c{i}.values"], indptr=arrays.get(f"{prefix}.c{i}.indptr")
        )
        for i, name in enumerate(names)
        if f"{prefix}.c{i}.values" in arrays
    }


def _nodes(entry: Mapping[str, Any], prefix: str, arrays: Mapping[str, NDArray[Any]]) -> NodeImage:
    return NodeImage(
        rows=int(entry["rows"]),
        count=int(entry["count"]),
        dense=bool(entry["dense"]),
        **_present_arrays(
            arrays,
            prefix,
            "ids",
            "index_ids",
            "index_rows",
            "live",
            "live_rows",
            "weights",
            "label_hash",
            "label_indptr",
            "label_rows",
        ),
        table=_table(entry["table"], prefix, arrays),
        extra_weights={
            table["name"]: NodeWeights(
                weights=arrays[f"{prefix}.w{i}.weights"],
                table=_table(table, f"{prefix}.w{i}", arrays),
            )
            for i, table in enumerate(entry.get("tables", ()))
        },
        columns=_columns(entry["columns"], prefix, arrays),
        indexes=open_indexes(entry.get("indexes", []), arrays),
    )


def _adjacency(
    prefix: str, arrays: Mapping[str, NDArray[Any]], column_numbers: Mapping[str, int]
) -> AdjacencyImage:
    return AdjacencyImage(
        **{name: arrays[f"{prefix}.{name}"] for name in ("indptr", "nbr", "eid")},
        **_present_arrays(
            arrays,
            prefix,
            "weights",
            "sums",
            "hot",
            "cold",
            "narrow",
            "pairs",
            "packed",
            "when",
            "order",
            "time_sums",
        ),
        edge_columns={
            name: arrays[f"{prefix}.n{number}"] for name, number in column_numbers.items()
        },
    )


def _row_weights(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> RowWeights:
    present = _present_arrays(arrays, prefix, "hot", "cold", "packed", "time_sums")
    return RowWeights(weights=arrays[f"{prefix}.weights"], sums=arrays[f"{prefix}.sums"], **present)


def _edges(entry: Mapping[str, Any], prefix: str, arrays: Mapping[str, NDArray[Any]]) -> EdgeImage:
    column_numbers = {name: entry["columns"].index(name) for name in entry.get("near", ())}
    return EdgeImage(
        outgoing=_adjacency(f"{prefix}.out", arrays, column_numbers),
        incoming=_adjacency(f"{prefix}.in", arrays, column_numbers)
        if f"{prefix}.in.indptr" in arrays
        else None,
        src_row=arrays[f"{prefix}.src_row"],
        table=_table(entry["table"], prefix, arrays),
        **_present_arrays(arrays, prefix, "feature_eids"),
        feature_rows=int(entry["feature_rows"]),
        extra_weights={
            table["name"]: EdgeWeights(
                table=_table(table, f"{prefix}.w{i}", arrays),
                outgoing=_row_weights(f"{prefix}.out.w{i}", arrays),
                incoming=_row_weights(f"{prefix}.in.w{i}", arrays)
                if f"{prefix}.in.indptr" in arrays
                else None,
            )
            for i, table in enumerate(entry.get("tables", ()))
        },
        columns=_columns(entry["columns"], prefix, arrays),
        indexes=open_indexes(entry.get("indexes", []), arrays),
    )
