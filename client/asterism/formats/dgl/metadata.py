"""Reader and validation of metadata.json in DGL's chunked graph format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asterism.formats.chunks import display_path
from asterism.json_objects import unique_object
from asterism_proto.errors import InvalidRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFiles:
    """Files of one feature or edge type, in order, all of one format."""

    files: tuple[tuple[Path, str], ...]
    format: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """Content of a metadata.json."""

    name: str
    node_types: Mapping[str, int]
    """Number of nodes of each type."""
    edge_types: Mapping[str, int | None]
    """Number of edges of each type, or None if the metadata does not state it."""
    edge_chunks: Mapping[str, tuple[int, ...]]
    """Number of edges of each file, for types with one chunk per file."""
    edges: Mapping[str, DataFiles]
    node_data: Mapping[str, Mapping[str, DataFiles]]
    edge_data: Mapping[str, Mapping[str, DataFiles]]
    text: str


def read_metadata(path: Path) -> Metadata:
    """Read and validate a metadata.json; raise InvalidRequest if it is invalid."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        document = json.loads(text, object_pairs_hook=unique_object)
        if not isinstance(document, dict):
            raise InvalidRequest(f"expected an object, found {type(document).__name__}")
        return _parse_metadata(document, path.parent, text)
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"{path}: not a metadata.json ({error})") from error
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error}") from error


def _parse_metadata(document: Mapping[str, Any], root: Path, text: str) -> Metadata:
    node_types, edge_types = _names(document, "node_type"), _names(document, "edge_type")
    for name in edge_types:
        if len(name.split(":")) != 3:
            raise InvalidRequest(f"edge_type={name!r}: expected source:relation:destination")
        for end in name.split(":")[::2]:
            if end not in node_types:
                raise InvalidRequest(
                    f"edge_type={name!r}: expected ends of node_type {node_types}, found {end!r}"
                )
    nodes, _ = _counts(document, "nodes", node_types)
    edges, chunks = _counts(document, "edges", edge_types)
    node_counts = {name: count for name, count in nodes.items() if count is not None}
    for name in node_types:
        if name not in node_counts:
            raise InvalidRequest(
                f"node type {name!r}: expected its number of nodes in num_nodes_per_chunk or "
                "num_nodes_per_type"
            )
    edge_files = {
        name: _data(f"edges of {name!r}", _object(document, "edges").get(name), root)
        for name in edge_types
    }
    return Metadata(
        name=str(document.get("graph_name", "")),
        node_types=node_counts,
        edge_types=edges,
        edge_chunks={
            name: chunks[name]
            for name in edge_types
            if name in chunks and len(chunks[name]) == len(edge_files[name].files)
        },
        edges=edge_files,
        node_data=_features(document, "node_data", node_types, root),
        edge_data=_features(document, "edge_data", edge_types, root),
        text=text,
    )


def _names(document: Mapping[str, Any], key: str) -> list[str]:
    names = document.get(key)
    if (
        not isinstance(names, list)
        or not all(isinstance(name, str) for name in names)
        or len(set(names)) != len(names)
    ):
        raise InvalidRequest(f"{key}={names!r}: expected a list of different names")
    return names


def _object(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key) or {}
    if not isinstance(value, dict):
        raise InvalidRequest(f"{key}={value!r}: expected an object")
    return value


def _counts(
    document: Mapping[str, Any], element: str, names: list[str]
) -> tuple[dict[str, int | None], dict[str, tuple[int, ...]]]:
    """Return totals per type and counts per chunk; lists that give both must agree."""
    per_chunk, per_type = (
        document.get(f"num_{element}_per_chunk"),
        document.get(f"num_{element}_per_type"),
    )
    for key, value in (
        (f"num_{element}_per_chunk", per_chunk),
        (f"num_{element}_per_type", per_type),
    ):
        if value is not None and (not isinstance(value, list) or len(value) != len(names)):
            raise InvalidRequest(f"{key}: expected one entry for each of {names}, found {value!r}")
    chunks: dict[str, tuple[int, ...]] = {}
    totals: dict[str, int | None] = {}
    for i, name in enumerate(names):
        total = (
            None
            if per_type is None
            else _check_count(f"num_{element}_per_type of {name!r}", per_type[i])
        )
        if per_chunk is not None:
            chunk_counts = per_chunk[i] if isinstance(per_chunk[i], list) else [per_chunk[i]]
            chunks[name] = tuple(
                _check_count(f"num_{element}_per_chunk of {name!r}", count)
                for count in chunk_counts
            )
            if total is not None and total != sum(chunks[name]):
                raise InvalidRequest(
                    f"{element} of {name!r}: num_{element}_per_type says {total}, "
                    f"num_{element}_per_chunk adds up to {sum(chunks[name])}"
                )
            total = sum(chunks[name])
        totals[name] = total
    return totals, chunks


def _check_count(description: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidRequest(f"{description}={value!r}: expected an integer, 0 or more")
    return value


def _data(description: str, entry: Any, root: Path) -> DataFiles:
    if (
        not isinstance(entry, dict)
        or not isinstance(entry.get("format"), dict)
        or not isinstance(entry.get("data"), list)
        or not entry["data"]
    ):
        raise InvalidRequest(
            f"{description}: expected {{format: {{name: ...}}, data: [files]}}, found {entry!r}"
        )
    files = []
    for name in entry["data"]:
        path = root / str(name)
        files.append((path, display_path(path, root)))
    return DataFiles(files=tuple(files), format=entry["format"])


def _features(
    document: Mapping[str, Any], key: str, names: list[str], root: Path
) -> dict[str, dict[str, DataFiles]]:
    result: dict[str, dict[str, DataFiles]] = {}
    for owner, features in _object(document, key).items():
        if owner not in names:
            raise InvalidRequest(f"{key}: expected types of {names}, found {owner!r}")
        result[owner] = {
            name: _data(f"{key} of {owner!r}: {name!r}", data, root)
            for name, data in _object({owner: features}, owner).items()
        }
    return result
