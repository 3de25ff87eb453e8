"""The schema file: which files hold which types, and which columns are what."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from asterism.formats.chunks import safe_name
from asterism.formats.csvfiles import CsvOptions
from asterism_proto import declared
from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import Feature
from asterism_proto.tables import RESERVED, WeightTable, tables_of

Files = tuple[tuple[Path, str], ...]
_SUFFIXES = {".parquet": "parquet", ".pq": "parquet", ".npy": "numpy", ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".dat": "csv"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSpec:
    """A feature and the columns that it is read from."""

    feature: Feature
    columns: tuple[str, ...]
    declared: frozenset[str] = frozenset()
    """Which of kind, dtype and shape the file's author gave; the rest follow from the files, where these say it."""
    split: str | None = None
    fill: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """Files of one format."""

    format: str
    files: Mapping[str, Files]
    """Per column for numpy, else under the empty name."""
    csv: CsvOptions = field(default_factory=CsvOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """How a node type is read."""

    name: str
    table: TableSpec | None = None
    count: int | None = None
    id: str | None = None
    key: str | None = None
    weight: str | None = None
    features: tuple[FeatureSpec, ...] = ()
    tables: tuple[WeightTable, ...] = ()
    graph_label: str = ""
    """The feature that says of which graph a node is; "" is none."""
    index: tuple[str, ...] = ()
    """Columns that every version keeps its rows in order of."""
    time: str = ""
    """The feature that says since when a node is there; "" is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeSpec:
    """How an edge type is read."""

    name: str
    table: TableSpec
    src: str
    dst: str
    weight: str | None = None
    features: tuple[FeatureSpec, ...] = ()
    tables: tuple[WeightTable, ...] = ()
    edges: str = "multi"
    missing: str = "reject"
    time: str = ""
    """The feature that says when an edge came; "" is none."""
    index: tuple[str, ...] = ()
    """Columns that every version keeps its rows in order of."""
    reverse: str | None = None
    symmetry: bool = False
    self_loops: bool = False
    aggregate: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceSpec:
    """A whole schema file."""

    path: Path
    root: Path
    space: str | None
    settings: Mapping[str, Any]
    """Of the space: parts, ids, salt, placement, direction, where given."""
    nodes: tuple[NodeSpec, ...]
    edges: tuple[EdgeSpec, ...]
    text: str
    """The file as it stands."""


def read_spec(path: Path, root: Path | None = None) -> SpaceSpec:
    """Read a schema file; InvalidRequest names the first wrong word in it.

    Parameters
    ----------
    path : Path
        The YAML file.
    root : Path, optional
        The folder that its file names start from, in place of what it says itself.
    """
    try:
        text = path.read_text()
        data = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidRequest(f"{path}: can not be read ({error})") from error
    try:
        data = _mapping("the schema file", data, {"space", *_SETTINGS, "root", "csv", "nodes", "edges"})
        root = root or path.parent / str(data.get("root", "."))
        csv = _mapping("csv", data.get("csv"), _CSV_WORDS)
        nodes = tuple(_node(str(name), spec, root, csv) for name, spec in _mapping("nodes", data.get("nodes")).items())
        edges = tuple(_edge(str(name), spec, root, csv) for name, spec in _mapping("edges", data.get("edges")).items())
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error}") from error
    settings = {word: data[word] for word in _SETTINGS if word in data}
    return SpaceSpec(path=path, root=root, space=data.get("space"), settings=settings, nodes=nodes, edges=edges, text=text)


_SETTINGS = ("parts", "ids", "salt", "placement", "direction")
_CSV_WORDS = {"delimiter", "header", "quote", "nulls", "encoding", "multiline"}
_TABLE_WORDS = {"files", "format", "columns", "csv"}
_NODE_WORDS = _TABLE_WORDS | {"count", "id", "key", "weight", "features", "tables", "graph_label", "index", "time"}
_EDGE_WORDS = _TABLE_WORDS | {"src", "dst", "weight", "features", "tables", "edges", "missing", "time", "index"}
_EDGE_WORDS |= {"reverse", "symmetry", "self_loops", "aggregate"}


def _mapping(what: str, value: Any, known: set[str] | None = None) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{what}: expected a mapping, not {value!r}")
    for key in value:
        if known is not None and key not in known:
            raise InvalidRequest(f"{what}: unknown word {key!r}; expected {', '.join(sorted(known))}")
    return value


def _text(what: str, spec: Mapping[str, Any], word: str, allowed: tuple[str, ...] = ()) -> str | None:
    value = spec.get(word)
    if value is not None and (not isinstance(value, str) or not value or (allowed and value not in allowed)):
        raise InvalidRequest(f"{what}: {word} {value!r}: expected {' or '.join(allowed) or 'a name'}")
    return value


def _flag(what: str, spec: Mapping[str, Any], word: str, default: bool = False) -> bool:
    value = spec.get(word, default)
    if not isinstance(value, bool):
        raise InvalidRequest(f"{what}: {word} {value!r}: expected true or false")
    return value


def _names(what: str, value: Any) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not listed or not all(isinstance(name, str) and name for name in listed):
        raise InvalidRequest(f"{what}: {value!r}: expected a name or a list of names")
    return tuple(listed)


def _node(name: str, value: Any, root: Path, csv: Mapping[str, Any]) -> NodeSpec:
    what = f"node type {name!r}"
    spec = _mapping(what, value, _NODE_WORDS)
    count = spec.get("count")
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 0):
        raise InvalidRequest(f"{what}: count {count!r}: expected a whole number")
    table = _table(what, spec, root, csv) if "files" in spec else None
    node = NodeSpec(
        name=name,
        table=table,
        count=count,
        id=_text(what, spec, "id"),
        key=_text(what, spec, "key"),
        weight=_text(what, spec, "weight"),
        features=_features(what, spec, table),
        tables=tables_of(what, spec.get("tables")),
        graph_label=str(spec.get("graph_label") or ""),
        index=declared.listed(what, spec.get("index")),
        time=_text(what, spec, "time") or "",
    )
    if table is None and (node.id or node.key or node.weight or node.features):
        raise InvalidRequest(f"{what}: id, key, weight and features are columns of `files`, and there are none")
    if table is not None and count is not None:
        raise InvalidRequest(f"{what}: give `files` or `count`, not both")
    if node.id and node.key:
        raise InvalidRequest(f"{what}: give `id` (whole numbers) or `key` (names that get numbers), not both")
    return node


def _edge(name: str, value: Any, root: Path, csv: Mapping[str, Any]) -> EdgeSpec:
    what = f"edge type {name!r}"
    ends = name.split(":")
    if len(ends) != 3:
        raise InvalidRequest(f"{what}: expected source:relation:destination")
    spec = _mapping(what, value, _EDGE_WORDS)
    for word in ("files", "src", "dst"):
        if word not in spec:
            raise InvalidRequest(f"{what}: `{word}` is missing")
    table = _table(what, spec, root, csv)
    edge = EdgeSpec(
        name=name,
        table=table,
        src=str(_text(what, spec, "src")),
        dst=str(_text(what, spec, "dst")),
        weight=_text(what, spec, "weight"),
        features=_features(what, spec, table),
        tables=tables_of(what, spec.get("tables")),
        edges=_text(what, spec, "edges", ("multi", "unique")) or "multi",
        missing=_text(what, spec, "missing", ("reject", "create")) or "reject",
        time=_text(what, spec, "time") or "",
        index=declared.listed(what, spec.get("index")),
        reverse=_text(what, spec, "reverse"),
        symmetry=_flag(what, spec, "symmetry"),
        self_loops=_flag(what, spec, "self_loops"),
        aggregate=_text(what, spec, "aggregate", ("count", "sum")),
    )
    if (edge.symmetry or edge.self_loops) and ends[0] != ends[2]:
        raise InvalidRequest(f"{what}: symmetry and self_loops are for edges from a type to itself; `reverse` names a type for the way back")
    if edge.symmetry and edge.reverse:
        raise InvalidRequest(f"{what}: give `symmetry` (the same type both ways) or `reverse` (a type of its own), not both")
    if edge.aggregate and edge.features:
        raise InvalidRequest(f"{what}: edges that are made of several rows (`aggregate`) have no features")
    if (edge.aggregate == "sum") != (edge.aggregate is not None and edge.weight is not None):
        raise InvalidRequest(f"{what}: `aggregate: sum` adds up the column `weight`; `aggregate: count` takes none")
    return edge


def _table(what: str, spec: Mapping[str, Any], root: Path, csv: Mapping[str, Any]) -> TableSpec:
    listed = spec["files"]
    found = (
        {str(column): _found(f"{what}: files of {column!r}", names, root) for column, names in listed.items()}
        if isinstance(listed, Mapping)
        else {"": _found(what, listed, root)}
    )
    first = next(iter(found.values()), ())
    if not first:
        raise InvalidRequest(f"{what}: files: expected at least one")
    format_ = _text(what, spec, "format", ("csv", "parquet", "numpy")) or _SUFFIXES.get(first[0][0].suffix, "")
    if not format_:
        raise InvalidRequest(f"{what}: {first[0][1]}: say the `format`: csv, parquet or numpy")
    if isinstance(listed, Mapping) and format_ != "numpy":
        raise InvalidRequest(f"{what}: files of {format_} hold all columns; expected a list of files, not one per column")
    if format_ != "csv" and ("csv" in spec or "columns" in spec):
        raise InvalidRequest(f"{what}: `csv` and `columns` are for CSV files, these are {format_}")
    return TableSpec(format=format_, files=found, csv=_csv(what, spec, csv) if format_ == "csv" else CsvOptions())


def _csv(what: str, spec: Mapping[str, Any], shared: Mapping[str, Any]) -> CsvOptions:
    words = {**shared, **_mapping(f"{what}: csv", spec.get("csv"), _CSV_WORDS)}
    given: dict[str, Any] = {word: _flag(what, words, word) for word in ("header", "multiline") if word in words}
    for word in ("delimiter", "quote", "encoding"):
        if word in words:
            if not isinstance(words[word], str):
                raise InvalidRequest(f"{what}: csv: {word} {words[word]!r}: expected a text")
            given[word] = words[word]
    if "nulls" in words:
        given["nulls"] = tuple(dict.fromkeys(("", *_names(f"{what}: csv: nulls", words["nulls"]))))
    if "columns" in spec:
        given["columns"] = _names(f"{what}: columns", spec["columns"])
    try:
        return CsvOptions(**given)
    except InvalidRequest as error:
        raise InvalidRequest(f"{what}: {error}") from error


def _found(what: str, names: Any, root: Path) -> Files:
    """The files that names and patterns mean: patterns give theirs in the order of their names."""
    found: list[tuple[Path, str]] = []
    for name in _names(f"{what}: files", names):
        path = root / name
        matches = sorted(map(Path, glob.glob(str(path)))) if glob.has_magic(name) else [path]
        if not matches:
            raise InvalidRequest(f"{what}: {name}: no file matches")
        for match in matches:
            if not match.is_file():
                raise InvalidRequest(f"{what}: {safe_name(match, root)}: there is no such file under {root}")
        found.extend((match, safe_name(match, root)) for match in matches)
    return tuple(found)


def _features(what: str, spec: Mapping[str, Any], table: TableSpec | None) -> tuple[FeatureSpec, ...]:
    return tuple(
        _feature(f"{what}: feature {name!r}", str(name), value, table) for name, value in _mapping(f"{what}: features", spec.get("features")).items()
    )


def _feature(what: str, name: str, value: Any, table: TableSpec | None) -> FeatureSpec:
    if name in RESERVED:
        raise InvalidRequest(f"{what}: the name is reserved; call it something else, and say its `column`")
    if isinstance(value, str):  # the short form, `age: int64`
        value = {"kind": "bytes"} if value == "bytes" else {"dtype": value}
    spec = _mapping(what, value, {"column", "columns", "kind", "dtype", "shape", "split", "fill"})
    columns = _names(f"{what}: columns", spec["columns"]) if "columns" in spec else (_text(what, spec, "column") or name,)
    shape = spec.get("shape", [])
    shape = [shape] if isinstance(shape, int) else shape
    if not isinstance(shape, list) or not all(isinstance(extent, int) for extent in shape):
        raise InvalidRequest(f"{what}: shape {shape!r}: expected a list of whole numbers")
    split, fill = spec.get("split"), spec.get("fill")
    if split is not None and (not isinstance(split, str) or not split):
        raise InvalidRequest(f"{what}: split {split!r}: expected what stands between the values")
    if fill is not None and not isinstance(fill, int | float):
        raise InvalidRequest(f"{what}: fill {fill!r}: expected the number that a null is")
    kind = _text(what, spec, "kind", ("dense", "ragged", "bytes")) or ("ragged" if split and not shape else "dense")
    dtype = _text(what, spec, "dtype") or ("int64" if kind == "ragged" else "float32")
    if len(columns) > 1:
        if kind != "dense" or split or shape not in ([], [len(columns)]):
            raise InvalidRequest(f"{what}: {len(columns)} columns make a dense vector of that length, nothing else")
        shape = [len(columns)]
    if table is not None and table.format == "csv" and (kind == "ragged" or (shape and len(columns) == 1)) and split is None:
        raise InvalidRequest(f"{what}: lists in text need `split`, what stands between their values")
    feature = Feature(name=name, kind=kind, dtype=dtype, shape=tuple(shape)) if kind == "dense" else Feature(name=name, kind=kind, dtype=dtype)
    declared = frozenset(word for word in ("kind", "dtype", "shape") if word in spec) | ({"kind"} if split else frozenset())
    return FeatureSpec(feature=feature, columns=columns, declared=declared, split=split, fill=fill)


def settled(spec: FeatureSpec, what: str, kind: str, dtype: str, shape: tuple[int, ...]) -> FeatureSpec:
    """A feature as the files have it, where its author left that open; InvalidRequest where the two contradict."""
    feature = spec.feature
    if len(spec.columns) > 1 or spec.split is not None:
        return replace(spec, feature=replace(feature, dtype=dtype)) if dtype and "dtype" not in spec.declared and spec.split is None else spec
    if "dtype" in spec.declared or not dtype:
        dtype = feature.dtype
    if "kind" in spec.declared and feature.kind != kind and not (feature.kind == "bytes" or (feature.kind == "ragged" and len(shape) == 1)):
        raise InvalidRequest(f"{what}: feature {feature.name!r}: the files hold {kind} values, the schema says {feature.kind}")
    if "kind" in spec.declared:
        kind = feature.kind
    if "shape" in spec.declared:
        if kind == "dense" and shape != feature.shape:
            raise InvalidRequest(f"{what}: feature {feature.name!r}: the files hold {list(shape)} a row, the schema says {list(feature.shape)}")
        kind, shape = "dense", feature.shape
    settled_feature = (
        Feature(name=feature.name, kind=kind, dtype=dtype, shape=shape) if kind == "dense" else Feature(name=feature.name, kind=kind, dtype=dtype)
    )
    return replace(spec, feature=settled_feature)
