"""CertificateSubjectRestriction: no client certificate for the group system:masters.

Job: refuse requests to the client signer that name that group.
"""

from sampan.api.errors import forbidden
from sampan.api.objects import name_of
from sampan.apiserver.admission.builtin.certificates.signers import GROUP
from sampan.apiserver.admission.builtin.certificates.subjects import subject_of
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer

CLIENT = "kubernetes.io/kube-apiserver-client"


def plugin(_parts: PluginInitializer) -> Steps:
    return Steps(validate=_restrict)


def _restrict(attributes: Attributes) -> None:
    csr = attributes.obj or {}
    spec = csr.get("spec") or {}
    if spec.get("signerName") != CLIENT:
        return
    subject = subject_of(csr)
    if subject is not None and "system:masters" in subject.organizations:
        why = f"use of {CLIENT} signer with system:masters group is not allowed"
        raise forbidden("certificatesigningrequests", GROUP, name_of(csr), why)
