"""What a Deployment's status says: counts, and how available and how far along it is.

Job: the new status from the sets and the old one; how long until a lack of progress is a failure.
    Pure.
Invariant: a Progressing condition that already says so is not written again, except that progress
    renews its lastUpdateTime.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj, meta_of, name_of, seconds_of, time_text
from sampan.api.rules.conditions import find, transition_time, without_condition
from sampan.controllers.workloads.rollout import replicas_of, status_count, surge_and_unavailable

NO_DEADLINE = 2**31 - 1  # what clients send for "never"

Conditions = list[Obj]


def condition(kind: str, status: str, reason: str, message: str) -> Obj:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def with_deployment_condition(conditions: Sequence[Obj], wanted: Obj, now: float) -> Conditions:
    """As upstream: same status and reason is no change; else it moves to the end."""
    before = find(conditions, wanted["type"])
    if before is not None and all(before.get(f) == wanted[f] for f in ("status", "reason")):
        return list(conditions)
    since = transition_time(before, wanted["status"], now)
    dated = {**wanted, "lastUpdateTime": time_text(now), "lastTransitionTime": since}
    return [*without_condition(conditions, wanted["type"]), dated]


def replica_counts(
    deployment: Obj, sets: Sequence[Obj], new_set: Obj | None, conditions: Sequence[Obj], now: float
) -> Obj:
    """Counts, and whether enough is available."""
    available = sum(status_count(item, "availableReplicas") for item in sets)
    wanted = sum(replicas_of(item) for item in sets)
    counts = {
        "replicas": sum(status_count(item, "replicas") for item in sets),
        "updatedReplicas": status_count(new_set, "replicas") if new_set is not None else 0,
        "readyReplicas": sum(status_count(item, "readyReplicas") for item in sets),
        "availableReplicas": available,
        "unavailableReplicas": max(0, wanted - available),
    }
    status: Obj = {name: count for name, count in counts.items() if count}
    status["observedGeneration"] = meta_of(deployment).get("generation", 0)
    status["terminatingReplicas"] = sum(status_count(item, "terminatingReplicas") for item in sets)
    collisions = (deployment.get("status") or {}).get("collisionCount")
    if collisions is not None:
        status["collisionCount"] = collisions
    _, unavailable = surge_and_unavailable(deployment)
    enough = available >= replicas_of(deployment) - unavailable
    verdict = condition(
        "Available",
        "True" if enough else "False",
        "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        f"Deployment {'has' if enough else 'does not have'} minimum availability.",
    )
    status["conditions"] = with_deployment_condition(conditions, verdict, now)
    return status


def with_progress(deployment: Obj, status: Obj, new_set: Obj | None, now: float) -> Obj:
    """The status with the verdict on progress: complete, progressing, or timed out."""
    conditions: Conditions = status["conditions"]
    if not has_deadline(deployment):
        return {**status, "conditions": without_condition(conditions, "Progressing")}
    current = find(conditions, "Progressing")
    is_done = current is not None and current.get("reason") == "NewReplicaSetAvailable"
    if is_done and status.get("replicas", 0) == status.get("updatedReplicas", 0):
        return status
    named = f'ReplicaSet "{name_of(new_set)}"' if new_set else f'Deployment "{name_of(deployment)}"'
    if is_complete(deployment, status):
        message = f"{named} has successfully progressed."
        verdict = condition("Progressing", "True", "NewReplicaSetAvailable", message)
        return {**status, "conditions": with_deployment_condition(conditions, verdict, now)}
    if _is_progressing(deployment, status):
        message = f"{named} is progressing."
        verdict = condition("Progressing", "True", "ReplicaSetUpdated", message)
        return {**status, "conditions": _renew(conditions, current, verdict, now)}
    if is_timed_out(deployment, conditions, now):
        message = f"{named} has timed out progressing."
        verdict = condition("Progressing", "False", "ProgressDeadlineExceeded", message)
        return {**status, "conditions": with_deployment_condition(conditions, verdict, now)}
    return status


def with_set_failure(status: Obj, sets: Sequence[Obj], new_set: Obj | None, now: float) -> Obj:
    """A set that cannot make its pods is the Deployment's trouble, too; the new set's first."""
    ordered = [item for item in (new_set, *sets) if item is not None]
    for item in ordered:
        failure = find((item.get("status") or {}).get("conditions") or (), "ReplicaFailure")
        if failure is not None:
            verdict = {field: failure.get(field, "") for field in ("type", "status", "reason")}
            verdict["message"] = failure.get("message", "")
            conditions = with_deployment_condition(status["conditions"], verdict, now)
            return {**status, "conditions": conditions}
    return {**status, "conditions": without_condition(status["conditions"], "ReplicaFailure")}


def is_complete(deployment: Obj, status: Obj) -> bool:
    replicas = replicas_of(deployment)
    counts = (
        status.get(field, 0) for field in ("updatedReplicas", "replicas", "availableReplicas")
    )
    observed = status.get("observedGeneration", 0) >= meta_of(deployment).get("generation", 0)
    return all(count == replicas for count in counts) and observed


def has_deadline(deployment: Obj) -> bool:
    deadline = deployment["spec"].get("progressDeadlineSeconds")
    return deadline is not None and deadline != NO_DEADLINE


def is_timed_out(deployment: Obj, conditions: Sequence[Obj], now: float) -> bool:
    current = find(conditions, "Progressing")
    if current is None or current.get("reason") == "NewReplicaSetAvailable":
        return False
    if current.get("reason") == "ProgressDeadlineExceeded":
        return True
    return _deadline(deployment, current) < now


def seconds_to_deadline(deployment: Obj, status: Obj, now: float) -> float | None:
    """When to look again although nothing happened; None where no deadline runs."""
    current = find(status["conditions"], "Progressing")
    if current is None or not has_deadline(deployment) or is_complete(deployment, status):
        return None
    if current.get("reason") in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded"):
        return None
    return max(1.0, _deadline(deployment, current) - now + 1.0)


def _deadline(deployment: Obj, current: Obj) -> float:
    since = current.get("lastUpdateTime") or current.get("lastTransitionTime") or ""
    start = seconds_of(since) if since else 0.0
    return start + float(deployment["spec"].get("progressDeadlineSeconds") or 0)


def _is_progressing(deployment: Obj, status: Obj) -> bool:
    before: Obj = deployment.get("status") or {}

    def old_pods(one: Obj) -> int:
        return int(one.get("replicas", 0)) - int(one.get("updatedReplicas", 0))

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return old_pods(status) < old_pods(before) or any(
        status.get(field, 0) > before.get(field, 0) for field in grown
    )


def _renew(conditions: Sequence[Obj], current: Obj | None, verdict: Obj, now: float) -> Conditions:
    """Every bit of progress restarts the deadline: lastUpdateTime is now."""
    stamp = time_text(now)
    same = current is not None and current.get("status") == verdict["status"]
    since = current.get("lastTransitionTime", stamp) if current is not None and same else stamp
    dated = {**verdict, "lastUpdateTime": stamp, "lastTransitionTime": since}
    return [*without_condition(conditions, "Progressing"), dated]
