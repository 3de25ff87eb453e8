"""The steps of a part: what an earlier attempt at the same input finished is kept, what this one finishes is kept for the next.

A step is recorded after what it made is durable: files of the image are sealed, tables are flushed, then the record is
put with a log. What is damaged meanwhile is made again, with everything that came after it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from storaged.build.progress import Progress
from storaged.build.task import Task
from storaged.store.image import FORMAT as IMAGE_FORMAT
from storaged.store.image_writer import ImageWriter, intact
from storaged.store.tables import Extent, TableStore

State = dict[str, Any]
"""What later steps need to know of a step, as plain values for JSON."""

_KEPT_SCRATCH_BYTES = 4 << 20
"""Scratch tables of no more than this are kept until their part is done."""

FORMAT = 1
"""Of the records, and of what steps leave for each other: steps of another format are not gone on from."""


class Steps:
    """The steps of one part under way.

    Parameters
    ----------
    task : Task
    part : int
    folder : Path
        Of the part's image.
    tables : TableStore
    progress : Progress

    Notes
    -----
    A build makes its steps in one fixed order, so that what is kept is always a beginning of it. Steps of a few rows
    are recorded together with the next ones: ``task.checkpoint_rows`` says how many rows are worth it.
    """

    def __init__(self, task: Task, part: int, folder: Path, tables: TableStore, progress: Progress) -> None:
        self._task, self._part, self._tables, self._progress = task, part, tables, progress
        self._input = f"{FORMAT}.{IMAGE_FORMAT} {task.digest()}"
        progress.phase("check what is kept")
        recorded = {name: json.loads(content) for name, content in tables.steps(part).items()}
        self._kept = self._sound(recorded, folder)
        tables.forget_steps(part, recorded.keys() - self._kept.keys())
        if not self._kept:
            tables.forget_part(part)
        if not self._scratch():
            tables.forget_scratch()
        tables.written.clear()
        self.image = ImageWriter(folder, {name: entry for record in self._kept.values() for name, entry in record["files"].items()})
        self._number = len(self._kept)
        self._pending: dict[str, State] = {}
        self._pending_rows = 0
        self._begun = 0

    def run(self, name: str, make: Callable[[], State], *, rows: int, settles: bool = False) -> State:
        """What a step came to: as recorded, or made now.

        Parameters
        ----------
        name : str
            Distinct among the steps of a part.
        make : callable
            Makes the step's outputs, anew or on from where `checkpoint` left it, and gives its state.
        rows : int
            How much work that is.
        settles : bool
            No later step reads scratch tables: they go, small ones with the part.
        """
        kept = self._kept.get(name)
        if kept is not None and not kept["partial"]:
            self._progress.step(kept["progress"])
            self._say(name, "kept")
            return dict(kept["state"])
        self._begun = self._progress.done
        self._say(name, "begun")
        if kept is not None:
            self._progress.step(kept["progress"])
        state = make()
        self._pending[name] = self._entry(name, state)
        self._pending_rows += rows
        if self._pending_rows >= self._task.checkpoint_rows or (settles and self._scratch()):
            self._record()
        self._say(name, "done")
        if settles:
            self._tables.forget_scratch(over_bytes=_KEPT_SCRATCH_BYTES)
        return state

    def left(self, name: str) -> State | None:
        """Where an attempt before left a step that it did not end."""
        kept = self._kept.get(name)
        return dict(kept["state"]) if kept is not None and kept["partial"] else None

    def checkpoint(self, name: str, state: State, *tables: Extent) -> None:
        """Record how far a step is, with its tables as they are by now."""
        self._pending[name] = {**self._entry(name, state), "partial": True, "tables": [asdict(extent) for extent in tables]}
        self._record()
        self._say(name, "checkpoint")

    def forget(self) -> None:
        """Forget all steps, and scratch tables: the part is done, or what it was made of is not to be trusted."""
        self._tables.forget_scratch()
        self._tables.forget_steps(self._part, self._tables.steps(self._part))

    def _entry(self, name: str, state: State) -> State:
        """The record of a step whose files are not sealed yet."""
        known = self._kept.get(name) or self._pending.get(name)
        number = known["number"] if known is not None else self._number
        self._number = max(self._number, number + 1)
        tables = [asdict(extent) for extent in self._tables.written]
        self._tables.written.clear()
        content = {"input": self._input, "number": number, "partial": False, "state": state, "tables": tables, "files": {}}
        return {**content, "progress": self._progress.done - self._begun}

    def _record(self) -> None:
        """Make what is pending durable, then say that it is."""
        first = next(iter(self._pending))
        self._pending[first]["files"] = self.image.seal()
        self._tables.put_steps(self._part, {name: json.dumps(record).encode() for name, record in self._pending.items()})
        self._kept |= self._pending
        self._pending, self._pending_rows = {}, 0

    def _sound(self, recorded: Mapping[str, State], folder: Path) -> dict[str, State]:
        """The beginning of the recorded steps that is of this input and whose outputs are as they were."""
        ordered = sorted(recorded.items(), key=lambda item: int(item[1]["number"]))
        while True:
            # Where a final table is damaged, the scratch that it was made of is gone: look again without it.
            sound = self._count_sound([record for _, record in ordered], folder)
            if sound == len(ordered):
                return dict(ordered)
            ordered = ordered[:sound]

    def _count_sound(self, records: Sequence[State], folder: Path) -> int:
        settled = _settled(records)
        for i, record in enumerate(records):
            tables = [Extent(**extent) for extent in record["tables"]]
            needed = [extent for extent in tables if extent.final or i > settled]
            if record["input"] != self._input or record["number"] != i or not all(self._tables.intact(extent) for extent in needed):
                return i
            if not all(intact(folder, file, entry) for file, entry in record["files"].items()):
                return i
        return len(records)

    def _scratch(self) -> bool:
        """Whether a recorded step left scratch tables that a later one will read."""
        records = list(self._kept.values())
        return any(not extent["final"] for record in records[_settled(records) + 1 :] for extent in record["tables"])

    def _say(self, name: str, how: str) -> None:
        self._progress.say({"part": self._part, "step": name, "is": how, "blocks": self._tables.blocks_written})


def _settled(records: Sequence[State]) -> int:
    """The place of the last step that wrote a final table: scratch from before it is gone; -1 where there is none."""
    return max((i for i, record in enumerate(records) if any(extent["final"] for extent in record["tables"])), default=-1)
