"""Imports of a command without the optional packages that its libraries would load.

Pandas for Arrow, and cffi and SciPy for Numba, take 0.6 s of a core where they are installed, and
no command uses them through these libraries. A program that imports Asterism keeps them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from types import ModuleType

NUMBA_EXTRAS = ("cffi", "scipy", "scipy.linalg")
"""Packages that Numba imports for pointers of C functions and for linear algebra."""


class _Hiding(MetaPathFinder):
    """First finder of imports, which finds that some packages are missing.

    ``None`` in ``sys.modules`` would not do: modules of Cython take it for the package.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        """Raise ModuleNotFoundError for a hidden package."""
        if fullname in self._names:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


@contextmanager
def packages_hidden(*names: str) -> Iterator[None]:
    """Let imports of packages fail within the block, unless they are imported already.

    Parameters
    ----------
    *names : str
        Names of the packages.
    """
    hiding = _Hiding(names)
    sys.meta_path.insert(0, hiding)
    try:
        yield
    finally:
        sys.meta_path.remove(hiding)


def import_arrow_without_pandas() -> None:
    """Let Arrow, if it is installed, find that pandas is missing, which it looks up once."""
    with packages_hidden("pandas"):
        try:
            import pyarrow
        except ImportError:  # the command reports the missing extra
            return
        pyarrow.scalar(0)
