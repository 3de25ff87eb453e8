"""Where this process caches compiled kernels, and the record that the cache is complete."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from pathlib import Path

import numba
from numba.core.registry import cpu_target

from asterism_graphkit.compile import jit
from asterism_graphkit.random import rng


def cache_folder() -> Path:
    """Return the folder with the compiled kernels of `asterism_graphkit.random`.

    Every package has its own; all of them are below ``NUMBA_CACHE_DIR`` if that is set.
    """
    return Path(rng.mix64._cache.cache_path)  # type: ignore[attr-defined]


def cache_key(packages: Sequence[Path]) -> str:
    """Return a key that changes whenever kernels must be compiled again.

    It depends on the sources in the folders ``packages``, the processor, Numba and Python.
    """
    target = cpu_target.target_context.codegen().magic_tuple()
    content = [
        *(jit.source_digest(folder, "**/*.py") for folder in packages),
        repr((target, numba.__version__, platform.python_version(), jit.CHECK_BOUNDS)).encode(),
    ]
    return hashlib.sha256(b"".join(content)).hexdigest()[:16]
