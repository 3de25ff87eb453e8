"""Tasks and results of a build."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from asterism_model.indexes import Index
from asterism_model.load_fingerprints import LoadFingerprint
from asterism_model.partition_stats import PartitionStats
from asterism_model.schema import Schema
from asterism_model.task_results import PartUnits
from asterism_proto.errors import InvalidRequest

MIB = 1 << 20
RESULT_FILE = "result.json"
FORMAT = 2
"""Format of a build's outputs.

It is raised whenever the same input leads to other bytes or other figures.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildTask:
    """Build task of one storaged: its share of a build job."""

    space_id: int
    schema: Schema
    parts: tuple[int, ...]
    watermark: int
    loads: tuple[int, ...]
    """Loads committed up to the commit watermark, in commit order."""
    checkpoint: Path
    output: Path
    memory_limit_mib: int = 512
    checkpoint_rows: int = 1 << 18
    """Rows of work after which outputs are made durable.

    Checkpointing fewer rows would cost more than doing the work again.
    """
    indexes: tuple[Index, ...] = ()
    """Indexes that the partitions must have."""
    sources: tuple[Path, ...] = ()
    """Outputs of finished builds of the graph space, in order of preference.

    Units with the same input are linked from them.
    """

    fingerprints: tuple[LoadFingerprint, ...] = ()
    """Fingerprints of the loads from the catalog.

    The checkpoint is compared with them before anything is built.
    """

    @classmethod
    def read(cls, path: Path) -> BuildTask:
        """Read the task in a JSON file.

        Raises
        ------
        InvalidRequest
            If a field is missing or invalid.
        """
        try:
            data = json.loads(path.read_text())
            return cls(
                space_id=int(data["space_id"]),
                schema=Schema.from_dict(data["schema"]),
                parts=tuple(int(part) for part in data["parts"]),
                watermark=int(data["watermark"]),
                loads=tuple(int(load) for load in data["loads"]),
                checkpoint=Path(data["checkpoint"]),
                output=Path(data["output"]),
                memory_limit_mib=int(data.get("memory_limit_mib") or 512),
                checkpoint_rows=int(data.get("checkpoint_rows") or 1 << 18),
                indexes=tuple(Index(**index) for index in data.get("indexes") or ()),
                sources=tuple(Path(source) for source in data.get("sources") or ()),
                fingerprints=tuple(
                    LoadFingerprint.from_dict(load) for load in data.get("fingerprints") or ()
                ),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidRequest(
                f"build task {path}: {error!r}; expected space_id, schema, parts, "
                "watermark, loads, checkpoint, output"
            ) from error

    def digest(self) -> str:
        """Return the digest of the build's input.

        A partition that was finished for the same digest need not be built again.
        """
        components: dict[str, Any] = {
            "format": FORMAT,
            "schema": self.schema.to_dict(),
            "cut": self.watermark,  # part of the digests of finished builds on disk
            "loads": self.loads,
        }
        if self.indexes:
            components["indexes"] = [asdict(index) for index in self.indexes]
        content = json.dumps(components, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def row_limit(self, bytes_per_row: int) -> int:
        """Return the number of records that may be held in memory.

        Half of the limit is left for blocks in flight, RocksDB and the process.
        """
        return max(1024, self.memory_limit_mib * MIB // 2 // bytes_per_row)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartResult:
    """Result of one partition."""

    part: int
    digest: str
    totals: tuple[PartitionStats, ...]
    units: PartUnits

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "part": self.part,
            "digest": self.digest,
            "totals": [total.to_dict() for total in self.totals],
            "units": asdict(self.units),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> PartResult:
        """Create from the values of `to_dict`."""
        totals = tuple(map(PartitionStats.from_dict, data["totals"]))
        return cls(
            part=data["part"],
            digest=data["digest"],
            totals=totals,
            units=PartUnits(**data["units"]),
        )


def task_result(results: list[PartResult]) -> dict[str, Any]:
    """Return the content of the last line, and of the result file."""
    return {
        "totals": [total.to_dict() for result in results for total in result.totals],
        "images": [{"part": result.part, "digest": result.digest} for result in results],
        "made": {"units": [asdict(result.units) for result in results]},
    }
