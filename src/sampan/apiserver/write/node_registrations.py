"""Many nodes of this process register themselves: one call for all that are like one of them.

Job: make Nodes and their leases after a Node that was created, admitted and found Ready like any
    other; say which have to go the ordinary way.
Invariant: each is authorized as its node's own creates, written at revisions of its own, and told
    to every watcher, as those would be.
Invariant: nothing is taken over from a Node that somebody else than its node has written to; where
    anybody has something to say about such a create (a webhook, a policy), all go the ordinary way.
"""

from collections.abc import Collection, Mapping, Sequence

from sampan.api.calls import Call
from sampan.api.errors import ApiError
from sampan.api.objects import (
    Obj,
    is_deleted,
    meta_of,
    micro_time_text,
    status_of,
    time_text,
    uid_of,
)
from sampan.api.resources import LEASES, NODES, Resource
from sampan.api.rules.names import dns_label
from sampan.apiserver.admission.chain import CREATE
from sampan.apiserver.authn.user import User, component
from sampan.apiserver.authz.calls import authorize
from sampan.apiserver.registry.generic import PLAIN
from sampan.apiserver.registry.metadata import new_uid
from sampan.apiserver.write.lease_renewals import INDIFFERENT, NAMESPACE
from sampan.apiserver.write.parts import Parts
from sampan.core.tasks import all_of

HOSTNAME = "kubernetes.io/hostname"
KUBELETS = frozenset({"kubelet", "sampan-kubelet"})  # as whom a node's own writes are noted
# What it adds, somebody has taken away from the first Node again, or not yet.
_SETTLED = INDIFFERENT | {"TaintNodesByCondition"}
_GIVEN_ANEW = ("uid", "resourceVersion", "creationTimestamp")
_TIMES = ("lastHeartbeatTime", "lastTransitionTime")


class NodeRegistrations:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def register(
        self, pattern: str, addresses: Mapping[str, Sequence[str]]
    ) -> Collection[str]:
        """Nodes like the one of that name, each with its addresses; and their leases. Those that
        have to go the ordinary way, or the rest of it: one that is there is not written to."""
        concerned = self._parts.admission.concerned
        items = self._parts.registry.kind(NODES).items, self._parts.registry.kind(LEASES).items
        node, lease = items[0].get(pattern), items[1].get(f"{NAMESPACE}/{pattern}")
        if (
            node is None or lease is None or not _is_own(node.obj) or not _is_own(lease.obj)
            or not _SETTLED.issuperset(concerned(CREATE, NODES) | concerned(CREATE, LEASES))
        ):  # fmt: skip
            return addresses.keys()
        copies = _Copies(node.obj, lease.obj, self._parts.clock.now())
        left: list[str] = []
        await all_of(self._register(copies, name, given, left) for name, given in addresses.items())
        return left

    async def _register(
        self, copies: "_Copies", name: str, addresses: Sequence[str], left: list[str]
    ) -> None:
        user = component(f"system:node:{name}")
        node = copies.node(name, addresses, new_uid(self._parts.rng))
        lease = copies.lease(name, uid_of(node), new_uid(self._parts.rng))
        try:
            if dns_label(name):
                raise ApiError(f"{name} is no name that is short and plain enough")
            await self._insert(NODES, "", user, node)
            await self._insert(LEASES, NAMESPACE, user, lease)
        except ApiError:
            left.append(name)

    async def _insert(self, resource: Resource, namespace: str, user: User, obj: Obj) -> None:
        call = Call("create", resource, namespace, meta_of(obj)["name"])
        await authorize(self._parts.authorization, user, call)
        await self._parts.registry.insert(resource, obj, PLAIN)


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
        meta = self._metadata(self._node, name, uid)
        labels = meta.get("labels") or {}
        if HOSTNAME in labels:
            meta["labels"] = {**labels, HOSTNAME: name}
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
