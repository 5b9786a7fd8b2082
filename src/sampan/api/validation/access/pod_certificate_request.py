"""Pod certificate requests.

Job: what must hold of a PodCertificateRequest, and of the certificate that its signer gives.
Invariant: what was asked for never changes; it is issued, denied or failed once.
"""

import base64
import binascii
from collections.abc import Iterator

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

from sampan.api import features
from sampan.api.errors import (
    FieldError,
    invalid_value,
    not_supported,
    required_value,
    too_long,
)
from sampan.api.objects import Obj, seconds_of, spec_of, status_of
from sampan.api.rules import names
from sampan.api.rules.conditions import condition_of
from sampan.api.validation.access.signer_names import (
    LEAST_SECONDS,
    longest_seconds,
    validate_signer_name,
    validate_user_annotations,
)
from sampan.api.validation.conditions import validate_common_conditions
from sampan.api.validation.fields import IMMUTABLE, validate_with
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.rules import Rules
from sampan.core.certificates import pod_keys
from sampan.core.certificates.pem_blocks import CERTIFICATE, PemBlock, pem_blocks

Errors = list[FieldError]
VERDICTS = ("Issued", "Denied", "Failed")
MOST_KEY_BYTES, MOST_CHAIN_BYTES, LONGEST_UID = 10 * 1024, 100 * 1024, 128
_KEY, _PROOF, _STUB = "spec.pkixPublicKey", "spec.proofOfPossession", "spec.stubPKCS10Request"
_CHAIN, _REFRESH = "status.certificateChain", "status.beginRefreshAt"
_NEAR_SECONDS, _REFRESH_SECONDS, _HOUR = 300.0, 600.0, 3600.0
_NAMED = (
    ("podName", names.dns_subdomain, "podUID"),
    ("serviceAccountName", names.dns_subdomain, "serviceAccountUID"),
    ("nodeName", names.dns_subdomain, "nodeUID"),
)


def validate_request(request: Obj, errors: Errors) -> None:
    spec = spec_of(request)
    signer = spec.get("signerName") or ""
    validate_signer_name(signer, "spec.signerName", errors)
    path = "spec.unverifiedUserAnnotations"
    validate_user_annotations(spec.get("unverifiedUserAnnotations") or {}, path, errors)
    for name, rule, uid in _NAMED:
        validate_with(rule, spec.get(name) or "", f"spec.{name}", errors)
        _validate_uid(spec.get(uid) or "", f"spec.{uid}", errors)
    seconds = spec.get("maxExpirationSeconds")
    if seconds is None:
        errors.append(required_value("spec.maxExpirationSeconds", "must be set"))
        return
    most = longest_seconds(signer)
    if not LEAST_SECONDS <= seconds <= most:
        why = f"must be in the range [{LEAST_SECONDS}, {most}]"
        errors.append(invalid_value("spec.maxExpirationSeconds", seconds, why))
    errors += _key_errors(spec)


def _validate_uid(uid: str, path: str, errors: Errors) -> None:
    if not uid:
        errors.append(invalid_value(path, uid, "must not be empty"))
    if names.size_of(uid) > LONGEST_UID:
        errors.append(too_long(path, LONGEST_UID))


def _key_errors(spec: Obj) -> list[FieldError]:
    """In one of two forms, where there are two."""
    key, proof, stub = (
        spec.get(name) or "" for name in ("pkixPublicKey", "proofOfPossession", "stubPKCS10Request")
    )
    if features.changed("PodKeyInStubRequest"):
        if stub and not key and not proof:
            return [*_stub_errors(_decoded(stub))]
        if stub or not key or not proof:
            why = (
                "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be "
                "set"
            )
            return [_omitted("spec", why)]
    return [*_proof_errors(key, _decoded(proof), spec.get("podUID") or "")]


def _proof_errors(text: str, proof: bytes, uid: str) -> Iterator[FieldError]:
    encoded = _decoded(text)
    for path, data in ((_KEY, encoded), (_PROOF, proof)):
        if len(data) > MOST_KEY_BYTES:
            yield too_long(path, MOST_KEY_BYTES)
            return
    key = pod_keys.read_public_key(encoded)
    if key is None:
        yield invalid_value(_KEY, text, "must be a valid PKIX-serialized public key")
        return
    shown, why = pod_keys.key_trouble(key, "P256 or P384")
    if why:
        yield invalid_value(_KEY, text if shown is None else shown, why)
    elif not pod_keys.is_proven(key, uid, proof):
        yield _omitted(_PROOF, "could not verify proof-of-possession signature")


