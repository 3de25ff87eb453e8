"""An SFTP server over one folder, in its own thread, in place of a host's sshd."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import paramiko

from tests.kit.waiting import HANG_S

PASSWORD = "hunter2hunter2"


class _Login(paramiko.ServerInterface):
    def check_auth_password(self, username: str, password: str) -> int:
        is_valid = (username, password) == ("me", PASSWORD)
        return paramiko.common.AUTH_SUCCESSFUL if is_valid else paramiko.common.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return (
            paramiko.common.OPEN_SUCCEEDED
            if kind == "session"
            else paramiko.common.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED
        )


class _Files(paramiko.SFTPServerInterface):
    """Files below one folder, which is the root for clients."""

    def __init__(self, server: Any, *arguments: Any, root: Path, **options: Any) -> None:
        super().__init__(server, *arguments, **options)
        self._root = root

    def _path(self, path: str) -> str:
        return f"{self._root}{self.canonicalize(path)}"

    def _with_status(self, path: str, operation: Any) -> Any:
        try:
            return operation(self._path(path))
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)

    def stat(self, path: str) -> Any:
        return self._with_status(path, lambda p: paramiko.SFTPAttributes.from_stat(os.stat(p)))

    lstat = stat

    def list_folder(self, path: str) -> Any:
        return self._with_status(
            path,
            lambda p: [
                paramiko.SFTPAttributes.from_stat(entry.stat(), entry.name)
                for entry in os.scandir(p)
            ],
        )

    def mkdir(self, path: str, attr: Any) -> Any:
        return self._with_status(path, lambda p: os.mkdir(p) or paramiko.SFTP_OK)

    def remove(self, path: str) -> Any:
        return self._with_status(path, lambda p: os.remove(p) or paramiko.SFTP_OK)

    def rename(self, oldpath: str, newpath: str) -> Any:
        return self._with_status(
            oldpath, lambda p: os.rename(p, self._path(newpath)) or paramiko.SFTP_OK
        )

    posix_rename = rename

    def open(self, path: str, flags: int, attr: Any) -> Any:
        def open_handle(p: str) -> Any:
            handle = paramiko.SFTPHandle(flags)
            mode = {os.O_RDONLY: "rb", os.O_WRONLY: "wb", os.O_RDWR: "r+b"}[flags & os.O_ACCMODE]
            file = os.fdopen(os.open(p, flags, 0o644), mode, buffering=0)
            handle.readfile = handle.writefile = file
            return handle

        return self._with_status(path, open_handle)


class SftpServer:
    """The server, which stops after the block.

    Parameters
    ----------
    root : Path
        Folder that clients see as ``/``.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._key = paramiko.ECDSAKey.generate()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._transports: list[paramiko.Transport] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for transport in self._transports:
            transport.close()
        self._thread.join(HANG_S)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            transport = paramiko.Transport(connection)
            transport.add_server_key(self._key)
            transport.set_subsystem_handler("sftp", paramiko.SFTPServer, _Files, root=self._root)
            self._transports.append(transport)
            transport.start_server(server=_Login())
