"""Many nodes of this process renew their leases: one call for all of them.

Job: set the renewTime of leases that their nodes hold; say which have to go the ordinary way.
Invariant: each is authorized as its node's own patch, written by compare-and-swap at a revision of
    its own, and told to every watcher, as that patch would be.
Invariant: where anybody has something to say about such a patch (a webhook, a policy, an audit
    log), all of them go the ordinary way.
"""

from collections.abc import Collection, Mapping

from sampan.api.calls import Call
from sampan.api.errors import ApiError
from sampan.api.objects import is_deleted
from sampan.api.resources import LEASES
from sampan.apiserver.admission.chain import UPDATE
from sampan.apiserver.authn.user import User, component
from sampan.apiserver.authz.calls import authorize
from sampan.apiserver.registry.generic import PLAIN, Stale
from sampan.apiserver.write.parts import Parts
from sampan.core.tasks import all_of

NAMESPACE = "kube-node-lease"
# Plugins that find nothing in a renewal: they look at whose lease it is, and at what it asks for.
INDIFFERENT = frozenset(
    {"NodeRestriction", "NamespaceLifecycle", "OwnerReferencesPermissionEnforcement"}
)


class LeaseRenewals:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._users: dict[str, User] = {}  # of the nodes that renewed; as many as this process has

    async def renew(self, times: Mapping[str, str]) -> Collection[str]:
        """Node → renewTime. Those that have to go the ordinary way."""
        if not INDIFFERENT.issuperset(self._parts.admission.concerned(UPDATE, LEASES)):
            return times.keys()
        left: list[str] = []
        await all_of(self._renew(name, time, left) for name, time in times.items())
        return left

    async def _renew(self, name: str, time: str, left: list[str]) -> None:
        registry = self._parts.registry
        item = registry.kind(LEASES).items.get(f"{NAMESPACE}/{name}")
        spec = {} if item is None else item.obj.get("spec") or {}
        if item is None or is_deleted(item.obj) or spec.get("holderIdentity") != name:
            left.append(name)
            return
        user = self._users.get(name)
        if user is None:
            user = self._users[name] = component(f"system:node:{name}")
        meta = dict(item.obj["metadata"])
        new = {**item.obj, "metadata": meta, "spec": {**spec, "renewTime": time}}
        try:
            await authorize(self._parts.authorization, user, Call("patch", LEASES, NAMESPACE, name))
            await registry.replace(LEASES, item, new, PLAIN)
        except (ApiError, Stale):
            left.append(name)
