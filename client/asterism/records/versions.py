"""Records of published versions and of pins: totals of every type, weight statistics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from asterism_model.indexes import Index, indexes_from_proto
from asterism_model.partition_stats import PartitionStats
from asterism_model.weight_names import OWN_WEIGHTS, canonical_weight_name
from asterism_model.weight_stats import WeightStats, compute_weight_stats
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb


@dataclass(frozen=True, slots=True, kw_only=True)
class PinInfo:
    """Lease on a version, which is served while the lease lasts."""

    pin_id: int
    space: str
    version: int
    owner: str
    """Label of the owner."""
    term_s: float
    """Seconds that each renewal grants."""
    created_ms: int
    expires_ms: int
    """Time of expiry without renewal, in ms since the epoch."""

    @classmethod
    def from_proto(cls, message: metad_pb.Pin) -> PinInfo:
        """Build a record from its protobuf message."""
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
    """Published, immutable state of a graph space."""

    DEPRECATED_NAMES: ClassVar[tuple[str, ...]] = ("cut",)
    """Properties that the command's JSON includes with the fields in this release."""

    space_id: int
    version: int
    watermark: int
    """Commit watermark: the version contains the commits up to it."""
    job_id: int
    created_ms: int
    digest: str
    totals: tuple[PartitionStats, ...]
    """Totals per (element, type, partition) by own weights; empty in lists of versions.
    """
    named: tuple[PartitionStats, ...] = ()
    """The same totals by the weights of each table, for the types that have it."""
    indexes: tuple[Index, ...] = ()
    """Indexes for filtered sampling."""

    def __repr__(self) -> str:
        return (
            f"VersionInfo(space_id={self.space_id}, version={self.version}, cut={self.watermark}, "
            f"job_id={self.job_id}, created_ms={self.created_ms}, digest={self.digest!r}, "
            f"{len(self.totals)} totals, {len(self.named)} named, {len(self.indexes)} indexes)"
        )

    @classmethod
    def from_proto(cls, message: common_pb.Manifest) -> VersionInfo:
        """Build a record from its protobuf message."""
        shares = [_stats_from_proto(total) for total in message.totals]
        return cls(
            space_id=message.space_id,
            version=message.version,
            watermark=message.watermark,
            job_id=message.job_id,
            created_ms=message.created_ms,
            digest=message.digest,
            totals=tuple(share for share in shares if not share.weight_name),
            named=tuple(share for share in shares if share.weight_name),
            indexes=indexes_from_proto(message.indexes),
        )

    @property
    def cut(self) -> int:
        """Deprecated name of `watermark`; the next release drops it."""
        return self.watermark

    def count(self, element: str, type_id: int) -> int:
        """Return the number of live rows of a type over all partitions.

        Parameters
        ----------
        element : {"NODE", "EDGE"}
            Kind of row.
        type_id : int
            Id of the type.

        Returns
        -------
        int
            Number of rows.
        """
        return sum(
            share.count
            for share in self.totals
            if (share.element, share.type_id) == (element, type_id)
        )

    def weight(self, element: str, type_id: int, name: str = "") -> float:
        """Return the total weight of a type over all partitions.

        Parameters
        ----------
        element : {"NODE", "EDGE"}
            Kind of row.
        type_id : int
            Id of the type.
        name : str, default ""
            Name of the weights. "": the rows' own.

        Returns
        -------
        float
            Sum of the weights.
        """
        return sum(share.weight for share in self._shares(element, type_id, name))

    def weight_stats(self, element: str, type_id: int, name: str = "") -> WeightStats:
        """Return statistics of the weights of a type.

        Parameters
        ----------
        element : {"NODE", "EDGE"}
            Kind of row.
        type_id : int
            Id of the type.
        name : str, default ""
            Name of the weights. "": the rows' own.

        Returns
        -------
        WeightStats
            Irregular values, effective sample size, largest share and error bound.
        """
        return compute_weight_stats(self._shares(element, type_id, name))

    def hygiene(self, element: str, type_id: int, name: str = "") -> WeightStats:
        """Return `weight_stats`; a deprecated name, which the next release drops."""
        return self.weight_stats(element, type_id, name)

    def shares(self, name: str = "") -> list[PartitionStats]:
        """Return the totals by the weights of a name, for the types that have them.

        Parameters
        ----------
        name : str, default ""
            Name of the weights. "": the rows' own.

        Returns
        -------
        list of PartitionStats
            Totals per (element, type, partition).
        """
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
