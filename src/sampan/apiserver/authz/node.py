"""The Node authorizer: a kubelet reads what its own pods use, and writes what is its own.

Job: answer for users system:node:NAME of the group system:nodes; no opinion about anybody else.
Invariant: a node reaches a secret, config map, claim, volume or service account only along a chain
    of references that starts at a pod bound to it.
Owner: the API server's loop; `changed` is called by the watch cache in the step that changes it.
"""

from collections.abc import Callable, Iterator

from sampan.api import features
from sampan.api.calls import Item
from sampan.api.objects import Obj, namespace_of, spec_of, uid_of
from sampan.api.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_CERTIFICATE_REQUESTS,
    VOLUME_ATTACHMENTS,
    Resource,
)
from sampan.api.rules import pods, selectors
from sampan.apiserver.authn.user import NODE_PREFIX, NODES_GROUP, User
from sampan.apiserver.authz.bootstrap.objects import node_rules
from sampan.apiserver.authz.chain import Attributes, Decision, UserRules
from sampan.apiserver.authz.grants import Grants

Find = Callable[[Resource, str, str], Obj | None]
Answer = tuple[Decision, str]
_Reference = tuple[str, str]  # (plural, name), in the pod's namespace
_READS = frozenset({"get", "list", "watch"})
_LEASE_NAMESPACE = "kube-node-lease"
_ALLOWED: Answer = (Decision.ALLOW, "")
NO_RULES = "node authorizer does not support user rule resolution"


def node_of(user: User) -> str | None:
    """The node that a user is; None: it is none. Empty: it does not say which."""
    if not user.name.startswith(NODE_PREFIX) or NODES_GROUP not in user.groups:
        return None
    return user.name[len(NODE_PREFIX) :]


class NodeGraph:
    """Which pods run on which node, and what each of them refers to."""

    def __init__(self, find: Find, all_pods: Callable[[], list[Item]]) -> None:
        self.find, self._all_pods = find, all_pods
        self._by_node: dict[str, dict[str, Item]] | None = None
        self._references: dict[str, tuple[object, frozenset[_Reference]]] = {}

    def changed(self, before: Item | None, now: Item | None) -> None:
        if self._by_node is None:
            return
        for item in (before, now):
            node = "" if item is None else pods.node_name(item.obj)
            if node and item is not None:
                if item is now:
                    self._by_node.setdefault(node, {})[item.key] = item
                else:
                    self._by_node.get(node, {}).pop(item.key, None)
        if now is None and before is not None:
            self._references.pop(before.key, None)

    def reloaded(self) -> None:
        self._by_node = None
        self._references.clear()

    def pods_of(self, node: str) -> dict[str, Item]:
        if self._by_node is None:
            self._by_node = {}
            for item in self._all_pods():
                self.changed(None, item)
        return self._by_node.get(node, {})

    def reaches(self, node: str, plural: str, namespace: str, name: str) -> bool:
        return any(
            (plural, name) in self._of(item)
            for item in self.pods_of(node).values()
            if namespace_of(item.obj) == namespace
        )

    def reaches_volume(self, node: str, name: str) -> bool:
        volume = self.find(PERSISTENT_VOLUMES, "", name)
        claim = ((volume or {}).get("spec") or {}).get("claimRef") or {}
        return bool(claim) and self.reaches(
            node, "persistentvolumeclaims", claim.get("namespace") or "", claim.get("name") or ""
        )

    def reaches_secret_of_volume(self, node: str, namespace: str, name: str) -> bool:
        return any(
            (namespace, name) in set(_volume_secrets(volume)) for volume in self._volumes(node)
        )

    def _volumes(self, node: str) -> Iterator[Obj]:
        for item in self.pods_of(node).values():
            for claim_name in pods.claim_names(item.obj):
                claim = self.find(PERSISTENT_VOLUME_CLAIMS, namespace_of(item.obj), claim_name)
                name = ((claim or {}).get("spec") or {}).get("volumeName")
                volume = self.find(PERSISTENT_VOLUMES, "", name) if name else None
                if volume is not None:
                    yield volume

    def _of(self, item: Item) -> frozenset[_Reference]:
        """What a pod refers to never changes but by ephemeral containers and device claims."""
        spec, status = item.obj.get("spec") or {}, item.obj.get("status") or {}
        statuses = status.get("resourceClaimStatuses") or ()
        version = (uid_of(item.obj), len(spec.get("ephemeralContainers") or ()), len(statuses))
        known = self._references.get(item.key)
        if known is None or known[0] != version:
            known = self._references[item.key] = (version, frozenset(_references(item.obj)))
        return known[1]


