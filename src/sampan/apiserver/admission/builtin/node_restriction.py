"""NodeRestriction: a kubelet writes its own Node and pods, and gains no rights by it.

Job: refuse a node's writes to other nodes, to pods that are not its, to labels that others trust;
    likewise those of its part for local volumes, by the Node that its token is bound to.
"""

from collections.abc import Awaitable

from sampan.api.errors import ApiError, forbidden, value_text
from sampan.api.objects import Obj, labels_of, meta_of, name_of, namespace_of, spec_of, status_of
from sampan.api.resources import (
    LEASES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    by_plural,
)
from sampan.api.rules import pods
from sampan.api.rules.pods import MIRROR_ANNOTATION
from sampan.api.rules.storage import LOCAL_FINALIZER, node_of_volume
from sampan.api.rules.tokens.account_token import (
    NODE_ACCOUNTS,
    NODE_ACCOUNTS_NAMESPACE,
    VOLUMES_ACCOUNT,
)
from sampan.api.rules.volumes.in_tree_volumes import IN_TREE, source_of
from sampan.apiserver.admission.builtin.certificates import (
    pod_certificate_restriction as pod_certificates,
)
from sampan.apiserver.admission.chain import CREATE, UPDATE, Attributes, Find, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.authz.chain import Attributes as Asked
from sampan.apiserver.authz.node import node_of

_LEASES = "kube-node-lease"
# Labels of Kubernetes' own that a kubelet may set on its node.
_KUBELET_LABELS = frozenset({
    "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch",
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
    "node.kubernetes.io/windows-build", "kubernetes.io/instance-type",
})  # fmt: skip
_CLAIM_STATUSES = {
    "resourceClaimStatuses": "resource claim statuses",
    "extendedResourceClaimStatus": "extended resource claim status",
}
_KUBELET_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_VOLUMES_USER = f"system:serviceaccount:{NODE_ACCOUNTS_NAMESPACE}:{VOLUMES_ACCOUNT}"
_NODE_NAME = "authentication.kubernetes.io/node-name"
# Of a ClusterRole: the audience is its resource (ServiceAccountNodeAudienceRestriction).
AUDIENCE_VERB = "request-serviceaccounts-token-audience"
_csi_nodes = by_plural("storage.k8s.io", "v1", "csinodes")
_slices = by_plural("resource.k8s.io", "v1", "resourceslices")
_requests = by_plural("certificates.k8s.io", "v1", "certificatesigningrequests")
_KUBELET_SIGNERS = (
    "kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet",
)  # fmt: skip
_found = by_plural("storage.k8s.io", "v1", "csidrivers")
assert _found is not None
_csi_drivers = _found


def plugin(initializer: PluginInitializer) -> Steps:
    find = initializer.registry.find

    async def check_audience(attributes: Attributes, audience: str) -> None:
        user = attributes.user
        asked = Asked(
            user, AUDIENCE_VERB, "", audience, "", attributes.namespace, attributes.name
        )  # fmt: skip
        if not (await initializer.authorization.decide(asked))[0]:
            raise _refusal(attributes, f"audience {value_text(audience)} not found in pod spec "
                           f"volume, {user.name} is not authorized to request tokens for this "
                           "audience")  # fmt: skip

    async def check_signer(attributes: Attributes, signer: str) -> None:
        # Rules cannot name what has a slash.
        asked = Asked(
            attributes.user, pod_certificates.SIGNER_VERB, attributes.resource.group,
            signer.replace("/", ":"), "", attributes.namespace,
            spec_of(attributes.obj or {}).get("serviceAccountName") or "",
        )  # fmt: skip
        if not (await initializer.authorization.decide(asked))[0]:
            raise _refusal(attributes, pod_certificates.unasked(attributes, signer))

    def validate(attributes: Attributes) -> Awaitable[None] | None:
        node = node_of(attributes.user)
        resource = attributes.resource
        if node and resource.plural == "podcertificaterequests":
            signer = pod_certificates.check(attributes, node, find)
            return None if signer is None else check_signer(attributes, signer)
        if node and resource.plural == "serviceaccounts" and attributes.subresource == "token":
            audience = _token(attributes, node, find)
            return None if audience is None else check_audience(attributes, audience)
        _check(attributes, node, find)
        return None

    return Steps(validate=validate)


