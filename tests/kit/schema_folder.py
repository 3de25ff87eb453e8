"""Folders of a schema file and its data files, and what readers make of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from asterism.formats import EdgeChunk, GraphSource, NodeChunk, open_source
from asterism.formats.chunks import BadRow


def write(folder: Path, schema: str, files: Mapping[str, str | bytes] | None = None) -> Path:
    """Write files and a schema file; return the path of the schema file."""
    for name, content in (files or {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "schema.yaml").write_text(schema)
    return folder / "schema.yaml"


def nodes(
    folder: Path, schema: str, files: Mapping[str, str | bytes] | None = None
) -> list[NodeChunk]:
    """Write and read a folder; return the chunks of nodes."""
    return list(open_source(write(folder, schema, files)).node_chunks())


def edges(
    folder: Path, schema: str, files: Mapping[str, str | bytes] | None = None
) -> list[EdgeChunk]:
    """Write and read a folder; return the chunks of edges."""
    return list(open_source(write(folder, schema, files)).edge_chunks())


def ids_of(source: GraphSource | list[NodeChunk]) -> list[int]:
    """Return the ids of all nodes, sorted."""
    chunks = source if isinstance(source, list) else source.node_chunks()
    return sorted(i for chunk in chunks for i in chunk.ids.tolist())


def bad_rows(chunks: list[NodeChunk] | list[EdgeChunk]) -> list[BadRow]:
    """Return the bad rows of all chunks."""
    return [row for chunk in chunks for row in chunk.bad]


def values_of(chunks: list[NodeChunk], feature: str) -> list[Any]:
    """Return the values of a dense feature in the order of the file."""
    return [value for chunk in chunks for value in np.asarray(chunk.features[feature]).tolist()]


def texts_of(chunks: list[NodeChunk], feature: str) -> list[bytes]:
    """Return the values of a feature of bytes in the order of the file."""
    texts = []
    for chunk in chunks:
        indptr, data = chunk.features[feature]
        texts += [bytes(data[start:stop]) for start, stop in pairwise(indptr.tolist())]
    return texts
