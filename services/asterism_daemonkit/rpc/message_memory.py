"""Memory of the requests that a port has received: a limit, so that callers cannot fill it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from asterism_proto.errors import Busy

_SMALL_BYTES = 1 << 20
"""Size up to which a message is not counted, so that small calls pass when large ones wait."""


class MessageMemory:
    """Memory of large messages that wait for their turn, or are served.

    Parameters
    ----------
    limit_bytes : int
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self.taken_bytes = 0
        """Bytes that are reserved."""

    def reserve(self, size: int) -> AbstractContextManager[None]:
        """Reserve the memory of a message while the body of a statement runs.

        Raises
        ------
        Busy
            If large messages take all of it.
        """
        return nullcontext() if size <= _SMALL_BYTES else self._reserve(size)

    @contextmanager
    def _reserve(self, size: int) -> Iterator[None]:
        with self._lock:
            if self.taken_bytes and self.taken_bytes + size > self._limit_bytes:
                raise Busy(
                    f"the requests in progress take {self.taken_bytes >> 20} MiB, of at most "
                    f"{self._limit_bytes >> 20}; try again, send smaller requests, or raise "
                    "message_memory_mib"
                )
            self.taken_bytes += size
        try:
            yield
        finally:
            with self._lock:
                self.taken_bytes -= size
