"""Compiler of PyG's C++ samplers, `torch-sparse` and its dependencies, from source.

It installs them into the environment of the running Python.

    .venv-pyg/bin/python tests/kit/pyg/compile_samplers.py

The index has their sources and no wheels. Nearly all of a file's time goes into torch's headers,
and they have some dozens of files: as one file each, they take two minutes instead of the better
part of an hour. Needs g++, and torch and setuptools in the environment."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from torch.utils import cpp_extension

PACKAGES = {"torch_scatter": "2.1.2", "torch_sparse": "0.6.18"}
OPTIMIZATION = {"torch_scatter": "-O1", "torch_sparse": "-O3"}
"""Benchmarks measure only the samplers, which are in torch_sparse."""
TIMEOUT_S = 1800
SITE = Path(sysconfig.get_paths()["purelib"])


def join_sources(sources: Path) -> Path:
    """Return one file with all sources of a package; each registers operators under its name."""
    files = [*sorted(sources.glob("*.cpp")), *sorted(sources.glob("cpu/*.cpp"))]
    lines = []
    for file in files:
        lines += [
            f"#define registry registry_{file.stem}",
            f'#include "{file.relative_to(sources)}"',
            "#undef registry",
        ]
    combined = sources / "whole.cpp"
    combined.write_text("\n".join(lines) + "\n")
    return combined


def compile_package(name: str, folder: Path) -> None:
    """Install one package from source."""
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "download",
        "--quiet",
        "--no-deps",
        "--no-binary",
        ":all:",
    ]
    subprocess.run(
        [*pip, "--no-build-isolation", "--dest", str(folder), f"{name}=={PACKAGES[name]}"],
        check=True,
        timeout=TIMEOUT_S,
    )
    with tarfile.open(next(folder.glob(f"{name}-*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    root = next(path for path in folder.glob(f"{name}-*") if path.is_dir())
    libraries = [f"_{file.stem}_cpu.so" for file in sorted((root / "csrc").glob("*.cpp"))]
    includes = [root / "csrc", *(root / "third_party").glob("*")]
    system = [*cpp_extension.include_paths(), sysconfig.get_paths()["include"]]
    paths = cpp_extension.library_paths()
    library_path = root / name / libraries[0]
    command = [
        "g++",
        "-std=c++20",
        OPTIMIZATION[name],
        "-fPIC",
        "-shared",
        "-w",
        "-fopenmp",
        "-DAT_PARALLEL_OPENMP",
        str(join_sources(root / "csrc")),
        "-o",
        str(library_path),
    ]
    command += [
        *(f"-I{path}" for path in includes),
        *(argument for path in system for argument in ("-isystem", str(path))),
    ]
    command += [
        *(f"-L{path}" for path in paths),
        *(f"-Wl,-rpath,{path}" for path in paths),
        "-ltorch",
        "-ltorch_cpu",
        "-lc10",
    ]
    subprocess.run(command, check=True, timeout=TIMEOUT_S)
    for library in libraries[1:]:  # the packages load each of them; all are the same library
        (root / name / library).symlink_to(libraries[0])
    (root / name).rename(SITE / name)


def main() -> None:
    """Compile the packages that are missing."""
    with tempfile.TemporaryDirectory(dir=SITE) as folder, ThreadPoolExecutor(2) as pool:
        list(
            pool.map(
                lambda name: compile_package(name, Path(folder)),
                (name for name in PACKAGES if not (SITE / name).exists()),
            )
        )


if __name__ == "__main__":
    main()
