"""componentstatuses: the store and the parts that hold a lease, and whether they are well.

Job: say of each what can be known from here. Nothing of it is stored.
Invariant: a part that has never been seen is not listed: nothing is said to be well unseen.
"""

import orjson

from sampan.api.calls import Answer, Call, Item, ListAnswer
from sampan.api.errors import not_found
from sampan.api.objects import Obj, seconds_of
from sampan.api.resources import LEASES
from sampan.apiserver.authn.user import User
from sampan.apiserver.write.request_scope import RequestScope

_LEASE_SECONDS = 15
_LEASED = (("controller-manager", "kube-controller-manager"), ("scheduler", "kube-scheduler"))


async def get_status(scope: RequestScope, user: User, call: Call) -> Answer:
    for status in _statuses(scope):
        if status["metadata"]["name"] == call.name:
            return Answer(status)
    raise not_found(call.resource.plural, call.resource.group, call.name)


async def list_statuses(scope: RequestScope, user: User, call: Call) -> ListAnswer:
    matches = scope.strategies.selection(call).matches
    items = [
        Item(status["metadata"]["name"], 0, status, orjson.dumps(status))
        for status in _statuses(scope)
    ]
    shown = items if matches is None else [item for item in items if matches(item)]
    return ListAnswer(call.resource, shown, 0)


def _statuses(scope: RequestScope) -> list[Obj]:
    registry, now = scope.registry, scope.clock.now()
    found = []
    for part, name in _LEASED:
        lease = registry.find(LEASES, "kube-system", name)
        if lease is not None:
            found.append(component(part, lease_trouble(lease, now)))
    store = "the watch cache does not follow the store" if registry.cache.stopped else ""
    return [*found, component("etcd-0", store)]


def component(name: str, trouble: str) -> Obj:
    condition = {"type": "Healthy", "status": "True", "message": "ok"}
    if trouble:
        condition = {"type": "Healthy", "status": "False", "message": trouble}
    return {
        "apiVersion": "v1",
        "kind": "ComponentStatus",
        "metadata": {"name": name},
        "conditions": [condition],
    }


def lease_trouble(lease: Obj, now: float) -> str:
    """What is wrong with the part that should hold this lease; empty: nothing."""
    spec = lease.get("spec") or {}
    renewed = spec.get("renewTime")
    if not spec.get("holderIdentity") or not renewed:
        return "nobody holds the lease"
    late = now - seconds_of(renewed) - int(spec.get("leaseDurationSeconds") or _LEASE_SECONDS)
    return f"the lease ran out {late:.0f} s ago" if late > 0 else ""
