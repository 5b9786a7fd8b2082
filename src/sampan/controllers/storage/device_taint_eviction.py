"""Device taint eviction: pods that have a device which bears a taint that they do not tolerate go.

Job: decide for a pod when it goes; what is said of a DeviceTaintRule is device_taint_status.py's.
Invariant: only pods that run somewhere, and for which the claim is reserved, go.
"""

import math
from collections.abc import Callable, Iterable, Sequence

from sampan.api.errors import NotFound
from sampan.api.objects import (
    Obj,
    is_deleted,
    key_of,
    name_of,
    namespace_of,
    spec_of,
    status_of,
    time_text,
    uid_of,
)
from sampan.api.resources import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource
from sampan.api.rules.aspects import DELETION, EXISTENCE, NODE, looks_at
from sampan.api.rules.conditions import is_true
from sampan.api.rules.device_taints import DeviceId, device_id, evicted_at, rule_matches
from sampan.api.rules.pods import node_name
from sampan.api.rules.tolerations import NO_EXECUTE
from sampan.controllers.actions import NOTHING, Action, Patch, Plan, Record, deletion
from sampan.controllers.controller import Caches, Controller, Key, Later, View, Wake
from sampan.controllers.storage.device_taint_status import (
    STATUS_SECONDS,
    Facts,
    plan_status,
)
from sampan.core.fast_dataclass import dataclass

NAME = "device-taint-eviction-controller"
_POD, _RULE = "pod", "rule"
_BY_POOL, _BY_POD = "pool", "reserved for"
_REASON = "DeviceTaintManagerEviction"

FindDevice = Callable[[DeviceId], Obj | None]


@dataclass(frozen=True, slots=True)
class Eviction:
    when: float
    rules: frozenset[str]  # uids of those that have a part in it


def device_taint_eviction_controller(rules: Resource | None) -> Controller:
    """`rules`: None where there are none, only the drivers' own taints."""
    evictions = Evictions(rules)
    wakes: dict[Resource, Wake] = {
        PODS: evictions.pod_changed,
        RESOURCE_CLAIMS: _claim_changed,
        RESOURCE_SLICES: _slice_changed,
    }
    if rules is not None:
        wakes[rules] = _rule_changed
    return Controller(
        name=NAME,
        component=NAME,
        wakes=wakes,
        indices={
            RESOURCE_CLAIMS: {_BY_POOL: _pools_of, _BY_POD: _users_of},
            RESOURCE_SLICES: {_BY_POOL: lambda slice_: (_pool_of(slice_),)},
        },
        planned=evictions.planned,
        workers=8,
    )


