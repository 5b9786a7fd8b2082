"""Certificate requests: who may approve, who may sign, and what nobody may ask for.

Job: CertificateApproval, CertificateSigning, CertificateSubjectRestriction.
"""

from base64 import b64decode
from collections.abc import Awaitable

from cryptography import x509
from cryptography.x509.oid import NameOID

from sampan.api.errors import forbidden
from sampan.api.objects import Obj, name_of
from sampan.apiserver.admission.certificate_request import REQUESTS
from sampan.apiserver.admission.chain import CREATE, UPDATE, Attributes, Plugin
from sampan.apiserver.authz.chain import Attributes as Asked
from sampan.apiserver.authz.chain import Authorization

GROUP = "certificates.k8s.io"
CLIENT = "kubernetes.io/kube-apiserver-client"


def approval(authorization: Authorization) -> Plugin:
    def validate(attributes: Attributes) -> Awaitable[None] | None:
        if attributes.resource is not REQUESTS or attributes.subresource != "approval":
            return None
        return _check(authorization, attributes, "approve")

    return Plugin("CertificateApproval", frozenset({UPDATE}), validate=validate)


def signing(authorization: Authorization) -> Plugin:
    def validate(attributes: Attributes) -> Awaitable[None] | None:
        if attributes.resource is not REQUESTS or attributes.subresource != "status":
            return None
        new, old = (((one or {}).get("status") or {}) for one in (attributes.obj, attributes.old))
        same = all(new.get(one) == old.get(one) for one in ("certificate", "conditions"))
        return None if same else _check(authorization, attributes, "sign")

    return Plugin("CertificateSigning", frozenset({UPDATE}), validate=validate)


async def _check(authorization: Authorization, attributes: Attributes, verb: str) -> None:
    """The right for this signer, or for all of its domain."""
    signer = str(((attributes.old or {}).get("spec") or {}).get("signerName") or "")
    domain = signer.partition("/")[0]
    for name in (signer, f"{domain}/*"):
        asked = Asked(attributes.user, verb, GROUP, "signers", name=name)
        if (await authorization.decide(asked))[0]:
            return
    why = f'user not permitted to {verb} requests with signerName "{signer}"'
    raise forbidden("certificatesigningrequests", GROUP, attributes.name, why)


def _restrict(attributes: Attributes) -> None:
    csr = attributes.obj
    assert REQUESTS is not None
    if csr is None or not attributes.is_main(REQUESTS):
        return
    spec = csr.get("spec") or {}
    if spec.get("signerName") == CLIENT and "system:masters" in _organizations(spec):
        why = f"use of {CLIENT} signer with system:masters group is not allowed"
        raise forbidden("certificatesigningrequests", GROUP, name_of(csr), why)


def _organizations(spec: Obj) -> list[str]:
    try:
        request = x509.load_pem_x509_csr(b64decode(spec.get("request") or ""))
    except ValueError:
        return []  # validation says what is wrong with it
    found = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return [str(one.value) for one in found]


SUBJECT_RESTRICTION = Plugin(
    "CertificateSubjectRestriction", frozenset({CREATE}), validate=_restrict
)
