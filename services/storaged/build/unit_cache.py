"""Reuse of earlier builds: link the units of a partition that have the same input.

A unit is declared where it is made: a name, the digest of everything that its bytes and figures
depend on, patterns of the image's files and the final tables that it owns, and a function that
makes them and returns its state:

    state = context.units.make(
        Unit(
            name="n0",
            digest=context.unit_input("nodes").add_blocks(refs).digest(),
            files=("n0.ids",),
        ),
        make,
    )

The state consists of plain JSON values: everything that statistics, the manifest and later units
need. The code of a unit must not read anything that its digest leaves out. It reads the outputs of
earlier units only from the image and from their states, since those units may have been linked.
``make`` consists of steps (`storaged.build.build_steps`): steps let an attempt resume an earlier
attempt of the same build, and units are shared between builds.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from asterism_model.task_results import PartUnits
from asterism_proto.errors import AsterismError, Internal
from storaged.build.build_steps import StepState
from storaged.build.build_task import FORMAT
from storaged.build.completion_records import CompletedPart, part_folder
from storaged.build.progress import ProgressReporter
from storaged.store.alias_table_store import AliasTableStore, TableExtent
from storaged.store.block_store import BlockRef
from storaged.store.image import FORMAT as IMAGE_FORMAT
from storaged.store.image_writer import ImageWriter

_REF = struct.Struct("<QHBHQIIIIIqq")


class InputDigest:
    """Incremental digest of the input of a unit.

    Parameters
    ----------
    components : plain values
        Identity and parameters of the unit: kind, schema, digests of earlier units.
    """

    def __init__(self, *components: object) -> None:
        self._hash = hashlib.sha256()
        self._add(json.dumps([FORMAT, IMAGE_FORMAT, *components]).encode())

    def add_blocks(self, refs: Sequence[BlockRef]) -> Self:
        """Add blocks that are read, and the order of their writes.

        Keys and checksums identify the blocks. The order is relative to these blocks only, so that
        loads without any of them do not matter.
        """
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
        """Add deletes of single ids as far as they affect these blocks.

        For each delete, the number of the blocks' writes before it is added.

        Parameters
        ----------
        pieces : iterable of (int64[n], int64[n])
            Ids, ascending over all pieces, and the stamp of the last delete of each. The boundaries
            of pieces do not matter.
        refs : sequence of BlockRef
            Blocks that the deletes apply to, added by `add_blocks`.
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
        """Add an array that an earlier unit wrote."""
        return self._add(np.ascontiguousarray(values).data)

    def digest(self) -> str:
        """Return the SHA-256 of everything added."""
        return self._hash.hexdigest()

    def _add(self, content: bytes | memoryview) -> Self:
        self._hash.update(memoryview(content).nbytes.to_bytes(8, "little"))
        self._hash.update(content)
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildUnit:
    """A piece of a partition's build that can be shared between builds."""

    name: str
    """Name, unique in a partition."""
    digest: str
    """Digest of its input."""
    files: tuple[str, ...]
    """Patterns of the names of its files in the image; each file belongs to one unit."""
    tables: tuple[tuple[int, int, str], ...] = ()
    """Its final tables: (kind, type, weight name)."""

    def owned(self, files: Collection[str]) -> set[str]:
        """Return those of an image's files that belong to this unit."""
        owned: set[str] = set()
        for pattern in self.files:
            owned.update([pattern] if pattern in files else fnmatch.filter(files, pattern))
        return owned


class PartUnitCache:
    """Units of one partition's build.

    Parameters
    ----------
    part : int
    image : ImageWriter
    tables : AliasTableStore
    sources : sequence of Path
        Outputs of finished builds of the same graph space, in order of preference. They may
        disappear at any time.
    progress : ProgressReporter
    """

    def __init__(
        self,
        *,
        part: int,
        image: ImageWriter,
        tables: AliasTableStore,
        sources: Sequence[Path],
        progress: ProgressReporter,
    ) -> None:
        self._part, self._image, self._tables, self._progress = part, image, tables, progress
        self._sources = [
            completed
            for source in sources
            if (completed := CompletedPart.read(source, part)) is not None
        ]
        self._done: dict[str, tuple[BuildUnit, dict[str, Any]]] = {}
        self._records: dict[str, dict[str, Any]] | None = None

    def make(self, unit: BuildUnit, make: Callable[[], StepState]) -> StepState:
        """Return the state of a unit: link it from an earlier build, or make it now.

        A unit is linked if an earlier build made it from the same input.
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
        """Return the records of all units for later builds.

        The image must be finished, and no unit is made afterwards.
        """
        if self._records is None:
            self._records = self._build_records()
        return self._records

    def _build_records(self) -> dict[str, dict[str, Any]]:
        owners: dict[str, list[str]] = {file: [] for file in self._image.file_entries}
        for name, (unit, _) in self._done.items():
            for file in unit.owned(owners.keys()):
                owners[file].append(name)
        if stray := {file: names for file, names in owners.items() if len(names) != 1}:
            raise Internal(f"part {self._part}: every file of an image is of one unit, but {stray}")
        owned: dict[str, list[str]] = {name: [] for name in self._done}
        for file, [owner] in owners.items():
            owned[owner].append(file)
        records = {}
        for name, (unit, record) in self._done.items():
            files = owned[name]
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

    def _link(self, unit: BuildUnit, record: Mapping[str, Any], source: CompletedPart) -> bool:
        """Link the outputs of a unit of an earlier build.

        Returns False, and links nothing, if they are no longer complete.
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
                        raise ValueError(f"{table} of {source.output} no longer has {size} bytes")
        except (OSError, ValueError, KeyError, AsterismError):
            # The folder is being removed, there are too many links, or a file is damaged: make the
            # unit instead.
            for file in files:
                self._image.remove(file)
            for table in tables:
                self._tables.forget_table(table)
            return False
        return True

    def _extents(self, unit: BuildUnit) -> list[TableExtent]:
        return [
            TableExtent(part=self._part, kind=kind, type_id=type_id, weight_name=name, final=True)
            for kind, type_id, name in unit.tables
        ]


def count_units(records: Mapping[str, Mapping[str, Any]], part: int) -> PartUnits:
    """Count the linked and built units of a partition, and their bytes."""
    linked = [record["bytes"] for record in records.values() if record["linked"]]
    built = [record["bytes"] for record in records.values() if not record["linked"]]
    return PartUnits(
        part=part,
        linked=len(linked),
        built=len(built),
        bytes_linked=sum(linked),
        bytes_built=sum(built),
    )