class NodeAuthorizer:
    def __init__(self, graph: NodeGraph) -> None:
        self._graph = graph
        self._own = dict(_OWN)
        if features.enabled("PodCertificateRequest"):
            self._own["certificates.k8s.io", "podcertificaterequests"] = _pod_certificates
        self._always = Grants()
        self._always.add(node_rules(), "")

    def authorize(self, attributes: Attributes) -> Answer:
        node = node_of(attributes.user)
        if node is None:
            return Decision.NO_OPINION, ""
        if not node:
            return Decision.NO_OPINION, f"unknown node for user {attributes.user.name!r}"
        if not attributes.path:
            own = self._own.get((attributes.group, attributes.resource))
            if own is not None:
                return own(self._graph, node, attributes)
        if attributes.path:
            return Decision.NO_OPINION, ""
        why = self._always.resource(
            attributes.verb, attributes.group, attributes.resource, attributes.subresource,
            attributes.name,
        )  # fmt: skip
        return (Decision.NO_OPINION if why is None else Decision.ALLOW), ""

    def rules(self, user: User, _namespace: str) -> UserRules:
        if node_of(user) is None:
            return UserRules()
        return UserRules(incomplete=True, trouble=NO_RULES)


def _no(why: str) -> Answer:
    return Decision.NO_OPINION, why


def _no_path(node: str) -> Answer:
    return _no(f"no relationship found between node '{node}' and this object")


def _read_of_pod(graph: NodeGraph, node: str, asked: Attributes) -> Answer:
    """Secrets and config maps, one at a time, by name."""
    if asked.verb not in _READS or asked.subresource:
        return _no("can only read resources of this type")
    if not asked.namespace:
        return _no("can only read namespaced object of this type")
    if not asked.name:
        return _no("No Object name found")
    if graph.reaches(node, asked.resource, asked.namespace, asked.name):
        return _ALLOWED
    if asked.resource == "secrets" and graph.reaches_secret_of_volume(
        node, asked.namespace, asked.name
    ):
        return _ALLOWED
    return _no_path(node)


def _get(graph: NodeGraph, node: str, asked: Attributes) -> Answer:
    if asked.verb != "get" or asked.subresource:
        return _no("can only get individual resources of this type")
    if asked.resource == "persistentvolumes":
        reached = graph.reaches_volume(node, asked.name)
    else:
        reached = graph.reaches(node, asked.resource, asked.namespace, asked.name)
    return _ALLOWED if reached else _no_path(node)


def _claim(graph: NodeGraph, node: str, asked: Attributes) -> Answer:
    if asked.subresource != "status":
        return _get(graph, node, asked)
    if asked.verb not in ("get", "patch", "update"):
        return _no("can only get/update/patch this type")
    reached = graph.reaches(node, asked.resource, asked.namespace, asked.name)
    return _ALLOWED if reached else _no_path(node)


def _attachment(graph: NodeGraph, node: str, asked: Attributes) -> Answer:
    if asked.verb != "get" or asked.subresource:
        return _no("can only get individual resources of this type")
    found = graph.find(VOLUME_ATTACHMENTS, "", asked.name)
    of = ((found or {}).get("spec") or {}).get("nodeName")
    return _ALLOWED if of == node else _no_path(node)


def _account(graph: NodeGraph, node: str, asked: Attributes) -> Answer:
    wanted = {"token": "create", "": "get"}.get(asked.subresource)
    if asked.verb != wanted:
        return _no("can only create tokens for individual service accounts")
    reached = graph.reaches(node, asked.resource, asked.namespace, asked.name)
    return _ALLOWED if reached else _no_path(node)


def _lease(_graph: NodeGraph, node: str, asked: Attributes) -> Answer:
    if asked.verb not in ("create", "delete", "get", "patch", "update"):
        return _no("can only get, create, update, patch, or delete a node lease")
    if asked.namespace != _LEASE_NAMESPACE:
        return _no(f"can only access leases in the {_LEASE_NAMESPACE!r} system namespace")
    if asked.verb != "create" and asked.name != node:
        return _no("can only access node lease with the same name as the requesting node")
    return _ALLOWED


def _csi_node(_graph: NodeGraph, node: str, asked: Attributes) -> Answer:
    if asked.verb not in ("create", "delete", "get", "patch", "update") or asked.subresource:
        return _no("can only get, create, update, patch, or delete a CSINode")
    if asked.verb != "create" and asked.name != node:
        return _no("can only access CSINode with the same name as the requesting node")
    return _ALLOWED


def _slices(_graph: NodeGraph, node: str, asked: Attributes) -> Answer:
    if asked.subresource:
        return _no("cannot authorize ResourceSlice subresources")
    if asked.verb in ("create", "delete", "get", "patch", "update"):
        return _ALLOWED  # NodeRestriction narrows the writes down
    if asked.verb in ("deletecollection", "list", "watch") and _selects(asked, node):
        return _ALLOWED
    return _no("can only list/watch/deletecollection resourceslices with nodeName field selector")


