"""CertificateSigningRequest objects: the built-in signers, the certificate and conditions of one.

Job: what their controllers need of an object before they read the request in it. Pure.
Invariant: nothing here needs the cryptography library (15 MiB): a cluster in which nobody asks for
    a certificate does not load it.
"""

from sampan.api.objects import Obj
from sampan.api.resources import by_kind

_found = by_kind("certificates.k8s.io/v1", "CertificateSigningRequest")
assert _found is not None
REQUESTS = _found
CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING = "kubernetes.io/kubelet-serving"
LEGACY = "kubernetes.io/legacy-unknown"
SIGNERS = (CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY)


def certificate_of(csr: Obj) -> str:
    return str((csr.get("status") or {}).get("certificate") or "")


def with_condition(csr: Obj, kind: str, reason: str, message: str, now_text: str) -> Obj:
    status = csr.get("status") or {}
    added = {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastUpdateTime": now_text,
        "lastTransitionTime": now_text,
    }
    return {**csr, "status": {**status, "conditions": [*(status.get("conditions") or ()), added]}}