def _check(attributes: Attributes, node: str | None, find: Find) -> None:
    if node is None:
        if attributes.user.name == _VOLUMES_USER:
            _volume(attributes)
        return
    if not node:
        raise _refusal(attributes, f"could not determine node from user {attributes.user.name!r}")
    resource = attributes.resource
    if resource is PODS:
        _pod(attributes, node, find)
    elif resource is NODES:
        _node(attributes, node)
    elif resource is PERSISTENT_VOLUME_CLAIMS:
        _claim(attributes)
    elif resource is LEASES:
        _lease(attributes, node)
    elif resource is _csi_nodes and attributes.name != node:
        raise _refusal(attributes, "can only access CSINode with the same name as the "
                                   "requesting node")  # fmt: skip
    elif resource is _slices:
        _slice(attributes, node)
    elif resource is _requests and attributes.operation == CREATE:
        _request(attributes, node)


def _request(attributes: Attributes, node: str) -> None:
    """A node asks for certificates in its own name; the rest is the signers' to check."""
    # Imported here: most of what nodes write are no certificate requests.
    from sampan.apiserver.admission.builtin.certificates.subjects import subject_of

    csr = attributes.obj or {}
    if spec_of(csr).get("signerName") not in _KUBELET_SIGNERS:
        return
    subject = subject_of(csr)
    if subject is None or subject.common_name != f"system:node:{node}":
        raise _refusal(attributes, f"can only create a node CSR with CN=system:node:{node}")


def _refusal(attributes: Attributes, why: str) -> ApiError:
    resource = attributes.resource
    return forbidden(resource.plural, resource.group, attributes.called, why)


def _node_name(pod: Obj | None) -> str:
    return str(((pod or {}).get("spec") or {}).get("nodeName") or "")


def _pod(attributes: Attributes, node: str, find: Find) -> None:
    sub, operation = attributes.subresource, attributes.operation
    match sub, operation:
        case "", "CREATE":
            _mirror(attributes, node)
        case "", "DELETE":
            _is_own(attributes, node, "delete pods")
        case "status", "UPDATE":
            _is_own(attributes, node, "update pod status for pods")
            if labels_of(attributes.obj or {}) != labels_of(attributes.old or {}):
                raise _refusal(attributes, f'node "{node}" cannot update labels through pod status')
            _keeps_claims(attributes, node)
        case "eviction", _:
            found = find(PODS, attributes.namespace, attributes.name)
            if found is None or _node_name(found) != node:
                raise _refusal(
                    attributes, f"node {node} can only evict pods with spec.nodeName set to itself"
                )
        case _:
            why = f"unexpected operation {operation!r} on pods/{sub} by a node"
            raise _refusal(attributes, why)


def _is_own(attributes: Attributes, node: str, what: str) -> None:
    if _node_name(attributes.old) != node:
        raise _refusal(
            attributes, f'node "{node}" can only {what} with spec.nodeName set to itself'
        )


def _keeps_claims(attributes: Attributes, node: str) -> None:
    """Whatever claim a pod's status names, its node may read: so it does not name them itself."""
    new, old = status_of(attributes.obj or {}), status_of(attributes.old or {})
    for field, words in _CLAIM_STATUSES.items():
        if (new.get(field) or None) != (old.get(field) or None):
            raise _refusal(attributes, f'node "{node}" cannot update {words}')


def _mirror(attributes: Attributes, node: str) -> None:
    pod = attributes.obj or {}
    spec, meta = pod.get("spec") or {}, meta_of(pod)
    if MIRROR_ANNOTATION not in (meta.get("annotations") or {}):
        why = f'pod does not have "{MIRROR_ANNOTATION}" annotation'
        raise _refusal(attributes, f'{why}, node "{node}" can only create mirror pods')
    if spec.get("nodeName") != node:
        raise _refusal(attributes, f'node "{node}" can only create pods with spec.nodeName set to '
                                   "itself")  # fmt: skip
    owners = meta.get("ownerReferences") or ()
    if len(owners) > 1 or any(
        owner.get("kind") != "Node" or owner.get("name") != node or owner.get("blockOwnerDeletion")
        for owner in owners
    ):
        raise _refusal(attributes, f'node "{node}" can only create pods with an owner reference '
                                   "set to itself")  # fmt: skip
    wrong = _references(pod)
    if wrong:
        raise _refusal(attributes, f'node "{node}" can not create pods that reference {wrong}')


