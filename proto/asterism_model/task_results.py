"""Results of finished tasks: audits, exported files, units of builds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from asterism_model.partition_stats import Element, element_from_proto
from asterism_proto.v1 import common_pb2 as common_pb


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeAudit:
    """What an audit found of one type, over the partitions of one storaged."""

    element: Element
    """NODE or EDGE."""
    type_id: int
    count: int
    """Live rows."""
    positive: int
    """Rows of positive weight: columns of its tables."""
    weight: float
    """Their sum."""
    table_tv: float = 0.0
    """Largest total variation between the distribution of a table and the weights."""
    table_rel: float = 0.0
    """Largest relative error of one of its shares."""
    alias_rows: int = 0
    """Nodes with an alias row of their own that was rebuilt, over both directions."""
    row_tv: float = 0.0
    """Largest total variation of an alias row."""
    row_rel: float = 0.0
    """Largest relative error of one of its shares."""
    underflow: int = 0
    """Shares of tables below 2^-64."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON: the fields of ``asterism.v1.TypeAudit``."""
        return {**asdict(self), "element": self.element.number}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """A table as a file."""

    path: str
    """Below the folder of its `TaskResult`."""
    part: int
    element: Element
    """NODE or EDGE."""
    type_id: int
    weight_name: str
    format: str
    """parquet or csv."""
    rows: int
    bytes: int
    sha256: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON: the fields of ``asterism.v1.ExportedFile``."""
        return {**asdict(self), "element": self.element.number}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartUnits:
    """Units of one partition that a build linked from earlier versions, and those that it built."""

    part: int
    linked: int
    """Units: pieces of a partition with an input of their own, as an adjacency or the features of a
    type.
    """
    built: int
    bytes_linked: int
    """Of files: on disk once, however many versions share them."""
    bytes_built: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """The result of a task, by the kind of its job; what other kinds produce is empty."""

    audit: tuple[TypeAudit, ...] = ()
    files_read: int = 0
    """By an audit: files of images, every byte of them."""
    bytes_read: int = 0
    folder: str = ""
    """Of exported tables: a path on the storaged's host, or the address of the request."""
    files: tuple[ExportedFile, ...] = ()
    """Empty in lists of jobs."""
    bytes_before: int = 0
    """Of the graph database, before a compaction."""
    bytes_after: int = 0
    units: tuple[PartUnits, ...] = ()
    """Of each partition that was built; empty in lists of jobs."""

    @classmethod
    def from_proto(cls, message: common_pb.TaskResult) -> TaskResult:
        """Return the result in a message, without totals and images; InvalidRequest if an element
        is unknown.
        """
        return cls(
            audit=tuple(map(_audit_from_proto, message.audit)),
            files_read=message.files_read,
            bytes_read=message.bytes_read,
            folder=message.folder,
            files=tuple(map(_file_from_proto, message.files)),
            bytes_before=message.bytes_before,
            bytes_after=message.bytes_after,
            units=_units_from_proto(message.units),
        )

    def to_proto(self) -> common_pb.TaskResult:
        """Return the result as a message."""
        return common_pb.TaskResult(
            audit=[common_pb.TypeAudit(**audit.to_dict()) for audit in self.audit],
            files_read=self.files_read,
            bytes_read=self.bytes_read,
            folder=self.folder,
            files=[common_pb.ExportedFile(**file.to_dict()) for file in self.files],
            bytes_before=self.bytes_before,
            bytes_after=self.bytes_after,
            units=[common_pb.PartUnits(**asdict(units)) for units in self.units],
        )


def _audit_from_proto(message: common_pb.TypeAudit) -> TypeAudit:
    return TypeAudit(
        element=element_from_proto("an audit", message.element),
        type_id=message.type_id,
        count=message.count,
        positive=message.positive,
        weight=message.weight,
        table_tv=message.table_tv,
        table_rel=message.table_rel,
        alias_rows=message.alias_rows,
        row_tv=message.row_tv,
        row_rel=message.row_rel,
        underflow=message.underflow,
    )


def _file_from_proto(message: common_pb.ExportedFile) -> ExportedFile:
    return ExportedFile(
        path=message.path,
        part=message.part,
        element=element_from_proto(f"exported file {message.path}", message.element),
        type_id=message.type_id,
        weight_name=message.weight_name,
        format=message.format,
        rows=message.rows,
        bytes=message.bytes,
        sha256=message.sha256,
    )


def _units_from_proto(messages: Iterable[common_pb.PartUnits]) -> tuple[PartUnits, ...]:
    return tuple(
        PartUnits(
            part=message.part,
            linked=message.linked,
            built=message.built,
            bytes_linked=message.bytes_linked,
            bytes_built=message.bytes_built,
        )
        for message in messages
    )
