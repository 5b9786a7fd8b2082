"""PKCS #10 requests: what a CertificateSigningRequest asks for, and what each signer demands.

Job: read the request; say why a signer would refuse it. Pure.
Invariant: an answer of None means that upstream's rules for that signer hold.
"""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Sequence

from cryptography import x509
from cryptography.x509.oid import NameOID

from sampan.api.objects import Obj

MASTERS = "system:masters"
_NODE_CLIENT = frozenset({"key encipherment", "digital signature", "client auth"})
_NODE_SERVING = frozenset({"key encipherment", "digital signature", "server auth"})


class BadRequest(ValueError):
    """There is no certificate request in it."""


def request_of(csr: Obj) -> x509.CertificateSigningRequest:
    """Raises BadRequest."""
    try:
        pem = b64decode((csr.get("spec") or {}).get("request") or "")
        request = x509.load_pem_x509_csr(pem)
        if not request.is_signature_valid:
            raise BadRequest("the request is not signed with its own key")
    except (NotBase64, ValueError, TypeError) as error:
        raise BadRequest(str(error)) from error
    return request


def subject_of(request: x509.CertificateSigningRequest) -> tuple[str, list[str]]:
    """(common name, organizations)."""
    names = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    organizations = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return str(names[0].value) if names else "", [
        str(organization.value) for organization in organizations
    ]


def alternatives_of(request: x509.CertificateSigningRequest) -> x509.SubjectAlternativeName | None:
    try:
        found = request.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return None
    return found.value


def signable(csr: Obj, signer: str) -> tuple[str, set[str]] | None:
    """(common name, alternative names) of a request that the signer would sign."""
    try:
        request = request_of(csr)
    except BadRequest:
        return None
    usages = frozenset((csr.get("spec") or {}).get("usages") or ())
    if refusal(signer, request, usages) is not None:
        return None
    return subject_of(request)[0], {str(each.value) for each in alternatives_of(request) or ()}


# In the order in which they are looked for.
_EVERY_NAME: tuple[tuple[type[x509.GeneralName], str], ...] = (
    (x509.DNSName, "DNS"),
    (x509.RFC822Name, "Email"),
    (x509.IPAddress, "IP"),
    (x509.UniformResourceIdentifier, "URI"),
)


def refusal(
    signer: str, request: x509.CertificateSigningRequest, usages: frozenset[str]
) -> str | None:
    """Why the signer does not sign it; None: it does."""
    if len(request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)) > 1:
        return "the subject has more than one common name"  # who would it be?
    name, organizations = subject_of(request)
    alternatives = alternatives_of(request)
    names = list(alternatives) if alternatives is not None else []
    if MASTERS in organizations:
        # Whatever signer it is: the API trusts all that its authority signs.
        return f"use of {signer} signer with {MASTERS} group is not allowed"
    match signer:
        case "kubernetes.io/legacy-unknown":
            return None
        case "kubernetes.io/kube-apiserver-client":
            return _client_usages(usages)
        case "kubernetes.io/kube-apiserver-client-kubelet":
            return (
                _organization(organizations)
                or _unwanted_name(names, _EVERY_NAME)
                or _node_name(name)
                or _usages(usages, _NODE_CLIENT)
            )
        case "kubernetes.io/kubelet-serving":
            return (
                _organization(organizations)
                or _serving_names(names)
                or _usages(usages, _NODE_SERVING)
                or _node_name(name)
            )
    return f"unrecognized signer {signer}"


def _organization(organizations: list[str]) -> str | None:
    if organizations == ["system:nodes"]:
        return None
    return "subject organization is not system:nodes"


def _node_name(name: str) -> str | None:
    if name.startswith("system:node:"):
        return None
    return "subject common name does not begin with system:node:"


def _serving_names(names: Sequence[x509.GeneralName]) -> str | None:
    if not any(isinstance(name, x509.DNSName | x509.IPAddress) for name in names):
        return "DNS or IP subjectAltName is required"
    return _unwanted_name(names, _EVERY_NAME[1::2])


def _unwanted_name(
    names: Sequence[x509.GeneralName], kinds: Sequence[tuple[type[x509.GeneralName], str]]
) -> str | None:
    for kind, word in kinds:
        if any(isinstance(name, kind) for name in names):
            return f"{word} subjectAltNames are not allowed"
    return None


def _client_usages(usages: frozenset[str]) -> str | None:
    others = sorted(usages - _NODE_CLIENT)
    if others:
        return f"invalid usage for client certificate: {others[0]}"
    if "client auth" not in usages:
        return "missing required usage for client certificate: client auth"
    return None


def _usages(usages: frozenset[str], wanted: frozenset[str]) -> str | None:
    if usages in (wanted, wanted - {"key encipherment"}):
        return None
    return f"usages did not match [{' '.join(sorted(wanted))}]"


def expiry_of(certificate: str) -> float | None:
    """Of one as status.certificate has it; None where it cannot be read."""
    try:
        found = x509.load_pem_x509_certificate(b64decode(certificate))
    except ValueError:
        return None
    return found.not_valid_after_utc.timestamp()
