"""A line between two daemons that a test can cut in either direction, and mend again."""

from __future__ import annotations

import contextlib
import select
import socket
import threading

from tests.kit.waiting import HANG_S

_CHUNK = 1 << 16
_LOOK_S = 0.02


class Line:
    """A TCP port that leads to another one.

    What is sent into a direction that is cut waits, as it does on a network that drops packets: it goes on when the
    line is mended, unless somebody has given the connection up by then.
    """

    def __init__(self, target: str) -> None:
        host, port = target.rsplit(":", 1)
        self._target = (host, int(port))
        self._door = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._door.getsockname()[1]}"
        self.cut: set[str] = set()
        """Of "there" (to the target) and "back" (from it)."""
        self.carried = 0
        """Bytes that went to the target."""
        self._over = threading.Event()
        self._accepting = threading.Thread(target=self._accept, name="line", daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """End every connection."""
        self._over.set()
        self._accepting.join(HANG_S)  # it looks at the door until then
        self._door.close()

    def _accept(self) -> None:
        while not self._over.is_set():
            if not select.select([self._door], [], [], _LOOK_S)[0]:
                continue
            with contextlib.suppress(OSError):
                near, _ = self._door.accept()
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with near:
            try:
                far = socket.create_connection(self._target, 5)
            except OSError:
                return
            with far:
                back = threading.Thread(target=self._carry, args=(far, near, "back"), daemon=True)
                back.start()
                self._carry(near, far, "there")
                back.join()

    def _carry(self, source: socket.socket, sink: socket.socket, direction: str) -> None:
        with contextlib.suppress(OSError):
            while not self._over.is_set():
                if direction in self.cut or not select.select([source], [], [], _LOOK_S)[0]:
                    self._over.wait(_LOOK_S if direction in self.cut else 0)
                    continue
                data = source.recv(_CHUNK)
                if not data:
                    break
                while direction in self.cut and not self._over.is_set():
                    self._over.wait(_LOOK_S)
                sink.sendall(data)
                self.carried += len(data) if direction == "there" else 0
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
