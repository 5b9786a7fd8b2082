"""Certificates of the built-in signers, signed with the cluster's CA.

Job: the certificate that an approved CertificateSigningRequest asks for, or why it is refused.
Invariant: nothing is signed that breaks its signer's rules.
"""

import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from sampan.api.objects import Obj
from sampan.controllers.access import pkcs10

LONGEST_SECONDS = 365 * 24 * 3600
BACKDATED_SECONDS = 300
_EXTENDED = {
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
    "code signing": ExtendedKeyUsageOID.CODE_SIGNING,
    "email protection": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "timestamping": ExtendedKeyUsageOID.TIME_STAMPING,
    "ocsp signing": ExtendedKeyUsageOID.OCSP_SIGNING,
    "any": ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
}
# As `_key_usage` knows them; two more only qualify an agreement.
KEY_USAGES = frozenset(
    {"digital signature", "signing", "content commitment", "key encipherment",
     "data encipherment", "key agreement"}
)  # fmt: skip


def issue(csr: Obj, ca_pem: bytes, ca_key_pem: bytes, now: float) -> bytes | str:
    """The certificate as PEM, or why the signer refuses."""
    spec = csr.get("spec") or {}
    usages = frozenset(spec.get("usages") or ())
    try:
        request = pkcs10.request_of(csr)
    except pkcs10.BadRequest as error:
        return str(error)
    why_not = pkcs10.refusal(spec.get("signerName") or "", request, usages)
    if why_not is not None:
        return why_not
    issuer = x509.load_pem_x509_certificate(ca_pem)
    key = serialization.load_pem_private_key(ca_key_pem, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey), "the CA is ours"
    seconds = min(spec.get("expirationSeconds") or LONGEST_SECONDS, LONGEST_SECONDS)
    builder = _for_subject(request, issuer, now, seconds).add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
    )
    if usages & KEY_USAGES:  # the extension must name one: TLS libraries refuse one that does not
        builder = builder.add_extension(_key_usage(usages), critical=True)
    extended = [_EXTENDED[usage] for usage in sorted(usages) if usage in _EXTENDED]
    if extended:
        builder = builder.add_extension(x509.ExtendedKeyUsage(extended), critical=False)
    alternatives = pkcs10.alternatives_of(request)
    if alternatives is not None:
        builder = builder.add_extension(alternatives, critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _for_subject(
    request: x509.CertificateSigningRequest, issuer: x509.Certificate, now: float, seconds: int
) -> x509.CertificateBuilder:
    start = datetime.datetime.fromtimestamp(now, datetime.UTC)
    end = min(start + datetime.timedelta(seconds=seconds), issuer.not_valid_after_utc)
    return (
        x509.CertificateBuilder()
        .subject_name(request.subject)
        .issuer_name(issuer.subject)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - datetime.timedelta(seconds=BACKDATED_SECONDS))
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )


def _key_usage(usages: frozenset[str]) -> x509.KeyUsage:
    agrees = "key agreement" in usages
    return x509.KeyUsage(
        digital_signature=bool(usages & {"digital signature", "signing"}),
        content_commitment="content commitment" in usages,
        key_encipherment="key encipherment" in usages,
        data_encipherment="data encipherment" in usages,
        key_agreement=agrees,
        key_cert_sign=False,  # never a CA, whatever was asked for
        crl_sign=False,
        encipher_only=agrees and "encipher only" in usages,
        decipher_only=agrees and "decipher only" in usages,
    )
