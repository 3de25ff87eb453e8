"""Certificates for development: an authority, and one certificate for all daemons of a cluster.

Only `asterism certificates create` imports this module: it needs the package `cryptography`."""

from __future__ import annotations

import datetime
import ipaddress
import os
import re
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from asterism_proto.errors import InvalidRequest

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
"""Names and addresses of this host, which every certificate contains."""
FILES = ("ca.key", "ca.pem", "daemon.key", "daemon.pem")
"""Names of the files, in the order in which they are written."""
_CLOCK_SKEW = datetime.timedelta(hours=1)
_AUTHORITY_DAYS = 3650
_HOST_NAME = re.compile(
    r"(\*\.)?([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
)


def create_certificates(folder: Path, hosts: Sequence[str], days: int) -> list[Path]:
    """Write a new authority, and a certificate that it signs, to a folder.

    Parameters
    ----------
    folder : Path
        Created if it is missing.
    hosts : sequence of str
        Names and IP addresses of the daemons, besides `LOCAL_HOSTS`.
    days : int
        Days for which the certificate is valid.

    Returns
    -------
    list of Path
        The written files. Keys can be read by their owner only.

    Raises
    ------
    InvalidRequest
        If a host is neither a name nor an address, or a file exists or cannot be written.
    """
    names = [_general_name(host) for host in dict.fromkeys((*hosts, *LOCAL_HOSTS))]
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority_name = _subject("Asterism development authority")
    authority_id = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key(), _AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(authority_id, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        _builder(_subject("Asterism daemon"), authority_name, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage(
                [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            ),
            critical=False,
        )
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority_id),
            critical=False,
        )
        .sign(authority_key, hashes.SHA256())
    )
    contents = (_pem(authority_key), _pem(authority), _pem(key), _pem(certificate))
    paths = [folder / name for name in FILES]
    for path, content in zip(paths, contents, strict=True):
        _write_new(path, content, mode=0o600 if path.suffix == ".key" else 0o644)
    return paths


def has_certificates(folder: Path) -> bool:
    """Return whether a folder has all files of `create_certificates`."""
    return all((folder / name).exists() for name in FILES)


def _write_new(path: Path, content: bytes, mode: int) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
    except FileExistsError as error:
        raise InvalidRequest(
            f"{path}: the file exists; choose another folder, or remove the file"
        ) from error
    except OSError as error:
        raise InvalidRequest(
            f"{path}: expected a folder that can be written ({(error.strerror or '').lower()})"
        ) from error


def _pem(content: ec.EllipticCurvePrivateKey | x509.Certificate) -> bytes:
    if isinstance(content, x509.Certificate):
        return content.public_bytes(serialization.Encoding.PEM)
    return content.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        if len(host) > 253 or _HOST_NAME.fullmatch(host) is None:
            raise InvalidRequest(
                f"host={host[:300]!r}: expected a host name or an IP address, without a port"
            ) from None
        return x509.DNSName(host)
