"""What metad asks of a store: few keys, ordered; writes that are all or nothing, and durable when
they return.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

Changes = Mapping[bytes, bytes | None]
"""One write: a value puts its key, None deletes it."""


class MetaStore(Protocol):
    """An ordered map of byte strings.

    Notes
    -----
    After ``write`` returns, its changes survive the end of the process and of the machine; after it
    raises, or before it returns, a later reader finds either all of them or none. Thread-safe.
    After ``close`` every call raises Unavailable; ``close`` itself may be called again."""

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``; None if there is none."""

    def range(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """Every (key, value) whose key begins with ``prefix``, by key; Corrupt rather than a part
        of them.
        """

    def write(self, changes: Changes) -> None:
        """Make ``changes``, together and durably."""

    def close(self) -> None:
        """Let go of what it holds."""
