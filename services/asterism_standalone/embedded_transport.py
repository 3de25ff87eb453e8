"""Transport of an embedded client.

It calls the service in its process. A copy in another process opens the same folder for reading.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asterism_daemonkit.malloc_tuning import keep_freed_memory
from asterism_daemonkit.rpc.call_context import Handler
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_model.prices import DEFAULT_LIMITS, Limits
from asterism_proto.methods import Method
from asterism_proto.transport import Content
from asterism_standalone.read_only import ReadOnlyService


class FolderTransport(LocalTransport):
    """Transport to the service that has a folder open in this process.

    After a fork or unpickling in another process, the first call opens the folder for reading,
    because the threads and locks of the service do not exist there.

    Parameters
    ----------
    folder : Path
        Folder that a copy opens.
    handlers : mapping
        Handlers of the service by method path.
    limits : Limits, optional
        Limits of the service, which also apply to a copy's requests.
    """

    def __init__(
        self, folder: Path, handlers: Mapping[str, Handler], limits: Limits = DEFAULT_LIMITS
    ) -> None:
        super().__init__(handlers)
        keep_freed_memory()
        self._folder, self._limits = folder.absolute(), limits
        self._owner_pid: int | None = os.getpid()
        """Process that the handlers belong to."""
        self._lock = threading.Lock()
        self._reader: ReadOnlyService | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self._folder, "limits": self._limits}

    def __setstate__(self, state: dict[str, Any]) -> None:
        FolderTransport.__init__(self, state["folder"], {}, state["limits"])
        self._owner_pid = None

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """Return the handler's reply, or raise its error."""
        if self._owner_pid != os.getpid():
            self._open_reader()
        return super().call(method, request, timeout_s)

    def close(self) -> None:
        """Release the folder, if a copy has opened it."""
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
