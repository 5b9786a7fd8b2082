"""The cluster's certificates, made and looked at.

Job: make the authorities, keys and leaves that are missing, outdated or for other names.
Loaded when that is to be done: cryptography takes its time, and a start that finds everything as it
left it (known_good.py) needs none of it.
"""

import datetime
import ipaddress
from collections.abc import Callable, Sequence
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import (
    CertificateIssuerPrivateKeyTypes,
    PrivateKeyTypes,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sampan.cmd.cluster.data_dir import write_all_private
from sampan.cmd.cluster.pki import AUTHORITIES, CA_DAYS, LEAF_DAYS, RENEW_DAYS, Leaf, Pki
from sampan.cmd.errors import CannotStart
from sampan.core.clock import Clock

Files = dict[Path, bytes]  # to be written


def put_right(pki: Pki, wanted: Sequence[Leaf], seconds: float) -> int:
    """Make what is missing, outdated or for other names; returns how many were made."""
    now = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    made: Files = {}
    for authority in dict.fromkeys(("ca", *(leaf.authority for leaf in wanted))):
        if not pki.certificate(authority).exists():
            made |= _new_authority(pki, authority, now)
        else:
            _check(pki.certificate(authority), x509.load_pem_x509_certificate)
            _check(pki.key(authority), _load_key)
    if not pki.token_key.exists():
        made[pki.token_key] = _private_pem(ec.generate_private_key(ec.SECP256R1()))
    else:
        _check(pki.token_key, _load_key)
    write_all_private(made)  # before what they sign
    stale = [leaf for leaf in wanted if not _good(pki, leaf, now)]
    _write_leaves(pki, stale, pki, now)
    certificates = [path for path in made if path.suffix == ".crt"]
    return len(certificates) + (pki.token_key in made) + len(stale)


def _write_leaves(pki: Pki, leaves: Sequence[Leaf], by: Pki, now: datetime.datetime) -> None:
    """`by`: where their authorities are."""
    files: Files = {}
    for leaf in leaves:
        files |= _new_leaf(pki, leaf, *_authority(by, leaf), now)
    write_all_private(files)


def renewed_at(pki: Pki, wanted: Sequence[Leaf]) -> float:
    """When the first of them has to be made anew."""
    ends = [
        x509.load_pem_x509_certificate(pki.certificate(leaf.file).read_bytes()).not_valid_after_utc
        for leaf in wanted
    ]
    return (min(ends) - datetime.timedelta(days=RENEW_DAYS)).timestamp() if ends else 0.0


def check_authorities(root: Path) -> int:
    """How many there are; raises CannotStart where one, or the tokens' key, is damaged."""
    pki, count = Pki(root), 0
    for authority in AUTHORITIES:
        _check(pki.certificate(authority), x509.load_pem_x509_certificate)
        _check(pki.key(authority), _load_key)
        count += pki.certificate(authority).exists()
    _check(pki.token_key, _load_key)
    return count


def _check(path: Path, load: Callable[[bytes], object]) -> None:
    """What everybody trusts is never made anew in silence. A key may be elsewhere."""
    if not path.exists():
        return
    try:
        load(path.read_bytes())
    except (ValueError, TypeError) as error:
        raise CannotStart(
            f"{path} is damaged: put it back from a backup, or remove {path.parent} to have all "
            "keys and certificates made anew (kubeconfigs, tokens and joined nodes of today end)"
        ) from error


def _load_key(data: bytes) -> PrivateKeyTypes:
    return serialization.load_pem_private_key(data, None)


def kept_names(root: Path, file: str) -> tuple[str, ...]:
    """What the certificate that is there serves under: a new one must not know less."""
    path = Pki(root).certificate(file)
    if not path.exists():
        return ()
    try:
        found = x509.load_pem_x509_certificate(path.read_bytes()).extensions
    except ValueError:  # damaged: it will be made anew
        return ()
    names = found.get_extension_for_class(x509.SubjectAlternativeName).value
    return tuple(str(name.value) for name in names)


def ensure_signed_by(authority: Pki, root: Path, wanted: Sequence[Leaf], clock: Clock) -> int:
    """As `ensure`, for certificates that another cluster's authority has to sign."""
    root.mkdir(mode=0o700, exist_ok=True)
    pki = Pki(root)
    now = datetime.datetime.fromtimestamp(clock.now(), datetime.UTC)
    ca = x509.load_pem_x509_certificate(authority.ca.read_bytes())
    stale = [leaf for leaf in wanted if not _good(pki, leaf, now) or not _from(pki, leaf, ca)]
    _write_leaves(pki, stale, authority, now)
    return len(stale)


def _authority(pki: Pki, needed: Leaf) -> tuple[x509.Certificate, CertificateIssuerPrivateKeyTypes]:
    """Raises CannotStart."""
    certificate, key_file = pki.certificate(needed.authority), pki.key(needed.authority)
    try:
        ca = x509.load_pem_x509_certificate(certificate.read_bytes())
        key = serialization.load_pem_private_key(key_file.read_bytes(), None)
    except FileNotFoundError:
        raise CannotStart(
            f"{key_file} is missing, and without the authority's key nobody can make "
            f"{needed.file}.crt"
        ) from None
    except ValueError as error:
        raise CannotStart(f"{certificate} or {key_file} is damaged: {error}") from error
    assert isinstance(key, (ec.EllipticCurvePrivateKey, rsa.RSAPrivateKey)), type(key)
    return ca, key


def _from(pki: Pki, leaf: Leaf, ca: x509.Certificate) -> bool:
    certificate = x509.load_pem_x509_certificate(pki.certificate(leaf.file).read_bytes())
    try:
        certificate.verify_directly_issued_by(ca)
    except (ValueError, InvalidSignature):
        return False
    return True


def _good(pki: Pki, leaf: Leaf, now: datetime.datetime) -> bool:
    path = pki.certificate(leaf.file)
    if not (path.exists() and pki.key(leaf.file).exists()):
        return False
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        key = _load_key(pki.key(leaf.file).read_bytes())
    except (ValueError, TypeError):
        return False  # damaged: the authority signs another one
    if certificate.public_key() != key.public_key():
        return False
    if certificate.not_valid_after_utc - now < datetime.timedelta(days=RENEW_DAYS):
        return False
    if certificate.subject != _subject(leaf):
        return False
    if not leaf.serves:
        return True
    alternative = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return set(_alternative_names(leaf)) <= set(alternative.value)


def _new_authority(pki: Pki, file: str, now: datetime.datetime) -> Files:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, AUTHORITIES[file])])
    certificate = (
        _builder(subject, subject, key.public_key(), now, CA_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(pki, file, key, certificate)


def _new_leaf(
    pki: Pki,
    leaf: Leaf,
    ca: x509.Certificate,
    ca_key: CertificateIssuerPrivateKeyTypes,
    now: datetime.datetime,
) -> Files:
    key = ec.generate_private_key(ec.SECP256R1())
    uses = [ExtendedKeyUsageOID.SERVER_AUTH] if leaf.serves else []
    if leaf.calls or not leaf.serves:
        uses.append(ExtendedKeyUsageOID.CLIENT_AUTH)
    builder = (
        _builder(_subject(leaf), ca.subject, key.public_key(), now, LEAF_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
    )
    if leaf.serves:
        alternative = x509.SubjectAlternativeName(_alternative_names(leaf))
        builder = builder.add_extension(alternative, critical=False)
    certificate = builder.sign(ca_key, hashes.SHA256())
    return _pair(pki, leaf.file, key, certificate)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    now: datetime.datetime,
    days: int,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        # An hour of tolerance for clients whose clock is behind.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _subject(leaf: Leaf) -> x509.Name:
    attributes = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)
        for organization in leaf.organizations
    ]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, leaf.common_name)])


def _alternative_names(leaf: Leaf) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for name in dict.fromkeys(leaf.names):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            names.append(x509.DNSName(name))
    return names


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not signs_certificates,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pair(pki: Pki, file: str, key: ec.EllipticCurvePrivateKey, made: x509.Certificate) -> Files:
    return {
        pki.key(file): _private_pem(key),
        pki.certificate(file): made.public_bytes(serialization.Encoding.PEM),
    }


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
