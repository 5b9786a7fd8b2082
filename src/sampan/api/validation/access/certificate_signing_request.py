"""Certificate signing requests.

Job: what must hold of a CertificateSigningRequest.
Invariant: what was asked for never changes; it is approved or denied once.
"""

import base64
import binascii
import re

from sampan.api.errors import (
    FieldError,
    duplicate,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj, spec_of, status_of
from sampan.api.rules import names
from sampan.api.validation.access.signer_names import validate_signer_name
from sampan.api.validation.fields import Repeats
from sampan.api.validation.rules import Rules
from sampan.core.patterns import lazy_pattern

Errors = list[FieldError]
VERDICTS = ("Approved", "Denied")
LEGACY_SIGNER = "kubernetes.io/legacy-unknown"
_BLOCK = lazy_pattern(
    rb"-----BEGIN CERTIFICATE REQUEST-----\s(.*?)-----END CERTIFICATE REQUEST-----", re.DOTALL
)
_USAGES = frozenset((
    "signing", "digital signature", "content commitment", "key encipherment", "key agreement",
    "data encipherment", "cert sign", "crl sign", "encipher only", "decipher only", "any",
    "server auth", "client auth", "code signing", "email protection", "s/mime",
    "ipsec end system", "ipsec tunnel", "ipsec user", "timestamping", "ocsp signing",
    "microsoft sgc", "netscape sgc",
))  # fmt: skip


def validate_request(request: Obj, errors: Errors) -> None:
    spec = spec_of(request)
    if not _is_pem(spec.get("request") or ""):
        why = "PEM block type must be CERTIFICATE REQUEST"
        errors.append(invalid_value("spec.request", spec.get("request") or "", why))
    usages = spec.get("usages") or []
    if not usages:
        errors.append(required_value("spec.usages"))
    is_repeated = Repeats()
    for index, usage in enumerate(usages):
        if usage not in _USAGES:
            errors.append(not_supported(f"spec.usages[{index}]", usage, sorted(_USAGES)))
        if is_repeated(usage):
            errors.append(duplicate(f"spec.usages[{index}]", usage))
    validate_signer_name(spec.get("signerName") or "", "spec.signerName", errors)
    if spec.get("signerName") == LEGACY_SIGNER:  # stored ones of an earlier version may go on
        why = "the legacy signerName is not allowed via this API version"
        errors.append(invalid_value("spec.signerName", LEGACY_SIGNER, why))
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        why = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(invalid_value("spec.expirationSeconds", seconds, why))


def validate_request_update(new: Obj, old: Obj, errors: Errors) -> None:
    if spec_of(new) != spec_of(old):
        errors.append(invalid_value("spec", spec_of(new), "field is immutable"))


def validate_request_status(new: Obj, old: Obj, errors: Errors) -> None:
    """Of /status: what was decided stays decided, and a certificate is given once."""
    _validate_conditions(new, old, errors)
    for kind in VERDICTS:
        before, after = _of_kind(old, kind), _of_kind(new, kind)
        if len(after) > len(before):
            errors.append(_forbidden(f'updates may not add a condition of type "{kind}"'))
        elif len(after) == len(before) and after != before:
            errors.append(_forbidden(f'updates may not modify a condition of type "{kind}"'))
    issued = status_of(old).get("certificate")
    if issued and status_of(new).get("certificate") != issued:
        why = "updates may not modify existing certificate content"
        errors.append(field_forbidden("status.certificate", why))


def validate_request_approval(new: Obj, old: Obj, errors: Errors) -> None:
    """Of /approval: it may be decided, once."""
    _validate_conditions(new, old, errors)
    if status_of(new).get("certificate") != status_of(old).get("certificate"):
        why = "updates may not set certificate content"
        errors.append(field_forbidden("status.certificate", why))


def _validate_conditions(new: Obj, old: Obj, errors: Errors) -> None:
    kinds = [condition.get("type") or "" for condition in status_of(new).get("conditions") or ()]
    is_repeated = Repeats()
    for index, kind in enumerate(kinds):
        path = f"status.conditions[{index}]"
        if not kind:
            errors.append(required_value(f"{path}.type"))
        elif is_repeated(kind):
            errors.append(duplicate(f"{path}.type", kind))
        _validate_condition_status(status_of(new)["conditions"][index], path, errors)
    if "Approved" in kinds and "Denied" in kinds:
        why = "Approved and Denied conditions are mutually exclusive"
        index = kinds.index("Denied")
        errors.append(invalid_value(f"status.conditions[{index}].type", "Denied", why))
    for kind in (*VERDICTS, "Failed"):
        if len(_of_kind(new, kind)) < len(_of_kind(old, kind)):
            errors.append(_forbidden(f'updates may not remove a condition of type "{kind}"'))


def _validate_condition_status(condition: Obj, path: str, errors: Errors) -> None:
    """What is decided is True; other conditions may be anything that conditions are."""
    decides = condition.get("type") in (*VERDICTS, "Failed")
    known = ("True",) if decides else ("False", "True", "Unknown")
    status = condition.get("status") or ""
    if not status:
        errors.append(required_value(f"{path}.status"))
    elif status not in known:
        errors.append(not_supported(f"{path}.status", status, known))


def _of_kind(request: Obj, kind: str) -> list[Obj]:
    return [
        condition
        for condition in status_of(request).get("conditions") or ()
        if condition.get("type") == kind
    ]


def _forbidden(why: str) -> FieldError:
    return field_forbidden("status.conditions", why)


def _is_pem(encoded: str) -> bool:
    try:
        text = base64.b64decode(encoded)
    except (binascii.Error, ValueError):
        return False
    block = _BLOCK.search(text)
    if block is None:
        return False
    try:
        return bool(base64.b64decode(b"".join(block[1].split()), validate=True))
    except binascii.Error:
        return False


RULES = Rules(
    names.dns_subdomain, validate_request, validate_request_update, validate_request_status
)
