"""Source for PGLBox's text files: shared files for nodes, a folder per edge type."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from asterism.formats import edges as edge_rows
from asterism.formats.chunks import (
    CHUNK_BYTES,
    CHUNK_ROWS,
    EdgeChunk,
    ExistsCheck,
    Ids,
    NodeChunk,
    display_path,
    split_to_limit,
)
from asterism.formats.csv_files import CsvOptions, CsvTable
from asterism.formats.file_patterns import (
    Files,
    expand_home,
    find_files,
    is_file,
    is_folder,
    without_repeats,
)
from asterism.formats.node_ids import StringIdIndex
from asterism.formats.pglbox.config import DONE_MARKER, Config, read_config
from asterism.formats.pglbox.edge_parts import PartFilesTable
from asterism.formats.pglbox.nodes import NodeLines, Slot, slots_of
from asterism.formats.schema_file import EdgeSpec, FeatureSpec, TableSpec
from asterism.formats.table_reader import TableReader
from asterism.formats.text_files import TextFile
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.errors import InvalidRequest

_CONFIG_PATTERN = re.compile(r"^etype2files\s*:", re.MULTILINE)
_SKIPPED_PREFIXES = ("_", ".")
_ENDS = ("src", "dst")


def is_config(path: Path) -> bool:
    """Return True if a YAML file is a configuration of PGLBox or Graph4Rec."""
    try:
        return _CONFIG_PATTERN.search(path.read_text(encoding="utf-8-sig")) is not None
    except (OSError, UnicodeDecodeError):
        return False


class PglboxSource:
    """Graph in the files of a PGLBox configuration.

    Parameters
    ----------
    path : Path
        YAML file.
    root : Path, optional
        Folder to which file names are relative, instead of the configured one.
    chunk_rows : int, default 262144
        Largest number of rows per chunk.
    """

    def __init__(
        self, path: Path, *, root: Path | None = None, chunk_rows: int = CHUNK_ROWS
    ) -> None:
        self.config = read_config(path, root)
        self.chunk_rows = chunk_rows
        self._slots = slots_of(self.config)
        self._node_files = {
            name: list_files(self.config, f"ntype2files: {name!r}", location)
            for name, location in self.config.node_files.items()
        }
        self.tables: dict[str, TableReader] = {}
        self._edges: list[EdgeSpec] = []
        for triple, location in self.config.edge_files.items():
            self._open_edges(
                triple, list_files(self.config, f"etype2files: {':'.join(triple)!r}", location)
            )
        self._schema = self._build_schema()

    def _open_edges(self, triple: tuple[str, str, str], files: Files) -> None:
        name = ":".join(triple)
        weighted = any(_count_columns(path) > 2 for path, _ in files[:1])
        options = CsvOptions(
            delimiter="\t",
            header=False,
            quote="",
            columns=(*_ENDS, "weight") if weighted else _ENDS,
        )
        table: TableReader = CsvTable(files, options)
        if self.config["hadoop_shard"] or self.config["auto_shard"]:
            table = PartFilesTable(
                [(label, CsvTable([(path, label)], options)) for path, label in files],
                self.config["num_part"],
            )
        self.tables[name] = table
        same_type = triple[0] == triple[2]
        self._edges.append(
            EdgeSpec(
                name=name,
                table=TableSpec(format="csv", files={"": files}, csv=options),
                src="src",
                dst="dst",
                weight="weight" if weighted else None,
                reverse=triple[1] if self.config["symmetry"] and not same_type else None,
                symmetry=self.config["symmetry"] and same_type,
            )
        )

    def _build_schema(self) -> Schema:
        nodes = tuple(
            NodeType(name=name, features=tuple(slot.feature for slot in self._slots_of(name)))
            for name in self.config.node_files
        )
        weighted = {edge.name: edge.weight is not None for edge in self._edges}
        edge_types = []
        for src, relation, dst in self.config.triples:
            is_weighted = weighted.get(
                f"{src}:{relation}:{dst}", weighted.get(f"{dst}:{relation}:{src}", False)
            )
            edge_types.append(
                EdgeType(src_type=src, relation=relation, dst_type=dst, weighted=is_weighted)
            )
        return Schema(node_types=nodes, edge_types=tuple(edge_types), ids="global")

    def _slots_of(self, ntype: str) -> tuple[Slot, ...]:
        return tuple(slot for slot in self._slots if slot.ntype in ("", ntype))

    @property
    def schema(self) -> Schema:
        """Schema of a space that can hold this graph; see `GraphSource.schema`."""
        return self._schema

    @property
    def options(self) -> Mapping[str, Any]:
        """Options on which the chunks depend; see `GraphSource.options`."""
        return {
            "root": str(self.config.root.resolve()),
            "schema": self.config.text,
            "chunk_rows": self.chunk_rows,
        }

    @property
    def files(self) -> tuple[Path, ...]:
        """Configuration, followed by all data files."""
        edges = [path for edge in self._edges for path, _ in edge.table.files[""]]
        return (
            self.config.path,
            *dict.fromkeys(
                [path for files in self._node_files.values() for path, _ in files] + edges
            ),
        )

    @property
    def total_rows(self) -> int | None:
        """None, because text files do not state their number of rows."""
        return None

    @property
    def total_bytes(self) -> int:
        """Total input in bytes."""
        return sum(path.stat().st_size for path in self.files[1:])

    def limit(self, features: tuple[FeatureSpec, ...]) -> int:
        """Return the number of rows per batch."""
        return max(1, min(self.chunk_rows, CHUNK_BYTES // 20))

    def string_id_index(self, ntype: str) -> StringIdIndex | None:
        """Return None: nodes have integer ids."""
        return None

    @property
    def salt(self) -> int | None:
        """None, because ids are integers."""
        return None

    def dense_count(self, ntype: str) -> int | None:
        """Return None: the number of nodes is unknown before the files are read."""
        return None

    def nodes_of(self, ntype: str) -> Iterator[Ids]:
        """Yield the ids of a node type, chunk by chunk."""
        for path, label in self._node_files[ntype]:
            for chunk in NodeLines(path, label, {ntype: ()}).chunks(self.chunk_rows):
                yield chunk.ids

    def node_chunks(self) -> Iterator[NodeChunk]:
        """Yield every node; see `GraphSource.node_chunks`.

        A file shared by several types is read once.
        """
        types_by_file: dict[Path, tuple[str, dict[str, tuple[Slot, ...]]]] = {}
        for name, files in self._node_files.items():
            for path, label in files:
                types_by_file.setdefault(path, (label, {}))[1][name] = self._slots_of(name)
        for path, (label, types) in types_by_file.items():
            for chunk in NodeLines(path, label, types).chunks(self.chunk_rows):
                yield from split_to_limit(chunk)

    def edge_chunks(self, exists: ExistsCheck | None = None) -> Iterator[EdgeChunk]:
        """Yield every edge; see `GraphSource.edge_chunks`."""
        for edge in self._edges:
            yield from edge_rows.read_edge_type(self, edge, exists)


def list_files(config: Config, description: str, location: str) -> Files:
    """Return a file, or the files of a folder or a pattern by name.

    Files with names that begin with ``_`` or ``.`` are skipped, because they hold no rows.
    """
    path = config.root / expand_home(location)
    if is_file(path):
        return ((path, display_path(path, config.root)),)
    if glob.has_magic(location) and not is_folder(path):
        matches = find_files(f"{config.path}: {description}", location, config.root)
        return without_repeats({"": matches})[""]
    if not is_folder(path):
        raise InvalidRequest(
            f"{config.path}: {description}: {location}: no such file or folder under {config.root}"
        )
    files = sorted(
        file
        for file in path.iterdir()
        if file.is_file()
        and not file.name.startswith(_SKIPPED_PREFIXES)
        and file.name != DONE_MARKER
    )
    if not files:
        raise InvalidRequest(f"{config.path}: {description}: {location}: the folder has no files")
    return tuple((file, display_path(file, config.root)) for file in files)


def _count_columns(path: Path) -> int:
    """Return the number of columns of the first nonblank line."""
    with TextFile(path, path.name) as file:
        while line := file.read_line():
            if line.strip():
                return line.rstrip(b"\r\n").count(b"\t") + 1
    return len(_ENDS)


def read_nodes(config: Config, key: str) -> dict[str, Ids]:
    """Return the nodes in the files that a key of the configuration names.

    Parameters
    ----------
    config : Config
        Configuration.
    key : str
        Key with a file or a folder as value, such as "infer_nodes".

    Returns
    -------
    dict of str to ndarray of int64
        Distinct node ids in ascending order, by type.

    Raises
    ------
    InvalidRequest
        A row is invalid. The message names file, line and value.
    """
    ids_by_type: dict[str, list[Ids]] = {}
    types: dict[str, tuple[Slot, ...]] = dict.fromkeys(config.node_files, ())
    for path, label in list_files(config, key, config[key]):
        for chunk in NodeLines(path, label, types).chunks(CHUNK_ROWS):
            if chunk.bad:
                raise InvalidRequest(str(chunk.bad[0]))
            ids_by_type.setdefault(chunk.ntype, []).append(chunk.ids)
    return {name: np.unique(np.concatenate(parts)) for name, parts in ids_by_type.items()}
