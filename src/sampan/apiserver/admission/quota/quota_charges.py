"""Quota charges: status.used, changed by compare-and-swap before a write is stored.

Job: charge every write that takes more; refuse what a quota does not allow.
Invariant: `status.used` is raised by compare-and-swap before the object is written: whatever is
    written at the same time, no quota is exceeded.
Invariant: a charge whose write failed is given back; whoever recounts counts what is under way.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from functools import partial
from weakref import WeakValueDictionary

from sampan.api.calls import Item
from sampan.api.errors import ApiError, forbidden
from sampan.api.objects import Obj, copy_of, key_of, name_of, namespace_of, spec_of, uid_of
from sampan.api.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_QUOTAS,
    RESOURCES,
    SERVICES,
    Resource,
)
from sampan.api.rules.pod_resources import Amounts as Usage
from sampan.api.rules.quota import counts, taking_of, total_of, usage_of
from sampan.api.rules.quota_ledger import QuotaLedger
from sampan.apiserver.admission.chain import UPDATE, Attributes, rejection
from sampan.apiserver.admission.quota import quota_usage as quotas
from sampan.apiserver.registry.generic import PLAIN, Registry, Stale
from sampan.apiserver.watch.listener import follow
from sampan.apiserver.watch.watch_cache import KindCache
from sampan.core.fast_dataclass import dataclass
from sampan.core.holding import Outcome
from sampan.core.log import get_logger

log = get_logger(__name__)

ATTEMPTS = 100  # a lost race is somebody else's success
_CHANGING = (PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES)  # updates of these may take more
_BUILT_IN = frozenset(RESOURCES)
Key = tuple[str, str]  # (namespace, name) of a quota
# Who writes counts: the controller, alone or under the name of all of them.
_COUNTERS = frozenset({
    "system:kube-controller-manager",
    "system:serviceaccount:kube-system:resourcequota-controller",
})  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Charge:
    """What a write takes, while it is not known to be over."""

    resource: Resource
    obj: Obj
    more: Usage


class Quotas:
    def __init__(self, registry: Registry, limited: Sequence[Obj]) -> None:
        """`limited`: what may be made only where a quota covers it (LimitedResource)."""
        self._registry, self._limited = registry, limited
        self._kind = registry.kind(RESOURCE_QUOTAS)
        self._under_way: dict[Key, list[_Charge]] = {}
        self._turns: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
        self._doubtful: set[Key] = set()  # whose status somebody else has written
        self._ledger = QuotaLedger()
        self._followed: set[Resource] = set()
        follow(self._kind, self._quota_changed, lambda: None)

    def mutate(self, attributes: Attributes) -> None:
        """What the controller counted may be old when it arrives: the server counts once more. What
        anybody else writes stands as it is written, until the controller puts it right; nothing is
        allowed by it."""
        new = attributes.obj
        if new is None or attributes.resource is not RESOURCE_QUOTAS:
            return
        if attributes.subresource != "status":
            return
        key = (namespace_of(new), name_of(new))
        if attributes.user.name not in _COUNTERS:
            self._doubtful.add(key)
        else:
            self._doubtful.discard(key)
            hard = (new.get("spec") or {}).get("hard") or {}
            new["status"] = {"hard": copy_of(hard), "used": quotas.quantities(self._count(new))}

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        if not attributes.namespace or attributes.obj is None:
            return None
        resource, update = attributes.resource, attributes.operation == UPDATE
        if attributes.subresource not in ("", "resize") or (update and resource not in _CHANGING):
            return None
        found = [
            quota
            for key in self._kind.keys(attributes.namespace)
            if (quota := self._kind.items[key].obj)
        ]
        limited = [item for item in self._limited if _concerns(item, resource)]
        if limited:
            _refuse_uncovered(attributes, limited, found)
        return self._charge(attributes, found) if found else None

    async def _charge(self, attributes: Attributes, found: list[Obj]) -> None:
        obj, old, resource = attributes.obj, attributes.old, attributes.resource
        assert obj is not None
        for quota in found:
            more = _more(quota, resource, obj, old)
            if resource is PODS and old is None:
                _refuse_unstated(attributes, quota, obj)
            if not more:
                continue
            if attributes.dry_run:
                _refuse_beyond(attributes, quota, self._usage(quota, more), more)
                continue
            key, charge = (namespace_of(quota), name_of(quota)), _Charge(resource, obj, more)
            attributes.hold.add(partial(self._settle, key, charge))
            # One after the other: of many at once all but one would lose, and be counted meanwhile.
            async with self._turns.setdefault(key, asyncio.Lock()):
                await self._raise(attributes, key, charge)

    async def _raise(self, attributes: Attributes, key: Key, charge: _Charge) -> None:
        """Raises Forbidden where the quota does not allow it."""
        for _ in range(ATTEMPTS):
            item = await self._registry.current(RESOURCE_QUOTAS, *key)
            used = self._usage(item.obj, charge.more)
            _refuse_beyond(attributes, item.obj, used, charge.more)
            hard = (item.obj.get("spec") or {}).get("hard") or {}
            recorded = (item.obj.get("status") or {}).get("used") or {}
            raised = quotas.quantities(quotas.add(used, charge.more))
            others = {name: recorded[name] for name in hard if name not in raised}
            status = {"hard": copy_of(hard), "used": dict(sorted((others | raised).items()))}
            meta = dict(item.obj["metadata"])
            self._under_way.setdefault(key, []).append(charge)
            try:
                new = {**item.obj, "metadata": meta, "status": status}
                await self._registry.replace(RESOURCE_QUOTAS, item, new, PLAIN)
            except Stale:
                self._forget(key, charge)
                continue
            self._doubtful.discard(key)
            return
        raise forbidden(
            attributes.resource.plural, attributes.resource.group, attributes.called,
            f"quota {key[1]} is written too often; please try again",
        )  # fmt: skip

    async def _settle(self, key: Key, charge: _Charge, outcome: Outcome) -> None:
        """The write is over: it is counted with the others from now on, or given back."""
        if charge not in self._under_way.get(key, ()):
            return  # nothing was raised
        if outcome is Outcome.COMMITTED:
            quota = self._registry.find(RESOURCE_QUOTAS, *key)
            if quota is not None and not self._is_there(quota, charge):
                await self._registry.cache.fresh()  # its caller did not wait for that
            self._forget(key, charge)
            return
        self._forget(key, charge)
        try:
            await self._recount(key)
        except ApiError as error:  # the controller will; the caller's own failure is told
            log.info("could not release the quota charge", quota=key, error=error)

    async def _recount(self, key: Key) -> None:
        for _ in range(ATTEMPTS):
            item = await self._registry.current(RESOURCE_QUOTAS, *key)
            status = {**(item.obj.get("status") or {})}
            status["used"] = quotas.quantities(self._count(item.obj))
            new = {**item.obj, "metadata": dict(item.obj["metadata"]), "status": status}
            try:
                await self._registry.replace(RESOURCE_QUOTAS, item, new, PLAIN)
            except Stale:
                continue
            return

    def _forget(self, key: Key, charge: _Charge) -> None:
        charges = self._under_way.get(key, [])
        if charge in charges:
            charges.remove(charge)  # compared by identity
        if not charges:
            self._under_way.pop(key, None)

    def _usage(self, quota: Obj, names: Iterable[str]) -> Usage:
        """Of these names, as recorded, where everything that is limited has been counted; else of
        everything, as it is now."""
        hard = (quota.get("spec") or {}).get("hard") or {}
        recorded = (quota.get("status") or {}).get("used") or {}
        doubtful = (namespace_of(quota), name_of(quota)) in self._doubtful
        if not doubtful and hard.keys() <= recorded.keys():
            return quotas.amounts({name: recorded[name] for name in names})
        return self._count(quota)

    def _count(self, quota: Obj) -> Usage:
        namespace = namespace_of(quota)
        used = quotas.zeros(quota)
        for resource in quotas.resources_of(quota, self._is_defined):
            for name, amount in self._count_kind(quota, namespace, resource).items():
                used[name] = used[name] + amount
        for charge in self._under_way.get((namespace, name_of(quota)), ()):
            if not self._is_there(quota, charge):
                used = quotas.add(used, charge.more)
        return used

    def _is_defined(self, named: str) -> bool:
        return self._registry.find(CUSTOM_RESOURCE_DEFINITIONS, "", named) is not None

    def _count_kind(self, quota: Obj, namespace: str, resource: Resource) -> Usage:
        kind = self._registry.kind(resource)
        there = partial(_objects, kind, namespace)
        if resource not in _BUILT_IN:  # its definition may go, and whoever follows it with it
            takings = Counter(taking_of(resource, obj) for obj in there())
            return total_of(quota, resource, takings)
        if resource not in self._followed:
            self._followed.add(resource)
            reloaded = partial(self._ledger.forget_kind, resource)
            follow(kind, partial(self._changed, resource), reloaded)
        return self._ledger.used(quota, namespace, resource, there)

    def _changed(self, resource: Resource, before: Item | None, now: Item | None) -> None:
        item = now or before
        if item is not None:
            new = None if now is None else now.obj
            self._ledger.put(resource, item.key.partition("/")[0], item.key, new)

    def _quota_changed(self, before: Item | None, now: Item | None) -> None:
        """Where there is none any more nobody counts."""
        if now is None and before is not None:
            namespace = before.key.partition("/")[0]
            if not self._kind.keys(namespace):
                self._ledger.forget(namespace)

    def _is_there(self, quota: Obj, charge: _Charge) -> bool:
        """The write is in the cache already, and so counted: its caller just has not heard yet."""
        item = self._registry.kind(charge.resource).items.get(key_of(charge.obj))
        if item is None or uid_of(item.obj) != uid_of(charge.obj):
            return False
        now, then = (
            quotas.count_of(quota, charge.resource, entry) for entry in (item.obj, charge.obj)
        )
        return now == then


def _objects(kind: KindCache, namespace: str) -> list[Obj]:
    return [kind.items[key].obj for key in kind.keys(namespace)]


def _more(quota: Obj, resource: Resource, obj: Obj, old: Obj | None) -> Usage:
    """What the write takes that was not taken before."""
    now = quotas.count_of(quota, resource, obj)
    if old is not None:
        now = quotas.less(now, quotas.count_of(quota, resource, old))
    return {name: amount for name, amount in now.items() if amount.nanos > 0}


def _concerns(limited: Obj, resource: Resource) -> bool:
    named = (limited.get("apiGroup") or "", limited.get("resource"))
    return named == (resource.group, resource.plural)


def _refuse_uncovered(attributes: Attributes, limited: list[Obj], found: list[Obj]) -> None:
    """What is limited by default needs a quota that speaks of it."""
    resource, obj = attributes.resource, attributes.obj or {}
    covering = [quota for quota in found if counts(quota, resource, obj)]
    hard = {name for quota in covering for name in spec_of(quota).get("hard") or ()}
    names = _limited_names(attributes, limited) - hard
    if names:
        raise rejection(attributes, f"insufficient quota to consume: {','.join(sorted(names))}")
    scopes = {_scope(scope) for quota in covering for scope in _scopes(quota)}
    for scope in _limited_scopes(limited):
        meant: Obj = {"spec": {"scopeSelector": {"matchExpressions": [scope]}}}
        if counts(meant, resource, obj) and scope.get("scopeName") not in scopes:
            values = " ".join(scope.get("values") or ())
            shown = f"[{{{scope.get('scopeName')} {scope.get('operator')} [{values}]}}]"
            raise rejection(attributes, f"insufficient quota to match these scopes: {shown}")


def _limited_names(attributes: Attributes, limited: list[Obj]) -> set[str]:
    """What the write takes more of, of all that only a quota allows."""
    takes = usage_of(attributes.resource, attributes.obj or {})
    if attributes.old is not None:
        takes = quotas.less(takes, usage_of(attributes.resource, attributes.old))
    parts = [text for rule in limited for text in rule.get("matchContains") or ()]
    more = [name for name, amount in takes.items() if amount.nanos > 0]
    return {name for name in more if any(part in name for part in parts)}


def _limited_scopes(limited: list[Obj]) -> Iterator[Obj]:
    for rule in limited:
        yield from rule.get("matchScopes") or ()


def _scopes(quota: Obj) -> list[str | Obj]:
    spec = quota.get("spec") or {}
    selected = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return [*(spec.get("scopes") or ()), *selected]


def _scope(named: str | Obj) -> str:
    return named if isinstance(named, str) else str(named.get("scopeName"))


def _refuse_unstated(attributes: Attributes, quota: Obj, pod: Obj) -> None:
    if not counts(quota, PODS, pod):
        return
    missing = quotas.unstated_resources(quota, pod)
    if missing:
        what = "; ".join(f"{name} for: {','.join(sorted(of))}" for name, of in missing.items())
        raise rejection(attributes, f"failed quota: {name_of(quota)}: must specify {what}")


def _refuse_beyond(attributes: Attributes, quota: Obj, used: Usage, more: Usage) -> None:
    written = (quota.get("spec") or {}).get("hard") or {}
    hard = quotas.amounts({name: written[name] for name in more})
    beyond = [name for name, amount in sorted(more.items()) if used[name] + amount > hard[name]]
    if beyond:
        raise rejection(
            attributes,
            f"exceeded quota: {name_of(quota)}, requested: {_usage_text(more, beyond)}, "
            f"used: {_usage_text(used, beyond)}, limited: {_usage_text(hard, beyond)}",
        )


def _usage_text(usage: Usage, names: list[str]) -> str:
    return ",".join(f"{name}={usage[name]}" for name in names)
