"""Steps of a partition's build: keep the finished steps of an earlier attempt.

Only steps with the same input are kept. A step is recorded after its outputs are durable: the files
of the image are sealed, the tables are flushed, then the record is written with a log. If an output
is damaged later, its step and all steps after it run again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from storaged.build.build_task import BuildTask
from storaged.build.progress import ProgressReporter
from storaged.store.alias_table_store import AliasTableStore, TableExtent
from storaged.store.image import FORMAT as IMAGE_FORMAT
from storaged.store.image_writer import ImageWriter, is_intact

StepState = dict[str, Any]
"""State of a step that later steps need, as plain JSON values."""

_MAX_SCRATCH_BYTES = 4 << 20
"""Scratch tables up to this size are kept until their partition is finished."""

FORMAT = 1
"""Format of the records and of the data that steps pass to each other.

Steps of another format are not resumed.
"""


class PartSteps:
    """Steps of one partition's build.

    Parameters
    ----------
    task : BuildTask
    part : int
    folder : Path
        Folder of the partition image.
    tables : AliasTableStore
    progress : ProgressReporter

    Notes
    -----
    A build runs its steps in a fixed order, so the kept steps are always a prefix. A step of few
    rows is recorded together with the next ones: ``task.checkpoint_rows`` is the number of rows
    that is worth a record.
    """

    def __init__(
        self,
        task: BuildTask,
        part: int,
        folder: Path,
        tables: AliasTableStore,
        progress: ProgressReporter,
    ) -> None:
        self._task, self._part, self._tables, self._progress = task, part, tables, progress
        self._input = f"{FORMAT}.{IMAGE_FORMAT} {task.digest()}"
        progress.phase("check what is kept")
        recorded = {name: json.loads(content) for name, content in tables.steps(part).items()}
        self._recorded = self._valid_steps(recorded, folder)
        tables.forget_steps(part, recorded.keys() - self._recorded.keys())
        if not self._recorded:
            tables.forget_part(part)
        if not self._needs_scratch():
            tables.forget_scratch()
        tables.finished_tables.clear()
        self.image = ImageWriter(
            folder,
            {
                name: entry
                for record in self._recorded.values()
                for name, entry in record["files"].items()
            },
        )
        self._number = len(self._recorded)
        self._pending: dict[str, StepState] = {}
        self._pending_rows = 0
        self._start_rows = 0

    def run(
        self, name: str, make: Callable[[], StepState], *, rows: int, drops_scratch: bool = False
    ) -> StepState:
        """Return the state of a step: the recorded one, or that of running the step now.

        Parameters
        ----------
        name : str
            Unique among the steps of a partition.
        make : callable
            Makes the step's outputs, from the start or from its last `checkpoint`, and returns its
            state.
        rows : int
            Amount of work of the step.
        drops_scratch : bool, optional
            Whether no later step reads scratch tables. They are then removed, small ones when the
            partition is finished.
        """
        recorded = self._recorded.get(name)
        if recorded is not None and not recorded["partial"]:
            self._progress.step(recorded["progress"])
            self._log_step(name, "kept")
            return dict(recorded["state"])
        self._start_rows = self._progress.rows_done
        self._log_step(name, "begun")
        if recorded is not None:
            self._progress.step(recorded["progress"])
        state = make()
        self._pending[name] = self._new_record(name, state)
        self._pending_rows += rows
        if self._pending_rows >= self._task.checkpoint_rows or (
            drops_scratch and self._needs_scratch()
        ):
            self._commit()
        self._log_step(name, "done")
        if drops_scratch:
            self._tables.forget_scratch(over_bytes=_MAX_SCRATCH_BYTES)
        return state

    def saved_state(self, name: str) -> StepState | None:
        """Return the state of a step that an earlier attempt did not finish, or None."""
        recorded = self._recorded.get(name)
        return dict(recorded["state"]) if recorded is not None and recorded["partial"] else None

    def checkpoint(self, name: str, state: StepState, *tables: TableExtent) -> None:
        """Record the progress of a step, with its tables in their current state."""
        self._pending[name] = {
            **self._new_record(name, state),
            "partial": True,
            "tables": [asdict(extent) for extent in tables],
        }
        self._commit()
        self._log_step(name, "checkpoint")

    def forget(self) -> None:
        """Remove all records of steps, and scratch tables.

        For a partition that is finished, or with inputs that cannot be trusted.
        """
        self._tables.forget_scratch()
        self._tables.forget_steps(self._part, self._tables.steps(self._part))

    def _new_record(self, name: str, state: StepState) -> StepState:
        """Return the record of a step; its files are not sealed yet."""
        previous = self._recorded.get(name) or self._pending.get(name)
        number = previous["number"] if previous is not None else self._number
        self._number = max(self._number, number + 1)
        tables = [asdict(extent) for extent in self._tables.finished_tables]
        self._tables.finished_tables.clear()
        content = {
            "input": self._input,
            "number": number,
            "partial": False,
            "state": state,
            "tables": tables,
            "files": {},
        }
        return {**content, "progress": self._progress.rows_done - self._start_rows}

    def _commit(self) -> None:
        """Make the pending outputs durable, then write their records."""
        first = next(iter(self._pending))
        self._pending[first]["files"] = self.image.seal()
        self._tables.put_steps(
            self._part,
            {name: json.dumps(record).encode() for name, record in self._pending.items()},
        )
        self._recorded |= self._pending
        self._pending, self._pending_rows = {}, 0

    def _valid_steps(self, recorded: Mapping[str, StepState], folder: Path) -> dict[str, StepState]:
        """Return the prefix of the recorded steps with the same input and intact outputs."""
        ordered = sorted(recorded.items(), key=lambda item: int(item[1]["number"]))
        while True:
            # If a final table is damaged, the scratch tables that it was made of are gone: check
            # again without it.
            valid_count = self._count_valid([record for _, record in ordered], folder)
            if valid_count == len(ordered):
                return dict(ordered)
            ordered = ordered[:valid_count]

    def _count_valid(self, records: Sequence[StepState], folder: Path) -> int:
        last_final = _last_final_step(records)
        for i, record in enumerate(records):
            tables = [TableExtent(**extent) for extent in record["tables"]]
            needed = [extent for extent in tables if extent.final or i > last_final]
            if (
                record["input"] != self._input
                or record["number"] != i
                or not all(self._tables.is_intact(extent) for extent in needed)
            ):
                return i
            if not all(is_intact(folder, file, entry) for file, entry in record["files"].items()):
                return i
        return len(records)

    def _needs_scratch(self) -> bool:
        """Return whether a recorded step left scratch tables that a later step will read."""
        records = list(self._recorded.values())
        return any(
            not extent["final"]
            for record in records[_last_final_step(records) + 1 :]
            for extent in record["tables"]
        )

    def _log_step(self, name: str, status: str) -> None:
        self._progress.write_line(
            {"part": self._part, "step": name, "is": status, "blocks": self._tables.blocks_written}
        )


def _last_final_step(records: Sequence[StepState]) -> int:
    """Return the index of the last step that wrote a final table, or -1.

    Scratch tables of earlier steps are gone.
    """
    return max(
        (
            i
            for i, record in enumerate(records)
            if any(extent["final"] for extent in record["tables"])
        ),
        default=-1,
    )
