"""Schema files of `asterism space create` and `asterism load --create`.

`space create` takes both kinds: a schema alone, and a description of graph files with the files and
columns of each type. `load` takes the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asterism.cli.lean_imports import NUMBA_EXTRAS, packages_hidden
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from asterism_model.schema import Schema

_MAX_BYTES = 1 << 22
"""Size of larger files, which are graphs and not schemas."""
_FILE_SETTINGS = frozenset({"root", "csv", "space"})
_FILE_KEYS = frozenset({"files", "format", "columns", "csv", "count", "id", "key", "src", "dst"})
"""Keys of types with rows in files."""


def read_schema(source: Path) -> Schema:
    """Return the schema of a file, or that of graph files.

    Raises
    ------
    InvalidRequest
        If the file is invalid.
    """
    from asterism_model.schema import Schema

    data = _read_mapping(source) if is_small_file(source) else None
    if data is None or _describes_files(data):
        with packages_hidden(*NUMBA_EXTRAS):
            from asterism import ingest

        return ingest.schema_of(source)
    try:
        return Schema.from_dict(data)
    except InvalidRequest as error:
        raise InvalidRequest(f"{source}: {error.message}") from error


def check_source_has_files(space: str, source: Path) -> None:
    """Raise InvalidRequest if a file of `load` is a schema alone."""
    if not is_small_file(source) or source.suffix not in (".json", ".yaml", ".yml"):
        return
    try:
        data = _read_mapping(source)
    except InvalidRequest:
        return  # the reader of the files reports the cause
    if not _describes_files(data):
        raise InvalidRequest(
            f"{source}: expected `files` of the types, found a schema without files; "
            f"`asterism space create {space} {source}` creates a space from it"
        )


def is_small_file(source: Path) -> bool:
    """Return whether a path is a file that may be a schema."""
    return source.is_file() and source.stat().st_size <= _MAX_BYTES


def _read_mapping(file: Path) -> Mapping[str, Any]:
    """Return the content of a YAML or JSON file."""
    from asterism.json_objects import unique_object
    from asterism.yaml_files import parse_yaml

    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{file}: not a text file; a schema is YAML or JSON") from error
    if file.suffix == ".json":
        import json

        try:
            data: Any = json.loads(text, object_pairs_hook=unique_object)
        except (ValueError, RecursionError) as error:
            raise InvalidRequest(f"{file}: not JSON: {error}") from error
    else:
        try:
            data = parse_yaml(text)
        except ValueError as error:
            raise InvalidRequest(f"{file}: not YAML: {error}") from error
    if not isinstance(data, dict):
        raise InvalidRequest(
            f"{file}: expected a mapping with `nodes` and `edges`, found {type(data).__name__}"
        )
    return data


def _describes_files(data: Mapping[str, Any]) -> bool:
    """Return whether a document describes graph files, and not only a schema."""
    if not isinstance(data.get("nodes"), Mapping) or _FILE_SETTINGS & data.keys():
        return True
    types = [*data["nodes"].values(), *(_mapping(data.get("edges")).values())]
    return any(_FILE_KEYS & _mapping(spec).keys() for spec in types)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
