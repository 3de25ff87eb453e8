"""Records of tasks that read a published version: parameters and results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asterism_model.elements import Element
from asterism_model.partition_stats import PartitionStats
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionTask:
    """Share of one storaged in an audit or an export."""

    kind: str
    """Kind of the task: ``audit`` or ``export-tables``."""
    space: str
    space_id: int
    job_id: int
    host: str
    """uuid of this storaged."""
    schema: Schema
    parts: tuple[int, ...]
    version: int
    watermark: int
    digest: str
    """Digest of the version's manifest."""
    images: Mapping[int, str]
    """Digest of each partition's image, from the sealed manifest."""
    totals: tuple[PartitionStats, ...]
    """Published totals of these partitions."""
    build: Path
    """Folder of the version's build: images and the stat database."""
    output: str
    """Folder of an export in display form: a path, or an address with its protocol."""
    address: str
    """The same folder in the form to open: checked, and without symbolic links."""
    remote_timeout_s: float
    """Seconds that the host of the address may be silent."""
    options: Mapping[str, str]
    s3_ca: str = ""
    """File of the authorities of object stores' certificates; empty: the environment's."""

    @classmethod
    def read(cls, path: Path) -> VersionTask:
        """Read a task from a JSON file; raise InvalidRequest if a field is missing or malformed."""
        try:
            data = json.loads(path.read_text())
            return cls(
                **{
                    **data,
                    "schema": Schema.from_dict(data["schema"]),
                    "parts": tuple(int(part) for part in data["parts"]),
                    "images": {int(part): str(digest) for part, digest in data["images"].items()},
                    "totals": tuple(map(PartitionStats.from_dict, data["totals"])),
                    "build": Path(data["build"]),
                }
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidRequest(
                f"task {path}: {error!r}; expected the fields of "
                "storaged.version_tasks.version_task.VersionTask"
            ) from error

    def published_stats(
        self, part: int, element: Element, type_id: int, weight_name: str
    ) -> PartitionStats | None:
        """Return the published totals of one table; None if there are none."""
        key = (part, element, type_id, weight_name)
        return next(
            (t for t in self.totals if (t.part, t.element, t.type_id, t.weight_name) == key), None
        )

    def type_label(self, element: Element, type_id: int) -> str:
        """Return the display name of a type."""
        types = self.schema.node_types if element is Element.NODE else self.schema.edge_types
        return f"{element.lower()} type {types[type_id].name}"


ResultLine = dict[str, Any]
"""Content of the last output line: ``totals``, ``images``, and ``made`` (a TaskResult)."""
