"""Records of tasks that read a published version: what to do, and the results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asterism_model.partition_stats import Element, PartitionStats
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionTask:
    """One storaged's share of an audit or an export."""

    kind: str
    """audit or export-tables."""
    space: str
    space_id: int
    job_id: int
    host: str
    """uuid of this storaged."""
    schema: Schema
    parts: tuple[int, ...]
    version: int
    cut: int
    digest: str
    """Of the version's manifest."""
    images: Mapping[int, str]
    """part -> digest that the version was sealed with."""
    totals: tuple[PartitionStats, ...]
    """Of these parts, as published."""
    build: Path
    """What the version's build left: images and the stat database."""
    output: str
    """Folder of an export as it is shown: a path, or an address with its protocol."""
    address: str
    """The same as it is opened: checked, and without symbolic links."""
    remote_timeout_s: float
    """Seconds that the host of the address may be silent."""
    options: Mapping[str, str]

    @classmethod
    def read(cls, path: Path) -> VersionTask:
        """The task in a JSON file; InvalidRequest says what is missing."""
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
                "storaged.version_tasks.task_records.VersionTask"
            ) from error

    def published_stats(
        self, part: int, element: Element, type_id: int, weight_name: str
    ) -> PartitionStats | None:
        """What was published of one table."""
        key = (part, element, type_id, weight_name)
        return next(
            (t for t in self.totals if (t.part, t.element, t.type_id, t.weight_name) == key), None
        )

    def type_label(self, element: Element, type_id: int) -> str:
        """A type as people know it."""
        types = self.schema.node_types if element is Element.NODE else self.schema.edge_types
        return f"{element.lower()} type {types[type_id].name}"


ResultLine = dict[str, Any]
"""The last line's content: ``totals``, ``images``, and ``made`` as common.proto's TaskResult."""
