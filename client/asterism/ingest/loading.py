"""Loading of files: from chunks of a reader to a committed load; the file of rejects."""

from __future__ import annotations

import csv
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
from asterism.graph import Client
from asterism.ingest.pipeline import ReadAhead
from asterism_model.schema import Schema
from asterism_proto.errors import Conflict, InvalidRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadProgress:
    """How far a load is."""

    phase: str
    """``nodes``, ``edges`` or ``commit``."""
    rows_done: int
    rows_total: int | None
    """None where the files do not say."""
    bytes_done: int
    """Of input."""
    bytes_total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """What a load wrote."""

    nodes: int
    edges: int
    rejected: int
    """Bad rows that were left out."""
    rejects: Path | None
    """Where they are listed; None where there are none."""
    load_id: int
    commit: int
    """Its place in the order of writes: a build asked for from now on includes it."""
    seconds: float
    already: bool = False
    """Whether these files were in the space before: then nothing was written, and ``commit`` is
    that of their load.
    """


def schema_of(
    source: str | Path,
    *,
    weights: Mapping[str, str] | None = None,
    rename: Mapping[str, str] | None = None,
    root: str | Path | None = None,
) -> Schema:
    """The schema of a space that can hold a graph in files; see `load` for the parameters.

    Raises
    ------
    InvalidRequest
        Where the files are not what they are said to be.
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
    """Load a graph in files into a space and commit it; the next build publishes it.

    Files that are in the space already (the same path, schema and options, and every file of the
    same size and time of change) are not loaded a second time.

    Parameters
    ----------
    client : Client
        Of the service.
    space : str
        Where it goes.
    source : path
        A folder with DGL's ``metadata.json``, Euler's ``graph.json``, a YAML schema file, or a
        configuration of PGLBox.
    schema : Schema, optional
        The space is made with it where it is not there. Without it the space must be there.
    progress : callable, optional
        Told after every chunk.
    on_bad_rows : {"fail", "skip"}
        Refuse the load at the first bad row, or leave such rows out, count them and list them in
        ``rejects``.
    rejects : path, optional
        A CSV file of the rows left out: file, row (lines from 1, rows of arrays and tables from 0),
        column, value, reason. Default: ``<space>.rejects.csv`` here. Made at the first such row.
    resume : bool
        Go on with a load of this source that was cut off, if there is one. What was written is read
        again, and skipped where its digest is the same. False: give that one up and begin anew.
    chunk_rows : int
        Rows of a chunk at most.
    weights, rename : mapping, optional
        For a DGL folder: the feature that is the weight, per type, as ``{"author:writes:paper":
        "w"}``; for it and for Euler's JSON: new names of features.
    root : path, optional
        For a schema file or PGLBox's configuration: the folder that its file names start from.
    again : bool
        Load even what is in the space already: nodes are replaced by themselves, edges are there
        once more.

    Returns
    -------
    LoadReport
        With ``already`` where these files were in the space.

    Raises
    ------
    InvalidRequest
        Naming file, row, column and value, or what does not agree; nothing of the load stays.
    NotFound
        Where the space is not there.
    Conflict
        Where the source is not what it was when the load was begun that this one went on with; that
        one is given up.

    Examples
    --------
    >>> asterism.ingest.load(  # doctest: +SKIP
    ...     client, "papers", "chunked/", weights={"paper:cites:paper": "w"}
    ... )
    """
    if on_bad_rows not in ("fail", "skip"):
        raise InvalidRequest(f"on_bad_rows {on_bad_rows!r}: expected 'fail' or 'skip'")
    started = time.monotonic()
    opened_source = open_source(
        source, chunk_rows=chunk_rows, weights=weights, rename=rename, root=root
    )
    if schema is not None:
        client.create_space(space, schema, if_not_exists=True)
    check_schema_compatible(opened_source.schema, client.describe(space).schema)
    open_load = _begin_load(
        client,
        space,
        opened_source,
        resume_key(opened_source, on_bad_rows, again=again),
        resume=resume,
        again=again,
    )
    if open_load.commit_number:
        return _already_loaded_report(open_load, time.monotonic() - started)
    rejects_file = RejectsFile(
        Path(rejects or f"{space}.rejects.csv") if on_bad_rows == "skip" else None
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
    )


def _already_loaded_report(load: Load, seconds: float) -> LoadReport:
    """The report of a load whose files are in the space already."""
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
    """The load of this source: committed, cut off, or new."""
    source_name = f"{source.files[0].resolve()} (files {fingerprint(source.files)})"
    if again:
        # equal to no committed load's, so that only one that was cut off is found
        source_name += f" again {uuid4().hex}"
    load = client.begin_load(space, source=source_name, resume_key=key)
    if load.registered and not load.commit_number and not resume:
        load.abandon()
        load = client.begin_load(space, source=source_name, resume_key=key)
    return load


def _write_and_commit(
    writer: _LoadWriter, load: Load, rejects_file: RejectsFile, source: str | Path
) -> int:
    """Write all and commit; a load that can not succeed is given up, one that was only interrupted
    stays open.
    """
    try:
        writer.nodes()
        writer.edges()
        writer.check_all()
        commit = load.commit(rejected=rejects_file.count)
    except Conflict as error:
        load.abandon()
        raise Conflict(
            f"{source} has changed since the load {load.load_id} was begun ({error}); that "
            "load was given up: load again"
        ) from error
    except InvalidRequest:
        load.abandon()
        raise
    finally:
        rejects_file.close()
    writer.report_progress("commit")
    return commit


class _LoadWriter:
    """Chunks in manifest order into a load: nodes first, then edges, each numbered."""

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
        """Write every edge chunk; all nodes are written by now, so that ends can be looked for."""
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
        """Refuse to end where the load has chunks that the source does not have any more."""
        registered_chunks = max(self._load.registered, default=-1) + 1
        if registered_chunks > self._index:
            raise Conflict(f"it has {registered_chunks} chunks, the source makes {self._index} now")

    def report_progress(self, phase: str) -> None:
        """Report progress."""
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
    """A name for loading this source in this way: the same path, schema and options give the same
    one.
    """
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
    """What tells files from changed ones without reading them: the path, size and time of change of
    each.
    """
    stats = [(path, path.stat()) for path in sorted({path.resolve() for path in files})]
    return _digest([(str(path), stat.st_size, stat.st_mtime_ns) for path, stat in stats])


def _digest(document: Any) -> str:
    return blake2b(json.dumps(document, sort_keys=True).encode(), digest_size=16).hexdigest()


REJECTS_COLUMNS = ("file", "row", "column", "value", "reason")


class RejectsFile:
    """Counts bad rows; writes them to ``path`` (CSV), which is made at the first, or refuses the
    first where there is no path.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.count = 0
        self._file: IO[str] | None = None
        self._writer: Any = None

    def record(self, rows: Sequence[BadRow]) -> None:
        """Note rows that were left out."""
        if not rows:
            return
        if self.path is None:
            more = f" ({len(rows) - 1} more near by)" if len(rows) > 1 else ""
            raise InvalidRequest(
                f"{rows[0]}{more}; repair the input, or leave such rows out with on_bad_rows='skip'"
            )
        if self._file is None:
            self._file = self.path.open("w", newline="", encoding="utf-8")
            self._writer = csv.writer(self._file)
            self._writer.writerow(REJECTS_COLUMNS)
        self._writer.writerows(
            (row.file, row.row, row.column, row.value, row.reason) for row in rows
        )
        self.count += len(rows)

    def close(self) -> None:
        """Finish the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