def _stub_errors(encoded: bytes) -> Iterator[FieldError]:
    if len(encoded) > MOST_KEY_BYTES:
        yield too_long(_STUB, MOST_KEY_BYTES)
        return
    request = pod_keys.read_request(encoded)
    if request is None:
        yield _omitted(_STUB, "must be a valid PKCS#10 CSR")
        return
    shown, why = pod_keys.key_trouble(request.public_key(), "P256, P384, or P521")
    if why:
        yield _omitted(_STUB, why) if shown is None else invalid_value(_STUB, shown, why)
    elif not request.is_signature_valid:
        yield _omitted(_STUB, "invalid signature")


def validate_request_update(new: Obj, old: Obj, errors: Errors) -> None:
    if spec_of(new) != spec_of(old):
        shown = internal_form("PodCertificateRequestSpec", spec_of(new))
        if not features.changed("PodKeyInStubRequest"):
            del shown["StubPKCS10Request"]
        errors.append(invalid_value("spec", shown, IMMUTABLE))


def validate_request_status(new: Obj, old: Obj, now: float) -> list[FieldError]:
    """Of /status: the verdict, and with it what was issued."""
    conditions = status_of(new).get("conditions") or []
    errors = [*_condition_errors(conditions)]
    validate_common_conditions(conditions, "status.conditions", errors)
    if errors:
        return errors
    status, before = status_of(new), status_of(old)
    if any(condition_of(old, kind) for kind in VERDICTS):
        why = "immutable after PodCertificateRequest is issued, denied, or failed"
        return [] if status == before else [_omitted("status", why)]
    if condition_of(new, "Denied") or condition_of(new, "Failed"):
        why = (
            "non-condition status fields must be empty when denying or failing the "
            "PodCertificateRequest"
        )
        return [_omitted("status", why)] if set(status) > {"conditions"} else []
    if condition_of(new, "Issued"):
        return _issued_errors(status, spec_of(old), now)
    why = 'status is immutable unless transitioning to "Issued", "Denied", or "Failed"'
    return [] if status == before else [_omitted("status", why)]


def _condition_errors(conditions: list[Obj]) -> Iterator[FieldError]:
    known = 0
    for index, condition in enumerate(conditions):
        path, kind = f"status.conditions.[{index}]", condition.get("type") or ""
        if kind not in VERDICTS:
            yield not_supported(f"{path}.type", kind, VERDICTS)
            continue
        known += 1
        if known > 1:
            why = 'There may be at most one condition with type "Issued", "Denied", or "Failed"'
            yield invalid_value(f"{path}.type", kind, why)
        if condition.get("status") != "True":
            yield not_supported(f"{path}.status", condition.get("status") or "", ("True",))


def _issued_errors(status: Obj, spec: Obj, now: float) -> list[FieldError]:
    chain = status.get("certificateChain") or ""
    if names.size_of(chain) > MOST_CHAIN_BYTES:
        return [too_long(_CHAIN, MOST_CHAIN_BYTES)]
    blocks = [*pem_blocks(chain.encode())]
    if not blocks:
        why = "issued certificate chain must contain at least one certificate"
        return [invalid_value(_CHAIN, chain, why)]
    first, *further = blocks
    if first.type != CERTIFICATE:
        why = "issued certificate chain must consist entirely of CERTIFICATE PEM blocks"
        return [invalid_value(_CHAIN, chain, why)]
    leaf = _certificate(first)
    if leaf is None:
        why = "leaf certificate does not parse as valid X.509"
        return [invalid_value(_CHAIN, chain, why)]
    errors = [*_name_errors(leaf)]
    if pod_keys.public_bytes(leaf.public_key()) != pod_keys.public_bytes(_asked_key(spec)):
        why = "leaf certificate was not issued to the requested public key"
        return [*errors, invalid_value(_CHAIN, chain, why)]
    errors += _missing_times(status)
    trouble = None if errors else _time_error(status, spec, leaf, now)
    if trouble is not None:
        return [trouble]
    return errors or [*_further_errors(further, chain)]


