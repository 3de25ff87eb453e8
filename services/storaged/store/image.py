"""Image records: the arrays of one part of one version, as draws see them.

An image is a folder of raw little-endian files, one per array, and a ``manifest.json`` that is
written last. These records are views of mapped files in a running storaged, and plain arrays in a
kernel's test: whoever holds one can not tell. `open_part` maps a folder; `storaged.build` writes
one.

Rows. A node row is a position in the type's node list of the part, by id. A *dense* type has id =
row * parts + part and no id array; deleted ids are holes, marked in ``live``. A sparse type has
sorted ``ids`` and an open-addressing index. An edge *slot* is a position in the part's
out-adjacency of a type, by (source row, neighbor id, edge id).

Thresholds. A draw takes column r = high half of word * n with the low half as its coin, keeps r
when coin < T and goes to the alias otherwise, where T = acceptance probability * 2^64. ``hot``
holds (T >> 32) << 32 | alias, ``cold`` holds T & 0xFFFFFFFF, read only where the coin's high half
equals T's. A column that is certain is its own alias.

Twice over. Where the ids of an adjacency's neighbors fit into 32 bits they are there a second time
as ``narrow``, in half the room; where those of its edges do, too, ``pairs`` has each edge's two ids
side by side; and ``packed`` puts beside each ``hot`` the two neighbors between which it decides. Of
sparse nodes ``keyed`` has each ``hot`` beside the id of its column. What a draw wants to know is
one read at random instead of two.

By time. Where edges have a time, ``order`` has the slots of each row from the earliest edge to the
latest: what is seen until a time is a beginning of it, found by bisection, and ``time_sums`` say
what that weighs."""

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
"""Of the files as they are written, and those that can be read: the first has nothing twice over,
the second and the third no ``pairs``.

A version's number is nowhere in an image: the same content has the same bytes."""
NO_NEIGHBOR = 0xFFFFFFFF
"""In ``packed``: no neighbor. Ids from here on are in nothing of 32 bits."""

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
    """Columns of a table beside the ids of their rows, one after another; uint64[2 * n]."""
    return np.column_stack([alias_threshold, ids.astype(np.uint64)]).reshape(-1)


