"""Key of a cluster: a file that all its daemons have, with which they sign and verify tickets.

The file has one key per line, in base64, of at least 32 random bytes. The first line signs and all
lines verify, so a key is replaced without a pause: add the new one as the last line everywhere,
move it to the first everywhere, and remove the old one after the validity of its tickets.
"""

from __future__ import annotations

import base64
import binascii
import math
import os
import secrets
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from asterism_access.credentials import session_tokens
from asterism_access.credentials.session_tokens import SessionContent, VerifiedSession
from asterism_access.credentials.tickets import Ticket, TicketKind, new_ticket_id, sign, verify
from asterism_access.principals import Principal
from asterism_access.roles import EVERY_SPACE, Role
from asterism_io.certificate_files import FileReloader
from asterism_proto.errors import InvalidRequest

DAEMON_TICKET_S = 300
"""Seconds for which a daemon's ticket for itself is valid."""
CLIENT_TICKET_S = 300
"""Seconds for which a client's ticket for storageds is valid."""
_RENEWAL_S = 60
"""Age in seconds at which a daemon's ticket is replaced."""
_LOOK_S = 1.0
"""Seconds between two looks at the file."""
_MIN_KEY_BYTES = 32
_MAX_KEYS = 16
_MAX_FILE_BYTES = 64 * 1024
_FORBIDDEN_MODE = stat.S_IWGRP | stat.S_IRWXO


