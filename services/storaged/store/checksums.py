"""Verification of an image's files against its manifest."""

from __future__ import annotations

import hashlib
import json
import mmap
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from asterism_io.remote_storage import check_file_name
from asterism_proto.errors import Corrupt
from storaged.store.huge_pages import advise_huge_pages

MANIFEST = "manifest.json"
CRC_BYTES = 1 << 20
"""Number of bytes of a file that one checksum covers."""
OFFSET_ARRAYS = frozenset(
    {
        "indptr",
        "label_indptr",
        "bounds",
        "positives",
        "rows",
        "index_ids",
        "index_rows",
        "live_rows",
        "label_rows",
    }
    | {"row_of", "src_row", "order", "hot", "keyed"}
)
"""Last name components of files with positions in other files.

A wrong position could crash the process.
"""


def holds_offsets(name: str) -> bool:
    """Return whether the file of an array contains positions in other files."""
    return name.rpartition(".")[2] in OFFSET_ARRAYS


def map_array(
    path: Path, entry: Mapping[str, Any], *, verify: bool, huge_pages: bool = False
) -> NDArray[Any]:
    """Map the array of a file, read-only.

    Parameters
    ----------
    path : Path
    entry : mapping
        Manifest entry of the file.
    verify : bool
        Compare the checksums of the file.
    huge_pages : bool
        Advise huge pages for the mapping; see `storaged.store.huge_pages`. Default False.

    Raises
    ------
    Corrupt
        The file is missing or has another size, or (``verify``) is altered.
    """
    dtype, shape = (
        np.dtype(entry["dtype"]).newbyteorder("<"),
        tuple(int(extent) for extent in entry["shape"]),
    )
    expected = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            if size != expected:
                raise Corrupt(
                    f"image file {path}: expected {expected} bytes, as in its manifest, found "
                    f"{size}; build the version again"
                )
            if size == 0:
                return np.zeros(shape, dtype)
            if verify:
                _check_bytes(path, file, entry, lambda _: None)
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            if huge_pages:
                advise_huge_pages(content)
    except FileNotFoundError as error:
        raise Corrupt(f"image file {path}: missing; build the version again") from error
    return np.frombuffer(content, dtype).reshape(shape)


def _check_bytes(
    path: Path, file: IO[bytes], entry: Mapping[str, Any], on_read: Callable[[int], None]
) -> int:
    """Read a file and compare its checksums; return its size in bytes.

    The file is not mapped: a failed read of a mapping would be a signal instead of an error.
    """
    block = total = 0
    try:
        while chunk := file.read(CRC_BYTES):
            if block >= len(entry["crc32"]) or zlib.crc32(chunk) != entry["crc32"][block]:
                raise Corrupt(
                    f"image file {path}: mebibyte {block} does not match its checksum; build the "
                    "version again"
                )
            block, total = block + 1, total + len(chunk)
            on_read(len(chunk))
    except OSError as error:
        raise Corrupt(
            f"image file {path}: mebibyte {block} cannot be read ({error}); build the version again"
        ) from error
    if block != len(entry["crc32"]):
        raise Corrupt(
            f"image file {path}: ends after {block} of {len(entry['crc32'])} mebibytes; "
            "build the version again"
        )
    return total


def check_image(folder: Path, digest: str, on_read: Callable[[int], None]) -> int:
    """Read every byte of an image, including its manifest; return the number of bytes.

    Parameters
    ----------
    folder : Path
        Folder of the image.
    digest : str
        sha256 of the manifest that the version was sealed with.
    on_read : callable
        Called with the number of bytes after each read of at most 1 MiB. It may raise to stop the
        check.

    Raises
    ------
    Corrupt
        A file is altered or missing; the message names the file and the mebibyte.
    """
    path = folder / MANIFEST
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Corrupt(
            f"image file {path}: cannot be read ({error}); build the version again"
        ) from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise Corrupt(
            f"image file {path}: its sha256 does not match the digest of the version; build the "
            "version again"
        )
    on_read(len(content))
    return len(content) + check_files(folder, on_read)[1]


def check_files(folder: Path, on_read: Callable[[int], None]) -> tuple[int, int]:
    """Compare an image's files with the manifest's checksums; return their number and bytes.

    Parameters
    ----------
    folder : Path
        Folder of an image with an intact manifest.
    on_read : callable
        Called with the number of bytes after each read of at most 1 MiB.

    Raises
    ------
    Corrupt
        A file is altered or missing; the message names the file and the first altered mebibyte.
    """
    files = json.loads((folder / MANIFEST).read_bytes())["files"]
    total = 0
    for name, entry in files.items():
        check_file_name(name)
        path = folder / f"{name}.bin"
        try:
            with path.open("rb") as file:
                total += _check_bytes(path, file, entry, on_read)
        except FileNotFoundError as error:
            raise Corrupt(f"image file {path}: missing; build the version again") from error
        except OSError as error:
            raise Corrupt(
                f"image file {path}: cannot be opened ({error}); build the version again"
            ) from error
    return len(files), total
