"""Folders that Spark and similar systems write: one table as several files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from asterism_proto.errors import InvalidRequest

SUCCESS_MARKER = "_SUCCESS"
"""File that Spark and Hadoop write when a job has finished."""
_TEMPORARY = "_temporary"
"""Folder in which Spark and Hadoop keep files of a job that has not finished."""
_HIDDEN_PREFIXES = ("_", ".")


def folder_files(folder: Path, label: str) -> list[Path]:
    """Return the data files of a folder, sorted by name.

    Files with names that begin with ``_`` or ``.`` hold no rows (markers, metadata, checksums) and
    are skipped, and so are empty files if the folder has the marker of a finished job. In a folder
    that is partitioned, the files are those of its folders ``column=value``, at any depth.

    Parameters
    ----------
    folder : Path
    label : str
        Name of the folder in messages.

    Returns
    -------
    list of Path

    Raises
    ------
    InvalidRequest
        The job that writes the folder has not finished, or the folder has other folders within it,
        no files, files with different suffixes, or files in different partition columns.
    """
    files = list(_files_within(folder, label, is_finished=False))
    if not files:
        raise InvalidRequest(f"{label}: expected files with rows, found none")
    suffixes = sorted({file.suffix for file in files})
    if len(suffixes) > 1:
        raise InvalidRequest(
            f"{label}: expected files of one format, found the suffixes {', '.join(suffixes)}; "
            "name the files of the table by a pattern"
        )
    columns = {
        ", ".join(part.partition("=")[0] for part in file.relative_to(folder).parts[:-1])
        for file in files
    }
    if len(columns) > 1:
        found = " and ".join(repr(names) for names in sorted(columns))
        raise InvalidRequest(
            f"{label}: expected folders of the same partition columns, found {found}; list the "
            "folders or files of the type"
        )
    return files


def _files_within(folder: Path, label: str, *, is_finished: bool) -> Iterator[Path]:
    """Yield the data files of a folder and of its partitions, sorted by name."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise InvalidRequest(f"{label}: cannot be opened ({error.strerror})") from error
    if any(entry.name == _TEMPORARY and entry.is_dir() for entry in entries):
        raise InvalidRequest(
            f"{label}: expected the output of a finished job, found the folder {_TEMPORARY!r}; let "
            "the job finish, or run it again"
        )
    is_finished = is_finished or any(entry.name == SUCCESS_MARKER for entry in entries)
    for entry in entries:
        if entry.name.startswith(_HIDDEN_PREFIXES):
            continue
        if not entry.is_dir():
            if not is_finished or entry.stat().st_size:
                yield entry
        elif entry.name.partition("=")[0] and "=" in entry.name:
            yield from _files_within(entry, f"{label}/{entry.name}", is_finished=is_finished)
        else:
            raise InvalidRequest(
                f"{label}: expected files, found the folder {entry.name!r}; list the folders or "
                "files of the type"
            )