def pack_pairs(nbr: I64, eid: I64) -> U64:
    """Neighbors and their edges' ids side by side, all of them below 2^32; uint64[n]."""
    return eid.astype(np.uint64) << np.uint64(32) | nbr.astype(np.uint64)


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasTable:
    """An alias table over the rows (or slots) of one (part, type, weight name)."""

    size: int
    """Columns: rows of positive weight."""
    total: float
    """float64 Neumaier sum of their weights."""
    hot: U64 = field(default_factory=lambda: EMPTY_U64)
    """uint64[size]; empty when all positive weights are equal: then every column is certain."""
    cold: U32 = field(default_factory=lambda: EMPTY_U32)
    """uint32[size], or empty with ``hot``."""
    row_of: U32 = field(default_factory=lambda: EMPTY_U32)
    """uint32[size], column -> row; empty when column i is row i."""
    keyed: U64 = field(default_factory=lambda: EMPTY_U64)
    """uint64[2 * size]: of each column ``hot``, then the id of its own row; empty with ``hot``, of
    dense nodes and of edges.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureColumn:
    """A feature of a type, in row order."""

    values: NDArray[Any]
    """dense: [rows, *shape]; ragged: [total]; bytes: uint8[total]."""
    indptr: I64 | None = None
    """int64[rows + 1] for ragged and bytes; None for dense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWeights:
    """Further weights of the nodes of one type, under a name of their own."""

    weights: F32
    """float32[rows]."""
    table: AliasTable


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeImage:
    """The nodes of one type in one part."""

    rows: int
    """Rows, holes included."""
    count: int
    """Live rows: the measure of uniform draws."""
    dense: bool
    ids: I64 = field(default_factory=lambda: EMPTY_I64)
    """int64[rows] ascending, sparse types only."""
    index_ids: I64 = field(default_factory=lambda: EMPTY_I64)
    """int64[2^k] open addressing, linear probing from mix64(id) >> (64 - k); -1 is free. Sparse
    types only.
    """
    index_rows: U32 = field(default_factory=lambda: EMPTY_U32)
    """uint32[2^k]: the row of each id in ``index_ids``."""
    live: U8 = field(default_factory=lambda: EMPTY_U8)
    """uint8[rows], 0 for a hole; empty when there is none."""
    live_rows: U32 = field(default_factory=lambda: EMPTY_U32)
    """uint32[count], the live rows ascending; empty when there is no hole."""
    weights: F32 = field(default_factory=lambda: EMPTY_F32)
    """float32[rows]; empty when the type is unweighted: all 1."""
    table: AliasTable
    extra_weights: Mapping[str, NodeWeights] = field(default_factory=dict)
    """By the names of the type's tables."""
    columns: Mapping[str, FeatureColumn] = field(default_factory=dict)
    indexes: tuple[ColumnIndex, ...] = ()
    """For draws under conditions; by (column, kind)."""
    label_hash: I64 = field(default_factory=lambda: EMPTY_I64)
    """int64[labels] ascending: the hash of each graph label of the type in this part; types with a
    graph label only.
    """
    label_indptr: I64 = field(default_factory=lambda: EMPTY_I64)
    """int64[labels + 1]: where each label's rows begin."""
    label_rows: U32 = field(default_factory=lambda: EMPTY_U32)
    """uint32[labelled nodes]: the rows of each label, ascending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWeights:
    """Weights of an adjacency and the alias rows that follow from them."""

    weights: F32
    """As those of `AdjacencyImage`, and so are the others."""
    sums: F64
    hot: U64 = field(default_factory=lambda: EMPTY_U64)
    cold: U32 = field(default_factory=lambda: EMPTY_U32)
    packed: U64 = field(default_factory=lambda: EMPTY_U64)
    time_sums: F64 = field(default_factory=lambda: EMPTY_F64)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeWeights:
    """Further weights of the edges of one type, under a name of their own."""

    table: AliasTable
    outgoing: RowWeights
    incoming: RowWeights | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjacencyImage:
    """The edges of one type at one part, by the row of one end. ``nbr`` is the other end's id."""

    indptr: I64
    """int64[rows + 1] over the rows of the near end's node type in this part."""
    nbr: I64
    """int64[slots], ascending within a row, ties by edge id."""
    eid: I64
    """int64[slots]."""
    weights: F32 = field(default_factory=lambda: EMPTY_F32)
    """float32[slots]; empty when the type is unweighted."""
    sums: F64 = field(default_factory=lambda: EMPTY_F64)
    """float64[rows], each row's Neumaier sum of weights; empty when the type is unweighted (then it
    is the degree).
    """
    hot: U64 = field(default_factory=lambda: EMPTY_U64)
    """uint64[slots], per-row alias tables (aliases count from the row's first slot); empty when
    unweighted or all weights of the array are equal and positive. Zero weights have T = 0 and a
    positive alias; in a row of sum 0, themselves."""
    cold: U32 = field(default_factory=lambda: EMPTY_U32)
    """uint32[slots], or empty with ``hot``."""
    narrow: U32 = field(default_factory=lambda: EMPTY_U32)
    """uint32[slots], ``nbr`` once more; empty where an id does not fit, and in what is made of
    other images.
    """
    pairs: U64 = field(default_factory=lambda: EMPTY_U64)
    """uint64[slots], ``eid`` << 32 | ``nbr``; empty with ``narrow``, and where an edge's id does
    not fit.
    """
    packed: U64 = field(default_factory=lambda: EMPTY_U64)
    """uint64[2 * slots]: of each slot ``hot``, then the alias's neighbor << 32 | its own; both are
    `NO_NEIGHBOR` in a row of sum 0. Empty with ``hot`` or ``narrow``."""
    when: I64 = field(default_factory=lambda: EMPTY_I64)
    """int64[slots], the time of each edge as `asterism_graphkit.arrays.time_keys.encode_times` has
    it; empty when the type has no time.
    """
    order: U32 = field(default_factory=lambda: EMPTY_U32)
    """uint32[slots], the slots of each row by (``when``, slot); empty with ``when``."""
    time_sums: F64 = field(default_factory=lambda: EMPTY_F64)
    """float64[slots], in that order the weights of a row up to each place, Neumaier's sums; empty
    with ``when``, or when unweighted.
    """
    edge_columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """[slots], the features that the schema's indexes are on: what is elsewhere by edge id is here
    beside the edges.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeImage:
    """The edges of one type in one part."""

    outgoing: AdjacencyImage
    """By source. The truth: totals, global draws and scans read it."""
    incoming: AdjacencyImage | None
    """By destination, where the schema keeps in-copies."""
    src_row: U32
    """uint32[slots of out]: the source's row."""
    table: AliasTable
    """For global draws, over the slots of ``outgoing``."""
    feature_eids: I64 = field(default_factory=lambda: EMPTY_I64)
    """int64[n] ascending edge ids e with e % parts == part, whose features live here; empty when
    there are no features or row = e // parts without holes."""
    feature_rows: int = 0
    """Rows of each column."""
    extra_weights: Mapping[str, EdgeWeights] = field(default_factory=dict)
    """By the names of the type's tables."""
    columns: Mapping[str, FeatureColumn] = field(default_factory=dict)
    indexes: tuple[ColumnIndex, ...] = ()
    """For draws under conditions; by (column, kind). Rows of theirs are slots of ``outgoing``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartImage:
    """One part of one version. Type ids index the tuples."""

    part: int
    parts: int
    mod: bool
    """Whether placement is mod (dense types exist only then)."""
    nodes: tuple[NodeImage, ...]
    edges: tuple[EdgeImage, ...]
    digest: str = ""
    """sha256 of the image's manifest."""


