"""Certificate authorities and certificates for tests, made with the package `cryptography`."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
"""Names and addresses of this host, as a local cluster advertises them."""
_DAY = datetime.timedelta(days=1)
_USAGES = {
    "server": ExtendedKeyUsageOID.SERVER_AUTH,
    "client": ExtendedKeyUsageOID.CLIENT_AUTH,
}


@dataclass(frozen=True, slots=True)
class Certificate:
    """Files of one certificate."""

    cert: Path
    key: Path


class Authority:
    """A certificate authority with files in a folder.

    Parameters
    ----------
    folder : Path
        Folder of all files; created if missing.
    name : str
        Name of the authority, and of its file.
    """

    def __init__(self, folder: Path, name: str = "ca") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._certificate = (
            _builder(self._name, self._name, self._key.public_key(), -_DAY, 365 * _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / f"{name}.pem"
        """File of the authority's certificate."""
        self.file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(
        self,
        name: str,
        *,
        names: Sequence[str] = LOCAL_NAMES,
        starts: datetime.timedelta = -_DAY,
        ends: datetime.timedelta = 90 * _DAY,
        usages: Sequence[str] = (),
    ) -> Certificate:
        """Write a certificate for some names and addresses, valid between two times from now.

        ``usages`` limits it to ``"server"`` or ``"client"``. An issued certificate of the same name
        is replaced, as a renewal does: each file at once.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = (
            _builder(subject, self._name, key.public_key(), starts, ends)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if usages:
            builder = builder.add_extension(
                x509.ExtendedKeyUsage([_USAGES[usage] for usage in usages]), critical=False
            )
        certificate = builder.sign(self._key, hashes.SHA256())
        files = Certificate(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        for path, content in (
            (
                files.key,
                key.private_bytes(
                    serialization.Encoding.PEM,
                    serialization.PrivateFormat.PKCS8,
                    serialization.NoEncryption(),
                ),
            ),
            (files.cert, certificate.public_bytes(serialization.Encoding.PEM)),
        ):
            replacement = path.with_suffix(".new")
            replacement.write_bytes(content)
            replacement.chmod(0o600)
            replacement.replace(path)
        return files

    @staticmethod
    def encrypt(files: Certificate) -> Path:
        """Write a copy of a certificate's key with a passphrase."""
        key = serialization.load_pem_private_key(files.key.read_bytes(), password=None)
        path = files.key.with_suffix(".encrypted")
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.BestAvailableEncryption(b"passphrase"),
            )
        )
        return path


def serial_number(certificate: bytes) -> int:
    """Return the serial number of a certificate in DER or PEM form."""
    if b"-----" in certificate:
        return x509.load_pem_x509_certificate(certificate).serial_number
    return x509.load_der_x509_certificate(certificate).serial_number


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    starts: datetime.timedelta,
    ends: datetime.timedelta,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + starts)
        .not_valid_after(now + ends)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
