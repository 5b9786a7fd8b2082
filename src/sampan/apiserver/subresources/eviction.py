"""pods/NAME/eviction.

Job: delete a pod where its disruption budget allows it.
"""

from sampan.api.calls import Answer, Call, Options
from sampan.api.errors import BadRequest, InternalError, TooManyRequests
from sampan.api.objects import (
    Obj,
    labels_of,
    meta_of,
    name_of,
    namespace_of,
    time_text,
)
from sampan.api.resources import POD_DISRUPTION_BUDGETS, PODS
from sampan.api.rules import selectors
from sampan.apiserver.authn.user import User
from sampan.apiserver.write.decoding import decoded
from sampan.apiserver.write.delete import delete
from sampan.apiserver.write.object_rules import SUCCESS
from sampan.apiserver.write.parts import Parts
from sampan.apiserver.write.update import Modification, modify

NO_BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."


async def evict(parts: Parts, user: User, call: Call) -> Answer:
    eviction = decoded(parts.schema, call, [])
    if name_of(eviction) not in ("", call.name):
        raise BadRequest("name in URL does not match name in Eviction object")
    pod = (await parts.registry.current(PODS, call.namespace, call.name)).obj
    options = _delete_options(eviction.get("deleteOptions") or {}, call.options)
    if _needs_budget(pod):
        budgets = _budgets_of(parts, pod)
        if len(budgets) > 1:
            raise InternalError(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource "
                "does not support."
            )
        if budgets and not call.options.dry_run:
            await _take_from_budget(parts, user, budgets[0], call.name)
    await _mark_disrupted(parts, user, call)
    await delete(parts, user, Call("delete", PODS, call.namespace, call.name, options=options))
    return Answer(SUCCESS, code=201)


def _delete_options(given: Obj, options: Options) -> Options:
    preconditions = given.get("preconditions") or {}
    return Options(
        dry_run=options.dry_run or given.get("dryRun") == ["All"],
        grace_seconds=given.get("gracePeriodSeconds"),
        precondition_uid=preconditions.get("uid") or "",
        precondition_resource_version=preconditions.get("resourceVersion") or "",
        propagation=given.get("propagationPolicy") or "",
    )


def _needs_budget(pod: Obj) -> bool:
    """As canIgnorePDB: pods that do not run any more, or not yet, disturb nobody."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in ("Succeeded", "Failed", "Pending") and not meta_of(pod).get(
        "deletionTimestamp"
    )


def _budgets_of(parts: Parts, pod: Obj) -> list[Obj]:
    found = []
    for budget in parts.registry.find_all(POD_DISRUPTION_BUDGETS):
        selector = (budget.get("spec") or {}).get("selector")
        if namespace_of(budget) != namespace_of(pod) or selector is None:
            continue
        if selectors.from_object(selector).matches(labels_of(pod)):
            found.append(budget)
    return found


async def _take_from_budget(parts: Parts, user: User, budget: Obj, pod: str) -> None:
    call = Call("update", POD_DISRUPTION_BUDGETS, namespace_of(budget), name_of(budget), "status")

    def change(current: Obj) -> Obj:
        status = current.get("status") or {}
        allowed = int(status.get("disruptionsAllowed") or 0)
        if allowed <= 0:
            raise _no_budget(current)
        disrupted = {**(status.get("disruptedPods") or {}), pod: time_text(parts.clock.now())}
        taken = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
        return {**current, "metadata": dict(current["metadata"]), "status": taken}

    await modify(parts, user, call, Modification(change))


def _no_budget(budget: Obj) -> TooManyRequests:
    status = budget.get("status") or {}
    why = (
        f"The disruption budget {name_of(budget)} needs {status.get('desiredHealthy', 0)} healthy "
        f"pods and has {status.get('currentHealthy', 0)} currently"
    )
    return TooManyRequests(
        NO_BUDGET, details={"causes": [{"reason": "DisruptionBudget", "message": why}]}
    )


async def _mark_disrupted(parts: Parts, user: User, call: Call) -> None:
    now = time_text(parts.clock.now())
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": now,
    }

    def change(pod: Obj) -> Obj:
        status = pod.get("status") or {}
        others = [c for c in status.get("conditions") or () if c.get("type") != "DisruptionTarget"]
        marked = {**status, "conditions": [*others, condition]}
        return {**pod, "metadata": dict(pod["metadata"]), "status": marked}

    inner = Call("update", PODS, call.namespace, call.name, "eviction", options=call.options)
    await modify(parts, user, inner, Modification(change))
