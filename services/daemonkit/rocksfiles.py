"""What a RocksDB folder must have: a database that is opened without its pointer would begin anew, empty, over what there was."""

from __future__ import annotations

from pathlib import Path

_POINTER = "CURRENT"
_DATA = (".sst", ".blob", ".log")


def missing(folder: Path) -> str:
    """What a folder with data lacks to be opened as the database that it is, in words; empty where nothing is missing.

    A folder in which a database was about to be made has no data yet, and lacks nothing.
    """
    if (folder / _POINTER).exists() or not folder.is_dir():
        return ""
    data = sorted(file.name for file in folder.iterdir() if file.suffix in _DATA and file.stat().st_size)
    return f"{folder / _POINTER}: missing, beside {len(data)} files of data ({data[0]} ...)" if data else ""
