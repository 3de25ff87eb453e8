"""A proxy between two daemons that a test can interrupt in either direction."""

from __future__ import annotations

import contextlib
import select
import socket
import threading

from tests.kit.waiting import HANG_S

_CHUNK = 1 << 16
_POLL_S = 0.02


class CuttableProxy:
    """A TCP port that forwards to another one.

    Data sent in a blocked direction waits, as on a network that drops packets. It is forwarded when
    the direction is unblocked, unless an end has closed the connection by then.

    Parameters
    ----------
    target : str
        Address to forward to.
    listen_port : int
        Port to listen on; 0 (the default) is a free one.
    """

    def __init__(self, target: str, listen_port: int = 0) -> None:
        host, port = target.rsplit(":", 1)
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", listen_port))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.blocked: set[str] = set()
        """Blocked directions: "there" (to the target) and "back" (from it)."""
        self.forwarded_bytes = 0
        """Number of bytes forwarded to the target."""
        self._stopped = threading.Event()
        self._accept_thread = threading.Thread(target=self._accept, name="line", daemon=True)
        self._accept_thread.start()

    def close(self) -> None:
        """Close every connection."""
        self._stopped.set()
        self._accept_thread.join(HANG_S)  # the thread accepts connections until then
        self._listener.close()

    def _accept(self) -> None:
        while not self._stopped.is_set():
            if not select.select([self._listener], [], [], _POLL_S)[0]:
                continue
            with contextlib.suppress(OSError):
                local, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(local,), daemon=True).start()

    def _serve(self, local: socket.socket) -> None:
        with local:
            try:
                remote = socket.create_connection(self._target, 5)
            except OSError:
                return
            with remote:
                return_thread = threading.Thread(
                    target=self._forward, args=(remote, local, "back"), daemon=True
                )
                return_thread.start()
                self._forward(local, remote, "there")
                return_thread.join()

    def _forward(self, source: socket.socket, sink: socket.socket, direction: str) -> None:
        with contextlib.suppress(OSError):
            while not self._stopped.is_set():
                if direction in self.blocked or not select.select([source], [], [], _POLL_S)[0]:
                    self._stopped.wait(_POLL_S if direction in self.blocked else 0)
                    continue
                data = source.recv(_CHUNK)
                if not data:
                    break
                while direction in self.blocked and not self._stopped.is_set():
                    self._stopped.wait(_POLL_S)
                sink.sendall(data)
                self.forwarded_bytes += len(data) if direction == "there" else 0
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
