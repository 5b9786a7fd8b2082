"""Taints of devices: those that drivers publish, and those of DeviceTaintRules.

Job: which devices a rule is about, and until when a claim tolerates what its device bears. Pure.
Invariant: a rule without a selector is about no device, one with an empty selector about every one.
"""

import math
from collections.abc import Iterable

from sampan.api.objects import Obj, seconds_of
from sampan.api.resources import Resource
from sampan.api.rules.tolerations import NO_EXECUTE, taint_of, toleration_of
from sampan.api.served import served_resources

DeviceId = tuple[str, str, str]  # driver, pool, name
_PARTS = ("driver", "pool", "device")


def served_taint_rules() -> Resource | None:
    """In the best version that is served; None: there are none."""
    rows = (row for row in served_resources() if row.plural == "devicetaintrules")
    return next(rows, None)


def rule_matches(rule: Obj, device: DeviceId) -> bool:
    selector = (rule.get("spec") or {}).get("deviceSelector")
    if selector is None:
        return False
    wanted = (selector.get(part) for part in _PARTS)
    return all(one is None or one == own for one, own in zip(wanted, device, strict=True))


def device_id(result: Obj) -> DeviceId:
    """Of one device of an allocation."""
    driver, pool, device = (str(result.get(part) or "") for part in _PARTS)
    return driver, pool, device


def evicted_at(taint: Obj, tolerations: Iterable[Obj]) -> float:
    """When who has the device must go because of a taint; infinity: it may stay."""
    kept_off = taint_of(taint)
    shortest = math.inf
    for toleration in tolerations:
        if toleration.get("effect") != NO_EXECUTE:
            continue
        if toleration_of(toleration).tolerates(kept_off):
            seconds = toleration.get("tolerationSeconds")
            if seconds is None:
                return math.inf
            shortest = min(shortest, float(max(seconds, 0)))
    added = seconds_of(taint["timeAdded"]) if taint.get("timeAdded") else 0.0
    return added if shortest == math.inf else added + shortest
