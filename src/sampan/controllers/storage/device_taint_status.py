"""Status of a DeviceTaintRule: whether it evicts pods, and how many.

Job: the condition EvictionInProgress, in upstream's words. Pure.
Invariant: it changes at most every ten seconds, unless the rule itself did.
"""

from collections.abc import Callable

from sampan.api.objects import Obj, meta_of, seconds_of, spec_of, status_of, time_text
from sampan.api.resources import Resource
from sampan.api.rules.conditions import condition_of, without_condition
from sampan.api.rules.tolerations import NO_EXECUTE
from sampan.controllers.actions import NOTHING, Plan, status_patch
from sampan.core.fast_dataclass import dataclass

STATUS_SECONDS = 10.0
_CONDITION = "EvictionInProgress"


@dataclass(frozen=True, slots=True)
class Facts:
    evicted: int  # pods, since the controller began
    pending: int = 0  # pods that must go, or would have to
    namespaces: int = 0  # of those
    published: int = 0  # devices that the rule is about
    allocated: int = 0


def plan_status(kind: Resource, rule: Obj, facts: Callable[[], Facts], now: float) -> Plan:
    before = condition_of(rule, _CONDITION)
    generation = meta_of(rule).get("generation")
    if before is not None and before.get("observedGeneration") == generation:
        since = now - seconds_of(before["lastTransitionTime"])
        if since < STATUS_SECONDS:
            return Plan(again_seconds=STATUS_SECONDS - since)
    said = condition(str((spec_of(rule).get("taint") or {}).get("effect") or ""), facts())
    wanted = {"type": _CONDITION, **said, "observedGeneration": generation}
    if before is not None and {**before, **wanted} == before:
        return NOTHING
    others = without_condition(status_of(rule).get("conditions") or [], _CONDITION)
    status = {"conditions": [*others, {**wanted, "lastTransitionTime": time_text(now)}]}
    patch = status_patch(kind, rule, status)
    again = STATUS_SECONDS if said["status"] == "True" else None
    return NOTHING if patch is None else Plan([patch], again_seconds=again)


def condition(effect: str, facts: Facts) -> Obj:
    status, reason, message = "False", "OtherEffect", ""
    if effect == NO_EXECUTE:
        reason = "Completed" if facts.evicted else "NotStarted"
        if facts.pending:
            status, reason = "True", "PodsPendingEviction"
            need = "needs" if facts.pending == 1 else "need"
            message = f"{_pods(facts)} {need} to be evicted in {_namespaces(facts)}."
    elif effect == "None":
        reason = "NoEffect"
        message = (
            f"{_devices(facts.published, 'published')} {_devices(facts.allocated, 'allocated')} "
            f"{_pods(facts)} would be evicted in {_namespaces(facts)} if the effect was NoExecute. "
            "This information will not be updated again. Recreate the DeviceTaintRule to trigger "
            "an update."
        )
    else:
        message = "Eviction only happens for the NoExecute effect."
    if facts.evicted:
        went = "1 pod" if facts.evicted == 1 else f"{facts.evicted} pods"
        message = f"{message} {went} evicted since starting the controller.".strip()
    return {"status": status, "reason": reason, "message": message}


def _devices(count: int, which: str) -> str:
    return f"{count} {which} device{'' if count == 1 else 's'} selected."


def _pods(facts: Facts) -> str:
    return "1 pod" if facts.pending == 1 else f"{facts.pending} pods"


def _namespaces(facts: Facts) -> str:
    return "1 namespace" if facts.namespaces == 1 else f"{facts.namespaces} different namespaces"
