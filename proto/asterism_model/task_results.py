"""Results of finished tasks: audits, exported files, units of builds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from asterism_model.elements import Element, element_from_proto
from asterism_proto.v1 import common_pb2 as common_pb


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeAudit:
    """Result of an audit for one type, over the partitions of one storaged."""

    element: Element
    """NODE or EDGE."""
    type_id: int
    count: int
    """Live rows."""
    positive: int
    """Rows of positive weight: columns of the alias tables."""
    weight: float
    """Sum of the weights."""
    table_tv: float = 0.0
    """Largest total variation distance of an alias table from the weights."""
    table_rel: float = 0.0
    """Largest relative error of the probability of one row of an alias table."""
    alias_rows: int = 0
    """Nodes with their own alias row that the audit recomputed, over both directions."""
    row_tv: float = 0.0
    """Largest total variation distance of the alias row of a node."""
    row_rel: float = 0.0
    """Largest relative error of the probability of one edge of an alias row."""
    underflow: int = 0
    """Rows of alias tables with a probability below 2^-64."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON: the fields of ``asterism.v1.TypeAudit``."""
        return {**asdict(self), "element": self.element.number}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """A file of an exported table."""

    path: str
    """Path relative to the folder of its `TaskResult`."""
    part: int
    element: Element
    """NODE or EDGE."""
    type_id: int
    weight_name: str
    format: str
    """``parquet`` or ``csv``."""
    rows: int
    bytes: int
    sha256: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON: the fields of ``asterism.v1.ExportedFile``."""
        return {**asdict(self), "element": self.element.number}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartUnits:
    """Numbers of units of one partition that a build linked from earlier versions or built.

    A unit is a piece of a partition with its own input, such as an adjacency or the features of a
    type.
    """

    part: int
    linked: int
    """Units linked from earlier versions."""
    built: int
    """Units that the build wrote."""
    bytes_linked: int
    """Bytes of linked files; versions that share a file store it once."""
    bytes_built: int
    """Bytes of files that the build wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """The result of a task; fields that its kind of job does not produce are empty."""

    audit: tuple[TypeAudit, ...] = ()
    files_read: int = 0
    """Files of partition images that an audit read completely."""
    bytes_read: int = 0
    """Bytes of these files."""
    folder: str = ""
    """Folder of exported tables: a path on the storaged's host, or the address in the request."""
    files: tuple[ExportedFile, ...] = ()
    """Exported files; empty in lists of jobs."""
    bytes_before: int = 0
    """Size of the graph database before a compaction, in bytes."""
    bytes_after: int = 0
    """Size of the graph database after the compaction, in bytes."""
    units: tuple[PartUnits, ...] = ()
    """Units of each partition that was built; empty in lists of jobs."""

    @classmethod
    def from_proto(cls, message: common_pb.TaskResult) -> TaskResult:
        """Return the result in a message, without totals and images.

        Raises
        ------
        InvalidRequest
            If an element is unknown.
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
