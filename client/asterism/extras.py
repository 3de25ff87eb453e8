"""Optional parts of the client, and the error for a missing extra.

`asterism-graph` alone has what a trainer needs. Parts that need more packages, including those of
the server, import them within `required`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

OWN_PACKAGES = frozenset({"asterism", "asterism_proto", "asterism_model", "asterism_io"})
"""Packages that every install contains."""


class MissingExtra(ImportError):
    """Missing packages that an extra of `asterism-graph` installs.

    Attributes
    ----------
    extra : str
        Name of the extra.
    """

    def __init__(self, message: str, *, extra: str = "", name: str | None = None) -> None:
        super().__init__(message, name=name)
        self.extra = extra


@contextmanager
def required(extra: str, feature: str) -> Iterator[None]:
    """Convert failed imports of other packages into `MissingExtra`.

    Parameters
    ----------
    extra : str
        Extra that installs the packages imported within the block.
    feature : str
        Feature that needs them, in the user's terms, for the message.

    Raises
    ------
    MissingExtra
        If an import fails that is not one of the client's own.
    """
    try:
        yield
    except MissingExtra:
        raise
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] in OWN_PACKAGES:
            raise
        raise MissingExtra(
            f"{feature}: packages are missing; pip install 'asterism-graph[{extra}]' ({error})",
            extra=extra,
            name=error.name,
        ) from error