def _references(pod: Obj) -> str:
    """What of its namespace a mirror pod would reach for: a door that the node opened itself."""
    spec = pod.get("spec") or {}
    if spec.get("serviceAccountName"):
        return "a service account"
    if pods.secret_names(pod):
        return "secrets"
    if pods.config_map_names(pod):
        return "configmaps"
    if pods.claim_names(pod):
        return "persistentvolumeclaims"
    if spec.get("resourceClaims"):
        return "resourceclaims"
    projected = any(volume.get("projected") for volume in spec.get("volumes") or ())
    return "projected volumes" if projected else ""


def _node(attributes: Attributes, node: str) -> None:
    if attributes.name != node:
        raise _refusal(
            attributes, f'node "{node}" is not allowed to modify node "{attributes.name}"'
        )
    new, old = attributes.obj, attributes.old
    if new is None:
        return
    spec, before = spec_of(new), spec_of(old or {})
    if spec.get("configSource") and spec.get("configSource") != before.get("configSource"):
        raise _refusal(attributes, f'node "{node}" cannot update configSource to a new value')
    if old is not None:
        _keeps_taints_and_owners(attributes, node, new, old)
    labels, had = labels_of(new), labels_of(old or {})
    changed = sorted(key for key in {**labels, **had} if labels.get(key) != had.get(key))
    forbidden_keys = [key for key in changed if not _may_set(key)]
    if forbidden_keys:
        word = "set" if old is None else "modify"
        shown = ", ".join(forbidden_keys)
        raise _refusal(attributes, f"is not allowed to {word} the following labels: {shown}")


def _keeps_taints_and_owners(attributes: Attributes, node: str, new: Obj, old: Obj) -> None:
    if (spec_of(new).get("taints") or []) != (spec_of(old).get("taints") or []):
        raise _refusal(attributes, f'node "{node}" is not allowed to modify taints')
    if meta_of(new).get("ownerReferences") != meta_of(old).get("ownerReferences"):
        raise _refusal(attributes, f'node "{node}" is not allowed to modify ownerReferences')


def _may_set(label: str) -> bool:
    """As kubeletapis.IsKubeletLabel, and whatever is not Kubernetes' own."""
    domain = label.partition("/")[0] if "/" in label else ""
    if domain == "node-restriction.kubernetes.io" or domain.endswith(
        ".node-restriction.kubernetes.io"
    ):
        return False
    own = any(domain == item or domain.endswith(f".{item}") for item in ("kubernetes.io", "k8s.io"))
    if not own:
        return True
    return label in _KUBELET_LABELS or any(
        domain == item or domain.endswith(f".{item}") for item in _KUBELET_DOMAINS
    )


def _claim(attributes: Attributes) -> None:
    if attributes.subresource != "status" or attributes.operation != UPDATE:
        raise _refusal(attributes, "may only update PVC status")
    new, old = attributes.obj or {}, attributes.old or {}
    if new.get("spec") != old.get("spec"):
        raise _refusal(attributes, "is not allowed to update fields other than status")


def _token(attributes: Attributes, node: str, find: Find) -> str | None:
    """The audience that nothing of the pod asks for; None: it is asked for."""
    spec = spec_of(attributes.obj or {})
    reference = spec.get("boundObjectRef") or {}
    if attributes.namespace == NODE_ACCOUNTS_NAMESPACE and attributes.name in NODE_ACCOUNTS:
        _own_token(attributes, node, spec)
        return None
    if reference.get("kind") != "Pod" or reference.get("apiVersion") not in ("v1", None, ""):
        raise _refusal(attributes, f'node "{node}" can only create tokens for individual service '
                                   "accounts bound to a pod")  # fmt: skip
    if not reference.get("uid"):
        raise _refusal(attributes, "pod binding without a uid")
    pod = find(PODS, attributes.namespace, reference.get("name") or "")
    if pod is None or meta_of(pod).get("uid") != reference["uid"]:
        raise _refusal(attributes, f'the UID in the bound object reference ({reference["uid"]}) '
                                   "does not match the UID in record")  # fmt: skip
    if _node_name(pod) != node:
        raise _refusal(attributes, f'node "{node}" can only create tokens bound to pods scheduled '
                                   "to it")  # fmt: skip
    if (pod.get("spec") or {}).get("serviceAccountName") != attributes.name:
        raise _refusal(attributes, f'node "{node}" can only create tokens for the service account '
                                   "of the pod")  # fmt: skip
    return _unasked_audience(attributes, spec.get("audiences") or [""], _audiences(pod, find))


