"""Export of alias tables: B1 of every partition, type and weight name, as files.

Rows are read from the stat database of the build and written block by block, so memory does not
grow with a table. A manifest is written last; a file is complete only if the manifest names it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, BinaryIO

import numpy as np

from asterism_io.remote_storage import RemoteFolder, redact
from asterism_model.elements import Element
from asterism_model.partition_stats import PartitionStats
from asterism_model.task_results import ExportedFile
from asterism_proto.errors import Corrupt, NotReady
from storaged.build.alias_table import BlockSums
from storaged.build.progress import ProgressReporter
from storaged.store import keys
from storaged.store.alias_table_store import AliasTableStore, Columns
from storaged.version_tasks.version_task import ResultLine, VersionTask

COLUMN_NAMES = ("row", "id", "probability", "alias_row", "alias_id", "weight")
"""Names of the columns: uint32, int64, float64, uint32, int64, float32.

An alias row is a position in the table, as in B1.
"""
ROW_BYTES = 96
"""Largest size of a row in a file in bytes: all digits of its numbers."""
GROUP_BLOCKS = 16
"""Number of blocks in a Parquet row group: 262,144 rows, about 9 MiB."""


class _HashingFile:
    """A file that counts and hashes the bytes written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._sha256 = hashlib.sha256()
        self.bytes = 0
        self.closed = False

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._file.write(view)
        self._sha256.update(view)
        self.bytes += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        return self.bytes

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """Do nothing: the owner of the file closes it."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def digest(self) -> str:
        return self._sha256.hexdigest()


def export(task: VersionTask, progress: ProgressReporter) -> ResultLine:
    """Write every table of the task's partitions.

    Raises
    ------
    NotReady
        pyarrow is not installed on this storaged.
    InvalidRequest
        The package for an address's protocol is not installed.
    Corrupt
        A block is altered, or a table's rows or weights differ from the published totals.
    Unavailable
        A file cannot be written.
    """
    writers = _writers()
    display_path = redact(task.output)
    remote = RemoteFolder(
        task.address,
        content_name="export",
        display_address=display_path,
        confined=True,
        timeout_s=task.remote_timeout_s,
        s3_ca=task.s3_ca,
    )
    formats = task.options.get("format", "parquet").split(",")
    totals = sorted(task.totals, key=lambda t: (t.part, t.element.number, t.type_id, t.weight_name))
    progress.add_total(sum(total.positive for total in totals) * len(formats))
    tables = AliasTableStore.open(task.build, read_only=True)
    files = []
    try:
        for total in totals:
            for file_format in formats:
                progress.phase(
                    f"part {total.part}, {task.type_label(total.element, total.type_id)}, "
                    f"{file_format}"
                )
                files.append(
                    _write_table(
                        task, tables, total, file_format, remote, writers[file_format], progress
                    )
                )
    finally:
        tables.close()
    progress.phase("manifest")
    remote.put(f"manifest-{task.host}.json", _manifest(task, files))
    return {
        "totals": [],
        "images": [],
        "made": {"folder": display_path, "files": [file.to_dict() for file in files]},
    }


def _write_table(
    task: VersionTask,
    tables: AliasTableStore,
    total: PartitionStats,
    file_format: str,
    remote: RemoteFolder,
    write: Callable[[_HashingFile, Iterator[Columns]], None],
    progress: ProgressReporter,
) -> ExportedFile:
    """Write one table to one file."""
    kind = keys.B1 | (keys.EDGE_TABLE if total.element is Element.EDGE else 0)
    sums = BlockSums()

    def blocks() -> Iterator[Columns]:
        for columns in tables.blocks(
            total.part, kind, total.type_id, total.weight_name, total.positive, final=True
        ):
            sums.add(columns[5])
            yield columns
            progress.step(len(columns[0]))

    type_key = f"{'n' if total.element is Element.NODE else 'e'}{total.type_id}"
    name = f"p{total.part:05d}-{type_key}-{total.weight_name}.{file_format}"
    with remote.open(name, expected=total.positive * ROW_BYTES) as file:
        hashing_file = _HashingFile(file)
        write(hashing_file, blocks())
        weight = sums.total()
        if weight != total.weight:
            raise Corrupt(
                f"part {total.part}, {task.type_label(total.element, total.type_id)}, weight "
                f"{total.weight_name!r}: the weights of the table sum to {weight!r}: expected "
                f"{total.weight!r}, as published; build the version again"
            )
    return ExportedFile(
        path=name,
        part=total.part,
        element=total.element,
        type_id=total.type_id,
        weight_name=total.weight_name,
        format=file_format,
        rows=total.positive,
        bytes=hashing_file.bytes,
        sha256=hashing_file.digest(),
    )


def _writers() -> dict[str, Callable[[_HashingFile, Iterator[Columns]], None]]:
    """Return the function that writes blocks to a file, by format."""
    try:
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise NotReady(
            "export-tables needs pyarrow on this storaged: pip install 'asterism-graph[ingest]'"
        ) from error
    types = (pa.uint32(), pa.int64(), pa.float64(), pa.uint32(), pa.int64(), pa.float32())
    schema = pa.schema(
        [
            pa.field(name, dtype, nullable=False)
            for name, dtype in zip(COLUMN_NAMES, types, strict=True)
        ]
    )

    def batches(blocks: Iterator[Columns]) -> Iterator[Any]:
        for columns in blocks:
            # Not pa.array(), which imports pandas: 0.3 s of a core in each export's process.
            arrays = [
                pa.Array.from_buffers(
                    dtype, len(column), [None, pa.py_buffer(np.ascontiguousarray(column))]
                )
                for dtype, column in zip(types, columns, strict=True)
            ]
            yield pa.record_batch(arrays, schema=schema)

    def parquet(out: _HashingFile, blocks: Iterator[Columns]) -> None:
        with pyarrow.parquet.ParquetWriter(out, schema) as writer:
            pending: list[Any] = []
            for batch in batches(blocks):
                pending.append(batch)
                if len(pending) == GROUP_BLOCKS:
                    writer.write_table(pa.Table.from_batches(pending))
                    pending = []
            if pending:
                writer.write_table(pa.Table.from_batches(pending))

    def csv(out: _HashingFile, blocks: Iterator[Columns]) -> None:
        with pyarrow.csv.CSVWriter(out, schema) as writer:
            for batch in batches(blocks):
                writer.write_batch(batch)

    return {"parquet": parquet, "csv": csv}


def _manifest(task: VersionTask, files: list[ExportedFile]) -> bytes:
    """Return the manifest of an export: names of types, numbers of rows, checksums."""
    tables = [
        {
            **asdict(file),
            "element": file.element.lower(),
            "type": (
                task.schema.node_types if file.element is Element.NODE else task.schema.edge_types
            )[file.type_id].name,
        }
        for file in files
    ]
    head = {
        "format": 1,
        "space": task.space,
        "space_id": task.space_id,
        "version": task.version,
        "digest": task.digest,
        "cut": task.watermark,  # name of the field in manifests of format 1
    }
    body = {
        "job": task.job_id,
        "host": task.host,
        "parts": task.parts,
        "columns": COLUMN_NAMES,
        "files": tables,
    }
    return json.dumps({**head, **body}, indent=1).encode() + b"\n"