class Evictions:
    """Which pods are to go, and how many went because of each rule."""

    def __init__(self, rules: Resource | None) -> None:
        self._kind = rules
        self._due: set[str] = set()  # uids of pods that wait for their time
        self._evicted: dict[str, int] = {}  # by the rule's uid

    async def planned(self, view: View, key: Key) -> Plan:
        what, name = key
        if what == _RULE:
            return self._rule(view, name)
        pod = view.cache(PODS).get(name)
        if pod is None or is_deleted(pod):
            return NOTHING
        eviction = self._eviction(view, pod, self._rules(view))
        if eviction is None:
            return self._cancelled(pod)
        if eviction.when > view.now:
            self._due.add(uid_of(pod))
            return Plan(again_seconds=eviction.when - view.now)
        self._due.discard(uid_of(pod))
        for uid in eviction.rules:
            self._evicted[uid] = self._evicted.get(uid, 0) + 1
        return Plan(evicted(pod, view.now))

    @looks_at(EXISTENCE | NODE | DELETION)
    def pod_changed(self, caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[Key]:
        pod = new if new is not None else old
        if pod is None or not spec_of(pod).get("resourceClaims") or not node_name(pod):
            return ()
        if new is not None:
            return ((_POD, key_of(new)),)
        # It went: rules that make pods go have something to say, in a while.
        rules = () if self._kind is None else caches(self._kind).all()
        evicting = [rule for rule in rules if _effect(rule) == NO_EXECUTE]
        return [Later((_RULE, name_of(rule)), STATUS_SECONDS) for rule in evicting]

    def _cancelled(self, pod: Obj) -> Plan:
        if uid_of(pod) not in self._due:
            return NOTHING
        self._due.discard(uid_of(pod))
        return Plan([Record(_reference(pod), "Normal", _REASON, "Cancelling deletion")])

    def _rules(self, view: View) -> list[Obj]:
        return [] if self._kind is None else list(view.cache(self._kind).all())

    def _eviction(self, view: View, pod: Obj, rules: Sequence[Obj]) -> Eviction | None:
        if not node_name(pod):
            return None
        claims = view.cache(RESOURCE_CLAIMS).by(_BY_POD, uid_of(pod))
        evicting = [rule for rule in rules if _effect(rule) == NO_EXECUTE]
        return eviction_of(claims, _finder(view), evicting)

    def _rule(self, view: View, name: str) -> Plan:
        assert self._kind is not None
        rule = view.cache(self._kind).get(name)
        if rule is None:
            return NOTHING
        return plan_status(self._kind, rule, lambda: self._facts(view, rule), view.now)

    def _facts(self, view: View, rule: Obj) -> Facts:
        evicted = self._evicted.get(uid_of(rule), 0)
        effect = _effect(rule)
        if effect not in (NO_EXECUTE, "None"):
            return Facts(evicted)
        pending = self._pending(view, rule)
        places = len(set(map(namespace_of, pending)))
        if effect == NO_EXECUTE:
            return Facts(evicted, len(pending), places)
        published = published_devices(view.cache(RESOURCE_SLICES).all())
        held = [device_id(it) for of in view.cache(RESOURCE_CLAIMS).all() for it in _results(of)]
        counts = (sum(rule_matches(rule, each) for each in some) for some in (published, held))
        return Facts(evicted, len(pending), places, *counts)

    def _pending(self, view: View, rule: Obj) -> list[Obj]:
        """Pods that a rule makes go, or would make go if it had that effect."""
        others = [each for each in self._rules(view) if uid_of(each) != uid_of(rule)]
        taint = {**(spec_of(rule).get("taint") or {}), "effect": NO_EXECUTE}
        acting = {**rule, "spec": {**spec_of(rule), "taint": taint}}
        pods = [pod for pod in view.cache(PODS).all() if not is_deleted(pod)]
        found = [(pod, self._eviction(view, pod, [*others, acting])) for pod in pods]
        return [pod for pod, why in found if why is not None and uid_of(rule) in why.rules]


def published_devices(slices: Iterable[Obj]) -> list[DeviceId]:
    return [
        (*_identity(slice_), device.get("name") or "")
        for slice_ in _newest(slices)
        for device in spec_of(slice_).get("devices") or ()
    ]


def eviction_of(claims: Iterable[Obj], find: FindDevice, rules: Sequence[Obj]) -> Eviction | None:
    """When who has these claims must go; `rules`: those that make pods go."""
    when, because = math.inf, set()
    for claim in claims:
        for result in _results(claim):
            for taint, uid in _taints(device_id(result), find, rules):
                moment = evicted_at(taint, result.get("tolerations") or ())
                if moment < math.inf:
                    when = min(when, moment)
                    because.add(uid)
    return None if when == math.inf else Eviction(when, frozenset(because - {""}))


def evicted(pod: Obj, now: float) -> list[Action]:
    actions: list[Action] = [Record(_reference(pod), "Normal", _REASON, "Marking for deletion")]
    if not is_true(pod, "DisruptionTarget"):
        actions.append(_disruption_target(pod, now))
    return [*actions, deletion(PODS, pod, propagation=None)]


def _taints(device: DeviceId, find: FindDevice, rules: Sequence[Obj]) -> Iterable[tuple[Obj, str]]:
    """Those that make pods go, each with the uid of its rule."""
    for taint in (find(device) or {}).get("taints") or ():
        if taint.get("effect") == NO_EXECUTE:
            yield taint, ""
    for rule in rules:
        if rule_matches(rule, device):
            yield spec_of(rule).get("taint") or {}, uid_of(rule)


def _finder(view: View) -> FindDevice:
    def find(device: DeviceId) -> Obj | None:
        driver, pool, name = device
        slices = view.cache(RESOURCE_SLICES).by(_BY_POOL, f"{driver}/{pool}")
        for slice_ in _newest(slices):
            for each in spec_of(slice_).get("devices") or ():
                if each.get("name") == name:
                    found: Obj = each
                    return found
        return None

    return find


def _newest(slices: Iterable[Obj]) -> list[Obj]:
    """Of each pool those of its last generation."""
    listed = list(slices)
    last: dict[str, int] = {}
    for slice_ in listed:
        pool = _pool_of(slice_)
        last[pool] = max(last.get(pool, -1), _generation(slice_))
    return [slice_ for slice_ in listed if _generation(slice_) == last[_pool_of(slice_)]]


def _generation(slice_: Obj) -> int:
    return int((spec_of(slice_).get("pool") or {}).get("generation") or 0)


def _identity(slice_: Obj) -> tuple[str, str]:
    spec = spec_of(slice_)
    return spec.get("driver") or "", (spec.get("pool") or {}).get("name") or ""


def _pool_of(slice_: Obj) -> str:
    return "/".join(_identity(slice_))


def _results(claim: Obj) -> Sequence[Obj]:
    allocation = status_of(claim).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or ()


def _pools_of(claim: Obj) -> Iterable[str]:
    return {"/".join(device_id(result)[:2]) for result in _results(claim)}


def _users_of(claim: Obj) -> Iterable[str]:
    return [str(user.get("uid")) for user in status_of(claim).get("reservedFor") or ()]


def _effect(rule: Obj) -> str:
    return str((spec_of(rule).get("taint") or {}).get("effect") or "")


def _pods_of(claim: Obj) -> list[Key]:
    namespace = namespace_of(claim)
    users = status_of(claim).get("reservedFor") or ()
    return [(_POD, f"{namespace}/{user.get('name')}") for user in users]


def _claim_changed(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[Key]:
    if old is not None and new is not None and status_of(old) == status_of(new):
        return ()
    return [key for claim in (old, new) if claim is not None for key in _pods_of(claim)]


def _slice_changed(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[Key]:
    either = [slice_ for slice_ in (old, new) if slice_ is not None]
    devices = (device for each in either for device in spec_of(each).get("devices") or ())
    if not any(device.get("taints") for device in devices):
        return ()
    claims = caches(RESOURCE_CLAIMS).by(_BY_POOL, _pool_of(either[0]))
    return [key for claim in claims for key in _pods_of(claim)]


def _rule_changed(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[Key]:
    if old is not None and new is not None and spec_of(old) == spec_of(new):
        return ()
    either = [rule for rule in (old, new) if rule is not None]
    keys: list[Key] = [(_RULE, name_of(either[0]))]
    if any(_effect(rule) == NO_EXECUTE for rule in either):
        for claim in caches(RESOURCE_CLAIMS).all():
            keys += _pods_of(claim)
    return keys


def _reference(pod: Obj) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": name_of(pod),
        "namespace": namespace_of(pod),
        "uid": uid_of(pod),
    }


def _disruption_target(pod: Obj, now: float) -> Patch:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByDeviceTaintManager",
        "message": "Device Taint manager: deleting due to NoExecute taint",
        "lastTransitionTime": time_text(now),
    }
    patch = {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": [condition]}}
    return Patch(
        PODS, namespace_of(pod), name_of(pod), patch,
        patch_type="strategic", subresource="status", settled=(NotFound,),
    )  # fmt: skip
