"""ResourceQuotas: how much of each is used.

Job: count what a namespace has and write it into the quota's status.
Invariant: status.hard is spec.hard, and status.used has exactly its names.
Invariant: what cannot be counted now is not counted as nothing: it stays as it was said last.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import field
from functools import partial

from sampan.api.errors import ApiError, UnknownPath
from sampan.api.objects import Obj, key_of, namespace_of
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
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    RESOURCES,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from sampan.api.rules import quota as quotas
from sampan.api.rules.pod_resources import Amounts
from sampan.api.rules.quota_ledger import QuotaLedger
from sampan.client.indexer import by_namespace
from sampan.controllers.actions import NOTHING, Plan, status_patch
from sampan.controllers.cluster.custom_kinds import custom_resource
from sampan.controllers.controller import Caches, Controller, View, Wake
from sampan.core.fast_dataclass import dataclass

_WATCHED = (
    PODS, SERVICES, PERSISTENT_VOLUME_CLAIMS, SECRETS, CONFIG_MAPS, REPLICATION_CONTROLLERS,
    RESOURCE_QUOTAS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS, CRON_JOBS,
    RESOURCE_CLAIMS,
)  # fmt: skip
# Kinds that we do not watch are counted anew so often.
RECOUNT_SECONDS = 30.0
# What is made was charged before: where that is not yet seen here, it is so soon.
SETTLE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Books:
    """What is used, and which quotas have to be looked at: at once where something was freed or is
    limited otherwise; a while after the first change where all should be charged already."""

    ledger: QuotaLedger = field(default_factory=QuotaLedger)
    due: set[str] = field(default_factory=set)
    look_at: dict[str, float] = field(default_factory=dict)

    def seconds_to_wait(self, key: str, now: float) -> float:
        """0: the quota is looked at now."""
        at = self.look_at.setdefault(key, now + SETTLE_SECONDS)
        if key not in self.due and now < at:
            return at - now
        self.forget(key)
        return 0.0

    def to_wake(self, keys: Iterable[str]) -> list[str]:
        """Those of the keys that nobody will look at anyway."""
        return [key for key in keys if key in self.due or key not in self.look_at]

    def forget(self, key: str) -> None:
        self.due.discard(key)
        self.look_at.pop(key, None)


# By what a quota calls the number of each: it may name thousands of kinds.
_SERVED = {f"count/{resource.group_resource}": resource for resource in reversed(RESOURCES)}


def resource_quota_controller() -> Controller:
    books = _Books()
    wakes: dict[Resource, Wake] = {item: _quotas_of(item, books) for item in _WATCHED}
    wakes[RESOURCE_QUOTAS] = _quota_changed(books)
    indices = {item: {"namespace": by_namespace} for item in _WATCHED}
    return Controller(
        name="resourcequota-controller",
        component="resourcequota-controller",
        aliases=("resourcequota",),
        wakes=wakes,
        planned=partial(_plan_key, books),
        indices={**indices, CUSTOM_RESOURCE_DEFINITIONS: {}},
        optional={*_WATCHED, CUSTOM_RESOURCE_DEFINITIONS} - {RESOURCE_QUOTAS},
    )


def plan(
    quota: Obj, usages: Iterable[Amounts], recount: bool, unknown: Sequence[Resource] = ()
) -> Plan:
    """`usages`: what the quota counts, kind by kind; `unknown`: the kinds of which nobody can tell
    now."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    used: Amounts = dict.fromkeys(hard, ZERO)
    for usage in usages:
        for name, amount in usage.items():
            used[name] = used[name] + amount
    before = (quota.get("status") or {}).get("used") or {}
    said = {name: str(amount) for name, amount in used.items()}
    for name in hard:
        if any(quotas.is_measured_by(name, resource) for resource in unknown):
            del said[name]
            said |= {name: before[name]} if name in before else {}
    again = RECOUNT_SECONDS if recount or unknown else None
    patch = status_patch(RESOURCE_QUOTAS, quota, {"hard": hard, "used": said})
    return Plan([] if patch is None else [patch], again_seconds=again)


async def _plan_key(books: _Books, view: View, key: str) -> Plan:
    quota = view.cache(RESOURCE_QUOTAS).get(key)
    if quota is None:
        return NOTHING
    if wait := books.seconds_to_wait(key, view.now):
        return Plan(again_seconds=wait)
    namespace = namespace_of(quota)
    others = [item for item in _counted_resources(view.cache, quota) if item not in _WATCHED]
    usages, unknown = await _usages_of_others(view, quota, others)
    for item in _WATCHED:
        if not view.is_synced(item):
            unknown.append(item)
            continue
        there = partial(view.cache(item).by, "namespace", namespace)
        usages.append(books.ledger.used(quota, namespace, item, there))
    return plan(quota, usages, bool(others), unknown)


async def _usages_of_others(
    view: View, quota: Obj, resources: Iterable[Resource]
) -> tuple[list[Amounts], list[Resource]]:
    """Of kinds that we do not watch: what is used, and those of which nobody can tell."""
    usages: list[Amounts] = []
    unknown: list[Resource] = []
    for resource in resources:
        try:
            listed = (await view.client.list(resource, namespace_of(quota))).items
        except UnknownPath:
            continue  # not served (any more): there is nothing to count
        except ApiError:
            unknown.append(resource)
        else:
            takings = Counter(quotas.taking_of(resource, obj) for obj in listed)
            usages.append(quotas.total_of(quota, resource, takings))
    return usages, unknown


def _counted_resources(caches: Caches, quota: Obj) -> Iterable[Resource]:
    """Of thousands of names that no kind has, each is one look into what is defined."""
    definitions = caches(CUSTOM_RESOURCE_DEFINITIONS)
    for name in (quota.get("spec") or {}).get("hard") or ():
        if not name.startswith("count/"):
            continue
        found = _SERVED.get(name)
        if found is None and (definition := definitions.get(name.removeprefix("count/"))):
            found = custom_resource(definition)
        if found is not None:
            yield found


def _quotas_of(resource: Resource, books: _Books) -> Wake:
    def wake(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
        obj = new if new is not None else old
        if obj is None:
            return ()
        namespace = namespace_of(obj)
        keys = [key_of(item) for item in caches(RESOURCE_QUOTAS).by("namespace", namespace)]
        if not keys:
            books.ledger.forget(namespace)
            return ()
        changes = books.ledger.put(resource, namespace, key_of(obj), new)
        if changes and old is not None:
            books.due.update(keys)
        return books.to_wake(keys) if changes else ()

    return wake


def _quota_changed(books: _Books) -> Wake:
    """A quota is among what quotas count; its own limits and words are looked at, too."""
    counted = _quotas_of(RESOURCE_QUOTAS, books)

    def wake(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[Hashable]:
        keys = set(counted(caches, old, new))
        if new is None:
            books.forget(key_of(old or {}))
        elif old is None or old.get("spec") != new.get("spec"):
            books.due.add(key_of(new))
            keys.add(key_of(new))
        elif old.get("status") != new.get("status"):
            # A charge; or somebody's word, which has to be put right.
            keys.update(books.to_wake([key_of(new)]))
        return keys

    return wake
