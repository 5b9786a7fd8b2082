"""Node batches: the writes that many nodes of this process would make one by one.

Job: what a node's own request would store (a renewed lease, a Node and its lease like one that was
    admitted, a status with new heartbeat times), or that the node has to make that request itself.
    Chain.node_batch, which alone asks for them, authorizes and stores them.
Invariant: each write is made as its node's own request, at a revision of its own, with the
    managedFields that this request would leave.
Invariant: what differs from an object that was validated before is validated; a batch about which
    an admission plugin may have something to say is not made (docs/decisions/0034).
"""

from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import Protocol

from sampan.api.calls import Call, Item
from sampan.api.errors import BadRequest
from sampan.api.objects import (
    Obj,
    is_deleted,
    meta_of,
    micro_time_text,
    status_of,
    time_text,
    uid_of,
)
from sampan.api.resources import LEASES, NODES
from sampan.api.rules.names import dns_label
from sampan.api.rules.nodes import KUBELET_CONDITIONS
from sampan.apiserver.admission.chain import CREATE, UPDATE
from sampan.apiserver.authn.user import User, component
from sampan.apiserver.registry.generic import PLAIN
from sampan.apiserver.registry.metadata import new_uid
from sampan.apiserver.write.request_scope import RequestScope
from sampan.core.fast_dataclass import dataclass

NAMESPACE = "kube-node-lease"
HOSTNAME = "kubernetes.io/hostname"
KUBELETS = frozenset({"kubelet", "sampan-kubelet"})  # the managers of a node's own writes
# Plugins that find nothing here: they look at whose lease it is, and at what it asks for.
_INDIFFERENT = frozenset(
    {"NodeRestriction", "NamespaceLifecycle", "OwnerReferencesPermissionEnforcement"}
)
# The taint that it adds was removed from the first Node by the node lifecycle controller.
_OF_CREATES = _INDIFFERENT | {"TaintNodesByCondition"}
_GIVEN_ANEW = ("uid", "resourceVersion", "creationTimestamp")
_TIMES = ("lastHeartbeatTime", "lastTransitionTime")

Images = Mapping[str, Sequence[Obj] | None]  # node → its images; None: unchanged


@dataclass(frozen=True, slots=True)
class NodeWrite:
    user: User
    call: Call
    obj: Obj
    item: Item | None = None  # what it replaces; None: it is created


class NodeBatch(Protocol):
    @property
    def names(self) -> Collection[str]: ...

    def is_open(self, scope: RequestScope) -> bool:
        """Whether no admission plugin may have something to say about these writes."""

    def writes(self, scope: RequestScope, name: str) -> Sequence[NodeWrite]:
        """Of one node, in their order; empty: it has to make its own request. Raises
        BadRequest."""


def store(scope: RequestScope, write: NodeWrite) -> Awaitable[Item]:
    """Raises ApiError, Stale."""
    resource = write.call.resource
    if write.item is None:
        return scope.registry.insert(resource, write.obj, PLAIN)
    return scope.registry.replace(resource, write.item, write.obj, PLAIN)


class LeaseRenewals:
    def __init__(self, times: Mapping[str, str]) -> None:
        """Node → renewTime."""
        self._times, self._checked = times, dict[str, str]()

    @property
    def names(self) -> Collection[str]:
        return self._times.keys()

    def is_open(self, scope: RequestScope) -> bool:
        return _INDIFFERENT.issuperset(scope.admission.concerned(UPDATE, LEASES))

    def writes(self, scope: RequestScope, name: str) -> Sequence[NodeWrite]:
        item = scope.registry.kind(LEASES).items.get(f"{NAMESPACE}/{name}")
        spec = {} if item is None else item.obj.get("spec") or {}
        if item is None or is_deleted(item.obj) or spec.get("holderIdentity") != name:
            return ()
        time = self._checked_time(scope, self._times[name])
        meta = {**item.obj["metadata"]}
        new = {**item.obj, "metadata": meta, "spec": {**spec, "renewTime": time}}
        call = Call("patch", LEASES, NAMESPACE, name)
        return (NodeWrite(_node_user(name), call, new, item),)

    def _checked_time(self, scope: RequestScope, text: str) -> str:
        """Most nodes renew at the same time. Raises BadRequest."""
        time = self._checked.get(text)
        if time is None:
            read = scope.schema.check(
                LEASES.api_version, LEASES.kind, {"spec": {"renewTime": text}}
            )
            time = self._checked[text] = read.obj["spec"]["renewTime"]
        return time


class NodeReports:
    def __init__(self, images: Images, agent: str) -> None:
        """`agent`: the user agent of these writes."""
        self._images, self._agent = images, agent
        self._now, self._now_text = 0.0, ""

    @property
    def names(self) -> Collection[str]:
        return self._images.keys()

    def is_open(self, scope: RequestScope) -> bool:
        return _INDIFFERENT.issuperset(scope.admission.concerned(UPDATE, NODES))

    def writes(self, scope: RequestScope, name: str) -> Sequence[NodeWrite]:
        item = scope.registry.kind(NODES).items.get(name)
        if item is None or is_deleted(item.obj):
            return ()
        if not self._now_text:
            self._now = scope.clock.now()
            self._now_text = time_text(self._now)
        old, user = item.obj, _node_user(name)
        call = Call("patch", NODES, "", name, "status", agent=self._agent)
        status = {**status_of(old), "conditions": _with_heartbeat(old, self._now_text)}
        images = self._images[name]
        if images is not None:
            scope.schema.check(NODES.api_version, NODES.kind, {"status": {"images": images}})
            status["images"] = images
        new = {**old, "metadata": {**old["metadata"]}, "status": status}
        scope.ownership.updated(user, call, new, old, self._now)
        return (NodeWrite(user, call, new, item),)


