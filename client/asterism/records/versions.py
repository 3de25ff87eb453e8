"""Published versions as frozen records: what each holds of every type, and what its weights are
like.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from asterism_model.elements import OWN_WEIGHTS, canonical_weight_name
from asterism_model.indexes import Index, indexes_from_proto
from asterism_model.partition_stats import PartitionStats
from asterism_model.weight_stats import WeightStats, compute_weight_stats
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb


@dataclass(frozen=True, slots=True, kw_only=True)
class PinInfo:
    """A lease on a version: while it lasts, the version is served."""

    pin_id: int
    space: str
    version: int
    owner: str
    """Who asked for it, in words."""
    term_s: float
    """What each renewal grants, in seconds."""
    created_ms: int
    expires_ms: int
    """Unless it is renewed."""

    @classmethod
    def from_proto(cls, message: metad_pb.Pin) -> PinInfo:
        """As it came over the wire."""
        return cls(
            pin_id=message.pin_id,
            space=message.space,
            version=message.version,
            owner=message.owner,
            term_s=message.term_s,
            created_ms=message.created_ms,
            expires_ms=message.expires_ms,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionInfo:
    """A published, immutable state of a space."""

    space_id: int
    version: int
    cut: int
    """The commit number that it shows."""
    job_id: int
    created_ms: int
    digest: str
    totals: tuple[PartitionStats, ...]
    """Per (element, type, part), by the rows' own weights; empty in lists of versions."""
    named: tuple[PartitionStats, ...] = ()
    """The same by the weights of each table, of the types that have it."""
    indexes: tuple[Index, ...] = ()
    """That draws under conditions take."""

    @classmethod
    def from_proto(cls, message: common_pb.Manifest) -> VersionInfo:
        """As it came over the wire."""
        shares = [_stats_from_proto(total) for total in message.totals]
        return cls(
            space_id=message.space_id,
            version=message.version,
            cut=message.cut,
            job_id=message.job_id,
            created_ms=message.created_ms,
            digest=message.digest,
            totals=tuple(share for share in shares if not share.weight_name),
            named=tuple(share for share in shares if share.weight_name),
            indexes=indexes_from_proto(message.indexes),
        )

    def count(self, element: str, type_id: int) -> int:
        """Live rows of one type over all parts; ``element`` is NODE or EDGE."""
        return sum(
            share.count
            for share in self.totals
            if (share.element, share.type_id) == (element, type_id)
        )

    def weight(self, element: str, type_id: int, name: str = "") -> float:
        """The weight sum of one type over all parts, by the weights of that name."""
        return sum(share.weight for share in self._shares(element, type_id, name))

    def hygiene(self, element: str, type_id: int, name: str = "") -> WeightStats:
        """What the weights of one type and name are like: odd values, effective sample size,
        largest share, error bound.
        """
        return compute_weight_stats(self._shares(element, type_id, name))

    def shares(self, name: str = "") -> list[PartitionStats]:
        """The totals by the weights of that name, of the types that have them."""
        return [
            share
            for share in (*self.totals, *self.named)
            if share.weight_name == canonical_weight_name(name)
        ]

    def _shares(self, element: str, type_id: int, name: str) -> list[PartitionStats]:
        return [
            share
            for share in self.shares(name)
            if (share.element, share.type_id) == (element, type_id)
        ]


def _stats_from_proto(message: common_pb.PartitionStats) -> PartitionStats:
    """Return the statistics in a message, with one name for the rows' own weights."""
    stats = PartitionStats.from_proto(message)
    return replace(stats, weight_name="") if stats.weight_name in OWN_WEIGHTS else stats
