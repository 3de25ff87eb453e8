"""Folders that Spark and similar systems write: one table as several files."""

from __future__ import annotations

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
    are skipped, and so are empty files if the folder has the marker of a finished job.

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
        The job that writes the folder has not finished, or the folder has folders within it, no
        files, or files with different suffixes.
    """
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise InvalidRequest(f"{label}: cannot be opened ({error.strerror})") from error
    if any(entry.name == _TEMPORARY and entry.is_dir() for entry in entries):
        raise InvalidRequest(
            f"{label}: expected the output of a finished job, found the folder {_TEMPORARY!r}; let "
            "the job finish, or run it again"
        )
    visible = [entry for entry in entries if not entry.name.startswith(_HIDDEN_PREFIXES)]
    inner = next((entry for entry in visible if entry.is_dir()), None)
    if inner is not None and "=" in inner.name:
        column = inner.name.split("=")[0]
        raise InvalidRequest(
            f"{label}: expected files, found the folder {inner.name!r}; files do not have the "
            f"column {column!r} by which they are partitioned: write them without partitions, or "
            f"name them by a pattern ({column}=*/*) if you do not need the column"
        )
    if inner is not None:
        raise InvalidRequest(
            f"{label}: expected files, found the folder {inner.name!r}; list the folders or files "
            "of the type"
        )
    is_finished = any(entry.name == SUCCESS_MARKER for entry in entries)
    files = [entry for entry in visible if not is_finished or entry.stat().st_size]
    if not files:
        raise InvalidRequest(f"{label}: expected files with rows, found none")
    suffixes = sorted({file.suffix for file in files})
    if len(suffixes) > 1:
        raise InvalidRequest(
            f"{label}: expected files of one format, found the suffixes {', '.join(suffixes)}; "
            "name the files of the table by a pattern"
        )
    return files
