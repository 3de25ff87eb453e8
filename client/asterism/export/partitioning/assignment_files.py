"""Folders of assignments: owners of nodes read from files, and the format of the files."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asterism.export.export_schema import TypePlan
from asterism_proto.errors import InvalidRequest, NotFound

Owners = NDArray[np.int32]
"""Partition of each node of a type, by rank; ndarray of int32, shape (n,)."""

_LINES_BYTES, _LINES = 8 << 20, 1 << 20


def read_owners(
    folder: Path, kinds: Sequence[TypePlan], counts: Sequence[int], *, parts: Collection[int]
) -> tuple[list[Owners], int, str]:
    """Read an assignment from a folder in the format of DGL's partitioning tools.

    Parameters
    ----------
    folder : Path
        Folder with ``partition_meta.json`` and ``<ntype>.txt`` per node type. A text file has one
        partition number per line, in the order of the type's node ids.
    kinds, counts
        Node types, and the number of nodes of each.
    parts : collection of int
        Accepted values for the folder's number of partitions.

    Returns
    -------
    owners : list of ndarray of int32
        Partition of each node, by type and rank.
    num_parts : int
        Number of partitions of the folder.
    algorithm : str
        Name of the algorithm that made the assignment.

    Raises
    ------
    NotFound
        A file is missing.
    InvalidRequest
        A file is invalid. The message names the file and the line.
    """
    meta_path = folder / "partition_meta.json"
    if not meta_path.is_file():
        raise NotFound(f"{meta_path}: no such file; pass a folder of assignments, which has it")
    try:
        meta = json.loads(meta_path.read_text())
        num_parts, algorithm = int(meta["num_parts"]), str(meta.get("algo_name", "metis"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidRequest(
            f"{meta_path}: expected a JSON object with num_parts and algo_name ({error!r})"
        ) from error
    if num_parts not in parts:
        raise InvalidRequest(
            f"{meta_path}: num_parts={num_parts}: expected "
            f"{' or '.join(map(str, sorted(parts)))}, as in the export"
        )
    return (
        [
            _read_parts(_file_of(folder, kind), count, num_parts)
            for kind, count in zip(kinds, counts, strict=True)
        ],
        num_parts,
        algorithm,
    )


def _file_of(folder: Path, kind: TypePlan) -> Path:
    """Return the file of a node type, looked up by its stored name, then by its written name."""
    for name in (kind.name, kind.label):
        if (folder / f"{name}.txt").is_file():
            return folder / f"{name}.txt"
    raise NotFound(
        f"{folder / kind.name}.txt: no such file; expected a file of assignments for each node type"
    )


def _read_parts(path: Path, count: int, parts: int) -> Owners:
    pieces: list[Owners] = []
    line = 0
    with open(path, "rb") as file:
        while lines := file.readlines(_LINES_BYTES):
            try:
                piece = np.array(lines).astype(np.int64)
            except ValueError as error:
                raise _first_bad_line(path, lines, line) from error
            out_of_range = np.flatnonzero((piece < 0) | (piece >= parts))
            if out_of_range.size:
                raise InvalidRequest(
                    f"{path}, line {line + int(out_of_range[0]) + 1}: part "
                    f"{piece[out_of_range[0]]}; expected 0 to {parts - 1}"
                )
            pieces.append(piece.astype(np.int32))
            line += len(lines)
    if line != count:
        raise InvalidRequest(
            f"{path}: {line} lines for {count} nodes; expected one line for each, by id"
        )
    return np.concatenate([np.empty(0, np.int32), *pieces])


def _first_bad_line(path: Path, lines: list[bytes], before: int) -> InvalidRequest:
    for i, line in enumerate(lines, before + 1):
        try:
            np.array([line]).astype(np.int64)
        except ValueError:
            return InvalidRequest(
                f"{path}, line {i}: {line.strip()[:40].decode(errors='replace')!r}; expected "
                "the number of a part"
            )
    return InvalidRequest(
        f"{path}: lines {before + 1} to {before + len(lines)} are not numbers of parts"
    )


def assignment_lines(owners: Owners) -> Iterator[bytes]:
    """Yield the content of a type's assignment file, in batches of lines."""
    for start in range(0, len(owners), _LINES):
        yield b"".join(b"%d\n" % part for part in owners[start : start + _LINES].tolist())


def partition_meta(parts: int, method: str) -> bytes:
    """Return the content of ``partition_meta.json``."""
    return (
        json.dumps({"version": "1.0.0", "num_parts": parts, "algo_name": method}, indent=4).encode()
        + b"\n"
    )
