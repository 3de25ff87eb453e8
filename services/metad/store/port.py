"""Port of metad's store: an ordered map with atomic, durable writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

Changes = Mapping[bytes, bytes | None]
"""One write: key -> value to set, or None to delete the key."""


class MetaStore(Protocol):
    """An ordered map of byte strings.

    Notes
    -----
    After ``write`` returns, its changes survive the end of the process and of the machine. After
    it raises, or before it returns, a later reader finds either all of its changes or none.
    Implementations are thread-safe. After ``close``, every call raises Unavailable, except
    ``close``, which may be called again."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key.

        Parameters
        ----------
        key : bytes

        Returns
        -------
        bytes or None
            None if the key does not exist.
        """

    def range(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """Return all pairs with a key prefix, sorted by key.

        Parameters
        ----------
        prefix : bytes

        Returns
        -------
        list of (bytes, bytes)

        Raises
        ------
        Corrupt
            If some of the pairs cannot be read; never a partial result.
        """

    def write(self, changes: Changes) -> None:
        """Apply changes atomically and durably.

        Parameters
        ----------
        changes : mapping of bytes to bytes or None
            Value to set for each key; None deletes the key.

        Raises
        ------
        Unavailable
            If the write failed; a later reader finds all of the changes or none.
        """

    def close(self) -> None:
        """Release all resources of the store."""
