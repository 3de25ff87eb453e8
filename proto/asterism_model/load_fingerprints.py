"""Fingerprints of the blocks that a load wrote to a partition, over their index records.

A fingerprint does not depend on the order of the records, on the host, or on the load's id (which
differs between a space and its restored copy): the checksum is the sum modulo 2^128 of
BLAKE2b-128 over each record's key without the load id, followed by the record. Records carry the
size and crc32 of their values, so that no value is read to compute a fingerprint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from asterism_proto.errors import Corrupt, InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

CHECKSUM_BYTES = 16
_MODULUS = 1 << (8 * CHECKSUM_BYTES)


class FingerprintMismatch(Corrupt):
    """The stored blocks of a load differ from those that were committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFingerprint:
    """The fingerprint of one load in one partition."""

    part: int
    blocks: int
    """Number of values in the graph database."""
    rows: int
    size: int
    """Bytes of the values' bodies."""
    checksum: int
    """Sum of the record hashes modulo 2^128."""

    def __str__(self) -> str:
        """Return the fingerprint as text for messages."""
        return (
            f"{self.blocks} blocks, {self.rows} rows, {self.size} bytes, checksum "
            f"{self.checksum:032x}"
        )

    def to_proto(self) -> common_pb.PartFingerprint:
        """Return the fingerprint as a message."""
        checksum = self.checksum.to_bytes(CHECKSUM_BYTES, "little")
        return common_pb.PartFingerprint(
            part=self.part, blocks=self.blocks, rows=self.rows, bytes=self.size, checksum=checksum
        )

    @classmethod
    def from_proto(cls, message: common_pb.PartFingerprint) -> PartFingerprint:
        """Return the fingerprint in a message; raise InvalidRequest for a wrong checksum size."""
        if len(message.checksum) != CHECKSUM_BYTES:
            raise InvalidRequest(
                f"checksum of partition {message.part}: expected {CHECKSUM_BYTES} bytes, "
                f"found {len(message.checksum)}"
            )
        checksum = int.from_bytes(message.checksum, "little")
        return cls(
            part=message.part,
            blocks=message.blocks,
            rows=message.rows,
            size=message.bytes,
            checksum=checksum,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFingerprint:
    """The fingerprints of one committed load, as stored in the catalog."""

    load_id: int
    commit: int
    is_known: bool
    """False for loads that were committed by a release without fingerprints; they are not
    compared.
    """
    parts: Mapping[int, PartFingerprint] = field(default_factory=dict)
    """Fingerprints by partition; other partitions have no block of the load."""

    @classmethod
    def from_proto(cls, message: metad_pb.LoadFingerprint) -> LoadFingerprint:
        """Return the fingerprints in a message."""
        parts = {part.part: PartFingerprint.from_proto(part) for part in message.parts}
        return cls(
            load_id=message.load_id,
            commit=message.commit,
            is_known=message.fingerprinted,
            parts=parts,
        )

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        parts = [[p.part, p.blocks, p.rows, p.size, f"{p.checksum:x}"] for p in self.parts.values()]
        return {
            "load_id": self.load_id,
            "commit": self.commit,
            "known": self.is_known,
            "parts": parts,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> LoadFingerprint:
        """Return the fingerprints in the result of `to_dict`."""
        parts: dict[int, PartFingerprint] = {}
        rows = data["parts"]
        assert isinstance(rows, list)
        for part, blocks, count, size, checksum in rows:
            parts[part] = PartFingerprint(
                part=part, blocks=blocks, rows=count, size=size, checksum=int(checksum, 16)
            )
        return cls(
            load_id=int(str(data["load_id"])),
            commit=int(str(data["commit"])),
            is_known=bool(data["known"]),
            parts=parts,
        )


@dataclass(slots=True)
class FingerprintAccumulator:
    """Accumulates index records, in any order, into a fingerprint."""

    blocks: int = 0
    rows: int = 0
    size: int = 0
    checksum: int = 0

    def add(self, key: bytes, record: bytes, rows: int, size: int) -> None:
        """Add one record.

        Parameters
        ----------
        key : bytes
            The key of the record without the load id.
        record : bytes
            The encoded index record.
        rows, size : int
            Rows and bytes of the value, as stated in the record.
        """
        self.blocks += 1
        self.rows += rows
        self.size += size
        digest = hashlib.blake2b(key + record, digest_size=CHECKSUM_BYTES).digest()
        self.checksum = (self.checksum + int.from_bytes(digest, "little")) % _MODULUS

    def fingerprint(self, part: int) -> PartFingerprint:
        """Return the fingerprint of all added records."""
        return PartFingerprint(
            part=part, blocks=self.blocks, rows=self.rows, size=self.size, checksum=self.checksum
        )


def check_fingerprints(
    part: int, stored: Mapping[int, PartFingerprint], expected: Iterable[LoadFingerprint]
) -> int:
    """Compare the blocks of committed loads in a partition with the catalog.

    Parameters
    ----------
    part : int
    stored : mapping of int to PartFingerprint
        Fingerprints of the stored blocks by load id; other loads have no block in this partition.
    expected : iterable of LoadFingerprint
        Committed loads from the catalog.

    Returns
    -------
    int
        The number of loads that could not be compared, because they have no fingerprints.

    Raises
    ------
    FingerprintMismatch
        For the first load that differs; the message has the load, the partition and both
        fingerprints.
    """
    unknown = 0
    for load in expected:
        if not load.is_known:
            unknown += 1
            continue
        committed, stored_part = load.parts.get(part), stored.get(load.load_id)
        if committed != stored_part:
            raise FingerprintMismatch(
                f"load {load.load_id} (commit {load.commit}), partition {part}: expected "
                f"{committed or 'no blocks'}, "
                f"as committed, found {stored_part or 'no blocks'}; the stored blocks were "
                "changed after the commit: "
                "restore the space from a backup, or load the data again"
            )
    return unknown