def _asked_key(spec: Obj) -> PublicKeyTypes:
    """It was judged when the request was made."""
    stub = spec.get("stubPKCS10Request")
    if stub:
        request = pod_keys.read_request(_decoded(stub))
        assert request is not None
        return request.public_key()
    key = pod_keys.read_public_key(_decoded(spec.get("pkixPublicKey") or ""))
    assert key is not None
    return key


def _name_errors(leaf: x509.Certificate) -> Iterator[FieldError]:
    try:
        found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return
    for name in found.get_values_for_type(x509.DNSName):
        if not name:
            yield invalid_value(_CHAIN, name, "leaf certificate should not contain empty DNSName")
        if ".." in name:
            why = "leaf certificate's DNSName should not contain '..'"
            yield invalid_value(_CHAIN, name, why)
        if name.startswith(".") or name.endswith("."):
            why = "leaf certificate's DNSName should not start or end with '.'"
            yield invalid_value(_CHAIN, name, why)
    for address in found.get_values_for_type(x509.RFC822Name):
        user, at, host = address.rpartition("@")
        if not user or not at or not host:
            why = "leaf certificate should not contain invalid EmailAddress"
            yield invalid_value(_CHAIN, address, why)


def _missing_times(status: Obj) -> Iterator[FieldError]:
    for name in ("notBefore", "notAfter"):
        if not status.get(name):
            why = "must be present and consistent with the issued certificate"
            yield required_value(f"status.{name}", why)
    if not status.get("beginRefreshAt"):
        why = "must be present and in the range [notbefore+10min, notafter-10min]"
        yield required_value(_REFRESH, why)


def _time_error(status: Obj, spec: Obj, leaf: x509.Certificate, now: float) -> FieldError | None:
    begins, ends = leaf.not_valid_before_utc.timestamp(), leaf.not_valid_after_utc.timestamp()
    refresh, seconds = seconds_of(status["beginRefreshAt"]), spec["maxExpirationSeconds"]
    lifetime = ends - begins
    checks = (
        (seconds_of(status["notBefore"]) == begins, "notBefore",
         "must be set to the NotBefore time encoded in the leaf certificate"),
        (abs(begins - now) < _NEAR_SECONDS, "notBefore",
         "must be set to within 5 minutes of kube-apiserver's current time"),
        (seconds_of(status["notAfter"]) == ends, "notAfter",
         "must be set to the NotAfter time encoded in the leaf certificate"),
        (lifetime >= _HOUR, "certificateChain",
         "leaf certificate lifetime must be >= 1 hour"),
        (lifetime <= seconds, "certificateChain",
         f"leaf certificate lifetime must be <= spec.maxExpirationSeconds ({seconds})"),
        (refresh >= begins + _REFRESH_SECONDS, "beginRefreshAt",
         "must be at least 10 minutes after status.notBefore"),
        (refresh <= ends - _REFRESH_SECONDS, "beginRefreshAt",
         "must be at least 10 minutes before status.notAfter"),
    )  # fmt: skip
    for holds, name, why in checks:
        if not holds:
            shown = int(lifetime * 1e9) if name == "certificateChain" else status[name]
            return invalid_value(f"status.{name}", shown, why)
    return None


def _further_errors(blocks: list[PemBlock], chain: str) -> Iterator[FieldError]:
    for block in blocks:
        if block.type != CERTIFICATE:
            why = "issued certificate chain must consist entirely of CERTFICATE PEM blocks"
            yield invalid_value(_CHAIN, chain, why)
            return
        if _certificate(block) is None:
            why = "intermediate certificate does not parse as valid X.509"
            yield invalid_value(_CHAIN, chain, why)
            return


def _certificate(block: PemBlock) -> x509.Certificate | None:
    try:
        return x509.load_der_x509_certificate(block.data)
    except ValueError:
        return None


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""


def _omitted(path: str, why: str) -> FieldError:
    """Invalid, and its value is not shown."""
    return FieldError("FieldValueInvalid", path, f"Invalid value: {why}")


RULES = Rules(names.dns_subdomain, validate_request, validate_request_update)
