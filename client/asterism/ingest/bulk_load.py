"""Loading of graph files, from chunks to a committed load, and the file of rejects."""

from __future__ import annotations

import csv
import dataclasses
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from asterism.calls.loads import Load
from asterism.calls.schema_compatibility import check_schema_compatible
from asterism.formats import GraphSource, open_source
from asterism.formats.chunks import CHUNK_ROWS, BadRow
from asterism.formats.file_patterns import expand_home
from asterism.formats.tabular_source import TabularSource
from asterism.graph import Client
from asterism.ingest.read_ahead import ReadAhead
from asterism.records.catalog import SpaceInfo
from asterism_model.schema import Schema
from asterism_proto.errors import Conflict, InvalidRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadProgress:
    """Progress of a load."""

    phase: str
    """``nodes``, ``edges`` or ``commit``."""
    rows_done: int
    """Number of rows written so far."""
    rows_total: int | None
    """Total number of rows, or None if the files do not state it."""
    bytes_done: int
    """Bytes of input read so far."""
    bytes_total: int
    """Total size of the input in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """Result of a load."""

    nodes: int
    """Number of nodes written."""
    edges: int
    """Number of edges written."""
    rejected: int
    """Number of bad rows that were left out."""
    rejects: Path | None
    """File that lists the rejected rows, or None if there are none."""
    load_id: int
    """Id of the load."""
    commit: int
    """Position in the order of writes. A build requested from now on includes the load."""
    seconds: float
    """Duration in seconds."""
    already: bool = False
    """True if these files were in the space already.
    Nothing was written then, and ``commit`` is that of their load."""
    notes: tuple[str, ...] = ()
    """Remarks on a space without a version that are easier to act on before its first build."""


def schema_of(
    source: str | Path,
    *,
    weights: Mapping[str, str] | None = None,
    rename: Mapping[str, str] | None = None,
    root: str | Path | None = None,
) -> Schema:
    """Return the schema of a space that can hold the graph in these files.

    Parameters
    ----------
    source : str or Path
        Graph files, as for `load`.
    weights, rename : mapping, optional
        Weight features and new feature names, as for `load`.
    root : str or Path, optional
        Folder of relative file names, as for `load`.

    Returns
    -------
    Schema

    Raises
    ------
    InvalidRequest
        The files are invalid.

    Examples
    --------
    >>> client.create_space("shop", ingest.schema_of("data/metadata.json"))  # doctest: +SKIP
    """
    return open_source(source, weights=weights, rename=rename, root=root).schema


def load(
    client: Client,
    space: str,
    source: str | Path,
    *,
    schema: Schema | None = None,
    progress: Callable[[LoadProgress], None] | None = None,
    on_bad_rows: str = "fail",
    rejects: str | Path | None = None,
    resume: bool = True,
    chunk_rows: int = CHUNK_ROWS,
    weights: Mapping[str, str] | None = None,
    rename: Mapping[str, str] | None = None,
    root: str | Path | None = None,
    again: bool = False,
) -> LoadReport:
    """Load graph files into a space and commit them; the next build publishes them.

    Files that are in the space already are not loaded again. They are recognized by path, schema
    and options, and by the size and modification time of every file.

    Parameters
    ----------
    client : Client
        Client of the service.
    space : str
        Name of the space to load into.
    source : str or Path
        Folder with DGL's ``metadata.json``, Euler's ``graph.json``, a YAML schema file, or a
        configuration of PGLBox.
    schema : Schema, optional
        Schema with which to create the space if it does not exist. Without it, the space must
        exist.
    progress : callable, optional
        Called with a `LoadProgress` after every chunk.
    on_bad_rows : {"fail", "skip"}, default "fail"
        Refuse the load at the first bad row, or leave bad rows out, count them and list them in
        ``rejects``.
    rejects : str or Path, optional
        CSV file for the rejected rows, with file, row (lines count from 1, rows of arrays and
        tables from 0), column, value and reason. The default is ``<space>.rejects.csv`` in the
        current folder. The file is created at the first bad row.
    resume : bool, default True
        Continue an interrupted load of this source, if there is one. Chunks that were already
        written are read again, and skipped if their digest is the same. False abandons that load
        and starts over.
    chunk_rows : int, default 262144
        Largest number of rows per chunk.
    weights : mapping, optional
        For a DGL folder: the feature to use as weight, by type, such as
        ``{"author:writes:paper": "w"}``.
    rename : mapping, optional
        For a DGL folder or Euler's JSON: new names of features.
    root : str or Path, optional
        For a schema file or PGLBox's configuration: the folder to which file names are relative.
    again : bool, default False
        Load the files even if they are in the space already. Nodes are replaced by the same values;
        edges are added once more.

    Returns
    -------
    LoadReport
        Counts and commit. ``already`` is set if these files were in the space.

    Raises
    ------
    InvalidRequest
        A row is bad or the files contradict each other. The message names file, row, column and
        value. Nothing of the load remains.
    NotFound
        The space does not exist.
    Conflict
        The source has changed since the interrupted load began. That load is abandoned.

    Examples
    --------
    >>> asterism.ingest.load(  # doctest: +SKIP
    ...     client, "papers", "chunked/", weights={"paper:cites:paper": "w"}
    ... )
    """
    if on_bad_rows not in ("fail", "skip"):
        raise InvalidRequest(f"on_bad_rows={on_bad_rows!r}: expected 'fail' or 'skip'")
    started = time.monotonic()
    opened_source = open_source(
        source, chunk_rows=chunk_rows, weights=weights, rename=rename, root=root
    )
    if schema is not None:
        client.create_space(space, schema, if_not_exists=True)
    info = client.describe(space)
    check_schema_compatible(opened_source.schema, info.schema)
    notes = _space_notes(info, opened_source)
    open_load = _begin_load(
        client,
        space,
        opened_source,
        resume_key(opened_source, on_bad_rows, again=again),
        resume=resume,
        again=again,
    )
    if open_load.commit_number:
        report = _already_loaded_report(open_load, time.monotonic() - started)
        return dataclasses.replace(report, notes=notes)
    rejects_file = RejectsFile(
        expand_home(rejects or f"{space}.rejects.csv") if on_bad_rows == "skip" else None
    )
    writer = _LoadWriter(open_load, opened_source, rejects_file, progress or (lambda _: None))
    commit = _write_and_commit(writer, open_load, rejects_file, source)
    return LoadReport(
        nodes=writer.node_rows,
        edges=writer.edge_rows,
        rejected=rejects_file.count,
        rejects=rejects_file.path if rejects_file.count else None,
        load_id=open_load.load_id,
        commit=commit,
        seconds=time.monotonic() - started,
        notes=notes,
    )


def _space_notes(info: SpaceInfo, source: GraphSource) -> tuple[str, ...]:
    """Return a note if the space has no in-edges, unless the source asks for that."""
    declared = isinstance(source, TabularSource) and "direction" in source.spec.settings
    if info.version or info.schema.has_in or not info.schema.edge_types or declared:
        return ()
    return (
        f"space {info.name!r} keeps edges at their sources only (direction: out); samplers of "
        "PyG, DGL and GraphBolt follow edges from their destinations, even with `symmetry`; for "
        "these, drop the space, write direction: both in the schema, and load again",
    )


def _already_loaded_report(load: Load, seconds: float) -> LoadReport:
    """Return the report of a load of files that are in the space already."""
    return LoadReport(
        nodes=0,
        edges=0,
        rejected=0,
        rejects=None,
        load_id=load.load_id,
        commit=load.commit_number,
        seconds=seconds,
        already=True,
    )


def _begin_load(
    client: Client, space: str, source: GraphSource, key: str, *, resume: bool, again: bool
) -> Load:
    """Return the load of this source, which may be committed, interrupted or new."""
    source_name = f"{source.files[0].resolve()} (files {fingerprint(source.files)})"
    if again:
        # A unique name matches no committed load, so only an interrupted one is found.
        source_name += f" again {uuid4().hex}"
    load = client.begin_load(space, source=source_name, resume_key=key)
    if load.registered and not load.commit_number and not resume:
        load.abandon()
        load = client.begin_load(space, source=source_name, resume_key=key)
    return load


def _write_and_commit(
    writer: _LoadWriter, load: Load, rejects_file: RejectsFile, source: str | Path
) -> int:
    """Write all chunks and commit the load.

    A load that cannot succeed is abandoned; an interrupted one stays open.
    """
    try:
        writer.nodes()
        writer.edges()
        writer.check_all()
        commit = load.commit(rejected=rejects_file.count)
    except Conflict as error:
        load.abandon()
        raise Conflict(
            f"source={source}: expected the files that load {load.load_id} began with ({error}); "
            "that load was abandoned, load again"
        ) from error
    except InvalidRequest:
        load.abandon()
        raise
    finally:
        rejects_file.close()
    writer.report_progress("commit")
    return commit


class _LoadWriter:
    """Writer of numbered chunks to a load: nodes first, then edges."""

    def __init__(
        self,
        load: Load,
        source: GraphSource,
        rejects_file: RejectsFile,
        progress: Callable[[LoadProgress], None],
    ) -> None:
        self._load = load
        self._source = source
        self._bad = rejects_file
        self._progress = progress
        self._index = 0
        self._bytes = 0
        self._bytes_total = source.total_bytes
        self._rows_total = source.total_rows
        self.node_rows = 0
        self.edge_rows = 0

    def nodes(self) -> None:
        """Write every node chunk."""
        with ReadAhead(self._source.node_chunks()) as chunks:
            for chunk in chunks:
                self._bad.record(chunk.bad)
                if len(chunk):
                    self.node_rows += self._load.write_nodes(
                        self._index, chunk.ntype, chunk.ids, chunk.weights, chunk.features
                    )
                    self._index += 1
                self._bytes += chunk.nbytes
                self.report_progress("nodes")

    def edges(self) -> None:
        """Write every edge chunk. All nodes are written by then, so ends can be looked up."""
        with ReadAhead(self._source.edge_chunks(self._load.find_nodes)) as chunks:
            for chunk in chunks:
                self._bad.record(chunk.bad)
                if len(chunk):
                    self._load.write_edges(
                        self._index,
                        chunk.etype,
                        chunk.src,
                        chunk.dst,
                        chunk.weights,
                        chunk.features,
                        ends_known=True,
                    )
                    self.edge_rows += len(chunk)
                    self._index += 1
                self._bytes += chunk.nbytes
                self.report_progress("edges")

    def check_all(self) -> None:
        """Raise Conflict if the load has chunks that the source no longer yields."""
        registered_chunks = max(self._load.registered, default=-1) + 1
        if registered_chunks > self._index:
            raise Conflict(
                f"the load has {registered_chunks} chunks, the source has {self._index} now"
            )

    def report_progress(self, phase: str) -> None:
        """Report progress to the callback."""
        self._progress(
            LoadProgress(
                phase=phase,
                rows_done=self.node_rows + self.edge_rows,
                rows_total=self._rows_total,
                bytes_done=min(self._bytes, self._bytes_total),
                bytes_total=self._bytes_total,
            )
        )


def resume_key(source: GraphSource, on_bad_rows: str, *, again: bool = False) -> str:
    """Return the resume key of a load; equal for the same path, schema and options."""
    return _digest(
        {
            "path": str(source.files[0].resolve()),
            "schema": source.schema.to_dict(),
            "bad": on_bad_rows,
            "again": again,
            **source.options,
        }
    )


def fingerprint(files: Iterable[Path]) -> str:
    """Return a digest of the paths, sizes and modification times of files.

    It detects changed files without reading them.
    """
    stats = [(path, path.stat()) for path in sorted({path.resolve() for path in files})]
    return _digest([(str(path), stat.st_size, stat.st_mtime_ns) for path, stat in stats])


def _digest(document: Any) -> str:
    return blake2b(json.dumps(document, sort_keys=True).encode(), digest_size=16).hexdigest()


REJECTS_COLUMNS = ("file", "row", "column", "value", "reason")


class RejectsFile:
    """Counter and CSV file of bad rows.

    The file is created at the first bad row. Without a path, the first bad row raises
    InvalidRequest.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.count = 0
        self._file: IO[str] | None = None
        self._writer: Any = None

    def record(self, rows: Sequence[BadRow]) -> None:
        """Count and write rows that were left out."""
        if not rows:
            return
        if self.path is None:
            more = f" ({len(rows) - 1:,} more in the rows after it)" if len(rows) > 1 else ""
            raise InvalidRequest(
                f"{rows[0]}{more}; repair the input, or leave such rows out with on_bad_rows='skip'"
            )
        if self._file is None:
            try:
                self._file = self.path.open(
                    "w", newline="", encoding="utf-8", errors="backslashreplace"
                )
            except OSError as error:
                raise InvalidRequest(
                    f"rejects={str(self.path)!r}: expected a file that can be written "
                    f"({error.strerror}); name another file"
                ) from error
            self._writer = csv.writer(self._file)
            self._writer.writerow(REJECTS_COLUMNS)
        self._writer.writerows(
            (row.file, row.row, row.column, row.value, row.reason) for row in rows
        )
        self.count += len(rows)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
