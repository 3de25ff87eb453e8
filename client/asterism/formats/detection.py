"""Detection of graph file formats: return the reader for a path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from asterism.formats.chunks import CHUNK_ROWS
from asterism.formats.compressed_files import COMPRESSION_SUFFIXES, format_suffix
from asterism.formats.dgl.source import ChunkedSource
from asterism.formats.euler.source import EulerSource
from asterism.formats.file_patterns import expand_home, is_file, is_folder
from asterism.formats.graph_source import GraphSource
from asterism.formats.pglbox.source import PglboxSource, is_config
from asterism.formats.tabular_source import TabularSource
from asterism.formats.text_files import TextFile
from asterism_proto.errors import InvalidRequest

_EULER_2_PATTERN = re.compile(rb'"(nodes|edges)"\s*:\s*\[')
_EULER_1_PATTERN = re.compile(
    rb"""
    \s* \{ \s*
    (
        "node_(id|type|weight)" \s* : \s* [-0-9]
        | "(neighbor|(uint64|float|binary)_feature)" \s* : \s* (\{|null)
        | "edge" \s* : \s* (\[|null)
    )
    """,
    re.VERBOSE,
)
_HEAD_BYTES = 4096


def open_source(
    path: str | Path,
    *,
    chunk_rows: int = CHUNK_ROWS,
    weights: Mapping[str, str] | None = None,
    rename: Mapping[str, str] | None = None,
    root: str | Path | None = None,
) -> GraphSource:
    """Open a graph in files.

    Only headers are read, except for Euler's JSON, which has none.

    Parameters
    ----------
    path : str or Path
        Folder with DGL's ``metadata.json`` (or that file), Euler's ``graph.json`` of 2.0 or 1.x,
        plain or compressed (or a folder with it), a YAML schema file, or a configuration of PGLBox.
    chunk_rows : int, default 262144
        Largest number of rows per chunk.
    weights : mapping, optional
        For a DGL folder: the feature to use as weight, by node or edge type, such as
        ``{"author:writes:paper": "w"}``. A schema file names its weights itself.
    rename : mapping, optional
        For a DGL folder or Euler's JSON: new names of features, for reserved or unwanted names.
    root : str or Path, optional
        For a schema file or PGLBox's configuration: the folder to which file names are relative.

    Returns
    -------
    GraphSource

    Raises
    ------
    InvalidRequest
        The path has none of these formats, or its description contradicts its files.

    Examples
    --------
    >>> open_source("papers.yaml").schema  # doctest: +SKIP
    """
    path = expand_home(path)
    if chunk_rows < 1:
        raise InvalidRequest(f"chunk_rows={chunk_rows}: expected 1 or more")
    if is_folder(path) and is_file(path / "metadata.json"):
        path = path / "metadata.json"
    elif is_folder(path):
        names = ["graph.json", *(f"graph.json{suffix}" for suffix in COMPRESSION_SUFFIXES)]
        path = next((path / name for name in names if is_file(path / name)), path)
    if is_file(path) and format_suffix(path) == ".json" and (euler := _euler_version(path)):
        if weights or root is not None:
            raise InvalidRequest(
                f"{path}: expected no weights and root, because Euler's JSON states the weights "
                f"and "
                "names no files; leave them out"
            )
        return EulerSource(path, chunk_rows=chunk_rows, rename=rename or {}, blocks=euler == 1)
    if is_file(path) and path.suffix == ".json":
        if root is not None:
            raise InvalidRequest(
                f"{path}: expected no root, because the paths of a chunked graph start from its "
                f"own "
                "folder; leave it out"
            )
        return ChunkedSource(
            path, chunk_rows=chunk_rows, weights=weights or {}, rename=rename or {}
        )
    if is_file(path) and path.suffix in (".yaml", ".yml"):
        if weights or rename:
            raise InvalidRequest(
                f"{path}: expected no weights and rename, because a schema file states them "
                f"itself; leave "
                "them out"
            )
        if is_config(path):
            return PglboxSource(
                path, root=None if root is None else expand_home(root), chunk_rows=chunk_rows
            )
        return TabularSource(
            path, root=None if root is None else expand_home(root), chunk_rows=chunk_rows
        )
    raise InvalidRequest(
        f"{path}: expected a folder with metadata.json (DGL's chunked graph format), Euler's "
        "graph.json, a YAML schema file, "
        "or a configuration of PGLBox"
    )


def _euler_version(path: Path) -> int:
    """Return the Euler version of a JSON file: 2, 1, or 0 for other formats.

    Files of 2.0 begin with a list of nodes or edges, files of 1.x with a block.
    """
    with TextFile(path, str(path)) as file:
        head = file.read(_HEAD_BYTES)
    return 1 if _EULER_1_PATTERN.match(head) else 2 if _EULER_2_PATTERN.search(head) else 0
