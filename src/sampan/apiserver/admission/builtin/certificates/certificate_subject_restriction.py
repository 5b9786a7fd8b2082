"""CertificateSubjectRestriction: no client certificate for the group system:masters.

Job: refuse requests to the client signer that name that group.
"""

from base64 import b64decode

from cryptography import x509
from cryptography.x509.oid import NameOID

from sampan.api.errors import forbidden
from sampan.api.objects import Obj, name_of
from sampan.apiserver.admission.builtin.certificates.signers import GROUP
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer

CLIENT = "kubernetes.io/kube-apiserver-client"


def plugin(_parts: PluginInitializer) -> Steps:
    return Steps(validate=_restrict)


def _restrict(attributes: Attributes) -> None:
    csr = attributes.obj or {}
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
    return [str(match_.value) for match_ in found]
