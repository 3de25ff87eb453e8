"""Checks of a RocksDB folder before it is opened.

RocksDB verifies every block of its tables and every record of its logs by a checksum. Some kinds of
damage pass those checks. RocksDB would then silently open an older or an empty database, or never
finish:

* ``CURRENT`` is missing: a new, empty database would be created over the data.
* All write-ahead logs are missing.
* The length of a record in a log or a ``MANIFEST`` is altered so that the record reaches beyond
  the end of the file. This looks like a record that was being written when a process died, and
  RocksDB drops it with everything after it.
* The type of a record is altered to a type of recycled logs, which are not used here: RocksDB
  loops forever.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_CURRENT = "CURRENT"
_DATA_SUFFIXES = (".sst", ".blob", ".log")
_MANIFESTS = "MANIFEST-*"
_FIRST_MANIFEST = "MANIFEST-000001"
"""Manifest of a database that was created but has no log yet."""

_BLOCK_BYTES = 32 << 10
"""Size of a log block in bytes; no record crosses a block boundary."""
_HEADER_BYTES = 7
"""Size of a record header: crc32c u32 (masked), length u16, type u8.

The checksum covers the bytes from the type on."""
_TYPE_OFFSET = 6
_PADDING, _LAST_TYPE = 0, 4
"""Types of records: 1 to 4 are full, first, middle and last.

Further types belong to options that no database here uses."""
_MASK_DELTA = 0xA282EAD8
_CASTAGNOLI = 0x82F63B78


def missing_file_fault(folder: Path) -> str:
    """Return which file of a database is missing from a folder with data; empty if none is.

    A folder in which a database was about to be created has no data yet, so nothing is missing."""
    if (folder / _CURRENT).exists() or not folder.is_dir():
        return ""
    data = sorted(
        file.name
        for file in folder.iterdir()
        if file.suffix in _DATA_SUFFIXES and file.stat().st_size
    )
    return (
        f"{folder / _CURRENT}: missing, although there are {len(data)} data files ({data[0]} ...)"
        if data
        else ""
    )


def damage_fault(folder: Path, *, writable: bool = True) -> str:
    """Return the damage of a database that RocksDB would not notice; empty if there is none.

    Parameters
    ----------
    folder : Path
        Folder of a database that no process has open.
    writable : bool, default True
        Whether the database takes writes, and so always has a log. A checkpoint may have none.

    Returns
    -------
    str
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
    """Return the first altered record header of a file; empty if there is none."""
    block_offset = 0
    with file.open("rb") as content:
        while block := content.read(_BLOCK_BYTES):
            if fault := _block_fault(block):
                return f"{fault[1]} of the record at byte {block_offset + fault[0]} is altered"
            block_offset += len(block)
    return ""


def _block_fault(block: bytes) -> tuple[int, str] | None:
    """Return the position of the first altered record in a block, and the altered field.

    The checksum of a record does not cover its length. Suppose a record claims to reach beyond
    the end of the file. If a prefix of the remaining bytes has the record's checksum, the record
    originally ended there. A record that was torn while it was written has no such prefix except
    by chance: once in 100,000 torn records."""
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
            is_full_block = len(block) == _BLOCK_BYTES  # no record crosses a block boundary
            return (
                (position, "the length")
                if is_full_block
                or _has_prefix_with_checksum(block[position + _TYPE_OFFSET :], masked_crc)
                else None
            )
        position = end
    return None


def _has_prefix_with_checksum(content: bytes, masked_crc: int) -> bool:
    """Return whether some prefix of ``content`` has the masked crc32c ``masked_crc``."""
    rotated = masked_crc - _MASK_DELTA & 0xFFFFFFFF
    # State of the register before its final inversion, so each step is one comparison.
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
