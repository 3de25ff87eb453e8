"""Reserved ports for processes that tests start.

The kernel reserves them, so that no other process gets them between two starts.
"""

from __future__ import annotations

import socket
from typing import Self


class ReservedPort:
    """A port of the loopback interface that stays reserved until `close`.

    The kernel picks it (port 0). The socket that holds it is bound and does not listen: with
    SO_REUSEADDR on both, a daemon may bind and listen on the same port, also after a restart. No
    other process gets the port: the kernel gives a bound port neither to a bind to port 0 nor to an
    outgoing connection, and it refuses a second listener while the first one listens.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]

    @property
    def address(self) -> str:
        """Return host:port."""
        return f"127.0.0.1:{self.number}"

    def close(self) -> None:
        """Release the port."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
