"""Reuse of earlier builds: units of a partition are linked where their input is the same.

A unit is declared where it is made: a name, the digest of everything that its bytes and figures
follow from, patterns of the image's files and the final tables that are its own, and a function
that makes them and gives its state:

    state = work.units.make(Unit(name="n0", digest=work.input("nodes").blocks(refs).digest(),
    files=("n0.ids",)), make)

The state is plain values for JSON: what totals, the manifest and later units need to know. Code
behind a unit must not read anything that its digest leaves out, and reads what an earlier unit made
from the image and from that unit's state only: it may have been linked. Inside of ``make`` are
steps (`storaged.build.checkpoints`): they are how an attempt goes on after an earlier one of the
same build, units are what one build shares with others."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from asterism_model.task_results import PartUnits
from asterism_proto.errors import AsterismError, Internal
from storaged.build.checkpoints import StepState
from storaged.build.completion import CompletedPart, part_folder
from storaged.build.progress import ProgressReporter
from storaged.build.task_records import FORMAT
from storaged.store.block_store import BlockRef
from storaged.store.image import FORMAT as IMAGE_FORMAT
from storaged.store.image_writer import ImageWriter
from storaged.store.tables import StatStore, TableExtent

_REF = struct.Struct("<QHBHQIIIIIqq")


class InputDigest:
    """The digest of what a unit is made of, taken piece by piece.

    Parameters
    ----------
    components : plain values
        What the unit is and what its code is told: kind, schema, the digests of units before it.
    """

    def __init__(self, *components: object) -> None:
        self._hash = hashlib.sha256()
        self._add(json.dumps([FORMAT, IMAGE_FORMAT, *components]).encode())

    def add_blocks(self, refs: Sequence[BlockRef]) -> Self:
        """Blocks that are read, of whatever kinds, and which of their writes came before which
        others.

        Keys and checksums say what they are. The order is taken among them only, so that loads
        which wrote none of them do not matter."""
        ranks = {stamp: rank for rank, stamp in enumerate(sorted({ref.stamp for ref in refs}))}
        ordered = sorted(
            refs, key=lambda ref: (ref.stamp, ref.key.kind, ref.key.type_id, ref.key.sub)
        )
        packed = (
            _REF.pack(
                ranks[ref.stamp], *ref.key, ref.rows, ref.size, ref.crc, ref.lowest, ref.highest
            )
            for ref in ordered
        )
        return self._add(b"".join(packed))

    def add_deletes(
        self,
        pieces: Iterable[tuple[NDArray[np.int64], NDArray[np.int64]]],
        refs: Sequence[BlockRef],
    ) -> Self:
        """Deletes of single ids, as far as these blocks meet them: after how many of their writes
        each comes.

        Parameters
        ----------
        pieces : iterable of (int64[n], int64[n])
            Ids, ascending over all pieces, and when each was deleted last; where pieces end does
            not matter.
        refs : sequence of BlockRef
            What they are applied to, and `add_blocks` has.
        """
        stamps = np.unique(np.array([ref.stamp for ref in refs], np.int64))
        count = 0
        for ids, delete_stamps in pieces:
            earlier_writes = np.searchsorted(stamps, delete_stamps)
            effective = np.stack([ids, earlier_writes], axis=1)[earlier_writes > 0]
            self._hash.update(effective.tobytes())
            count += len(effective)
        return self._add(count.to_bytes(8, "little"))

    def add_array(self, values: NDArray[Any]) -> Self:
        """What an earlier unit wrote."""
        return self._add(np.ascontiguousarray(values).data)

    def digest(self) -> str:
        """sha256 of all of it."""
        return self._hash.hexdigest()

    def _add(self, content: bytes | memoryview) -> Self:
        self._hash.update(memoryview(content).nbytes.to_bytes(8, "little"))
        self._hash.update(content)
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A piece of a part."""

    name: str
    """Distinct in a part."""
    digest: str
    """Of its input."""
    files: tuple[str, ...]
    """Names of its files in the image, as patterns; a file is one unit's."""
    tables: tuple[tuple[int, int, str], ...] = ()
    """(kind, type, weight name) of its final tables."""

    def owns(self, file: str) -> bool:
        """Whether a file of the image is its own."""
        return any(fnmatchcase(file, pattern) for pattern in self.files)


