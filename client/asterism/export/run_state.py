"""State of one running export, and the journal of its finished steps.

An export is a sequence of named steps. `ExportRun.run_step` records the result of a step in the
journal and skips steps that are recorded already, so that a killed export continues after its last
finished step. Everything except the graph and the progress callback is in the scratch folder, where
worker processes read it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from asterism.export.dgl_tensor_files import ArrayStream, write_tensors
from asterism.export.export_schema import ColumnPlan, ExportPlan, TypePlan
from asterism.export.graph_source import (
    Array,
    Ids,
    ProgressCallback,
    ScannableGraph,
    UnreadableSource,
)
from asterism.export.scratch_files import PIECE_BYTES, Spool
from asterism_io.remote_storage import PIECE_BYTES as UPLOAD_BYTES
from asterism_io.remote_storage import RemoteFolder

log = logging.getLogger("asterism.export")

MIN_MEMORY_MIB = 64
DEFAULT_MEMORY_MIB = 1024
_SETTINGS = "run.json"


class Journal:
    """Folder with one small file per finished step.

    Parameters
    ----------
    folder : Path
        Created if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, step: str) -> dict[str, Any] | None:
        """Return the result of a step, or None if it is not done."""
        try:
            facts: dict[str, Any] = json.loads((self._folder / f"{step}.json").read_text())
        except FileNotFoundError:
            return None
        return facts

    def put(self, step: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Record that a step is done, and return its result as `get` does."""
        text = json.dumps(facts)
        # Renaming is atomic: a reader sees a complete record or none, even with several writers.
        temporary = self._folder / f"{step}.{uuid.uuid4().hex[:8]}"
        with temporary.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(self._folder / f"{step}.json")
        stored_facts: dict[str, Any] = json.loads(text)
        return stored_facts


@dataclass(slots=True, kw_only=True)
class ExportRun:
    """State that the steps of an export share.

    Everything except the graph and the progress callback is in the scratch folder, for worker
    processes.
    """

    graph: ScannableGraph = field(default_factory=UnreadableSource)
    plan: ExportPlan
    version: int
    parts: int
    trainers: int
    """Number of trainers per partition."""
    hops: int
    formats: tuple[str, ...]
    out: Path
    """Folder for the output files, renamed once the export is complete."""
    address: str = ""
    """Address that receives finished files instead of ``out``; empty if there is none."""
    scratch: Path
    """Scratch folder, visible to every worker under this name; removed at the end."""
    memory_limit_mib: int = DEFAULT_MEMORY_MIB
    """Memory for arrays in each process, in MiB."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the export, as the manifest records them."""
    progress: ProgressCallback | None = None
    is_worker: bool = False
    """True in a worker process, where warnings are not logged."""
    warnings: list[str] = field(default_factory=list)
    """Warnings of the running step."""
    files: dict[str, Any] = field(default_factory=dict)
    """Size and digest of each file that the running step has written."""
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Results of finished steps, in order."""

    @property
    def has_string_ids(self) -> bool:
        """True if node ids are strings."""
        return self.graph.schema.has_string_ids

    # -- steps -------------------------------------------------------------------------------------

    @property
    def journal(self) -> Journal:
        """Journal of finished steps."""
        return Journal(self.scratch / "journal")

    def run_step(
        self, name: str, function: Callable[[], Mapping[str, Any] | None]
    ) -> dict[str, Any]:
        """Run a step, unless it is done, and return its result."""
        result = self.journal.get(name)
        if result is None:
            self.warnings, self.files = [], {}
            facts = function() or {}
            result = self.journal.put(
                name, {**facts, "warnings": self.warnings, "files": self.files}
            )
        self.results[name] = result
        return result

    def step_result(self, name: str) -> dict[str, Any]:
        """Return the result of a finished step."""
        if name not in self.results:
            facts = self.journal.get(name)
            if facts is None:
                raise FileNotFoundError(
                    f"scratch={self.scratch}: step {name!r} is not done; use a folder that all "
                    f"workers share"
                )
            self.results[name] = facts
        return self.results[name]

    def save(self) -> None:
        """Write the settings that other processes read with `load`."""
        settings = {
            "plan": self.plan.to_dict(),
            "version": self.version,
            "parts": self.parts,
            "trainers": self.trainers,
            "hops": self.hops,
            "formats": list(self.formats),
            "out": str(self.out),
            "address": self.address,
            "memory_limit_mib": self.memory_limit_mib,
        }
        temporary = self.scratch / f"{_SETTINGS}.making"
        temporary.write_text(json.dumps(settings))
        temporary.rename(self.scratch / _SETTINGS)

    @classmethod
    def load(cls, scratch: Path) -> ExportRun:
        """Open the export in a scratch folder, for steps that do not read the graph."""
        settings = json.loads((scratch / _SETTINGS).read_text())
        return cls(
            plan=ExportPlan.from_dict(settings["plan"]),
            version=settings["version"],
            parts=settings["parts"],
            trainers=settings["trainers"],
            hops=settings["hops"],
            formats=tuple(settings["formats"]),
            out=Path(settings["out"]),
            address=settings["address"],
            scratch=scratch,
            memory_limit_mib=settings["memory_limit_mib"],
            is_worker=True,
        )

    def warn(self, message: str) -> None:
        """Log a warning and add it to the report."""
        if not self.is_worker:
            log.warning("%s", message)
        self.warnings.append(message)

    # -- memory ------------------------------------------------------------------------------------

    @property
    def memory(self) -> int:
        """Memory for arrays, in bytes."""
        return self.memory_limit_mib << 20

    def rows(self, kind: TypePlan) -> int:
        """Return the number of rows of a type to scan at once."""
        return max(1, min(kind.batch_rows, self.memory // 16 // kind.row_bytes))

    def read_rows(self, spool: Spool) -> Array:
        """Return all rows of a scratch file, in memory if they are few, otherwise mapped."""
        fits_in_memory = spool.rows * spool.row_bytes <= self.memory // (
            8 * max(1, len(self.plan.nodes))
        )
        return spool.read() if fits_in_memory else spool.map()

    def allocate(self, rows: int, dtype: type[np.generic]) -> Array:
        """Return an array of zeros that may be written in any order.

        It is in memory if small, otherwise in a file that is removed with the array.
        """
        if rows * np.dtype(dtype).itemsize <= self.memory // 8:
            return np.zeros(rows, dtype)
        spool = Spool(path=self.scratch_path(), dtype=np.dtype(dtype))
        array = spool.allocate(rows)
        spool.remove()
        return array

    # -- scratch files -----------------------------------------------------------------------------

    def scratch_path(self) -> Path:
        """Return a unique path in the scratch folder."""
        return self.scratch / f"making-{uuid.uuid4().hex}"

    def spool(self, name: str, values: ColumnPlan | None = None) -> Spool:
        """Return a scratch file for a column, or for ids."""
        piece_bytes = max(1 << 16, min(PIECE_BYTES, self.memory // 32))
        if values is None:
            return Spool(
                path=self.scratch / name, dtype=np.dtype(np.int64), piece_bytes=piece_bytes
            )
        return Spool(
            path=self.scratch / name,
            dtype=values.dtype,
            shape=values.shape,
            piece_bytes=piece_bytes,
        )

    def reorder(self, spool: Spool, order: Ids, name: str) -> Spool:
        """Write a scratch file's rows to a new one in the given order."""
        result = Spool(
            path=self.scratch_path(),
            dtype=spool.dtype,
            shape=spool.shape,
            piece_bytes=spool.piece_bytes,
        )
        result.path.touch()
        for piece in spool.pieces(order):
            result.append(piece)
        return self.rename_spool(result, name)

    def rename_spool(self, spool: Spool, name: str) -> Spool:
        """Rename a complete scratch file to the name that later steps use."""
        spool.path.rename(self.scratch / name)
        return Spool(
            path=self.scratch / name,
            dtype=spool.dtype,
            shape=spool.shape,
            piece_bytes=spool.piece_bytes,
        )

    # -- files of the export -----------------------------------------------------------------------

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        """Open a file of the export for writing.

        When the block ends without an error, the file is complete and durable under its name, and
        its size and digest are recorded.
        """
        temporary = self.scratch_path()
        with open(temporary, "w+b", buffering=0) as file:
            yield file
            os.fsync(file.fileno())
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self.deliver(temporary, path, size)
        self.files[path] = {"bytes": size, "sha256": digest}

    def deliver(self, source: Path, path: str, size: int) -> None:
        """Move or upload a finished file to its destination."""
        if not self.address:
            target = self.out / path
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
            return
        with open(source, "rb") as file:
            RemoteFolder(self.address, content_name="export").write(
                path, iter(lambda: file.read(UPLOAD_BYTES), b""), expected=size
            )
        source.unlink()

    def write_tensors(self, part: int, name: str, tensors: Mapping[str, ArrayStream]) -> None:
        """Write one file of tensors of a partition."""
        with self.open_output(f"part{part}/{name}") as file:
            write_tensors(file, tensors)


class ProgressMeter:
    """Counter of the rows of a phase, which reports to the progress callback."""

    def __init__(self, run: ExportRun, phase: str, total: int | None) -> None:
        self._progress, self._phase, self._total = run.progress, phase, total
        self.done = 0
        self.add(0)

    def add(self, rows: int) -> None:
        """Add ``rows`` to the count and report it."""
        self.done += rows
        if self._progress is not None:
            self._progress(self._phase, self.done, self._total)


def spool_column(*spools: Spool, order: Array | None = None) -> ArrayStream:
    """Return the concatenation of scratch files as a stream for an output file.

    ``order`` reorders the rows of a single scratch file.
    """

    def pieces() -> Iterator[Array]:
        for spool in spools:
            yield from spool.pieces(order)

    return ArrayStream(
        dtype=spools[0].dtype,
        shape=(sum(spool.rows for spool in spools), *spools[0].shape),
        pieces=pieces,
    )
