"""PGLBox's text files, which its configuration names, as a source: nodes of all types in common files, edges a folder for each type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from asterism.formats import edges as edge_rows
from asterism.formats.chunks import CHUNK_BYTES, CHUNK_ROWS, EdgeChunk, Exists, Ids, NodeChunk, bounded, safe_name
from asterism.formats.csvfiles import CsvOptions, CsvTable
from asterism.formats.keys import Keys
from asterism.formats.pglboxconfig import DONE, Config, read_config
from asterism.formats.pglboxnodes import NodeLines, Slot, slots_of
from asterism.formats.pglboxparts import PartTable
from asterism.formats.spec import EdgeSpec, FeatureSpec, Files, TableSpec
from asterism.formats.tables import Table
from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import EdgeType, NodeType, Schema

_KEY = re.compile(r"^etype2files\s*:", re.MULTILINE)
_BESIDE = ("_", ".")
_ENDS = ("src", "dst")


def is_config(path: Path) -> bool:
    """Whether a YAML file is a configuration of PGLBox or Graph4Rec."""
    try:
        return _KEY.search(path.read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        return False


class PglboxSource:
    """The files that a configuration names.

    Parameters
    ----------
    path : Path
        The YAML file.
    root : Path, optional
        The folder that its file names start from, in place of what it says itself.
    chunk_rows : int
        Rows of a chunk at most.
    """

    def __init__(self, path: Path, *, root: Path | None = None, chunk_rows: int = CHUNK_ROWS) -> None:
        self.config = read_config(path, root)
        self.chunk_rows = chunk_rows
        self._slots = slots_of(self.config)
        self._node_files = {name: files_of(self.config, f"ntype2files: {name!r}", said) for name, said in self.config.node_files.items()}
        self.tables: dict[str, Table] = {}
        self._edges: list[EdgeSpec] = []
        for triple, said in self.config.edge_files.items():
            self._open_edges(triple, files_of(self.config, f"etype2files: {':'.join(triple)!r}", said))
        self._schema = self._made()

    def _open_edges(self, triple: tuple[str, str, str], files: Files) -> None:
        name = ":".join(triple)
        weighted = any(_columns(path) > 2 for path, _ in files[:1])
        options = CsvOptions(delimiter="\t", header=False, quote="", columns=(*_ENDS, "weight") if weighted else _ENDS)
        table: Table = CsvTable(files, options)
        if self.config["hadoop_shard"] or self.config["auto_shard"]:
            table = PartTable([(label, CsvTable([(path, label)], options)) for path, label in files], self.config["num_part"])
        self.tables[name] = table
        same = triple[0] == triple[2]
        self._edges.append(
            EdgeSpec(
                name=name,
                table=TableSpec(format="csv", files={"": files}, csv=options),
                src="src",
                dst="dst",
                weight="weight" if weighted else None,
                reverse=triple[1] if self.config["symmetry"] and not same else None,
                symmetry=self.config["symmetry"] and same,
            )
        )

    def _made(self) -> Schema:
        nodes = tuple(NodeType(name=name, features=tuple(slot.feature for slot in self._slots_of(name))) for name in self.config.node_files)
        weighted = {edge.name: edge.weight is not None for edge in self._edges}
        made = []
        for src, relation, dst in self.config.triples:
            heavy = weighted.get(f"{src}:{relation}:{dst}", weighted.get(f"{dst}:{relation}:{src}", False))
            made.append(EdgeType(src_type=src, relation=relation, dst_type=dst, weighted=heavy))
        return Schema(node_types=nodes, edge_types=tuple(made), ids="global")

    def _slots_of(self, ntype: str) -> tuple[Slot, ...]:
        return tuple(slot for slot in self._slots if slot.ntype in ("", ntype))

    @property
    def schema(self) -> Schema:
        """As `Source.schema`."""
        return self._schema

    @property
    def options(self) -> Mapping[str, Any]:
        """As `Source.options`."""
        return {"root": str(self.config.root.resolve()), "schema": self.config.text, "chunk_rows": self.chunk_rows}

    @property
    def files(self) -> tuple[Path, ...]:
        """As `Source.files`."""
        edges = [path for edge in self._edges for path, _ in edge.table.files[""]]
        return (self.config.path, *dict.fromkeys([path for files in self._node_files.values() for path, _ in files] + edges))

    @property
    def total_rows(self) -> int | None:
        """As `Source.total_rows`: text does not say."""
        return None

    @property
    def total_bytes(self) -> int:
        """As `Source.total_bytes`."""
        return sum(path.stat().st_size for path in self.files[1:])

    def limit(self, features: tuple[FeatureSpec, ...]) -> int:
        """Rows of a batch."""
        return max(1, min(self.chunk_rows, CHUNK_BYTES // 20))

    def keys(self, ntype: str) -> Keys | None:
        """None: nodes are known by numbers."""
        return None

    @property
    def salt(self) -> int | None:
        """None: ids are whole numbers."""
        return None

    def counted(self, ntype: str) -> int | None:
        """None: nobody knows before the files are read."""
        return None

    def nodes_of(self, ntype: str) -> Iterator[Ids]:
        """The ids of one type, chunk by chunk."""
        for path, label in self._node_files[ntype]:
            for chunk in NodeLines(path, label, {ntype: ()}).chunks(self.chunk_rows):
                yield chunk.ids

    def node_chunks(self) -> Iterator[NodeChunk]:
        """As `Source.node_chunks`: a file that several types share is read once."""
        wanted: dict[Path, tuple[str, dict[str, tuple[Slot, ...]]]] = {}
        for name, files in self._node_files.items():
            for path, label in files:
                wanted.setdefault(path, (label, {}))[1][name] = self._slots_of(name)
        for path, (label, types) in wanted.items():
            for chunk in NodeLines(path, label, types).chunks(self.chunk_rows):
                yield from bounded(chunk)

    def edge_chunks(self, exists: Exists | None = None) -> Iterator[EdgeChunk]:
        """As `Source.edge_chunks`."""
        for edge in self._edges:
            yield from edge_rows.edge_type(self, edge, exists)


def files_of(config: Config, what: str, said: str) -> Files:
    """A file, or the files of a folder by name; those that begin with ``_`` or ``.`` hold no rows."""
    path = config.root / said
    if path.is_file():
        return ((path, safe_name(path, config.root)),)
    if not path.is_dir():
        raise InvalidRequest(f"{config.path}: {what}: {said}: there is no such file or folder under {config.root}")
    found = sorted(one for one in path.iterdir() if one.is_file() and not one.name.startswith(_BESIDE) and one.name != DONE)
    for one in found:
        if one.suffix in (".gz", ".zip", ".bz2", ".zst"):
            raise InvalidRequest(f"{safe_name(one, config.root)}: is compressed; unpack it")
    if not found:
        raise InvalidRequest(f"{config.path}: {what}: {said}: the folder has no files")
    return tuple((one, safe_name(one, config.root)) for one in found)


def _columns(path: Path) -> int:
    """How many columns the first line that is not blank has."""
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                return line.rstrip(b"\r\n").count(b"\t") + 1
    return len(_ENDS)


def read_nodes(config: Config, key: str) -> dict[str, Ids]:
    """The nodes that files name which a key of the configuration names: by type, int64, each once.

    Raises
    ------
    InvalidRequest
        Naming file, line and value of the first row that is none.
    """
    found: dict[str, list[Ids]] = {}
    types: dict[str, tuple[Slot, ...]] = dict.fromkeys(config.node_files, ())
    for path, label in files_of(config, key, config[key]):
        for chunk in NodeLines(path, label, types).chunks(CHUNK_ROWS):
            if chunk.bad:
                raise InvalidRequest(str(chunk.bad[0]))
            found.setdefault(chunk.ntype, []).append(chunk.ids)
    return {name: np.unique(np.concatenate(parts)) for name, parts in found.items()}