class PartUnitCache:
    """The units of one part under way.

    Parameters
    ----------
    part : int
    image : ImageWriter
    tables : StatStore
    sources : sequence of Path
        Outputs of finished builds of the same space, the first one asked first. They may go at any
        time.
    progress : ProgressReporter
    """

    def __init__(
        self,
        *,
        part: int,
        image: ImageWriter,
        tables: StatStore,
        sources: Sequence[Path],
        progress: ProgressReporter,
    ) -> None:
        self._part, self._image, self._tables, self._progress = part, image, tables, progress
        self._sources = [
            completed
            for source in sources
            if (completed := CompletedPart.read(source, part)) is not None
        ]
        self._done: dict[str, tuple[Unit, dict[str, Any]]] = {}
        self._records: dict[str, dict[str, Any]] | None = None

    def make(self, unit: Unit, make: Callable[[], StepState]) -> StepState:
        """What a unit came to: linked where an earlier build made it of the same input, otherwise
        made now.
        """
        for source in self._sources:
            record = source.units.get(unit.name)
            if (
                record is not None
                and record["digest"] == unit.digest
                and self._link(unit, record, source)
            ):
                self._progress.step(record["rows"])
                self._done[unit.name] = (
                    unit,
                    {"state": record["state"], "rows": record["rows"], "linked": True},
                )
                return dict(record["state"])
        rows_before = self._progress.rows_done
        state = make()
        self._done[unit.name] = (
            unit,
            {"state": state, "rows": self._progress.rows_done - rows_before, "linked": False},
        )
        return state

    def records(self) -> dict[str, dict[str, Any]]:
        """Every unit as later builds find it; the image is finished, and no unit is made any
        more.
        """
        if self._records is None:
            self._records = self._build_records()
        return self._records

    def _build_records(self) -> dict[str, dict[str, Any]]:
        owners = {
            file: [name for name, (unit, _) in self._done.items() if unit.owns(file)]
            for file in self._image.file_entries
        }
        if stray := {file: names for file, names in owners.items() if len(names) != 1}:
            raise Internal(f"part {self._part}: every file of an image is of one unit, but {stray}")
        records = {}
        for name, (unit, record) in self._done.items():
            files = [file for file, [owner] in owners.items() if owner == name]
            tables = [self._tables.run_bytes(table) for table in self._extents(unit)]
            size = sum(self._image.size(file) for file in files) + sum(tables)
            records[name] = {
                "digest": unit.digest,
                **record,
                "files": files,
                "tables": tables,
                "bytes": size,
            }
        return records

    def _link(self, unit: Unit, record: Mapping[str, Any], source: CompletedPart) -> bool:
        """Share what a unit of an earlier build made; False, and nothing of it, where it is not all
        there any more.
        """
        folder = part_folder(source.output, self._part)
        files: list[str] = []
        tables: list[TableExtent] = []
        try:
            for file in record["files"]:
                self._image.link(folder, file, source.manifest["files"][file])
                files.append(file)
            for table, size in zip(self._extents(unit), record["tables"], strict=True):
                if size:
                    tables.append(table)
                    self._tables.link(table, source.output)
                    if self._tables.run_bytes(table) != size:
                        raise ValueError(
                            f"{table} of {source.output} does not have {size} bytes any more"
                        )
        except (OSError, ValueError, KeyError, AsterismError):
            # A folder that is being removed, too many links, a damaged file: the unit is made
            # instead.
            for file in files:
                self._image.remove(file)
            for table in tables:
                self._tables.forget_table(table)
            return False
        return True

    def _extents(self, unit: Unit) -> list[TableExtent]:
        return [
            TableExtent(part=self._part, kind=kind, type_id=type_id, weight_name=name, final=True)
            for kind, type_id, name in unit.tables
        ]


def count_units(records: Mapping[str, Mapping[str, Any]], part: int) -> PartUnits:
    """How many of a part's units were linked and how many made, and their bytes."""
    linked = [record["bytes"] for record in records.values() if record["linked"]]
    built = [record["bytes"] for record in records.values() if not record["linked"]]
    return PartUnits(
        part=part,
        linked=len(linked),
        built=len(built),
        bytes_linked=sum(linked),
        bytes_built=sum(built),
    )
