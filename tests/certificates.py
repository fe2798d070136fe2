"""Certificates for tests: an authority and what it signs, as PEM files."""

from __future__ import annotations

import datetime
import ipaddress
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path

START = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
END = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)


class Signed(NamedTuple):
    """A certificate and its key, in files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates for names, valid until `ends`; `file` is its own."""

    def __init__(self, folder: Path, name: str = "authority", ends: datetime.datetime = END) -> None:
        self._ends = ends
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        own = self._builder(self._name, self._key).add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(own.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def sign(self, name: str, *hosts: str) -> Signed:
        """A certificate of a common name for host names (`localhost` if none is given), 127.0.0.1 and ::1."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key)
        addresses = [x509.IPAddress(ipaddress.ip_address(text)) for text in ("127.0.0.1", "::1")]
        names = [x509.DNSName(host) for host in hosts or ("localhost",)]
        builder = builder.add_extension(x509.SubjectAlternativeName([*names, *addresses]), critical=False)
        made = Signed(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        certificate = builder.sign(self._key, hashes.SHA256())
        made.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        made.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return made

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return x509.CertificateBuilder(
            self._name, subject, key.public_key(), x509.random_serial_number(), START, self._ends
        )
