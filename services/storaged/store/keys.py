"""Keys: big-endian, so that RocksDB's byte order is (part, kind, type, ...) order. See
docs/storage.md.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

_TYPE = struct.Struct(">HBH")
_LOAD = struct.Struct(">HBHQ")
_BLOCK = struct.Struct(">HBHQII")
_TABLE = struct.Struct(">HBHB")

BLOCKS, INDEX = "blocks", "index"
"""Families of the graph database: the values, and a small record of each."""

TABLES, SCRATCH, STEPS = "tables", "scratch", "steps"
"""Families of a stat database: final B1, what a build throws away, and which of its steps are
done.
"""

COLUMNS = 0x80
"""Added to a block's kind: its features, kept apart from its ids so that passes over ids do not
read them.
"""

B1, B2, B3, LIGHT, HEAVY = 1, 2, 3, 4, 5
EDGE_TABLE = 0x40
"""Added to a table's kind where the table is over edges."""

MAX_LOAD = (1 << 64) - 1
"""The largest load id that a key holds."""


class BlockKey(NamedTuple):
    """A value of the graph database: a run of rows of one block."""

    part: int
    kind: int
    type_id: int
    load_id: int
    chunk: int
    sub: int

    def __str__(self) -> str:
        """Return the key in words, for messages."""
        return (
            f"block {self.sub} of load {self.load_id}, chunk {self.chunk} (partition "
            f"{self.part}, kind {self.kind}, type {self.type_id})"
        )


def block_key(key: BlockKey) -> bytes:
    """21 bytes: part u16 | kind u8 | type u16 | load u64 | chunk u32 | sub-block u32."""
    return _BLOCK.pack(*key)


def parse_block_key(raw: bytes) -> BlockKey:
    """What `block_key` packed."""
    return BlockKey(*_BLOCK.unpack(raw))


def strip_load(raw: bytes) -> bytes:
    """Return a block's key without its load: 13 bytes, as fingerprints have it."""
    return raw[:5] + raw[13:]


def type_prefix(part: int, kind: int, type_id: int) -> bytes:
    """Every block of one kind and type in one part begins with these 5 bytes."""
    return _TYPE.pack(part, kind, type_id)


def load_prefix(part: int, kind: int, type_id: int, load_id: int) -> bytes:
    """Every such block of one load begins with these 13 bytes."""
    return _LOAD.pack(part, kind, type_id, load_id)


def chunk_prefix(part: int, kind: int, type_id: int, load_id: int, chunk: int) -> bytes:
    """Every value of one block begins with these 17 bytes."""
    return _BLOCK.pack(part, kind, type_id, load_id, chunk, 0)[:17]


def table_prefix(part: int, kind: int, type_id: int, weight_name: str) -> bytes:
    """part u16 | kind u8 | type u16 | length of the weight's name u8 | name."""
    name = weight_name.encode()
    return _TABLE.pack(part, kind, type_id, len(name)) + name


def table_key(prefix: bytes, block: int) -> bytes:
    """A table's prefix, then block u32."""
    return prefix + block.to_bytes(4, "big")


def step_key(part: int, name: str) -> bytes:
    """part u16 | name of the step."""
    return part_prefix(part) + name.encode()


def part_prefix(part: int) -> bytes:
    """Everything of one part begins with these 2 bytes."""
    return part.to_bytes(2, "big")


def prefix_end(prefix: bytes) -> bytes | None:
    """The first key behind every key that begins with ``prefix``; None where there is none."""
    trimmed = prefix.rstrip(b"\xff")
    return None if not trimmed else trimmed[:-1] + bytes([trimmed[-1] + 1])
