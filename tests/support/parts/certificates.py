"""Throw-away certificates for tests: a CA, and what it signs, as PEM files in a directory.

Job: `Authority(directory)`, then `.issue("kubelet", organization="system:masters")`.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sampan.core.fast_dataclass import dataclass

# Valid whenever tests run; no clock is asked.
_FROM = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
_UNTIL = datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True, slots=True)
class Pair:
    cert_path: Path
    key_path: Path


class Authority:
    def __init__(self, directory: Path, name: str = "test-ca") -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject(name, "")
        built = _builder(self._name, self._name, self._key.public_key())
        built = built.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        # Python 3.13 asks a certificate authority for these two, and its certificates for theirs.
        built = built.add_extension(_signs_certificates(), critical=True)
        built = built.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
        )
        self._certificate = built.sign(self._key, hashes.SHA256())
        self.ca_path = directory / f"{name}.crt"
        self.ca_path.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def ca_key_pem(self) -> bytes:
        return self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    def issue(
        self,
        common_name: str,
        organization: str = "",
        names: Sequence[str] = (),
        addresses: Sequence[str] = ("127.0.0.1",),
    ) -> Pair:
        """Good for both ends, at the addresses and under the names."""
        key = ec.generate_private_key(ec.SECP256R1())
        built = _builder(_subject(common_name, organization), self._name, key.public_key())
        own = [x509.DNSName(name) for name in ("localhost", *names)]
        places = [x509.IPAddress(ipaddress.ip_address(each)) for each in addresses]
        alternative = x509.SubjectAlternativeName([*own, *places])
        built = built.add_extension(alternative, critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        built = built.add_extension(issuer, critical=False)
        certificate = built.sign(self._key, hashes.SHA256())
        stem = f"{common_name}-{organization}".replace(":", "_").replace("/", "_")
        pair = Pair(self._directory / f"{stem}.crt", self._directory / f"{stem}.key")
        pair.cert_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        pair.key_path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return pair


def _signs_certificates() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=True,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _subject(common_name: str, organization: str) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FROM)
        .not_valid_after(_UNTIL)
    )
