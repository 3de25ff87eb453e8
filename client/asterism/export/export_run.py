"""State of one export under way, and the journal of its finished steps.

An export is a sequence of named steps. `ExportRun.run_step` records what a step found in the
journal and skips a step that is recorded already, so that a killed export continues after its last
finished step. Everything but the graph and the progress callback lies in the scratch folder, where
worker processes read it."""

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

from asterism.export.dgl_files import ArrayStream, write_tensors
from asterism.export.graph_source import (
    Array,
    Ids,
    ProgressCallback,
    ScannableGraph,
    UnreadableSource,
)
from asterism.export.plan import ColumnPlan, ExportPlan, TypePlan
from asterism.export.scratch_files import PIECE_BYTES, Spool
from asterism_io.remote_storage import PIECE_BYTES as UPLOAD_BYTES
from asterism_io.remote_storage import RemoteFolder

log = logging.getLogger("asterism.export")

MIN_MEMORY_MIB = 64
DEFAULT_MEMORY_MIB = 1024
_SETTINGS = "run.json"


class Journal:
    """A small file for each step that is done, in a folder.

    Parameters
    ----------
    folder : Path
        Made where it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, step: str) -> dict[str, Any] | None:
        """What a step found out; None while it is not done."""
        try:
            facts: dict[str, Any] = json.loads((self._folder / f"{step}.json").read_text())
        except FileNotFoundError:
            return None
        return facts

    def put(self, step: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Note that a step is done; give the facts as `get` does."""
        text = json.dumps(facts)
        # Under a name of its own first: whoever looks sees all of it or nothing, however many write
        # it.
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
    """What the steps of an export share. All but the graph and whoever watches is in its scratch
    folder, for other processes.
    """

    graph: ScannableGraph = field(default_factory=UnreadableSource)
    plan: ExportPlan
    version: int
    parts: int
    trainers: int
    """Of each part."""
    hops: int
    formats: tuple[str, ...]
    out: Path
    """Where the parts are written; it gets its name when all is there."""
    address: str = ""
    """Where finished files go instead, if not to ``out``."""
    scratch: Path
    """Seen by every worker under this name; removed at the end."""
    memory_limit_mib: int = DEFAULT_MEMORY_MIB
    """Of arrays, in each process."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The words of whoever asked for it."""
    progress: ProgressCallback | None = None
    is_worker: bool = False
    """Whether somebody else logs its warnings."""
    warnings: list[str] = field(default_factory=list)
    """Of the step that is under way."""
    files: dict[str, Any] = field(default_factory=dict)
    """Size and digest of what the step that is under way wrote."""
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What the steps found out that are done, in their order."""

    @property
    def has_string_ids(self) -> bool:
        """Whether nodes are called by strings."""
        return self.graph.schema.has_string_ids

    # -- steps -------------------------------------------------------------------------------------

    @property
    def journal(self) -> Journal:
        """Of the steps that are done."""
        return Journal(self.scratch / "journal")

    def run_step(
        self, name: str, function: Callable[[], Mapping[str, Any] | None]
    ) -> dict[str, Any]:
        """Do a step, unless it was done before; give what it found out."""
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
        """What a step found out that is done."""
        if name not in self.results:
            facts = self.journal.get(name)
            if facts is None:
                raise FileNotFoundError(
                    f"{self.scratch}: step {name!r} is not done; is this folder the same one here?"
                )
            self.results[name] = facts
        return self.results[name]

    def save(self) -> None:
        """Write what other processes need, for `load`."""
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
        """The export in a scratch folder, for its steps that read no graph."""
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
        """Say it in the log and in the report."""
        if not self.is_worker:
            log.warning("%s", message)
        self.warnings.append(message)

    # -- memory ------------------------------------------------------------------------------------

    @property
    def memory(self) -> int:
        """Bytes that arrays may take."""
        return self.memory_limit_mib << 20

    def rows(self, kind: TypePlan) -> int:
        """Rows of a type to ask for at once."""
        return max(1, min(kind.batch_rows, self.memory // 16 // kind.row_bytes))

    def read_rows(self, spool: Spool) -> Array:
        """All rows: in memory where they are few, else mapped."""
        fits_in_memory = spool.rows * spool.row_bytes <= self.memory // (
            8 * max(1, len(self.plan.nodes))
        )
        return spool.read() if fits_in_memory else spool.map()

    def allocate(self, rows: int, dtype: type[np.generic]) -> Array:
        """Zeros to be written to in any order: in memory where they are few, else in a file that
        goes with its array.
        """
        if rows * np.dtype(dtype).itemsize <= self.memory // 8:
            return np.zeros(rows, dtype)
        spool = Spool(path=self.scratch_path(), dtype=np.dtype(dtype))
        array = spool.allocate(rows)
        spool.remove()
        return array

    # -- scratch files -----------------------------------------------------------------------------

    def scratch_path(self) -> Path:
        """A name in the scratch folder that nobody else has."""
        return self.scratch / f"making-{uuid.uuid4().hex}"

    def spool(self, name: str, values: ColumnPlan | None = None) -> Spool:
        """A scratch file for a column, or for ids."""
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
        """A spool's rows in another order, as a new one."""
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
        """A spool that is complete, under the name by which others know it."""
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
        """A file of the export: there once the block ends well, whole and durable; its size and
        digest are noted.
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
        """Put a finished file where it belongs."""
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
        """Write one of a part's files of tensors."""
        with self.open_output(f"part{part}/{name}") as file:
            write_tensors(file, tensors)


class ProgressMeter:
    """Counts the rows of a phase for whoever watches."""

    def __init__(self, run: ExportRun, phase: str, total: int | None) -> None:
        self._progress, self._phase, self._total = run.progress, phase, total
        self.done = 0
        self.add(0)

    def add(self, rows: int) -> None:
        """Count ``rows`` more."""
        self.done += rows
        if self._progress is not None:
            self._progress(self._phase, self.done, self._total)


def spool_column(*spools: Spool, order: Array | None = None) -> ArrayStream:
    """Spools one after the other as a column of a file; a single one in ``order``, if not its
    own.
    """

    def pieces() -> Iterator[Array]:
        for spool in spools:
            yield from spool.pieces(order)

    return ArrayStream(
        dtype=spools[0].dtype,
        shape=(sum(spool.rows for spool in spools), *spools[0].shape),
        pieces=pieces,
    )
