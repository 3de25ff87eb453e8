"""What an embedded client calls: the service in its process, or, in a copy of the client elsewhere,
a reader of the same folder.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asterism_daemonkit.calls import Handler, LocalTransport
from asterism_daemonkit.malloc_tuning import keep_freed_memory
from asterism_model.prices import DEFAULT_LIMITS, Limits
from asterism_proto.methods import Method
from asterism_proto.transport import Content
from asterism_standalone.read_only import ReadOnlyService


class FolderTransport(LocalTransport):
    """Calls to the service that has a folder open in this process.

    In another one, that was forked or that it was pickled into, its first call opens the folder for
    reading: the threads and locks of the service are not there.

    Parameters
    ----------
    folder : Path
        What a copy opens.
    handlers : mapping
        The service's, by method path.
    limits : Limits, optional
        Of the service, for a copy's requests.
    """

    def __init__(
        self, folder: Path, handlers: Mapping[str, Handler], limits: Limits = DEFAULT_LIMITS
    ) -> None:
        super().__init__(handlers)
        keep_freed_memory()
        self._folder, self._limits = folder.absolute(), limits
        self._owner_pid: int | None = os.getpid()
        """The process that the handlers are of."""
        self._lock = threading.Lock()
        self._reader: ReadOnlyService | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self._folder, "limits": self._limits}

    def __setstate__(self, state: dict[str, Any]) -> None:
        FolderTransport.__init__(self, state["folder"], {}, state["limits"])
        self._owner_pid = None

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """The handler's own reply, or its own error."""
        if self._owner_pid != os.getpid():
            self._open_reader()
        return super().call(method, request, timeout_s)

    def close(self) -> None:
        """Let go of the folder, where a copy has it open."""
        with self._lock:
            if self._reader is not None and self._owner_pid == os.getpid():
                self._reader.stop()
            self._reader = None

    def _open_reader(self) -> None:
        with self._lock:
            if self._owner_pid == os.getpid():
                return
            reader = ReadOnlyService(self._folder, self._limits)
            reader.start()
            self._reader, self._handlers, self._owner_pid = reader, reader.handlers, os.getpid()
