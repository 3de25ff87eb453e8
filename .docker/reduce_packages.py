"""Remove from an installation what a container does not use: ``reduce_packages.py FOLDER``.

Used by the Dockerfile. Nothing here is needed elsewhere, and no package of the project imports it.
"""

from __future__ import annotations

import hashlib
import shutil
import struct
import sys
from pathlib import Path

FOLDERS = (
    "**/tests",
    "**/include",
    "**/__pycache__",
    "pip",
    "pip-*",
    "setuptools",
    "setuptools-*",
    "pkg_resources",
    "numpy/distutils",
    "numpy/f2py",
    "pyarrow/src",
)
"""Folders without code that runs."""
FILES = (
    "**/*.pyi",
    "**/*.pyx",
    "**/*.pxd",
    "**/*.pxi",
    "**/*.h",
    "**/*.hpp",
    "**/*.a",
    "numpy/_core/*_tests.*.so",
    # Parts of Arrow that are imported separately, and that nothing here imports: Flight, its own
    # clients of object stores (fsspec reads these), ORC, HDFS, and its C++ tests.
    "pyarrow/lib*flight*.so*",
    "pyarrow/_flight.*.so",
    "pyarrow/libarrow_s3.so*",
    "pyarrow/_s3fs.*.so",
    "pyarrow/_orc.*.so",
    "pyarrow/_dataset_orc.*.so",
    "pyarrow/_hdfs.*.so",
    "pyarrow/_pyarrow_cpp_tests.*.so",
)
BOTOCORE_SERVICES = frozenset({"s3", "sts", "sso", "sso-oidc"})
"""Services of AWS with definitions that stay: S3, and those that issue credentials."""
_PROGRAM_HEADERS, _SECTION_HEADERS = 0x20, 0x28
"""Positions of two tables' offsets in the header of a 64-bit ELF file."""


def main(site_packages: Path) -> int:
    """Reduce the packages in a folder; return the exit status."""
    before = size_of(site_packages)
    for pattern in FOLDERS:
        for folder in list(site_packages.glob(pattern)):
            shutil.rmtree(folder, ignore_errors=True)
    for pattern in FILES:
        for file in list(site_packages.glob(pattern)):
            file.unlink(missing_ok=True)
    for service in (site_packages / "botocore" / "data").glob("*/"):
        if service.name not in BOTOCORE_SERVICES:
            shutil.rmtree(service)
    libraries = [path for path in site_packages.rglob("*.so*") if not path.is_symlink()]
    link_copies(libraries)
    for library in libraries:
        if not library.is_symlink():
            remove_symbols(library)
    print(f"{site_packages}: {before / 1e6:.0f} MB before, {size_of(site_packages) / 1e6:.0f} now")
    return 0


def size_of(folder: Path) -> int:
    """Return the bytes of the files below a folder."""
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink())


def link_copies(files: list[Path]) -> None:
    """Replace files that are equal to another one in their folder by symbolic links.

    Wheels have no links, so they contain a library once for each of its names. The name that stays
    is the longest, which has the full version.
    """
    known: dict[tuple[Path, bytes], Path] = {}
    for file in sorted(files, key=lambda path: (-len(path.name), path)):
        key = (file.parent, hashlib.sha256(file.read_bytes()).digest())
        if key in known:
            file.unlink()
            file.symlink_to(known[key].name)
        else:
            known[key] = file


def remove_symbols(path: Path) -> None:
    """Remove the end of a library that is not loaded: symbol tables and debugging information.

    A library is loaded as its program headers say. Everything after the last segment serves tools
    only, and so does the table of sections, which is removed with it.
    """
    data = path.read_bytes()
    if data[:5] != b"\x7fELF\x02" or data[5:6] != b"\x01":  # 64 bits, little endian
        return
    (table,) = struct.unpack_from("<Q", data, _PROGRAM_HEADERS)
    entry_size, count = struct.unpack_from("<HH", data, 0x36)
    end = table + entry_size * count
    for i in range(count):
        offset, _, _, size = struct.unpack_from("<QQQQ", data, table + i * entry_size + 8)
        end = max(end, offset + size)
    (sections,) = struct.unpack_from("<Q", data, _SECTION_HEADERS)
    if not sections >= end > 0:  # the table of sections lies between segments: leave it
        return
    reduced = bytearray(data[:end])
    struct.pack_into("<Q", reduced, _SECTION_HEADERS, 0)
    struct.pack_into("<HH", reduced, 0x3C, 0, 0)  # the number of sections, and that of their names
    path.write_bytes(reduced)


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
