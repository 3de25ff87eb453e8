"""Schema file: assigns files to types, and columns to features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from asterism.dtype_ranges import number_fits
from asterism.formats.compressed_files import COMPRESSION_SUFFIXES, format_suffix
from asterism.formats.csv_files import CsvOptions
from asterism.formats.file_patterns import Files, expand_home, find_files, without_repeats
from asterism.time_units import DEFAULT_UNIT, check_unit
from asterism.yaml_files import read_yaml
from asterism_model.schema import Feature, index_columns
from asterism_model.schema.features import RESERVED_NAMES
from asterism_model.schema.weight_tables import WeightTable, tables_from_dict
from asterism_model.validation import FLAG_WORDS
from asterism_proto.errors import InvalidRequest

_SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npy": "numpy",
    ".npz": "numpy",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".dat": "csv",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSpec:
    """Feature, and the columns from which it is read."""

    feature: Feature
    """Name, kind, dtype and shape."""
    columns: tuple[str, ...]
    """Columns of the files."""
    declared: frozenset[str] = frozenset()
    """Attributes among kind, dtype and shape that the schema file states.
    The others follow from the data files if these are typed."""
    split: str | None = None
    """Separator of values in text, or None."""
    fill: float | None = None
    """Value of nulls, or None if a null is a bad row."""
    unit: str = DEFAULT_UNIT
    """Unit of times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """Files of one format."""

    format: str
    """File format: ``csv``, ``parquet`` or ``numpy``."""
    files: Mapping[str, Files]
    """Files of each column for numpy, otherwise all files under the empty name."""
    csv: CsvOptions = field(default_factory=CsvOptions)
    """Options of CSV files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """Description of a node type's files."""

    name: str
    """Name of the node type."""
    table: TableSpec | None = None
    """Files of the type; None if only ``count`` is given."""
    count: int | None = None
    """Number of nodes of a type without files."""
    id: str | None = None
    """Column of ids; None if nodes are numbered by row or by key."""
    key: str | None = None
    """Column of strings that are numbered by first appearance."""
    weight: str | None = None
    """Column of weights."""
    features: tuple[FeatureSpec, ...] = ()
    tables: tuple[WeightTable, ...] = ()
    graph_label: str = ""
    """Feature that identifies the graph of a node; "" if there is none."""
    index: tuple[str, ...] = ()
    """Columns by which every version keeps an ordered index of its rows."""
    time: str = ""
    """Feature with the time from which a node exists; "" if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeSpec:
    """Description of an edge type's files."""

    name: str
    """Edge type as ``src:relation:dst``."""
    table: TableSpec
    src: str
    """Column of sources."""
    dst: str
    """Column of destinations."""
    weight: str | None = None
    """Column of weights."""
    features: tuple[FeatureSpec, ...] = ()
    tables: tuple[WeightTable, ...] = ()
    edges: str = "multi"
    """``unique`` if repeated pairs are rejected, else ``multi``."""
    missing: str = "reject"
    """Handling of edges with unknown ends: ``reject``, or ``create`` the nodes."""
    time: str = ""
    """Feature with the timestamp of an edge; "" if there is none."""
    index: tuple[str, ...] = ()
    """Columns by which every version keeps an ordered index of its rows."""
    reverse: str | None = None
    """Relation of the reverse edges to create, or None."""
    symmetry: bool = False
    """Also create the reverse edges within the same type."""
    self_loops: bool = False
    """Add an edge from every node to itself."""
    aggregate: str | None = None
    """Weight of merged rows: ``count``, ``sum``, or None to keep rows separate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceSpec:
    """Content of a schema file."""

    path: Path
    """Path of the schema file."""
    root: Path
    """Folder to which file names are relative."""
    space: str | None
    """Name of the space, if given."""
    settings: Mapping[str, Any]
    """Settings of the space that are given: parts, ids, salt, placement, direction."""
    nodes: tuple[NodeSpec, ...]
    edges: tuple[EdgeSpec, ...]
    text: str
    """Text of the file."""


def read_spec(path: Path, root: Path | None = None) -> SpaceSpec:
    """Read a schema file.

    Parameters
    ----------
    path : Path
        YAML file.
    root : Path, optional
        Folder to which file names are relative, instead of the one in the file.

    Returns
    -------
    SpaceSpec

    Raises
    ------
    InvalidRequest
        The file is invalid. The message names the first invalid key or value.
    """
    text, data = read_yaml(path)
    try:
        data = _mapping(
            "the schema file", data, {"space", *_SETTINGS, "root", "csv", "nodes", "edges"}
        )
        root = (
            path.parent / expand_home(str(_root(data.get("root"))))
            if root is None
            else expand_home(root)
        )
        csv = _mapping("csv", data.get("csv"), _CSV_KEYS)
        nodes = tuple(
            _node(str(name), spec, root, csv)
            for name, spec in _mapping("nodes", data.get("nodes")).items()
        )
        edges = tuple(
            _edge(str(name), spec, root, csv)
            for name, spec in _mapping("edges", data.get("edges")).items()
        )
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error}") from error
    settings = {key: data[key] for key in _SETTINGS if key in data}
    return SpaceSpec(
        path=path,
        root=root,
        space=data.get("space"),
        settings=settings,
        nodes=nodes,
        edges=edges,
        text=text,
    )


_SETTINGS = ("parts", "ids", "salt", "placement", "direction")
_CSV_KEYS = {"delimiter", "header", "quote", "nulls", "encoding", "multiline"}
_TABLE_KEYS = {"files", "format", "columns", "csv"}
_NODE_KEYS = _TABLE_KEYS | {
    "count",
    "id",
    "key",
    "weight",
    "features",
    "tables",
    "graph_label",
    "index",
    "time",
}
_EDGE_KEYS = _TABLE_KEYS | {
    "src",
    "dst",
    "weight",
    "features",
    "tables",
    "edges",
    "missing",
    "time",
    "index",
}
_EDGE_KEYS |= {"reverse", "symmetry", "self_loops", "aggregate"}


def _mapping(context: str, value: Any, allowed: set[str] | None = None) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{context}={value!r}: expected a mapping")
    for key in value:
        if allowed is not None and key not in allowed:
            raise InvalidRequest(
                f"{context}: unknown key {key!r}; expected {', '.join(sorted(allowed))}"
            )
    return value


def _root(value: Any) -> str | int:
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise InvalidRequest(f"root={value!r}: expected the name of a folder")
    return "." if value is None else value


def _text(
    context: str, spec: Mapping[str, Any], key: str, allowed: tuple[str, ...] = ()
) -> str | None:
    value = spec.get(key)
    if value is not None and (
        not isinstance(value, str) or not value or (allowed and value not in allowed)
    ):
        raise InvalidRequest(
            f"{context}: {key}={value!r}: expected {' or '.join(allowed) or 'a name'}"
            f"{_quoting_hint(value)}"
        )
    return value


def _quoting_hint(*values: Any) -> str:
    """Return the remedy for values that YAML takes for numbers or booleans."""
    odd = next((value for value in values if isinstance(value, int | float)), None)
    return "" if odd is None else f"; put it in quotes if it is the text {str(odd).lower()!r}"


def _flag(context: str, spec: Mapping[str, Any], key: str, default: bool = False) -> bool:
    value = spec.get(key, default)
    value = FLAG_WORDS.get(value.lower(), value) if isinstance(value, str) else value
    if not isinstance(value, bool):
        raise InvalidRequest(f"{context}: {key}={value!r}: expected true or false")
    return value


def _names(context: str, value: Any) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if (
        not isinstance(names, list)
        or not names
        or not all(isinstance(name, str) and name for name in names)
    ):
        raise InvalidRequest(
            f"{context}={value!r}: expected a name or a list of names"
            f"{_quoting_hint(*(names if isinstance(names, list) else [names]))}"
        )
    return tuple(names)


def _node(name: str, value: Any, root: Path, csv: Mapping[str, Any]) -> NodeSpec:
    context = f"node type {name!r}"
    spec = _mapping(context, value, _NODE_KEYS)
    count = spec.get("count")
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 0):
        raise InvalidRequest(f"{context}: count={count!r}: expected an integer")
    table = _table(context, spec, root, csv) if "files" in spec else None
    node = NodeSpec(
        name=name,
        table=table,
        count=count,
        id=_text(context, spec, "id"),
        key=_text(context, spec, "key"),
        weight=_text(context, spec, "weight"),
        features=_features(context, spec, table),
        tables=tables_from_dict(context, spec.get("tables")),
        graph_label=str(spec.get("graph_label") or ""),
        index=index_columns.column_names(context, spec.get("index")),
        time=_text(context, spec, "time") or "",
    )
    if table is None and (node.id or node.key or node.weight or node.features):
        raise InvalidRequest(
            f"{context}: files: expected at least one, because id, key, weight and features are "
            "columns of files"
        )
    if table is not None and count is not None:
        raise InvalidRequest(f"{context}: expected `files` or `count`, not both")
    if node.id and node.key:
        raise InvalidRequest(
            f"{context}: expected `id` (integers) or `key` (names that get numbers), not both"
        )
    return node


def _edge(name: str, value: Any, root: Path, csv: Mapping[str, Any]) -> EdgeSpec:
    context = f"edge type {name!r}"
    type_names = name.split(":")
    if len(type_names) != 3:
        raise InvalidRequest(f"{context}: expected source:relation:destination")
    spec = _mapping(context, value, _EDGE_KEYS)
    for key in ("files", "src", "dst"):
        if key not in spec:
            raise InvalidRequest(f"{context}: expected `{key}`")
    table = _table(context, spec, root, csv)
    edge = EdgeSpec(
        name=name,
        table=table,
        src=str(_text(context, spec, "src")),
        dst=str(_text(context, spec, "dst")),
        weight=_text(context, spec, "weight"),
        features=_features(context, spec, table),
        tables=tables_from_dict(context, spec.get("tables")),
        edges=_text(context, spec, "edges", ("multi", "unique")) or "multi",
        missing=_text(context, spec, "missing", ("reject", "create")) or "reject",
        time=_text(context, spec, "time") or "",
        index=index_columns.column_names(context, spec.get("index")),
        reverse=_text(context, spec, "reverse"),
        symmetry=_flag(context, spec, "symmetry"),
        self_loops=_flag(context, spec, "self_loops"),
        aggregate=_text(context, spec, "aggregate", ("count", "sum")),
    )
    if (edge.symmetry or edge.self_loops) and type_names[0] != type_names[2]:
        raise InvalidRequest(
            f"{context}: expected edges from a type to itself, for symmetry and self_loops; use "
            "`reverse` to name the reverse edge type"
        )
    if edge.symmetry and edge.reverse:
        raise InvalidRequest(
            f"{context}: expected `symmetry` (the same type in both directions) or `reverse` (a "
            "separate type), not both"
        )
    if edge.aggregate and edge.features:
        raise InvalidRequest(f"{context}: features: expected none, because of `aggregate`")
    if (edge.aggregate == "sum") != (edge.aggregate is not None and edge.weight is not None):
        raise InvalidRequest(
            f"{context}: expected `weight` with `aggregate: sum`, which adds it up, and none with "
            "`aggregate: count`"
        )
    return edge


def _table(context: str, spec: Mapping[str, Any], root: Path, csv: Mapping[str, Any]) -> TableSpec:
    file_entry = spec["files"]
    resolved: Mapping[str, Files] = (
        {
            str(column): _resolve_files(f"{context}: files of {column!r}", names, root)
            for column, names in file_entry.items()
        }
        if isinstance(file_entry, Mapping)
        else {"": _resolve_files(context, file_entry, root)}
    )
    resolved = without_repeats(resolved)
    first = next(iter(resolved.values()), ())
    if not first:
        raise InvalidRequest(f"{context}: files: expected at least one")
    format_ = _text(context, spec, "format", ("csv", "parquet", "numpy")) or _SUFFIXES.get(
        format_suffix(first[0][0]), ""
    )
    if not format_:
        raise InvalidRequest(
            f"{context}: {first[0][1]}: expected a known suffix; set `format` to csv, parquet or "
            f"numpy"
        )
    compressed = next((label for path, label in first if path.suffix in COMPRESSION_SUFFIXES), None)
    if compressed is not None and format_ != "csv":
        raise InvalidRequest(
            f"{context}: {compressed}: expected a {format_} file that is not compressed as a "
            "whole; unpack it"
        )
    if isinstance(file_entry, Mapping) and format_ != "numpy":
        raise InvalidRequest(
            f"{context}: files: expected a list, because files of {format_} have all columns"
        )
    if format_ != "csv" and ("csv" in spec or "columns" in spec):
        raise InvalidRequest(
            f"{context}: expected no `csv` and `columns`, because the files are {format_}"
        )
    return TableSpec(
        format=format_,
        files=resolved,
        csv=_csv(context, spec, csv, first) if format_ == "csv" else CsvOptions(),
    )


def _csv(
    context: str, spec: Mapping[str, Any], shared: Mapping[str, Any], files: Files
) -> CsvOptions:
    options = {**shared, **_mapping(f"{context}: csv", spec.get("csv"), _CSV_KEYS)}
    arguments: dict[str, Any] = {
        key: _flag(context, options, key) for key in ("header", "multiline") if key in options
    }
    for key in ("delimiter", "quote", "encoding"):
        if key in options:
            if not isinstance(options[key], str):
                raise InvalidRequest(f"{context}: csv: {key}={options[key]!r}: expected text")
            arguments[key] = options[key]
    if "delimiter" not in options:
        arguments["delimiter"] = _default_delimiter(context, files)
    if "nulls" in options:
        arguments["nulls"] = tuple(
            dict.fromkeys(("", *_names(f"{context}: csv: nulls", options["nulls"])))
        )
    if "columns" in spec:
        arguments["columns"] = _names(f"{context}: columns", spec["columns"])
    try:
        return CsvOptions(**arguments)
    except InvalidRequest as error:
        raise InvalidRequest(f"{context}: {error}") from error


def _default_delimiter(context: str, files: Files) -> str:
    """Return the delimiter that the suffixes of files imply: a tab for .tsv, otherwise a comma."""
    with_tabs = [format_suffix(path) == ".tsv" for path, _ in files]
    if any(with_tabs) and not all(with_tabs):
        raise InvalidRequest(
            f"{context}: {files[with_tabs.index(True)][1]} and "
            f"{files[with_tabs.index(False)][1]}: expected files with one delimiter; set "
            "`csv: {delimiter: ...}`"
        )
    return "\t" if any(with_tabs) else ","


def _resolve_files(context: str, names: Any, root: Path) -> Files:
    """Return the files for names and patterns; a pattern yields its files sorted by name."""
    return tuple(
        file
        for name in _names(f"{context}: files", names)
        for file in find_files(context, name, root)
    )


def _features(
    context: str, spec: Mapping[str, Any], table: TableSpec | None
) -> tuple[FeatureSpec, ...]:
    return tuple(
        _feature(f"{context}: feature {name!r}", str(name), value, table)
        for name, value in _mapping(f"{context}: features", spec.get("features")).items()
    )


def _feature(context: str, name: str, value: Any, table: TableSpec | None) -> FeatureSpec:
    if name in RESERVED_NAMES:
        raise InvalidRequest(
            f"{context}: expected another name, because this one is reserved; rename it, and set "
            f"its "
            "`column`"
        )
    if isinstance(value, str):  # short form, `age: int64`
        value = {"kind": "bytes"} if value == "bytes" else {"dtype": value}
    spec = _mapping(
        context, value, {"column", "columns", "kind", "dtype", "shape", "split", "fill", "unit"}
    )
    columns = (
        _names(f"{context}: columns", spec["columns"])
        if "columns" in spec
        else (_text(context, spec, "column") or name,)
    )
    shape = spec.get("shape", [])
    shape = [shape] if isinstance(shape, int) else shape
    if not isinstance(shape, list) or not all(isinstance(dimension, int) for dimension in shape):
        raise InvalidRequest(f"{context}: shape={shape!r}: expected a list of integers")
    unit = check_unit(f"{context}: unit", spec.get("unit", DEFAULT_UNIT))
    if "unit" in spec and table is not None and table.format != "parquet":
        raise InvalidRequest(
            f"{context}: unit={unit!r}: expected none, because times of {table.format} files are "
            "numbers in the unit that they have there; remove it"
        )
    split, fill = spec.get("split"), spec.get("fill")
    if split is not None and (not isinstance(split, str) or not split):
        raise InvalidRequest(f"{context}: split={split!r}: expected the separator of the values")
    if fill == "" and spec.get("kind") == "bytes":
        fill = None  # nulls are empty anyway
    if fill is not None and not isinstance(fill, int | float):
        raise InvalidRequest(
            f"{context}: fill={fill!r}: expected a number, the value of nulls; bytes and lists are "
            "empty there without it"
        )
    kind = _text(context, spec, "kind", ("dense", "ragged", "bytes")) or (
        "ragged" if split and not shape else "dense"
    )
    if shape and kind != "dense":
        raise InvalidRequest(
            f"{context}: shape={shape!r}: expected none, because features of kind {kind} have no "
            "shape; remove it, or `kind`"
        )
    if split and kind == "bytes":
        raise InvalidRequest(
            f"{context}: split={split!r}: expected none, because bytes are one value; remove it, "
            "or `kind`"
        )
    dtype = _text(context, spec, "dtype") or ("int64" if kind == "ragged" else "float32")
    if len(columns) > 1:
        if kind != "dense" or split or shape not in ([], [len(columns)]):
            raise InvalidRequest(
                f"{context}: expected a dense feature of shape [{len(columns)}], because it has "
                f"as many "
                "columns"
            )
        shape = [len(columns)]
    if (
        table is not None
        and table.format == "csv"
        and (kind == "ragged" or (shape and len(columns) == 1))
        and split is None
    ):
        raise InvalidRequest(f"{context}: expected `split`, the separator of the values in text")
    feature = (
        Feature(name=name, kind=kind, dtype=dtype, shape=tuple(shape))
        if kind == "dense"
        else Feature(name=name, kind=kind, dtype=dtype)
    )
    index_columns = frozenset(key for key in ("kind", "dtype", "shape") if key in spec) | (
        {"kind"} if split else frozenset()
    )
    return FeatureSpec(
        feature=feature, columns=columns, declared=index_columns, split=split, fill=fill, unit=unit
    )


def check_fill(context: str, spec: FeatureSpec) -> FeatureSpec:
    """Return the feature; raise InvalidRequest if it cannot hold the value of nulls."""
    feature = spec.feature
    if spec.fill is None:
        return spec
    if feature.kind == "bytes":
        raise InvalidRequest(
            f"{context}: fill={spec.fill!r}: expected none, because missing bytes are empty; "
            "remove it"
        )
    is_other_type = isinstance(spec.fill, bool) and feature.dtype != "bool"
    if is_other_type or not number_fits(spec.fill, feature.dtype):
        raise InvalidRequest(f"{context}: fill={spec.fill!r}: expected a value of {feature.dtype}")
    return spec


def resolve_feature(
    spec: FeatureSpec, context: str, kind: str, dtype: str, shape: tuple[int, ...]
) -> FeatureSpec:
    """Complete a feature from the data files where the schema file leaves it open.

    Raises
    ------
    InvalidRequest
        The two contradict each other.
    """
    feature = spec.feature
    if len(spec.columns) > 1 or spec.split is not None:
        return (
            replace(spec, feature=replace(feature, dtype=dtype))
            if dtype and "dtype" not in spec.declared and spec.split is None
            else spec
        )
    if "dtype" in spec.declared or not dtype:
        dtype = feature.dtype
    if (
        "kind" in spec.declared
        and feature.kind != kind
        and not (feature.kind == "bytes" or (feature.kind == "ragged" and len(shape) == 1))
    ):
        raise InvalidRequest(
            f"{context}: feature {feature.name!r}: expected {feature.kind} values, as in the "
            f"schema, "
            f"found {kind} values in the files"
        )
    if "kind" in spec.declared:
        kind = feature.kind
    if "shape" in spec.declared:
        if kind == "dense" and shape != feature.shape:
            raise InvalidRequest(
                f"{context}: feature {feature.name!r}: expected rows of shape "
                f"{list(feature.shape)}, as in "
                f"the schema, found {list(shape)} in the files"
            )
        kind, shape = "dense", feature.shape
    resolved = (
        Feature(name=feature.name, kind=kind, dtype=dtype, shape=shape)
        if kind == "dense"
        else Feature(name=feature.name, kind=kind, dtype=dtype)
    )
    return replace(spec, feature=resolved)
