"""Approved certificate requests are signed with the cluster's CA.

Job: a certificate for each approved request of the built-in signers, or the reason why not.
Invariant: nothing is signed that is not approved, is denied, or breaks its signer's rules.
Invariant: a certificate's dates are the machine's, whatever time it is in the cluster: TLS judges
    by no other, at both ends.
"""

import datetime
from base64 import b64encode
from dataclasses import field

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from sampan.api.objects import Obj, time_text
from sampan.api.rules.conditions import condition_of
from sampan.controllers.access import csr_requests as requests
from sampan.controllers.actions import NOTHING, Plan, Update
from sampan.controllers.controller import Controller, View, own_key
from sampan.core.clock import Clock, SystemClock
from sampan.core.fast_dataclass import dataclass

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


@dataclass(frozen=True, slots=True)
class Ca:
    """Who signs; PEM."""

    certificate: bytes
    key: bytes
    clock: Clock = field(default_factory=SystemClock)  # of those who are shown what it signs


def csr_signing_controller(ca: Ca) -> Controller:
    async def planned(view: View, key: str) -> Plan:
        csr = view.cache(requests.REQUESTS).get(key)
        return NOTHING if csr is None else plan(csr, ca, view.now)

    return Controller(
        name="certificatesigningrequest-signing-controller",
        component="certificate-controller",
        aliases=("csrsigning",),
        wakes={requests.REQUESTS: own_key},
        planned=planned,
        workers=2,
    )


def plan(csr: Obj, ca: Ca, now: float) -> Plan:
    spec = csr.get("spec") or {}
    signer = spec.get("signerName") or ""
    done = requests.certificate_of(csr) or any(
        condition_of(csr, item) for item in ("Denied", "Failed")
    )
    if done or signer not in requests.SIGNERS or not condition_of(csr, "Approved"):
        return NOTHING
    usages = frozenset(spec.get("usages") or ())
    try:
        request = requests.request_of(csr)
        why_not = requests.refusal(signer, request, usages)
    except requests.BadRequest as error:
        why_not = str(error)
    if why_not is not None:
        failed = requests.with_condition(
            csr, "Failed", "SignerValidationFailure", why_not, time_text(now)
        )
        return Plan([Update(requests.REQUESTS, failed, "status")])
    pem = sign(request, usages, spec.get("expirationSeconds"), ca)
    status = {**(csr.get("status") or {}), "certificate": b64encode(pem).decode()}
    return Plan([Update(requests.REQUESTS, {**csr, "status": status}, "status")])


def sign(
    request: x509.CertificateSigningRequest,
    usages: frozenset[str],
    seconds: int | None,
    ca: Ca,
) -> bytes:
    """PEM."""
    issuer = x509.load_pem_x509_certificate(ca.certificate)
    key = serialization.load_pem_private_key(ca.key, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey), "the CA is ours"
    start = datetime.datetime.fromtimestamp(ca.clock.now(), datetime.UTC)
    lives = min(seconds or LONGEST_SECONDS, LONGEST_SECONDS)
    end = min(start + datetime.timedelta(seconds=lives), issuer.not_valid_after_utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(request.subject)
        .issuer_name(issuer.subject)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - datetime.timedelta(seconds=BACKDATED_SECONDS))
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
        )
    )
    if usages & KEY_USAGES:  # the extension must name one: TLS libraries refuse one that does not
        builder = builder.add_extension(_key_usage(usages), critical=True)
    extended = [_EXTENDED[usage] for usage in sorted(usages) if usage in _EXTENDED]
    if extended:
        builder = builder.add_extension(x509.ExtendedKeyUsage(extended), critical=False)
    alternatives = requests.alternatives_of(request)
    if alternatives is not None:
        builder = builder.add_extension(alternatives, critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


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
