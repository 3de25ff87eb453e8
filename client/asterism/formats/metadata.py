"""metadata.json of DGL's chunked graph format, read and checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asterism.formats.chunks import safe_name
from asterism_proto.errors import InvalidRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Files of one format, in order."""

    files: tuple[tuple[Path, str], ...]
    format: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What a metadata.json says."""

    name: str
    node_types: Mapping[str, int]
    """Nodes of each type."""
    edge_types: Mapping[str, int | None]
    """Edges of each type; None where the file leaves that out."""
    edge_chunks: Mapping[str, tuple[int, ...]]
    """Edges of each file, for types whose chunks are its files."""
    edges: Mapping[str, Data]
    node_data: Mapping[str, Mapping[str, Data]]
    edge_data: Mapping[str, Mapping[str, Data]]
    text: str


def read_metadata(path: Path) -> Metadata:
    """Read a metadata.json; InvalidRequest names what is wrong in it."""
    try:
        text = path.read_text()
        said = json.loads(text)
        if not isinstance(said, dict):
            raise InvalidRequest(f"expected an object, not {type(said).__name__}")
        return _read(said, path.parent, text)
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"{path}: not a metadata.json ({error})") from error
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error}") from error


def _read(said: Mapping[str, Any], root: Path, text: str) -> Metadata:
    node_types, edge_types = _names(said, "node_type"), _names(said, "edge_type")
    for name in edge_types:
        if len(name.split(":")) != 3:
            raise InvalidRequest(f"edge_type {name!r}: expected source:relation:destination")
        for end in name.split(":")[::2]:
            if end not in node_types:
                raise InvalidRequest(f"edge_type {name!r}: {end!r} is not in node_type {node_types}")
    nodes, _ = _counts(said, "nodes", node_types)
    edges, chunks = _counts(said, "edges", edge_types)
    counted = {name: count for name, count in nodes.items() if count is not None}
    for name in node_types:
        if name not in counted:
            raise InvalidRequest(f"the number of nodes of {name!r} is in neither num_nodes_per_chunk nor num_nodes_per_type")
    edge_files = {name: _data(f"edges of {name!r}", _object(said, "edges").get(name), root) for name in edge_types}
    return Metadata(
        name=str(said.get("graph_name", "")),
        node_types=counted,
        edge_types=edges,
        edge_chunks={name: chunks[name] for name in edge_types if name in chunks and len(chunks[name]) == len(edge_files[name].files)},
        edges=edge_files,
        node_data=_features(said, "node_data", node_types, root),
        edge_data=_features(said, "edge_data", edge_types, root),
        text=text,
    )


def _names(said: Mapping[str, Any], word: str) -> list[str]:
    names = said.get(word)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise InvalidRequest(f"{word} {names!r}: expected a list of different names")
    return names


def _object(said: Mapping[str, Any], word: str) -> Mapping[str, Any]:
    value = said.get(word) or {}
    if not isinstance(value, dict):
        raise InvalidRequest(f"{word}: expected an object, not {value!r}")
    return value


def _counts(said: Mapping[str, Any], what: str, names: list[str]) -> tuple[dict[str, int | None], dict[str, tuple[int, ...]]]:
    """Totals per type from either list, which must agree, and the counts per chunk."""
    per_chunk, per_type = said.get(f"num_{what}_per_chunk"), said.get(f"num_{what}_per_type")
    for word, value in ((f"num_{what}_per_chunk", per_chunk), (f"num_{what}_per_type", per_type)):
        if value is not None and (not isinstance(value, list) or len(value) != len(names)):
            raise InvalidRequest(f"{word}: expected one entry for each of {names}, found {value!r}")
    chunks: dict[str, tuple[int, ...]] = {}
    totals: dict[str, int | None] = {}
    for i, name in enumerate(names):
        total = None if per_type is None else _whole(f"num_{what}_per_type of {name!r}", per_type[i])
        if per_chunk is not None:
            listed = per_chunk[i] if isinstance(per_chunk[i], list) else [per_chunk[i]]
            chunks[name] = tuple(_whole(f"num_{what}_per_chunk of {name!r}", count) for count in listed)
            if total is not None and total != sum(chunks[name]):
                raise InvalidRequest(f"{what} of {name!r}: num_{what}_per_type says {total}, num_{what}_per_chunk adds up to {sum(chunks[name])}")
            total = sum(chunks[name])
        totals[name] = total
    return totals, chunks


def _whole(what: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidRequest(f"{what}: {value!r}: expected a whole number, 0 or more")
    return value


def _data(what: str, said: Any, root: Path) -> Data:
    if not isinstance(said, dict) or not isinstance(said.get("format"), dict) or not isinstance(said.get("data"), list) or not said["data"]:
        raise InvalidRequest(f"{what}: expected {{format: {{name: ...}}, data: [files]}}, found {said!r}")
    files = []
    for name in said["data"]:
        path = root / str(name)
        files.append((path, safe_name(path, root)))
    return Data(files=tuple(files), format=said["format"])


def _features(said: Mapping[str, Any], word: str, names: list[str], root: Path) -> dict[str, dict[str, Data]]:
    found: dict[str, dict[str, Data]] = {}
    for owner, features in _object(said, word).items():
        if owner not in names:
            raise InvalidRequest(f"{word}: {owner!r} is none of {names}")
        found[owner] = {name: _data(f"{word} of {owner!r}: {name!r}", data, root) for name, data in _object({owner: features}, owner).items()}
    return found
