"""What must hold of a RocksDB folder's files before it is opened.

RocksDB itself checks every block of its tables and every record of its logs by a checksum. Some
kinds of damage pass those checks, and would open an older or an empty database without a word, or
never come to an end:

* ``CURRENT`` is missing: a new, empty database would be made over the data;
* every write-ahead log is missing;
* the length of a record in a log or a ``MANIFEST`` is altered such that the record reaches beyond
  the end of the file. A record that was being written when a process died looks alike, and RocksDB
  drops it with all that follows;
* the type of a record is altered to one of recycled logs, which are not used here: RocksDB loops.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_CURRENT = "CURRENT"
_DATA_SUFFIXES = (".sst", ".blob", ".log")
_MANIFESTS = "MANIFEST-*"
_FIRST_MANIFEST = "MANIFEST-000001"
"""Of a database whose creation has not come to its first log yet."""

_BLOCK_BYTES = 32 << 10
"""Bytes of a block of a log: no record crosses a border of one."""
_HEADER_BYTES = 7
"""crc32c u32 (masked) | length u16 | type u8; the checksum covers what follows the length."""
_TYPE_OFFSET = 6
_PADDING, _LAST_TYPE = 0, 4
"""Types of records are 1 to 4: whole, first, middle, last. Further ones are of options that no
database here has.
"""
_MASK_DELTA = 0xA282EAD8
_CASTAGNOLI = 0x82F63B78


def missing_file_fault(folder: Path) -> str:
    """Describe what a folder with data lacks to be opened as a database; empty where nothing is
    missing.

    A folder in which a database was about to be made has no data yet, and lacks nothing.
    """
    if (folder / _CURRENT).exists() or not folder.is_dir():
        return ""
    data = sorted(
        file.name
        for file in folder.iterdir()
        if file.suffix in _DATA_SUFFIXES and file.stat().st_size
    )
    return (
        f"{folder / _CURRENT}: missing, beside {len(data)} files of data ({data[0]} ...)"
        if data
        else ""
    )


def damage_fault(folder: Path, *, writable: bool = True) -> str:
    """Describe the damage that RocksDB would not notice; empty where there is none.

    Parameters
    ----------
    folder : Path
        Of a database that no process has open.
    writable : bool
        Whether it is one that takes writes, which has a log at all times. A checkpoint need not
        have one.
    """
    if not folder.is_dir():
        return ""
    if missing_file := missing_file_fault(folder):
        return missing_file
    manifests = sorted(folder.glob(_MANIFESTS))
    logs = sorted(folder.glob("*.log"))
    if (
        writable
        and not logs
        and manifests
        and [file.name for file in manifests] != [_FIRST_MANIFEST]
    ):
        return f"{folder}: every write-ahead log (*.log) is missing"
    for file in (*manifests, *logs):
        if fault := _header_fault(file):
            return f"{file}: {fault}"
    return ""


def _header_fault(file: Path) -> str:
    """Describe the first record whose header cannot be what was written; empty where there is
    none.
    """
    block_offset = 0
    with file.open("rb") as content:
        while block := content.read(_BLOCK_BYTES):
            if fault := _block_fault(block):
                return f"{fault[1]} of the record at byte {block_offset + fault[0]} is altered"
            block_offset += len(block)
    return ""


def _block_fault(block: bytes) -> tuple[int, str] | None:
    """Find a record whose type or length is altered; its place in the block, and which of them.

    The length of a record is not covered by its checksum. Where a record claims to reach beyond the
    end of the file, and the bytes up to some place before it have the record's checksum, the record
    ended there when it was written. A record that was torn while it was written has no such place,
    but by chance: once in 100,000 torn records."""
    position = 0
    while position + _HEADER_BYTES <= len(block):
        length, record_type = (
            int.from_bytes(block[position + 4 : position + 6], "little"),
            block[position + _TYPE_OFFSET],
        )
        if record_type > _LAST_TYPE:
            return position, "the type"
        if record_type == _PADDING and length == 0:
            return None
        end = position + _HEADER_BYTES + length
        if end > len(block):
            masked_crc = int.from_bytes(block[position : position + 4], "little")
            is_full_block = len(block) == _BLOCK_BYTES  # no record crosses the border of a block
            return (
                (position, "the length")
                if is_full_block
                or _has_prefix_with_checksum(block[position + _TYPE_OFFSET :], masked_crc)
                else None
            )
        position = end
    return None


def _has_prefix_with_checksum(content: bytes, masked_crc: int) -> bool:
    """Return whether a beginning of ``content`` has the masked crc32c ``masked_crc``."""
    rotated = masked_crc - _MASK_DELTA & 0xFFFFFFFF
    # The register's state before its final inversion, so that each step is one comparison.
    expected = ((rotated >> 17 | rotated << 15) & 0xFFFFFFFF) ^ 0xFFFFFFFF
    table, state = _crc_table(), 0xFFFFFFFF
    for byte in content:
        state = table[(state ^ byte) & 0xFF] ^ state >> 8
        if state == expected:
            return True
    return False


@cache
def _crc_table() -> tuple[int, ...]:
    table = []
    for state in range(256):
        for _ in range(8):
            state = state >> 1 ^ (_CASTAGNOLI if state & 1 else 0)
        table.append(state)
    return tuple(table)