class ClusterKey:
    """Keys in a file, read again after it changes.

    A changed file that cannot be used is logged once, and the old keys stay. Threads may share an
    object.

    Parameters
    ----------
    path : str
        File of the setting ``cluster_key_file``.
    clock : callable
        Returns seconds since 1970.

    Raises
    ------
    InvalidRequest
        If the file cannot be used: it is missing, others can read it, or a line is not a key.
    """

    def __init__(self, path: str, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._files = FileReloader(
            [path],
            lambda: _read_keys(path),
            events="cluster_key",
            interval_s=_LOOK_S,
            clock=clock,
        )
        self._daemon_tickets: dict[str, tuple[str, float, int]] = {}

    def __repr__(self) -> str:
        return f"ClusterKey({self._path!r})"

    @property
    def revision(self) -> int:
        """Number that grows when the keys change; the file is looked at once per second."""
        return self._files.current()[1]

    def sign(self, payload: Ticket) -> str:
        """Return a ticket as clients send it.

        Raises
        ------
        InvalidRequest
            If the name cannot be that of a principal, or the ticket has too many roles.
        """
        return sign(payload, self._files.current()[0][0])

    def verify(self, ticket: str) -> Ticket:
        """Return the content of a ticket.

        Raises
        ------
        Unauthenticated
            If the text is not a ticket, none of the keys signed it, or it has expired.
        """
        return verify(ticket, self._files.current()[0], self._clock())

    def sign_session(self, session: SessionContent) -> str:
        """Return a session as a browser keeps it.

        Raises
        ------
        InvalidRequest
            If its credential names too many roles.
        """
        return session_tokens.sign(session, self._files.current()[0][0])

    def verify_session(self, text: str) -> VerifiedSession:
        """Return the content of a session.

        Raises
        ------
        Unauthenticated
            If the text is not a session, none of the keys signed it, or it has expired.
        """
        return session_tokens.verify(text, self._files.current()[0], self._clock())

    def daemon_ticket(self, role: str) -> str:
        """Return a ticket of this daemon, valid for at least four minutes.

        Parameters
        ----------
        role : {"metad", "storaged", "graphd"}
        """
        now, revision = self._clock(), self._files.current()[1]
        held = self._daemon_tickets.get(role)
        if held is not None and held[2] == revision and 0 <= now - held[1] < _RENEWAL_S:
            return held[0]
        text = self.sign(self._ticket(role, TicketKind.DAEMON, {}, {}, DAEMON_TICKET_S))
        self._daemon_tickets[role] = (text, now, revision)
        return text

    def client_ticket(self, principal: Principal, spaces: Mapping[int, str]) -> str:
        """Return a ticket with which a principal calls storageds, valid for `CLIENT_TICKET_S`.

        Parameters
        ----------
        principal : Principal
            Caller, authenticated without a client's ticket: see `Authenticator`.
        spaces : mapping of int to str
            Name by id of the spaces of the ticket. Left out are those without a role, or with none
            above the role in every space.

        Raises
        ------
        InvalidRequest
            If the principal has roles in too many of the spaces.
        """
        everywhere = principal.role_in(EVERY_SPACE)
        held = {space_id: principal.role_in(name) for space_id, name in spaces.items()}
        return self.sign(
            self._ticket(
                principal.name,
                TicketKind.CLIENT,
                {} if everywhere is None else {EVERY_SPACE: everywhere},
                {
                    space_id: role
                    for space_id, role in held.items()
                    if role is not None and role > (everywhere or 0)
                },
                CLIENT_TICKET_S,
            )
        )

    def root_ticket(self, valid_s: float, name: str = "root") -> str:
        """Return a ticket of an administrator of the cluster, valid for some seconds."""
        return self.sign(
            self._ticket(name, TicketKind.ROOT, {EVERY_SPACE: Role.ADMIN}, {}, valid_s)
        )

    def _ticket(
        self,
        name: str,
        kind: TicketKind,
        roles: Mapping[str, Role],
        roles_by_id: Mapping[int, Role],
        valid_s: float,
    ) -> Ticket:
        return Ticket(
            name=name,
            kind=kind,
            roles=roles,
            roles_by_id=roles_by_id,
            expires_s=math.ceil(self._clock() + valid_s),
            ticket_id=new_ticket_id(),
        )


def create_key_file(path: Path) -> None:
    """Write a new file with one random key, which only its owner can read.

    Raises
    ------
    InvalidRequest
        If the file exists or cannot be written.
    """
    line = base64.b64encode(secrets.token_bytes(48)) + b"\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(line)
    except OSError as error:
        raise InvalidRequest(
            f"cluster_key_file={str(path)!r}: expected a new file in a folder that can be written "
            f"({(error.strerror or str(error)).lower()})"
        ) from error


def _read_keys(path: str) -> tuple[bytes, ...]:
    lines = [line.strip() for line in _read_private(path).split(b"\n")]
    numbers = [number for number, line in enumerate(lines, 1) if line and line[:1] != b"#"]
    if not 1 <= len(numbers) <= _MAX_KEYS:
        raise InvalidRequest(
            f"cluster_key_file={path!r}: expected 1 to {_MAX_KEYS} keys, not {len(numbers)}; make "
            "one with `openssl rand -base64 48`"
        )
    return tuple(_parse_key(lines[number - 1], number, path) for number in numbers)


def _parse_key(line: bytes, number: int, path: str) -> bytes:
    try:
        key = base64.b64decode(line, validate=True)
    except binascii.Error:
        key = b""
    if len(key) < _MIN_KEY_BYTES:
        raise InvalidRequest(
            f"cluster_key_file={path!r}: expected in line {number} at least {_MIN_KEY_BYTES} "
            "random bytes in base64; make them with `openssl rand -base64 48`"
        )
    return key


def _read_private(path: str) -> bytes:
    """Return the content of a file, which users without rights to it cannot read or change."""
    try:
        # Opening a pipe does not wait for its other end.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE_BYTES:
                raise InvalidRequest(
                    f"cluster_key_file={path!r}: expected a file of at most {_MAX_FILE_BYTES} bytes"
                )
            if status.st_mode & _FORBIDDEN_MODE:
                raise InvalidRequest(
                    f"cluster_key_file={path!r}: expected a file that others cannot read or change "
                    f"(mode {stat.S_IMODE(status.st_mode):04o}); run `chmod 600 {path}`"
                )
            return file.read(_MAX_FILE_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidRequest(
            f"cluster_key_file={path!r}: expected a readable file ({reason.lower()})"
        ) from error
