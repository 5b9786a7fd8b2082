"""Quotas follow what is in their namespace.

Job: notice that a quota's recorded usage is not what there is, and have the server count it anew.
Invariant: the number that is kept is the server's own count; this controller only asks for it.
"""

from collections.abc import Iterable, Iterator

from sampan.api import quota as quotas
from sampan.api.objects import Obj, key_of, namespace_of
from sampan.api.resources import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_QUOTAS,
    RESOURCES,
    SECRETS,
    SERVICES,
    Resource,
)
from sampan.client.cache import by_namespace
from sampan.controllers.actions import NOTHING, Patch, Plan
from sampan.controllers.controller import Caches, Controller, View, Wake, own_key

RESYNC_SECONDS = 300.0  # as upstream: what no event told
# What is counted by events; of other kinds (count/…) the server is asked at every resync.
_REPLICATION = next(one for one in RESOURCES if one.plural == "replicationcontrollers")
WATCHED: tuple[Resource, ...] = (
    PODS, SERVICES, PERSISTENT_VOLUME_CLAIMS, CONFIG_MAPS, SECRETS, _REPLICATION,
)  # fmt: skip


def resource_quota_controller() -> Controller:
    wakes: dict[Resource, Wake] = {RESOURCE_QUOTAS: own_key}
    wakes |= {one: _waking(one) for one in WATCHED}
    indices = {one: {"namespace": by_namespace} for one in (RESOURCE_QUOTAS, *WATCHED)}
    return Controller(
        name="resourcequota-controller",
        component="resourcequota-controller",
        aliases=("resourcequota",),
        wakes=wakes,
        indices=indices,
        planned=_planned,
        workers=5,
    )


def plan(quota: Obj, objects: Iterable[tuple[Resource, Obj]]) -> Plan:
    hard = (quota.get("spec") or {}).get("hard") or {}
    status = quota.get("status") or {}
    watched = all(one in WATCHED for one in quotas.resources_of(quota))
    again = None if watched else RESYNC_SECONDS
    wanted = quotas.written(quotas.total(quota, objects))
    right = quotas.amounts(status.get("used")) == quotas.amounts(wanted)
    if watched and right and status.get("hard") == hard:
        return NOTHING
    # The server replaces `used` by its own count; where that is what is kept, nothing is written.
    patch = {"status": {"hard": hard, "used": wanted}}
    meta = quota["metadata"]
    return Plan(
        [Patch(RESOURCE_QUOTAS, meta["namespace"], meta["name"], patch, subresource="status")],
        again_seconds=again,
    )


def _waking(resource: Resource) -> Wake:
    def wake(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
        obj = new if new is not None else old
        if obj is None:
            return ()
        found = caches(RESOURCE_QUOTAS).by("namespace", namespace_of(obj))
        if not found:
            return ()
        before = quotas.usage_of(resource, old) if old is not None else {}
        now = quotas.usage_of(resource, new) if new is not None else {}
        return () if before == now else [key_of(one) for one in found]

    return wake


async def _planned(view: View, key: str) -> Plan:
    quota = view.cache(RESOURCE_QUOTAS).get(key)
    return NOTHING if quota is None else plan(quota, _objects(view, quota))


def _objects(view: View, quota: Obj) -> Iterator[tuple[Resource, Obj]]:
    namespace = namespace_of(quota)
    for resource in quotas.resources_of(quota):
        if resource is RESOURCE_QUOTAS or resource in WATCHED:
            for obj in view.cache(resource).by("namespace", namespace):
                yield resource, obj
