"""Keys of the databases, big-endian, so that byte order is (part, kind, type, ...) order.

See docs/storage.md.
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
"""Families of a stat database: final B1 tables, scratch tables, and completed steps."""

COLUMNS = 0x80
"""Flag added to a block's kind for its features.

They are stored apart from the ids, so that passes over ids do not read them.
"""

B1, B2, B3, LIGHT, HEAVY = 1, 2, 3, 4, 5
EDGE_TABLE = 0x40
"""Flag added to a table's kind for tables over edges."""

MAX_LOAD = (1 << 64) - 1
"""Largest load id that a key can hold."""


class BlockKey(NamedTuple):
    """Key of a value of the graph database: a run of rows of one block."""

    part: int
    kind: int
    type_id: int
    load_id: int
    chunk: int
    sub: int

    def __str__(self) -> str:
        """Return the key in the form used by messages."""
        return (
            f"block {self.sub} of load {self.load_id}, chunk {self.chunk} (partition "
            f"{self.part}, kind {self.kind}, type {self.type_id})"
        )


def block_key(key: BlockKey) -> bytes:
    """Pack a key into 21 bytes.

    Layout: part u16 | kind u8 | type u16 | load u64 | chunk u32 | sub-block u32.
    """
    return _BLOCK.pack(*key)


def parse_block_key(raw: bytes) -> BlockKey:
    """Unpack a key from `block_key`."""
    return BlockKey(*_BLOCK.unpack(raw))


def strip_load(raw: bytes) -> bytes:
    """Return a block's key without its load: 13 bytes, as fingerprints use it."""
    return raw[:5] + raw[13:]


def type_prefix(part: int, kind: int, type_id: int) -> bytes:
    """Return the prefix of all blocks of one kind and type in one partition: 5 bytes."""
    return _TYPE.pack(part, kind, type_id)


def load_prefix(part: int, kind: int, type_id: int, load_id: int) -> bytes:
    """Return the prefix of all blocks of one kind, type and load in one partition: 13 bytes."""
    return _LOAD.pack(part, kind, type_id, load_id)


def chunk_prefix(part: int, kind: int, type_id: int, load_id: int, chunk: int) -> bytes:
    """Return the prefix of all values of one block: 17 bytes."""
    return _BLOCK.pack(part, kind, type_id, load_id, chunk, 0)[:17]


def table_prefix(part: int, kind: int, type_id: int, weight_name: str) -> bytes:
    """Return the prefix of a table's keys.

    Layout: part u16 | kind u8 | type u16 | length of the weight name u8 | name.
    """
    name = weight_name.encode()
    return _TABLE.pack(part, kind, type_id, len(name)) + name


def table_key(prefix: bytes, block: int) -> bytes:
    """Return the key of a table's block: the table's prefix, then block u32."""
    return prefix + block.to_bytes(4, "big")


def step_key(part: int, name: str) -> bytes:
    """Return the key of a build step: part u16 | name of the step."""
    return part_prefix(part) + name.encode()


def part_prefix(part: int) -> bytes:
    """Return the prefix of all keys of one partition: 2 bytes."""
    return part.to_bytes(2, "big")


def prefix_end(prefix: bytes) -> bytes | None:
    """Return the first key after all keys with a prefix; None if there is none."""
    trimmed = prefix.rstrip(b"\xff")
    return None if not trimmed else trimmed[:-1] + bytes([trimmed[-1] + 1])
