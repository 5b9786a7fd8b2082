"""Cluster trust bundles.

Job: what must hold of a ClusterTrustBundle.
Invariant: it has certificates of authorities only, each once, and keeps its signer.
"""

from cryptography import x509

from sampan.api.errors import FieldError, invalid_value, too_long
from sampan.api.objects import Obj, name_of, spec_of
from sampan.api.rules import names
from sampan.api.validation.access.signer_names import bundle_name_rule, validate_signer_name
from sampan.api.validation.fields import validate_immutable
from sampan.api.validation.rules import Rules
from sampan.core.certificates.pem_blocks import CERTIFICATE, PemBlock, pem_blocks

Errors = list[FieldError]
MOST_BYTES = 1 << 20
_PATH = "spec.trustBundle"


def validate_bundle(bundle: Obj, errors: Errors) -> None:
    _validate_names(bundle, errors)
    _validate_anchors(spec_of(bundle).get("trustBundle") or "", errors)


def validate_bundle_update(new: Obj, old: Obj, errors: Errors) -> None:
    _validate_names(new, errors)
    text = spec_of(new).get("trustBundle") or ""
    if text != (spec_of(old).get("trustBundle") or ""):
        _validate_anchors(text, errors)
    signer, before = (spec_of(item).get("signerName") or "" for item in (new, old))
    validate_immutable(signer, before, "spec.signerName", errors)


def _validate_names(bundle: Obj, errors: Errors) -> None:
    signer = spec_of(bundle).get("signerName") or ""
    for wrong in bundle_name_rule(signer)(name_of(bundle)):
        errors.append(invalid_value("metadata.name", name_of(bundle), wrong))
    if signer:
        validate_signer_name(signer, "spec.signerName", errors)


def _validate_anchors(text: str, errors: Errors) -> None:
    if names.size_of(text) > MOST_BYTES:
        errors.append(too_long(_PATH, MOST_BYTES))
        return
    indices: dict[bytes, list[int]] = {}
    troubles = []
    for number, block in enumerate(pem_blocks(text.encode())):
        wrong = _trouble_of(block)
        if wrong:
            troubles.append(f"entry {number} {wrong}")
        indices.setdefault(block.data, []).append(number)
    if not troubles:
        troubles = [
            f"duplicate trust anchor (indices [{' '.join(map(str, found))}])"
            for found in indices.values()
            if len(found) > 1
        ]
    if not indices:
        troubles = ["at least one trust anchor must be provided"]
    errors += [invalid_value(_PATH, "<value omitted>", why) for why in troubles]


def _trouble_of(block: PemBlock) -> str:
    if block.type != CERTIFICATE:
        return f"has bad block type: {block.type}"
    if block.headers:
        return "has PEM block headers"
    try:
        extensions = x509.load_der_x509_certificate(block.data).extensions
    except ValueError:
        return "does not parse as X.509"
    try:
        is_authority = extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        is_authority = False
    return "" if is_authority else "does not have the CA bit set"


RULES = Rules(names.any_name, validate_bundle, validate_bundle_update)
