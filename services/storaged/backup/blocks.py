"""Stream of a partition's blocks: stored values, with commit numbers for load ids.

Layout, repeated: key (21 bytes, big-endian, the commit number in place of the load id) | record (32
bytes) | length of the value u32, little-endian | value. The stream ends with 21 bytes 0xFF and the
number of values, u64, little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping

from asterism_io.remote_storage import PIECE_BYTES
from asterism_proto.errors import Corrupt
from storaged.store import keys
from storaged.store.block_store import RECORD_BYTES, StoredValue, verified_value

_KEY_BYTES = 21
_END = b"\xff" * _KEY_BYTES
_LENGTH, _COUNT = struct.Struct("<I"), struct.Struct("<Q")
_LONGEST_VALUE = 1 << 30


def encode_stream(values: Iterable[StoredValue], commits: Mapping[int, int]) -> Iterator[bytes]:
    """Yield the stream of some values in pieces; ``commits`` maps loads to commit numbers."""
    buffered, size, count = [], 0, 0
    for key, record, value in values:
        raw = keys.block_key(key._replace(load_id=commits[key.load_id]))
        buffered += [raw, record, _LENGTH.pack(len(value)), value]
        size += _KEY_BYTES + RECORD_BYTES + _LENGTH.size + len(value)
        count += 1
        if size >= PIECE_BYTES:
            yield b"".join(buffered)
            buffered, size = [], 0
    yield b"".join([*buffered, _END, _COUNT.pack(count)])


def decode_stream(
    pieces: Iterable[bytes], loads: Mapping[int, int], part: int
) -> Iterator[StoredValue]:
    """Yield the values of a stream, under the local loads with the stream's commit numbers.

    Raises
    ------
    Corrupt
        The stream is truncated, belongs to another partition, or names a commit without a load.
    """
    stream = _ByteReader(pieces)
    count = 0
    while (raw := stream.read(_KEY_BYTES)) != _END:
        key = keys.parse_block_key(raw)
        if key.part != part or key.load_id not in loads:
            raise Corrupt(
                f"blocks of part {part}: value {count} belongs to part {key.part}, commit "
                f"{key.load_id}; the backup is damaged"
            )
        record = stream.read(RECORD_BYTES)
        (length,) = _LENGTH.unpack(stream.read(_LENGTH.size))
        if length > _LONGEST_VALUE:
            raise Corrupt(
                f"blocks of part {part}: value {count}: length {length} is invalid; the backup is "
                "damaged"
            )
        yield verified_value(key._replace(load_id=loads[key.load_id]), record, stream.read(length))
        count += 1
    (expected,) = _COUNT.unpack(stream.read(_COUNT.size))
    if expected != count or stream.has_more():
        raise Corrupt(
            f"blocks of part {part}: found {count} values where the stream states {expected}, or "
            "more after its end; the backup is damaged"
        )


class _ByteReader:
    """Reader of bytes from an iterator of pieces."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._held = b""
        self._at = 0

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes; raise Corrupt if there are fewer."""
        chunks = [self._held[self._at :]] if len(self._held) - self._at < size else []
        missing = size - (len(self._held) - self._at)
        while missing > 0:
            piece = next(self._pieces, None)
            if piece is None:
                raise Corrupt(
                    f"blocks: the stream ends {missing} bytes early; the backup is damaged"
                )
            chunks.append(piece)
            missing -= len(piece)
        if chunks:
            self._held, self._at = b"".join(chunks), 0
        content = self._held[self._at : self._at + size]
        self._at += size
        return content

    def has_more(self) -> bool:
        """Return whether any byte follows; reads all pieces, which are verified at their end."""
        remaining = len(self._held) - self._at
        for piece in self._pieces:
            remaining += len(piece)
        return remaining > 0