class NodeRegistrations:
    """Nodes like one that registered itself and was found Ready; and their leases. Nothing is
    taken over from a Node that anybody else than its kubelet has written to."""

    def __init__(self, pattern: str, addresses: Mapping[str, Sequence[str]]) -> None:
        """`addresses`: of each node to be made."""
        self._pattern, self._addresses = pattern, addresses
        self._copies: _Copies | None = None

    @property
    def names(self) -> Collection[str]:
        return self._addresses.keys()

    def is_open(self, scope: RequestScope) -> bool:
        concerned = scope.admission.concerned
        return _OF_CREATES.issuperset(concerned(CREATE, NODES) | concerned(CREATE, LEASES))

    def writes(self, scope: RequestScope, name: str) -> Sequence[NodeWrite]:
        copies, addresses = self._copies or self._first(scope), self._addresses[name]
        if copies is None or dns_label(name) or len({*addresses, name}) <= len(addresses):
            return ()
        user = _node_user(name)
        node = copies.node(name, addresses, new_uid(scope.rng))
        lease = copies.lease(name, uid_of(node), new_uid(scope.rng))
        return (
            NodeWrite(user, Call("create", NODES, "", name), node),
            NodeWrite(user, Call("create", LEASES, NAMESPACE, name), lease),
        )

    def _first(self, scope: RequestScope) -> "_Copies | None":
        node = scope.registry.kind(NODES).items.get(self._pattern)
        lease = scope.registry.kind(LEASES).items.get(f"{NAMESPACE}/{self._pattern}")
        if node is None or lease is None or not (_is_own(node.obj) and _is_own(lease.obj)):
            return None
        self._copies = _Copies(node.obj, lease.obj, scope.clock.now())
        return self._copies


def _node_user(name: str) -> User:
    return component(f"system:node:{name}")


def _with_heartbeat(node: Obj, now: str) -> list[Obj]:
    return [
        {**each, "lastHeartbeatTime": now} if each["type"] in KUBELET_CONDITIONS else each
        for each in status_of(node).get("conditions") or ()
    ]


def _is_own(obj: Obj) -> bool:
    entries = meta_of(obj).get("managedFields") or ()
    return not is_deleted(obj) and all(entry.get("manager") in KUBELETS for entry in entries)


class _Copies:
    """Of one Node and its lease. What is the same in all of them is the same value."""

    def __init__(self, node: Obj, lease: Obj, now: float) -> None:
        self._node, self._lease = node, lease
        self._now, self._micro_now = time_text(now), micro_time_text(now)
        times = dict.fromkeys(_TIMES, self._now)
        self._conditions = [{**each, **times} for each in status_of(node).get("conditions") or ()]

    def node(self, name: str, addresses: Sequence[str], uid: str) -> Obj:
        """Raises BadRequest."""
        meta = self._metadata(self._node, name, uid)
        labels = meta.get("labels") or {}
        if HOSTNAME in labels:
            meta["labels"] = {**labels, HOSTNAME: name}
        if not all(isinstance(address, str) for address in addresses):
            raise BadRequest("the address of a node is a string")
        shown = [{"type": "InternalIP", "address": address} for address in addresses]
        status = {
            **status_of(self._node),
            "addresses": [*shown, {"type": "Hostname", "address": name}],
            "conditions": self._conditions,
        }
        return {**self._node, "metadata": meta, "status": status}

    def lease(self, name: str, node_uid: str, uid: str) -> Obj:
        meta = self._metadata(self._lease, name, uid)
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node_uid}
        old = uid_of(self._node)
        meta["ownerReferences"] = [owner]
        meta["managedFields"] = [_owned_by(each, old, node_uid) for each in meta["managedFields"]]
        held = {"holderIdentity": name, "renewTime": self._micro_now}
        return {**self._lease, "metadata": meta, "spec": {**self._lease["spec"], **held}}

    def _metadata(self, obj: Obj, name: str, uid: str) -> Obj:
        meta = {key: value for key, value in meta_of(obj).items() if key not in _GIVEN_ANEW}
        entries = [{**entry, "time": self._now} for entry in meta.get("managedFields") or ()]
        meta["managedFields"] = entries
        return {**meta, "name": name, "uid": uid, "creationTimestamp": self._now}


def _owned_by(entry: Obj, old_uid: str, uid: str) -> Obj:
    """The owner's uid is a part of what is owned."""
    fields = entry["fieldsV1"]
    owners = (fields.get("f:metadata") or {}).get("f:ownerReferences") or {}
    old_key = f'k:{{"uid":"{old_uid}"}}'
    if old_key not in owners:
        return entry
    kept = {key: value for key, value in owners.items() if key != old_key}
    owners = {**kept, f'k:{{"uid":"{uid}"}}': owners[old_key]}
    meta = {**fields["f:metadata"], "f:ownerReferences": owners}
    return {**entry, "fieldsV1": {**fields, "f:metadata": meta}}
