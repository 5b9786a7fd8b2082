"""csrapproving: approves requests for client and serving certificates of kubelets.

Job: approve a node's request for a client certificate, if whoever asks may ask for it; and one for
    its own server, if it is for that node's name and addresses only. (Upstream leaves the second to
    the administrator: sampan's API server trusts no kubelet without.)
Invariant: nothing else is approved here; a client certificate only after a review.
Invariant: no node gets a certificate for an address that another node has, too, nor for a name or
    an address of a Service: with one of the Service `kubernetes` it would be the API server.
"""

import ipaddress
from collections.abc import Sequence

from sampan.api.objects import Obj, name_of, spec_of, time_text
from sampan.api.resources import NODES, by_kind
from sampan.api.rules.conditions import condition_of
from sampan.controllers.access import csr_requests as requests
from sampan.controllers.actions import NOTHING, Plan, Update
from sampan.controllers.controller import Controller, View, own_key

_found = by_kind("authorization.k8s.io/v1", "SubjectAccessReview")
assert _found is not None
REVIEWS = _found
_cidrs = by_kind("networking.k8s.io/v1", "ServiceCIDR")
assert _cidrs is not None
SERVICE_CIDRS = _cidrs
_SERVER_NAMES = ("kubernetes", "kubernetes.default", "localhost")  # and what ends as a Service's
LOOK_AGAIN_SECONDS = 30.0  # a binding may be missing still
NODE_SECONDS = 1.0  # a node says where it is soon after it has asked
_MESSAGES = {
    "selfnodeclient": "Auto approving self kubelet client certificate after SubjectAccessReview.",
    "serving": "Auto approving kubelet serving certificate for the node's own addresses.",
    "nodeclient": "Auto approving kubelet client certificate after SubjectAccessReview.",
}


def csr_approving_controller() -> Controller:
    return Controller(
        name="certificatesigningrequest-approving-controller",
        component="certificate-controller",
        aliases=("csrapproving",),
        wakes={requests.REQUESTS: own_key},
        planned=_plan_key,
        indices={NODES: {}, SERVICE_CIDRS: {}},
        workers=2,
    )


def questions(csr: Obj) -> list[str]:
    """The subresources whose creation the asker must be allowed, the narrower one first."""
    spec = csr.get("spec") or {}
    if requests.certificate_of(csr) or spec.get("signerName") != requests.KUBELET_CLIENT:
        return []
    if condition_of(csr, "Approved") or condition_of(csr, "Denied"):
        return []
    signable = _signable(csr, requests.KUBELET_CLIENT)
    if signable is None:
        return []
    own = signable[0] == spec.get("username")
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


def approval(csr: Obj, subresource: str, now: float) -> Obj:
    return requests.with_condition(
        csr, "Approved", "AutoApproved", _MESSAGES[subresource], time_text(now)
    )


def serving_verdict(csr: Obj, nodes: Sequence[Obj], service_cidrs: Sequence[str] = ()) -> str:
    """`approve`, `wait` (the node has not said yet where it is), or empty: not our affair."""
    spec = csr.get("spec") or {}
    if requests.certificate_of(csr) or spec.get("signerName") != requests.KUBELET_SERVING:
        return ""
    if condition_of(csr, "Approved") or condition_of(csr, "Denied"):
        return ""
    signable = _signable(csr, requests.KUBELET_SERVING)
    if signable is None or signable[0] != spec.get("username"):
        return ""
    name, asked = signable
    own = [node for node in nodes if f"system:node:{name_of(node)}" == name]
    others = [node for node in nodes if f"system:node:{name_of(node)}" != name]
    if any(_is_of_a_service(each, service_cidrs) for each in asked):
        return ""
    if asked & {each for node in others for each in _addresses(node)}:
        return ""
    mine = {each for node in own for each in (name_of(node), *_addresses(node))}
    return "approve" if own and asked <= mine else "wait"


def _is_of_a_service(text: str, service_cidrs: Sequence[str]) -> bool:
    """A node names its own addresses, and whoever joins chooses its name."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        name = text.lower().rstrip(".")
        return name in _SERVER_NAMES or name.endswith((".svc", ".cluster.local"))
    return any(address in ipaddress.ip_network(cidr, strict=False) for cidr in service_cidrs)


def _signable(csr: Obj, signer: str) -> tuple[str, set[str]] | None:
    """(common name, alternative names) of a request that the signer would sign."""
    from sampan.controllers.access import pkcs10

    return pkcs10.signable(csr, signer)


def _addresses(node: Obj) -> set[str]:
    """As a certificate spells them; never loopback, which is everybody's."""
    known = (node.get("status") or {}).get("addresses") or ()
    return {text for each in known if (text := _spell(each.get("address") or ""))}


def _spell(text: str) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    return "" if address.is_loopback else str(address)


async def _plan_key(view: View, key: str) -> Plan:
    csr = view.cache(requests.REQUESTS).get(key)
    verdict = ""
    if csr is not None:
        cidrs = [
            str(cidr)
            for each in view.cache(SERVICE_CIDRS).all()
            for cidr in spec_of(each).get("cidrs") or ()
        ]
        verdict = serving_verdict(csr, list(view.cache(NODES).all()), cidrs)
    if csr is not None and verdict == "approve":
        return Plan([Update(requests.REQUESTS, approval(csr, "serving", view.now), "approval")])
    if verdict == "wait":
        return Plan(again_seconds=NODE_SECONDS)
    asked = questions(csr) if csr is not None else []
    if csr is None or not asked:
        return NOTHING
    for subresource in asked:
        answer = await view.client.create(REVIEWS, review(csr, subresource))
        if (answer.get("status") or {}).get("allowed"):
            new = approval(csr, subresource, view.now)
            assert name_of(new) == key
            return Plan([Update(requests.REQUESTS, new, "approval")])
    return Plan(again_seconds=LOOK_AGAIN_SECONDS)
