"""From a path to the reader that knows it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from asterism.formats.chunks import CHUNK_ROWS, Source
from asterism.formats.dgl import ChunkedSource
from asterism.formats.plain import PlainSource
from asterism_proto.errors import InvalidRequest


def open_source(
    path: str | Path,
    *,
    chunk_rows: int = CHUNK_ROWS,
    weights: Mapping[str, str] | None = None,
    rename: Mapping[str, str] | None = None,
    root: str | Path | None = None,
) -> Source:
    """Open a graph in files; nothing but headers is read.

    Parameters
    ----------
    path : path
        A folder with DGL's ``metadata.json`` (or that file), or a YAML schema file.
    chunk_rows : int
        Rows of a chunk at most.
    weights : mapping, optional
        For a DGL folder: the feature that is the weight, per node or edge type, such as
        ``{"author:writes:paper": "w"}``. A schema file says that itself.
    rename : mapping, optional
        For a DGL folder: new names for features whose names are reserved, or not wanted.
    root : path, optional
        For a schema file: the folder that its file names start from.

    Raises
    ------
    InvalidRequest
        Where the path is neither, or what it says does not agree with its files.
    """
    path = Path(path)
    if chunk_rows < 1:
        raise InvalidRequest(f"chunk_rows {chunk_rows}: expected 1 or more")
    if path.is_dir() and (path / "metadata.json").is_file():
        path = path / "metadata.json"
    if path.is_file() and path.suffix == ".json":
        if root is not None:
            raise InvalidRequest(f"{path}: `root` is for schema files; a chunked graph's paths start from its own folder")
        return ChunkedSource(path, chunk_rows=chunk_rows, weights=weights or {}, rename=rename or {})
    if path.is_file() and path.suffix in (".yaml", ".yml"):
        if weights or rename:
            raise InvalidRequest(f"{path}: a schema file says itself which columns are weights and what features are called")
        return PlainSource(path, root=None if root is None else Path(root), chunk_rows=chunk_rows)
    raise InvalidRequest(f"{path}: expected a folder with metadata.json (DGL's chunked graph format) or a YAML schema file")
