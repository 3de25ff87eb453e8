"""Removal requests: data that metad instructs storageds to remove."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from asterism_proto.v1 import metad_pb2 as metad_pb


class RemovalKind(Enum):
    """Kind of data to remove. The numbers are those of messages."""

    SPACE = 1
    """Folder of a graph space."""
    BUILD = 2
    """Output of one job."""
    LEFTOVERS = 3
    """Leftovers of a published build: its checkpoint, or an unfinished export."""
    LOADS = 4
    """Blocks of loads that an adoption abandoned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalRequest:
    """A request to remove data from a storaged."""

    removal_id: int = 0
    """Id of the request; 0 = not assigned yet."""
    kind: RemovalKind
    space_id: int
    job_id: int = 0
    loads: tuple[int, ...] = ()
    reason: str = ""

    @property
    def target(self) -> tuple[RemovalKind, int, int, tuple[int, ...]]:
        """Identity of the data to remove, regardless of the request's id and reason."""
        return (self.kind, self.space_id, self.job_id, self.loads)

    @classmethod
    def from_proto(cls, message: metad_pb.RemovalOrder) -> RemovalRequest:
        """Return the request in a message."""
        return cls(
            removal_id=message.removal_id,
            kind=RemovalKind(message.kind),
            space_id=message.space_id,
            job_id=message.job_id,
            loads=tuple(message.loads),
            reason=message.reason,
        )

    def to_proto(self) -> metad_pb.RemovalOrder:
        """Return the request as a message."""
        return metad_pb.RemovalOrder(
            removal_id=self.removal_id,
            kind=metad_pb.RemovalKind.Name(metad_pb.RemovalKind.ValueType(self.kind.value)),
            space_id=self.space_id,
            job_id=self.job_id,
            loads=self.loads,
            reason=self.reason,
        )