def _unasked_audience(attributes: Attributes, asked: list[str], wanted: set[str]) -> str | None:
    if len(asked) > 1:
        raise _refusal(attributes, "node may only request 0 or 1 audiences")
    return None if asked[0] in wanted else str(asked[0])


def _audiences(pod: Obj, find: Find) -> set[str]:
    """For whom the pod's volumes want tokens: its projections, and the drivers of its volumes."""
    found: set[str] = set()
    for volume in spec_of(pod).get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken") is not None:
                found.add(source["serviceAccountToken"].get("audience") or "")
    for name in _drivers(pod, find):
        driver = find(_csi_drivers, "", name) or {}
        found |= {each.get("audience") or "" for each in spec_of(driver).get("tokenRequests") or ()}
    return found


def _drivers(pod: Obj, find: Find) -> set[str]:
    inline = {_driver(volume) for volume in spec_of(pod).get("volumes") or ()}
    for claim_name in pods.claim_names(pod):
        claim = find(PERSISTENT_VOLUME_CLAIMS, namespace_of(pod), claim_name) or {}
        volume = find(PERSISTENT_VOLUMES, "", spec_of(claim).get("volumeName") or "") or {}
        inline.add(_driver(spec_of(volume)))
    return {driver for driver in inline if driver}


def _driver(holder: Obj) -> str:
    """That of a volume; in-tree disks have one by now, too."""
    source = source_of(holder)
    return IN_TREE[source].driver if source else str((holder.get("csi") or {}).get("driver") or "")


def _own_token(attributes: Attributes, node: str, spec: Obj) -> None:
    """The node's other parts have accounts of their own, whose tokens go when the node goes."""
    reference = spec.get("boundObjectRef") or {}
    if reference.get("kind") != "Node" or reference.get("name") != node:
        raise _refusal(attributes, f'node "{node}" can only create tokens for this service account '
                                   "bound to itself")  # fmt: skip
    if spec.get("audiences"):
        raise _refusal(attributes, f'node "{node}" can only create tokens for this service account '
                                   "for the API server")  # fmt: skip


def _volume(attributes: Attributes) -> None:
    """A node lets go of its own local volumes, and changes nothing else of any."""
    [node] = attributes.user.extra.get(_NODE_NAME) or ("",)
    old, new = attributes.old or {}, attributes.obj or {}
    if attributes.operation != UPDATE or not node or node_of_volume(old) != node:
        raise _refusal(attributes, f'node "{node}" can only update volumes that are on itself')
    gone = set(meta_of(old).get("finalizers") or ()) ^ set(meta_of(new).get("finalizers") or ())
    if not gone <= {LOCAL_FINALIZER} or _beside_finalizers(new) != _beside_finalizers(old):
        raise _refusal(attributes, f'node "{node}" can only take its finalizer off a volume')


def _beside_finalizers(volume: Obj) -> list[object]:
    meta = meta_of(volume)
    own = [meta.get(field) for field in ("labels", "annotations", "ownerReferences")]
    return [volume.get("spec"), volume.get("status"), *own]


def _lease(attributes: Attributes, node: str) -> None:
    if attributes.namespace != _LEASES:
        raise _refusal(attributes, f'can only access leases in the "{_LEASES}" system namespace')
    name = name_of(attributes.obj or {}) if attributes.operation == CREATE else attributes.name
    if name != node:
        raise _refusal(
            attributes, "can only access node lease with the same name as the requesting node"
        )


def _slice(attributes: Attributes, node: str) -> None:
    shown = attributes.obj or attributes.old or {}
    if (shown.get("spec") or {}).get("nodeName") != node:
        raise _refusal(
            attributes, "can only create/delete ResourceSlice with the same NodeName as the "
            "requesting node",
        )  # fmt: skip
