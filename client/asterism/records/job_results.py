"""What tasks of jobs made, as records: audits, exported files, units of builds."""

from __future__ import annotations

from dataclasses import dataclass

from asterism_proto.v1 import common_pb2 as pb


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeAudit:
    """What an audit found of one type, over the parts of one storaged."""

    element: str
    """NODE or EDGE."""
    type_id: int
    count: int
    """Live rows."""
    positive: int
    """Rows of positive weight: columns of its tables."""
    weight: float
    """Their sum."""
    table_tv: float
    """Largest total variation between a table's law and the weights."""
    table_rel: float
    """Largest relative error of one of its shares."""
    alias_rows: int
    """Nodes whose own alias row was rebuilt, over both directions."""
    row_tv: float
    """Largest total variation of an alias row."""
    row_rel: float
    """Largest relative error of one of its shares."""
    underflow: int
    """Shares of tables below 2^-64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """A table as a file."""

    path: str
    """Below the folder of its `TaskResult`."""
    part: int
    element: str
    """NODE or EDGE."""
    type_id: int
    weight_name: str
    format: str
    """parquet or csv."""
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartUnits:
    """How much of a part a build linked from versions before, and how much it made."""

    part: int
    linked: int
    """Units: pieces of a part with an input of their own, as an adjacency or the features of a
    type.
    """
    built: int
    bytes_linked: int
    """Of files: on disk once, whatever versions share them."""
    bytes_built: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """What a task made, by the kind of its job; what another kind makes is empty."""

    audit: tuple[TypeAudit, ...] = ()
    files_read: int = 0
    """By an audit: files of images, every byte of them."""
    bytes_read: int = 0
    folder: str = ""
    """Of exported tables: a path on the storaged's host, or the address that was asked for."""
    files: tuple[ExportedFile, ...] = ()
    """Empty in lists of jobs."""
    bytes_before: int = 0
    """Of the graph database, before a compaction."""
    bytes_after: int = 0
    units: tuple[PartUnits, ...] = ()
    """Of each part that was built; empty in lists of jobs."""

    @classmethod
    def from_proto(cls, message: pb.TaskResult) -> TaskResult:
        """As it came over the wire."""
        return cls(
            audit=tuple(
                TypeAudit(
                    element=pb.Element.Name(audit.element),
                    type_id=audit.type_id,
                    count=audit.count,
                    positive=audit.positive,
                    weight=audit.weight,
                    table_tv=audit.table_tv,
                    table_rel=audit.table_rel,
                    alias_rows=audit.alias_rows,
                    row_tv=audit.row_tv,
                    row_rel=audit.row_rel,
                    underflow=audit.underflow,
                )
                for audit in message.audit
            ),
            files_read=message.files_read,
            bytes_read=message.bytes_read,
            folder=message.folder,
            files=tuple(
                ExportedFile(
                    path=file.path,
                    part=file.part,
                    element=pb.Element.Name(file.element),
                    type_id=file.type_id,
                    weight_name=file.weight_name,
                    format=file.format,
                    rows=file.rows,
                    bytes=file.bytes,
                    sha256=file.sha256,
                )
                for file in message.files
            ),
            bytes_before=message.bytes_before,
            bytes_after=message.bytes_after,
            units=tuple(
                PartUnits(
                    part=u.part,
                    linked=u.linked,
                    built=u.built,
                    bytes_linked=u.bytes_linked,
                    bytes_built=u.bytes_built,
                )
                for u in message.units
            ),
        )
