"""Files that the names and patterns of a description stand for."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from pathlib import Path

from asterism.formats.chunks import display_path
from asterism.formats.multi_file_tables import folder_files
from asterism_proto.errors import InvalidRequest

Files = tuple[tuple[Path, str], ...]
"""Files in order, each with its name in messages."""


def expand_home(name: str | Path) -> Path:
    """Return a path in which a leading ``~`` is replaced by the user's home folder."""
    return Path(os.path.expanduser(name))


def is_file(path: Path) -> bool:
    """Return True for an existing file; False also for names that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Return True for an existing folder; False also for names that no folder can have."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def find_files(context: str, name: str, root: Path) -> Files:
    """Return the file of a name, the files of a folder, or those of a pattern, sorted by name.

    Parameters
    ----------
    context : str
        Description of the entry, for messages.
    name : str
        File name or pattern, relative to ``root`` unless it is absolute or starts with ``~``. A
        file or folder of exactly this name takes precedence over a pattern. ``**`` stands for any
        number of folders.
    root : Path
        Folder of relative names. Wildcards in its own name have no meaning.

    Returns
    -------
    tuple of (Path, str)
        Files, with their names in messages.

    Raises
    ------
    InvalidRequest
        There is no such file, a folder has none or is of an unfinished job, or ``**`` is not a
        whole part of the path.
    """
    if not name.strip() or "\0" in name:
        raise InvalidRequest(f"{context}: {name!r}: expected the name of a file")
    path = root / expand_home(name)
    if is_file(path) or is_folder(path) or not glob.has_magic(name):
        matches = [path]
    else:
        matches = _match_pattern(context, name, root)
    if not matches:
        raise InvalidRequest(f"{context}: {name}: no such file")
    files: list[Path] = []
    for match in matches:
        label = display_path(match, root)
        if is_folder(match):
            files += folder_files(match, f"{context}: {label}")
        elif is_file(match):
            files.append(match)
        else:
            raise InvalidRequest(f"{context}: {label}: no such file under {root}")
    return tuple((file, display_path(file, root)) for file in files)


def _match_pattern(context: str, name: str, root: Path) -> list[Path]:
    parts = name.split("/")
    if any("**" in part and part != "**" for part in parts):
        raise InvalidRequest(
            f"{context}: {name}: expected `**` between slashes, where it stands for any number of "
            "folders, as in '**/*.csv'"
        )
    found = glob.glob(str(expand_home(name)), root_dir=root, recursive=True)
    matches = sorted(root / match for match in found)
    # A pattern that ends with ** also matches the folders themselves.
    return [match for match in matches if is_file(match)] if parts[-1] == "**" else matches


def without_repeats(files: Mapping[str, Files]) -> Mapping[str, Files]:
    """Return the files of each column so that no rows are read twice.

    Names and patterns may overlap, and links may lead to one file. Files of several columns belong
    together by their order, so one is left out only if those of all columns repeat.
    """
    columns = list(files.values())
    if len({len(column) for column in columns}) != 1:
        return files  # the reader refuses them
    seen: set[tuple[str, ...]] = set()
    kept = []
    for row, row_files in enumerate(zip(*columns, strict=True)):
        key = tuple(os.path.realpath(path) for path, _ in row_files)
        if key not in seen:
            seen.add(key)
            kept.append(row)
    return {name: tuple(column[row] for row in kept) for name, column in files.items()}
