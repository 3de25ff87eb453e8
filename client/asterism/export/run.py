"""One export under way: what it reads, where it writes, what it has to say."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from asterism.export.dgl_files import Column, write_tensors
from asterism.export.plan import Plan, Values
from asterism.export.source import Array, Progress, Scannable
from asterism.export.spool import Spool

log = logging.getLogger("asterism.export")


@dataclass(slots=True, kw_only=True)
class Run:
    """The state that the phases of an export share."""

    graph: Scannable
    plan: Plan
    version: int
    parts: int
    out: Path
    """Where the parts are written; it gets its name when all is there."""
    scratch: Path
    """Inside ``out``; removed at the end."""
    progress: Progress | None
    warnings: list[str] = field(default_factory=list)

    def warn(self, message: str) -> None:
        """Say it in the log and in the report."""
        log.warning("%s", message)
        self.warnings.append(message)

    def spool(self, name: str, values: Values | None = None) -> Spool:
        """A scratch file for a column, or for ids."""
        if values is None:
            return Spool(path=self.scratch / name, dtype=np.dtype(np.int64))
        return Spool(path=self.scratch / name, dtype=values.dtype, shape=values.shape)

    def folder(self, part: int) -> Path:
        """Where a part's files go."""
        return self.out / f"part{part}"

    def write(self, part: int, name: str, tensors: Mapping[str, Column]) -> None:
        """Write one of a part's files of tensors."""
        with open(self.folder(part) / name, "wb", buffering=0) as file:
            write_tensors(file, tensors)


class Meter:
    """Counts the rows of a phase for whoever watches."""

    def __init__(self, run: Run, phase: str, total: int | None) -> None:
        self._progress, self._phase, self._total = run.progress, phase, total
        self.done = 0
        self.add(0)

    def add(self, rows: int) -> None:
        """Count ``rows`` more."""
        self.done += rows
        if self._progress is not None:
            self._progress(self._phase, self.done, self._total)


def column(spool: Spool, order: Array | None = None) -> Column:
    """A spool as a column of a file, in its own order or in ``order``."""

    def pieces() -> Iterator[Array]:
        return spool.pieces(order)

    return Column(dtype=spool.dtype, shape=(spool.rows, *spool.shape), pieces=pieces)