def with_weights(image: PartImage, weight_name: str) -> PartImage:
    """The same part with the weights of that name in place of the rows' own; types that have none
    of it keep theirs.
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
    """Map the image in ``folder``, read-only.

    Parameters
    ----------
    folder : Path
        As `storaged.store.image_writer` wrote it.
    verify : bool
        Read every byte and compare checksums; otherwise only the manifest and the sizes of files
        are checked.
    offsets : bool
        Read the files that hold places in other files, and compare their checksums: what is wrong
        in those that are left may give wrong values, but not reads beyond the end of an array.
    huge_pages : bool
        Have it in large pages: of what fits into memory, as `storaged.store.huge_pages.fits_memory`
        says.
    digest : str, optional
        SHA-256 of the manifest, in hexadecimal digits; None: any.

    Raises
    ------
    NotFound
        There is no manifest: the image was never finished. Or it is not the one of ``digest``.
    Corrupt
        The manifest is damaged, or a file is missing, of another size, or (``verify``) altered.
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
                f"{READABLE_FORMATS[0]} to {READABLE_FORMATS[-1]}; "
                "run the release that wrote it, or build the version again"
            )
        found_digest = hashlib.sha256(raw).hexdigest()
        if digest is not None and found_digest != digest:
            # Before any file: an altered manifest may name files that never were.
            raise NotFound(
                f"image file {folder / MANIFEST}: its digest is {found_digest}, the version was "
                f"sealed with {digest}; build the version again"
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
        cause = f"{type(error).__name__}: {error}"  # not its repr, which may quote the whole file
        raise Corrupt(
            f"image file {folder / MANIFEST}: damaged ({cause}); build the version again"
        ) from error


def _present_arrays(
    arrays: Mapping[str, NDArray[Any]], prefix: str, *names: str
) -> dict[str, NDArray[Any]]:
    """The arrays of a record that have a file; the others keep their empty default."""
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
