"""NodeRestriction of PodCertificateRequests: a node asks for pods that run on it.

Job: compare a PodCertificateRequest with node, pod and service account as they are. Pure, but for
    looking them up.
Invariant: what may be wrong only because news travel is a failure, not a refusal: it is tried
    again.
"""

from sampan.api import features
from sampan.api.errors import Failure, forbidden, value_text
from sampan.api.objects import Obj, spec_of, uid_of
from sampan.api.resources import NODES, PODS, SERVICE_ACCOUNTS, Resource
from sampan.api.rules import pods
from sampan.apiserver.admission.chain import CREATE, Attributes, Find

SIGNER_VERB = "request-serviceaccounts-podcertificate-signer"


def check(attributes: Attributes, node: str, find: Find) -> str | None:
    """The signer that nothing of the pod asks for; None: it is asked for. Raises Forbidden and
    Failure."""
    if attributes.operation != CREATE:
        raise _refusal(attributes, f"unexpected operation {attributes.operation}")
    if attributes.subresource:
        raise _refusal(attributes, f"unexpected subresource {attributes.subresource}")
    spec, namespace = spec_of(attributes.obj or {}), attributes.namespace
    shown = value_text(f"{namespace}/{spec.get('podName')}")
    if spec.get("nodeName") != node:
        named = value_text(spec.get("nodeName") or "")
        raise _refusal(
            attributes,
            f"PodCertificateRequest.Spec.NodeName={named}, which is not the requesting node "
            f"{value_text(node)}",
        )
    own = _found(find, NODES, "", node, "node")
    if uid_of(own) != spec.get("nodeUID"):
        raise Failure(
            f"PodCertificateRequest for pod {shown} names node UID {_text(spec, 'nodeUID')}, "
            f"inconsistent with the running node ({value_text(uid_of(own))})"
        )
    pod = _pod(attributes, spec, shown, find)
    account = _found(find, SERVICE_ACCOUNTS, namespace, spec["serviceAccountName"],
                     "service account")  # fmt: skip
    if uid_of(account) != spec.get("serviceAccountUID"):
        raise Failure(
            f"PodCertificateRequest for pod {shown} names service account UID "
            f"{_text(spec, 'serviceAccountUID')}, which differs from the running service account "
            f"({value_text(uid_of(account))})"
        )
    signer = str(spec.get("signerName") or "")
    asked = not features.changed("PodCertificateSignerIsMounted") or signer in _signers(pod)
    return None if asked else signer


def unasked(attributes: Attributes, signer: str) -> str:
    """What is wrong with a signer that nothing of the pod asks for."""
    pod = f"{attributes.namespace}/{spec_of(attributes.obj or {}).get('podName')}"
    return (
        f"pod {value_text(pod)} does not mount a podCertificate projected volume for signer "
        f"{value_text(signer)}"
    )


def _pod(attributes: Attributes, spec: Obj, shown: str, find: Find) -> Obj:
    pod = _found(find, PODS, attributes.namespace, str(spec.get("podName") or ""), "pod")
    if uid_of(pod) != spec.get("podUID"):
        raise Failure(
            f"PodCertificateRequest for pod {shown} contains pod UID ({_text(spec, 'podUID')}) "
            f"which differs from running pod {value_text(uid_of(pod))}"
        )
    if pods.node_name(pod) != spec.get("nodeName"):
        why = f"is not running on node {_text(spec, 'nodeName')} named in the PodCertificateRequest"
        raise _refusal(attributes, f"pod {shown} {why}")
    if pods.is_mirror(pod):
        raise _refusal(attributes, f"pod {shown} is a mirror pod")
    runs_as = spec_of(pod).get("serviceAccountName") or ""
    if spec.get("serviceAccountName") != runs_as:
        raise _refusal(
            attributes,
            f"PodCertificateRequest for pod {shown} contains serviceAccountName "
            f"({_text(spec, 'serviceAccountName')}) that differs from running pod "
            f"({value_text(runs_as)})",
        )
    return pod


def _found(find: Find, resource: Resource, namespace: str, name: str, word: str) -> Obj:
    found = find(resource, namespace, name)
    if found is None:
        shown = value_text(f"{namespace}/{name}" if namespace else name)
        raise Failure(
            f"while retrieving {word} {shown} named in the PodCertificateRequest: "
            f'{word.replace(" ", "")} "{name}" not found'
        )
    return found


def _signers(pod: Obj) -> set[str]:
    return {
        source["podCertificate"].get("signerName") or ""
        for volume in spec_of(pod).get("volumes") or ()
        for source in (volume.get("projected") or {}).get("sources") or ()
        if source.get("podCertificate")
    }


def _text(spec: Obj, field: str) -> str:
    return value_text(spec.get(field) or "")


def _refusal(attributes: Attributes, why: str) -> Exception:
    resource = attributes.resource
    return forbidden(resource.plural, resource.group, attributes.called, why)