def _pod_certificates(graph: NodeGraph, node: str, asked: Attributes) -> Answer:
    if asked.subresource:
        return _no("nodes may not access the status subresource of PodCertificateRequests")
    if asked.verb == "create":
        return _ALLOWED  # NodeRestriction narrows it down
    if asked.verb == "get":
        found = graph.find(POD_CERTIFICATE_REQUESTS, asked.namespace, asked.name)
        return _ALLOWED if spec_of(found or {}).get("nodeName") == node else _no_path(node)
    if asked.verb in ("list", "watch"):
        if _selects(asked, node):
            return _ALLOWED
        return _no("can only list/watch podcertificaterequests with nodeName field selector")
    return _no(f"nodes may not {asked.verb} podcertificaterequests")


def _node(_graph: NodeGraph, node: str, asked: Attributes) -> Answer:
    if asked.subresource == "status" and asked.verb in ("patch", "update"):
        return _ALLOWED
    if asked.subresource:
        return _no("")
    if asked.verb in ("create", "patch", "update"):
        return _ALLOWED  # NodeRestriction narrows these down
    if asked.verb not in _READS:
        return _no("")
    if asked.name == node:
        return _ALLOWED
    if not asked.name:
        return _no(f"node '{node}' cannot read all nodes, only its own Node object")
    return _no(f"node '{node}' cannot read '{asked.name}', only its own Node object")


def _pod(graph: NodeGraph, node: str, asked: Attributes) -> Answer:
    match asked.subresource, asked.verb:
        case "", "get":
            reached = f"{asked.namespace}/{asked.name}" in graph.pods_of(node)
            return _ALLOWED if reached else _no_path(node)
        case "", "list" | "watch":
            if _selects(asked, node) or (
                asked.name and f"{asked.namespace}/{asked.name}" in graph.pods_of(node)
            ):
                return _ALLOWED
            return _no("can only list/watch pods with spec.nodeName field selector")
        case ("", "create" | "delete") | ("status", "patch" | "update") | ("eviction", "create"):
            return _ALLOWED  # NodeRestriction narrows these down
    return _no("")


def _selects(asked: Attributes, node: str) -> bool:
    """The request is for what belongs to the node, by its field selector."""
    if not asked.field_selector:
        return False
    try:
        requirements = selectors.parse_field_selector(asked.field_selector)
    except ValueError:
        return False
    return any(
        requirement.field == "spec.nodeName" and requirement.equal and requirement.value == node
        for requirement in requirements
    )


_STORAGE, _DEVICES = "storage.k8s.io", "resource.k8s.io"
_OWN: dict[tuple[str, str], Callable[[NodeGraph, str, Attributes], Answer]] = {
    ("", "secrets"): _read_of_pod,
    ("", "configmaps"): _read_of_pod,
    ("", "persistentvolumeclaims"): _claim,
    ("", "persistentvolumes"): _get,
    (_DEVICES, "resourceclaims"): _get,
    (_STORAGE, "volumeattachments"): _attachment,
    ("", "serviceaccounts"): _account,
    ("coordination.k8s.io", "leases"): _lease,
    (_STORAGE, "csinodes"): _csi_node,
    (_DEVICES, "resourceslices"): _slices,
    ("", "nodes"): _node,
    ("", "pods"): _pod,
}


def _references(pod: Obj) -> Iterator[_Reference]:
    if pods.is_mirror(pod):
        return  # made by the node itself: it must not open doors
    spec = pod.get("spec") or {}
    if spec.get("serviceAccountName"):
        yield "serviceaccounts", spec["serviceAccountName"]
    for plural, names in (
        ("secrets", pods.secret_names(pod)),
        ("configmaps", pods.config_map_names(pod)),
        ("persistentvolumeclaims", pods.claim_names(pod)),
    ):
        for name in names:
            yield plural, name
    for claim in spec.get("resourceClaims") or ():
        if claim.get("resourceClaimName"):
            yield "resourceclaims", claim["resourceClaimName"]
    for made in (pod.get("status") or {}).get("resourceClaimStatuses") or ():
        if made.get("resourceClaimName"):
            yield "resourceclaims", made["resourceClaimName"]


def _volume_secrets(volume: Obj) -> Iterator[tuple[str, str]]:
    for source in (volume.get("spec") or {}).values():
        if not isinstance(source, dict):
            continue
        for field, reference in source.items():
            if field.lower().endswith("secretref") and isinstance(reference, dict):
                yield reference.get("namespace") or "", reference.get("name") or ""
