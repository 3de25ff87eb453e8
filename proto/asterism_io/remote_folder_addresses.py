"""Addresses of remote folders: their grammar, and the allow-list of a daemon.

A daemon opens an address only after `AllowedAddresses.check` has accepted it. Addresses are
first converted to a canonical form, so the address that is checked is the one that is opened:
``FILE:/srv//a/../b`` becomes ``file:///srv/b``."""

from __future__ import annotations

import ipaddress
import os
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from asterism_io.remote_storage import redact
from asterism_proto.errors import InvalidRequest

PROTOCOLS = {
    "file": "file",
    "local": "file",
    "s3": "s3",
    "s3a": "s3",
    "sftp": "sftp",
    "ssh": "sftp",
}
"""Protocols that can be allowed, with their canonical names.

All others are refused, even if fsspec or its plug-ins know them."""
ALLOW_ALL = "*"
"""Value of `allowed_addresses` that allows every address of these protocols."""
MAX_LENGTH = 1024
"""Maximum number of characters of an address."""
SFTP_PORT = 22
_SHOWN = 160
"""Characters of an invalid address that are shown in a message."""

_SYNTAX = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?(.*)", re.DOTALL)
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,253}[A-Za-z0-9_])?")
_EXAMPLES = "as in file:///srv/exports, s3://bucket/folder or sftp://host/folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Address of a folder in canonical form; ``str`` returns its text, secrets included.

    Parameters
    ----------
    protocol : {"file", "s3", "sftp"}
    path : str
        Absolute and normalized, such as ``"/srv/exports"``. For s3, the key prefix after the
        bucket; ``"/"`` is the whole bucket.
    host : str
        Bucket of s3, host of sftp in lower case, empty for files.
    port : int
        Port of sftp.
    user, password : str
        Credentials of sftp as written in the address; empty if it has none.
    """

    protocol: str
    path: str
    host: str = ""
    port: int = 0
    user: str = ""
    password: str = ""

    def __str__(self) -> str:
        login = (
            self.user + (f":{self.password}" if self.password else "") + ("@" if self.user else "")
        )
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = f":{self.port}" if self.port not in (0, SFTP_PORT) else ""
        path = self.path if self.path != "/" or self.protocol == "file" else ""
        return f"{self.protocol}://{login}{host}{port}{path}"

    def redacted(self) -> str:
        """Return the text of the address without its secrets."""
        return redact(str(self))

    def resolved(self) -> Address:
        """Return the address with symbolic links of a local path resolved; others unchanged."""
        return replace(self, path=os.path.realpath(self.path)) if self.protocol == "file" else self

    def contains(self, other: Address) -> bool:
        """Return whether ``other`` is this folder or below it."""
        mine, theirs = (
            (self.protocol, self.host, self.port),
            (other.protocol, other.host, other.port),
        )
        return (
            mine == theirs and self.user in ("", other.user) and _is_within(other.path, self.path)
        )


def parse_address(text: str, *, field: str = "address", root: bool = False) -> Address:
    """Return an address in canonical form.

    Parameters
    ----------
    text : str
        Such as ``"file:///srv/exports"``, ``"s3://bucket/folder"`` or
        ``"sftp://user@host:22/folder"``.
    field : str
        Name of the field in messages.
    root : bool, default False
        Allow the root of a file system, a whole bucket or a whole host.

    Returns
    -------
    Address

    Raises
    ------
    InvalidRequest
        For another protocol, a chain of protocols, a relative path, percent-escapes, backslashes
        or
        control characters.
    """

    def syntax_error(expected: str) -> InvalidRequest:
        return InvalidRequest(f"{field}={redact(text)[:_SHOWN]!r}: expected {expected}")

    if len(text) > MAX_LENGTH:
        raise syntax_error(
            f"at most {MAX_LENGTH} characters, found {len(text)}; use a shorter address"
        )
    if not text.isprintable() or "\\" in text:
        raise syntax_error(
            f"a folder's address without backslashes and control characters, {_EXAMPLES}"
        )
    if "::" in text:
        raise syntax_error(
            f"a single protocol, {_EXAMPLES}; chained protocols ('::') are not accepted"
        )
    match = _SYNTAX.fullmatch(text)
    if match is None:
        raise syntax_error(f"a protocol and a folder, {_EXAMPLES}")
    protocol, rest = PROTOCOLS.get(match[1].lower(), ""), match[3]
    if not protocol:
        raise syntax_error(
            f"one of the protocols {', '.join(sorted(set(PROTOCOLS.values())))}, "
            f"{_EXAMPLES}; found {match[1][:40]!r}"
        )
    if protocol == "file":
        if not rest.startswith("/"):
            raise syntax_error("an absolute path, as in file:///srv/exports")
        address = Address(protocol=protocol, path=posixpath.normpath("/" + rest.lstrip("/")))
    else:
        if not match[2]:
            raise syntax_error(f"'//' after the protocol, {_EXAMPLES}")
        authority, _, path = rest.partition("/")
        segments = [segment for segment in path.split("/") if segment]
        if "?" in rest or "#" in rest:
            raise syntax_error(f"no query ('?') and no fragment ('#'), {_EXAMPLES}")
        if "." in segments or ".." in segments:
            raise syntax_error(f"a remote path without '.' and '..', {_EXAMPLES}")
        remote = _parse_bucket(authority) if protocol == "s3" else _parse_login(authority)
        if remote is None:
            bucket = (
                "a bucket name of letters, digits, '.', '_' and '-', without user and "
                "password, as in s3://bucket/folder"
            )
            raise syntax_error(
                bucket
                if protocol == "s3"
                else "[USER[:PASSWORD]@]HOST[:PORT], as in sftp://backup@host:22/folder"
            )
        address = replace(remote, path="/" + "/".join(segments))
    if _ESCAPE.search(address.path):
        raise syntax_error(
            "a path without percent-escapes, which are not decoded; write the characters themselves"
        )
    if address.path == "/" and not root:
        raise syntax_error(
            f"a folder, {_EXAMPLES}; a whole bucket, host or file system is not accepted"
        )
    return address


def _parse_bucket(authority: str) -> Address | None:
    return (
        Address(protocol="s3", path="/", host=authority) if _BUCKET.fullmatch(authority) else None
    )


def _parse_login(authority: str) -> Address | None:
    """Return ``user:password@host:port`` as an address without a path; None for another form."""
    login, separator, host_port = authority.rpartition("@")
    user, _, password = login.partition(":")
    if separator and not user:
        return None
    if host_port.startswith("["):
        host, bracket, port = host_port[1:].partition("]")
        try:
            host = ipaddress.IPv6Address(host).compressed
        except ValueError:
            return None
        if not bracket or (port and not port.startswith(":")):
            return None
        port = port[1:]
    else:
        host, _, port = host_port.partition(":")
        if not _HOST.fullmatch(host):
            return None
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) <= 65535):
        return None
    return Address(
        protocol="sftp",
        path="/",
        host=host.lower(),
        port=int(port or SFTP_PORT),
        user=user,
        password=password,
    )


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedAddresses:
    """Allow-list of the addresses that a daemon may open.

    Parameters
    ----------
    daemon : str
        Name of the daemon in messages.
    roots : tuple of Address
        Allowed folders, with everything below them.
    allows_all : bool
        Allow every address of a known protocol.
    exports : Path, optional
        The daemon's own folder of exports, which is always allowed.
    reserved : Path, optional
        The daemon's data folder. No address may lie in it, except in ``exports``.
    host_folder : Path, optional
        The data folder of the process that the daemon runs in. No address to which a job writes
        (option ``to``) may lie in it.
    """

    daemon: str
    roots: tuple[Address, ...] = ()
    allows_all: bool = False
    exports: Path | None = None
    reserved: Path | None = None
    host_folder: Path | None = None

    @classmethod
    def parse(
        cls, setting: str, *, daemon: str, exports: Path | None = None, reserved: Path | None = None
    ) -> AllowedAddresses:
        """Return the allow-list in a setting: comma-separated addresses, or ``*``.

        Raises
        ------
        InvalidRequest
            Naming the first entry that is not an address.
        """
        entries = [entry.strip() for entry in setting.split(",") if entry.strip()]
        allows_all = ALLOW_ALL in entries
        roots = tuple(
            parse_address(entry, field="allowed_addresses", root=True)
            for entry in entries
            if entry != ALLOW_ALL
        )
        for root in roots:
            if root.password:
                raise InvalidRequest(
                    f"allowed_addresses={root.redacted()!r}: expected an address without a password"
                )
        return cls(
            daemon=daemon, roots=roots, allows_all=allows_all, exports=exports, reserved=reserved
        )

    def check(self, field: str, text: str) -> Address:
        """Return an address in canonical form if it may be opened.

        A local path has to be below an allowed folder both as written and with its symbolic links
        resolved.

        Parameters
        ----------
        field : str
            Name of the option in messages.
        text : str
            The address.

        Returns
        -------
        Address

        Raises
        ------
        InvalidRequest
            Naming the address, the allowed folders and the setting.
        """
        return self.check_parsed(field, parse_address(text, field=field))

    def check_parsed(self, field: str, address: Address) -> Address:
        """Return an address that is already in canonical form, checked as by `check`."""
        is_own = self._is_own_export(address)
        if not is_own and not self._is_allowed(address):
            raise InvalidRequest(
                f"{field}={address.redacted()}: expected an address below {self._describe_roots()}"
            )
        if not is_own and self.reserved is not None and address.protocol == "file":
            real, data = os.path.realpath(address.path), os.path.realpath(self.reserved)
            if _is_within(real, data):
                raise InvalidRequest(
                    f"{field}={address.redacted()}: expected a folder outside of the data "
                    f"folder of this {self.daemon}; choose another one"
                )
        if field == "to" and self.host_folder is not None and address.protocol == "file":
            real, data = os.path.realpath(address.path), os.path.realpath(self.host_folder)
            if _is_within(real, data):
                raise InvalidRequest(
                    f"{field}={address.redacted()}: expected a folder outside of the data folder "
                    f"{self.host_folder}, which it would be lost with; choose another one"
                )
        return address

    def _is_own_export(self, address: Address) -> bool:
        if self.exports is None or address.protocol != "file":
            return False
        return _is_within(os.path.realpath(address.path), os.path.realpath(self.exports))

    def _is_allowed(self, address: Address) -> bool:
        if self.allows_all:
            return True
        roots = [root for root in self.roots if root.contains(address)]
        return bool(roots) and (
            address.protocol != "file"
            or any(root.resolved().contains(address.resolved()) for root in self.roots)
        )

    def _describe_roots(self) -> str:
        roots: Sequence[str] = [root.redacted() for root in self.roots]
        if not roots:
            return (
                f"a folder below one in the setting allowed_addresses of {self.daemon}, which is "
                "empty; add the folder to this setting of metad and of every storaged"
            )
        description = roots[0] if len(roots) == 1 else f"one of {', '.join(roots)}"
        return f"{description}, as listed in the setting allowed_addresses of {self.daemon}"
