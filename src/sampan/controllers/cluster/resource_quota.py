"""ResourceQuotas: how much of each is used.

Job: count what a namespace has and write it into the quota's status.
Invariant: status.hard is spec.hard, and status.used has exactly its names.
Invariant: what cannot be counted now is not counted as nothing: it stays as it was said last.
"""

from collections.abc import Iterable, Mapping, Sequence

from sampan.api.errors import ApiError, UnknownPath
from sampan.api.objects import Obj, key_of, meta_of, namespace_of
from sampan.api.quantity import ZERO
from sampan.api.resources import (
    CONFIG_MAPS,
    CRON_JOBS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_QUOTAS,
    RESOURCES,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from sampan.api.rules import quota as quotas
from sampan.api.rules.pod_resources import Amounts
from sampan.client.indexer import by_namespace
from sampan.controllers.actions import NOTHING, Plan, status_patch
from sampan.controllers.cluster.custom_kinds import custom_resource
from sampan.controllers.controller import Caches, Controller, View, Wake

_WATCHED = (
    PODS, SERVICES, PERSISTENT_VOLUME_CLAIMS, SECRETS, CONFIG_MAPS, REPLICATION_CONTROLLERS,
    RESOURCE_QUOTAS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS, CRON_JOBS,
)  # fmt: skip
# Kinds that we do not watch are counted anew so often.
RECOUNT_SECONDS = 30.0


def resource_quota_controller() -> Controller:
    wakes: dict[Resource, Wake] = {item: _quotas_of(item) for item in _WATCHED}
    indices = {item: {"namespace": by_namespace} for item in _WATCHED}
    return Controller(
        name="resourcequota-controller",
        component="resourcequota-controller",
        aliases=("resourcequota",),
        wakes=wakes,
        planned=_plan_key,
        indices={**indices, CUSTOM_RESOURCE_DEFINITIONS: {}},
        optional={*_WATCHED, CUSTOM_RESOURCE_DEFINITIONS} - {RESOURCE_QUOTAS},
    )


def plan(
    quota: Obj,
    objects: Mapping[Resource, Sequence[Obj]],
    recount: bool,
    unknown: Sequence[Resource] = (),
) -> Plan:
    """`objects`: what the namespace has, of every kind that the quota may count; `unknown`: the
    kinds of which nobody can tell now."""
    used = quotas.total(
        quotas.usage_of(resource, obj)
        for resource, listed in objects.items()
        for obj in listed
        if quotas.counts(quota, resource, obj)
    )
    hard = (quota.get("spec") or {}).get("hard") or {}
    before = (quota.get("status") or {}).get("used") or {}
    said = {name: str(used.get(name, ZERO)) for name in hard}
    for name in hard:
        if any(quotas.is_measured_by(name, resource) for resource in unknown):
            del said[name]
            said |= {name: before[name]} if name in before else {}
    again = RECOUNT_SECONDS if recount or unknown else None
    patch = status_patch(RESOURCE_QUOTAS, quota, {"hard": hard, "used": said})
    return Plan([] if patch is None else [patch], again_seconds=again)


async def _plan_key(view: View, key: str) -> Plan:
    quota = view.cache(RESOURCE_QUOTAS).get(key)
    if quota is None:
        return NOTHING
    namespace = namespace_of(quota)
    objects: dict[Resource, Sequence[Obj]] = {
        item: view.cache(item).by("namespace", namespace)
        for item in _WATCHED
        if view.is_synced(item)
    }
    unknown = [item for item in _WATCHED if item not in objects]
    others = [item for item in _counted_resources(view.cache, quota) if item not in _WATCHED]
    for resource in others:
        try:
            objects[resource] = (await view.client.list(resource, namespace)).items
        except UnknownPath:
            continue  # not served (any more): there is nothing to count
        except ApiError:
            unknown.append(resource)
    return plan(quota, objects, bool(others), unknown)


def _counted_resources(caches: Caches, quota: Obj) -> Iterable[Resource]:
    for name in quotas.hard_of(quota):
        wanted = quotas.counted_resource(name)
        if wanted is None:
            continue
        plural, group = wanted
        found = next(
            (
                resource
                for resource in RESOURCES
                if (resource.plural, resource.group) == (plural, group)
            ),
            None,
        )
        found = found or _custom(caches, plural, group)
        if found is not None:
            yield found


def _custom(caches: Caches, plural: str, group: str) -> Resource | None:
    return custom_resource(caches(CUSTOM_RESOURCE_DEFINITIONS).get(f"{plural}.{group}"))


def _quotas_of(resource: Resource) -> Wake:
    def wake(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
        obj = new if new is not None else old
        if obj is None:
            return ()
        if resource == RESOURCE_QUOTAS and old is not None and new is not None:
            return () if _same_spec(old, new) else (key_of(new),)
        found = caches(RESOURCE_QUOTAS).by("namespace", namespace_of(obj))
        if not found or (old is not None and new is not None and _takes(old) == _takes(new)):
            return ()
        return [key_of(match_) for match_ in found]

    def _takes(obj: Obj) -> Amounts:
        return quotas.usage_of(resource, obj)

    return wake


def _same_spec(old: Obj, new: Obj) -> bool:
    """Our own word about what is used tells nothing new; another's has to be put right."""
    same = old.get("spec") == new.get("spec") and old.get("status") == new.get("status")
    return same and meta_of(old).get("uid") == meta_of(new).get("uid")
