"""Kubelets get their client certificates without anybody's hand.

Job: approve a node's request for a client certificate, if whoever asks may ask for it.
Invariant: nothing but kube-apiserver-client-kubelet is approved here, and only after a review.
"""

from sampan.api.objects import Obj, name_of, time_text
from sampan.api.resources import by_kind
from sampan.api.rules.conditions import condition_of
from sampan.controllers.access import csr_requests as requests
from sampan.controllers.actions import NOTHING, Plan, Update
from sampan.controllers.controller import Controller, View, own_key

_found = by_kind("authorization.k8s.io/v1", "SubjectAccessReview")
assert _found is not None
REVIEWS = _found
LOOK_AGAIN_SECONDS = 30.0  # a binding may be missing still
_MESSAGES = {
    "selfnodeclient": "Auto approving self kubelet client certificate after SubjectAccessReview.",
    "nodeclient": "Auto approving kubelet client certificate after SubjectAccessReview.",
}


def csr_approving_controller() -> Controller:
    return Controller(
        name="certificatesigningrequest-approving-controller",
        component="certificate-controller",
        aliases=("csrapproving",),
        wakes={requests.REQUESTS: own_key},
        planned=_planned,
        workers=2,
    )


def questions(csr: Obj) -> list[str]:
    """The subresources whose creation the asker must be allowed, the narrower one first."""
    spec = csr.get("spec") or {}
    if requests.certificate_of(csr) or spec.get("signerName") != requests.KUBELET_CLIENT:
        return []
    if condition_of(csr, "Approved") or condition_of(csr, "Denied"):
        return []
    try:
        request = requests.request_of(csr)
    except requests.BadRequest:
        return []
    if requests.refusal(requests.KUBELET_CLIENT, request, frozenset(spec.get("usages") or ())):
        return []
    own = requests.subject_of(request)[0] == spec.get("username")
    return ["selfnodeclient", "nodeclient"] if own else ["nodeclient"]


def review(csr: Obj, subresource: str) -> Obj:
    spec = csr.get("spec") or {}
    attributes = {
        "group": "certificates.k8s.io",
        "resource": "certificatesigningrequests",
        "verb": "create",
        "subresource": subresource,
    }
    asked: Obj = {"user": spec.get("username") or "", "resourceAttributes": attributes}
    for field in ("uid", "groups", "extra"):
        if spec.get(field):
            asked[field] = spec[field]
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": asked,
    }


def approved(csr: Obj, subresource: str, now: float) -> Obj:
    return requests.with_condition(
        csr, "Approved", "AutoApproved", _MESSAGES[subresource], time_text(now)
    )


async def _planned(view: View, key: str) -> Plan:
    csr = view.cache(requests.REQUESTS).get(key)
    asked = questions(csr) if csr is not None else []
    if csr is None or not asked:
        return NOTHING
    for subresource in asked:
        answer = await view.client.create(REVIEWS, review(csr, subresource))
        if (answer.get("status") or {}).get("allowed"):
            new = approved(csr, subresource, view.now)
            assert name_of(new) == key
            return Plan([Update(requests.REQUESTS, new, "approval")])
    return Plan(again_seconds=LOOK_AGAIN_SECONDS)
