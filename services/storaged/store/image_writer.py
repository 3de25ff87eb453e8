"""Writer of images: mapped, appended and linked files, made one image by a final manifest.

The manifest is written atomically. Mapped pages belong to the page cache and not to the process, so
a build may fill files far larger than its memory limit.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from asterism_io.durable_files import make_folder, sync_folder, write_durably
from storaged.store.checksums import CRC_BYTES, MANIFEST
from storaged.store.image import FORMAT
from storaged.store.os_errors import allocate


class AppendFile:
    """A file of rows that grows at its end."""

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._file: BinaryIO = path.open("xb")
        self._dtype = np.dtype(dtype)
        self.rows = 0

    def append(self, values: NDArray[Any]) -> None:
        """Append one-dimensional ``values``."""
        self._file.write(np.ascontiguousarray(values, self._dtype).data)
        self.rows += len(values)

    def close(self) -> None:
        """Close the file; no more rows can be appended."""
        self._file.close()


class ArrayFiles:
    """Flat little-endian files in one folder, by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._prefix = f"{folder}{os.sep}"
        self._prepare()
        self._arrays: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
        self._open: dict[str, AppendFile] = {}

    def _prepare(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        make_folder(self.folder)

    def path(self, name: str) -> Path:
        """Return the path of an array."""
        return Path(self._file(name))

    def _file(self, name: str) -> str:
        """Return the path of an array as a string; a build of small files makes many of them."""
        return f"{self._prefix}{name}.bin"

    def create(self, name: str, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
        """Create an array of zeros and return it, mapped and writable."""
        self._arrays[name] = (np.dtype(dtype), shape)
        with open(self._file(name), "xb") as file:
            allocate(file, np.dtype(dtype).itemsize * int(np.prod(shape, dtype=np.int64)))
        return self.map(name)

    def create_append(self, name: str, dtype: DTypeLike) -> AppendFile:
        """Create a file to append to; its shape is known once it is mapped."""
        self._arrays[name] = (np.dtype(dtype), (-1,))
        self._open[name] = AppendFile(self.path(name), dtype)
        return self._open[name]

    def map(self, name: str) -> NDArray[Any]:
        """Return an array as a writable ndarray over the mapped file."""
        dtype, shape = self._closed_entry(name)
        if 0 in shape:
            return np.zeros(shape, dtype)
        # A Path would make NumPy resolve it, link by link.
        return np.memmap(self._file(name), dtype, "r+", shape=shape).view(np.ndarray)

    def truncate(self, name: str, rows: int) -> None:
        """Keep the first ``rows`` rows; earlier mappings must not be used beyond them."""
        dtype, shape = self._arrays[name]
        self._arrays[name] = (dtype, (rows, *shape[1:]))
        os.truncate(
            self._file(name), dtype.itemsize * int(np.prod((rows, *shape[1:]), dtype=np.int64))
        )

    def remove(self, name: str) -> None:
        """Delete an array and free its disk space."""
        self._closed_entry(name)
        del self._arrays[name]
        os.unlink(self._file(name))

    def take_over(self, other: ArrayFiles, name: str, as_name: str) -> None:
        """Move an array here from another folder of the same file system."""
        self._arrays[as_name] = other._closed_entry(name)
        del other._arrays[name]
        other.path(name).rename(self.path(as_name))

    def close(self) -> None:
        """Close the files that are open for appending."""
        for stream in self._open.values():
            stream.close()
        self._open.clear()

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def _closed_entry(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        dtype, shape = self._arrays[name]
        if name in self._open:
            stream = self._open.pop(name)
            stream.close()
            shape = (stream.rows,)
            self._arrays[name] = (dtype, shape)
        return dtype, shape


FileEntry = Mapping[str, Any]
"""Manifest entry of a file: its dtype, its shape, and the crc32 of each mebibyte."""


class ImageWriter(ArrayFiles):
    """The files of a partition's image. Nothing is valid before `finish`.

    Parameters
    ----------
    folder : Path
    entries : mapping
        Results of `seal` for files of an earlier attempt to keep; all other files are deleted.
    """

    def __init__(
        self, folder: Path, entries: Mapping[str, FileEntry] = MappingProxyType({})
    ) -> None:
        self._entries = dict(entries)
        self._linked: set[str] = set()
        super().__init__(folder)
        self._arrays = {
            name: (np.dtype(entry["dtype"]), tuple(entry["shape"]))
            for name, entry in entries.items()
        }

    def _prepare(self) -> None:
        make_folder(self.folder)
        sealed_paths = {self.path(name) for name in self._entries}
        for path in self.folder.iterdir():
            if path not in sealed_paths:
                path.unlink()

    @property
    def file_entries(self) -> Mapping[str, FileEntry]:
        """Manifest entries of the sealed files; after `finish`, of all files."""
        return self._entries

    def link(self, folder: Path, name: str, entry: FileEntry) -> None:
        """Share a sealed file of the image in ``folder``, in the same file system, by a hard link.

        Raises
        ------
        OSError
            The file does not exist, cannot be linked, or a file of that name exists here.
        ValueError
            The size of the file is not that of its entry.
        """
        dtype, shape = np.dtype(entry["dtype"]), tuple(int(extent) for extent in entry["shape"])
        os.link(folder / f"{name}.bin", self._file(name))
        self._arrays[name], self._entries[name] = (dtype, shape), entry
        self._linked.add(name)
        size, expected = self.size(name), dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        if size != expected:
            self.remove(name)
            raise ValueError(
                f"{folder / name}.bin has {size} bytes: expected {expected}, as when it was sealed"
            )

    def map(self, name: str) -> NDArray[Any]:
        """Return an array, mapped; a linked one is read-only, because images share its file."""
        if name not in self._linked:
            return super().map(name)
        dtype, shape = self._arrays[name]
        return (
            np.zeros(shape, dtype)
            if 0 in shape
            else np.memmap(self._file(name), dtype, "r", shape=shape).view(np.ndarray)
        )

    def remove(self, name: str) -> None:
        """Delete an array; images that share its file keep it."""
        super().remove(name)
        self._entries.pop(name, None)
        self._linked.discard(name)

    def size(self, name: str) -> int:
        """Return the size of an array in bytes."""
        return os.stat(self._file(name)).st_size

    def seal(self) -> dict[str, FileEntry]:
        """Make every unsealed file durable and final; return the manifest entries of the files."""
        entries: dict[str, FileEntry] = {}
        for name in sorted(self._arrays.keys() - self._entries.keys()):
            dtype, shape = self._closed_entry(name)
            entries[name] = {
                "dtype": dtype.name,
                "shape": list(shape),
                "crc32": _sync_file(self._file(name)),
            }
        if entries:
            sync_folder(self.folder)
        self._entries |= entries
        return entries

    def finish(self, description: Mapping[str, Any]) -> str:
        """Make all files durable, then write the manifest; return the digest of the image.

        Parameters
        ----------
        description : mapping
            Content of the manifest in addition to its files: the records of the partition. It must
            not have anything that differs between builds of the same content (times, jobs,
            versions, hosts).

        Returns
        -------
        str
            sha256 of the manifest, in hexadecimal digits.
        """
        self.seal()
        manifest = json.dumps(
            {"format": FORMAT, **description, "files": self._entries},
            sort_keys=True,
            separators=(",", ":"),
        ).encode()
        write_durably(self.folder / MANIFEST, manifest)
        return hashlib.sha256(manifest).hexdigest()


def is_intact(folder: Path, name: str, entry: FileEntry) -> bool:
    """Return whether a sealed file is unaltered."""
    path = folder / f"{name}.bin"
    try:
        if path.stat().st_size != np.dtype(entry["dtype"]).itemsize * int(
            np.prod(entry["shape"], dtype=np.int64)
        ):
            return False
        with path.open("rb") as file:
            return all(zlib.crc32(file.read(CRC_BYTES)) == crc for crc in entry["crc32"])
    except OSError:
        return False


def _sync_file(path: str) -> list[int]:
    """Write a file to disk durably; return the crc32 of each of its mebibytes."""
    checksums = []
    with open(path, "rb") as file:
        while chunk := file.read(CRC_BYTES):
            checksums.append(zlib.crc32(chunk))
        os.fsync(file.fileno())
    return checksums
