"""Jobs: pods that run to completion, each counted exactly once.

Job: decide which pods to make and to delete, when the Job has succeeded or failed, and what its
    status says.
Invariant: no completion is lost or counted twice: see job_tally.
Invariant: a finished Job makes no more pods and never changes its verdict.
"""

from collections.abc import Iterable, Sequence

from sampan.api.errors import NotFound
from sampan.api.objects import (
    Obj,
    controller_of,
    is_deleted,
    meta_of,
    name_of,
    namespace_of,
    revision_of,
    seconds_of,
    time_text,
    uid_of,
)
from sampan.api.resources import JOBS, PODS
from sampan.api.rules.aspects import ANYTHING, OFFERED, OWNERS, looks_at
from sampan.api.rules.conditions import condition_of, find, is_true, with_condition
from sampan.client.events import reference as reference_to
from sampan.client.label_index import ORPHANS, SELECTOR, by_labels_of_orphan, by_selector
from sampan.controllers.actions import (
    NOTHING,
    Action,
    Create,
    Delete,
    Outcome,
    Patch,
    Plan,
    Record,
    deletion,
    status_patch,
)
from sampan.controllers.controller import Caches, Controller, View, own_key
from sampan.controllers.jobs.job_indexes import indexes_text
from sampan.controllers.jobs.job_pods import Wanted, wanted_pods
from sampan.controllers.jobs.job_policy import success_rule
from sampan.controllers.jobs.job_tally import (
    FINALIZER,
    Tally,
    completions_of,
    has_finalizer,
    is_indexed,
    tally,
)
from sampan.controllers.workloads.adoption import claims, controllers_of, may_adopt
from sampan.controllers.workloads.pod_control import pod_events
from sampan.core.fast_dataclass import dataclass

CONTROLLER = "kubernetes.io/job-controller"


@dataclass(frozen=True, slots=True)
class Ending:
    """Why the Job is over; it is so only when its last pod has stopped."""

    failed: bool
    reason: str
    message: str


def job_controller() -> Controller:
    return Controller(
        name="job-controller",
        component="job-controller",
        aliases=("job",),
        wakes={JOBS: own_key, PODS: _job_of_pod},
        planned=_plan_key,
        indices={
            PODS: {"job": _by_job, ORPHANS: by_labels_of_orphan},
            JOBS: {SELECTOR: by_selector},
        },
    )


def plan(job: Obj, pods: Sequence[Obj], now: float) -> Plan:
    if job["spec"].get("managedBy") not in (None, CONTROLLER):
        return NOTHING
    if is_finished(job):
        return Plan([finalizer_removal(pod) for pod in pods if has_finalizer(pod)])
    count = tally(job, pods)
    ending = ending_of(job, count, now)
    wanted = _wanted_pods(job, count, pods, ending, now)
    actions: list[Action] = [
        *(finalizer_removal(pod) for pod in count.releasable),
        *(Create(PODS, pod) for pod in wanted.create),
        *(deletion(PODS, pod, propagation=None) for pod in wanted.delete),
    ]

    def then(outcomes: Sequence[Outcome]) -> list[Action]:
        status = _status(job, count, ending, outcomes, now)
        patch = status_patch(JOBS, job, status)
        words: list[Action] = [*pod_events(job, outcomes), *_condition_events(job, status)]
        return [*words, patch] if patch is not None else words

    return Plan(actions, then, _again(job, wanted, now))


def is_finished(job: Obj) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def ending_of(job: Obj, count: Tally, now: float) -> Ending | None:
    """The verdict that was given before, or the one that is due now."""
    for kind, failed in (("FailureTarget", True), ("SuccessCriteriaMet", False)):
        before = condition_of(job, kind)
        if before is not None and before.get("status") == "True":
            return Ending(failed, before.get("reason", ""), before.get("message", ""))
    return _failure(job, count, now) or _success(job, count)


def finalizer_removal(pod: Obj) -> Patch:
    finalizers = [
        finalizer for finalizer in meta_of(pod).get("finalizers") or () if finalizer != FINALIZER
    ]
    meta = {"uid": uid_of(pod), "resourceVersion": str(revision_of(pod)), "finalizers": finalizers}
    namespace, name = namespace_of(pod), name_of(pod)
    return Patch(PODS, namespace, name, {"metadata": meta}, settled=(NotFound,))


def _failure(job: Obj, count: Tally, now: float) -> Ending | None:
    spec = job["spec"]
    if count.fatal is not None:
        return Ending(True, "PodFailurePolicy", count.fatal.message)
    limit = int(spec["backoffLimit"]) if spec.get("backoffLimit") is not None else 6
    if count.all_failed > limit or _restarted_too_often(job, count, limit):
        message = "Job has reached the specified backoff limit"
        return Ending(True, "BackoffLimitExceeded", message)
    left = _seconds_to_deadline(job, now)
    if left is not None and left <= 0:
        message = "Job was active longer than specified deadline"
        return Ending(True, "DeadlineExceeded", message)
    most = spec.get("maxFailedIndexes")
    if most is not None and len(count.failed_indexes) > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return Ending(True, "MaxFailedIndexesExceeded", message)
    return None


def _success(job: Obj, count: Tally) -> Ending | None:
    completions = completions_of(job)
    if is_indexed(job):
        rule = success_rule(job, count.completed_indexes, completions or 0)
        if rule is not None:
            return Ending(False, "SuccessPolicy", f"Matched rules at index {rule}")
        done = len(count.completed_indexes | count.failed_indexes) >= (completions or 0)
        if done and count.failed_indexes:
            return Ending(True, "FailedIndexes", "Job has failed indexes")
    elif completions is None:
        done = count.all_succeeded > 0 and not count.active
    else:
        done = count.all_succeeded >= completions
    message = "Reached expected number of succeeded pods"
    return Ending(False, "CompletionsReached", message) if done else None


def _wanted_pods(
    job: Obj, count: Tally, pods: Sequence[Obj], ending: Ending | None, now: float
) -> Wanted:
    if is_deleted(job):
        return Wanted()
    if ending is not None or job["spec"].get("suspend"):
        return Wanted(delete=count.active)
    return wanted_pods(job, count, pods, now)


def _status(
    job: Obj, count: Tally, ending: Ending | None, outcomes: Sequence[Outcome], now: float
) -> Obj:
    before: Obj = job.get("status") or {}
    status = _counters(job, count, outcomes)
    uncounted = status["uncountedTerminatedPods"]
    suspended = bool(job["spec"].get("suspend")) and ending is None
    if not suspended:
        status["startTime"] = before.get("startTime") or time_text(now)
    conditions = _suspension(job, before.get("conditions") or [], suspended, now)
    if ending is not None:
        over = not count.active and not count.terminating and not uncounted
        conditions = _with_ending(conditions, ending, over, now)
        if over and not ending.failed:
            status["completionTime"] = time_text(now)
    if conditions:
        status["conditions"] = conditions
    return status


def _counters(job: Obj, count: Tally, outcomes: Sequence[Outcome]) -> Obj:
    done = [outcome.action for outcome in outcomes if outcome.error is None]
    made = sum(isinstance(action, Create) for action in done)
    stopped = sum(isinstance(action, Delete) for action in done)
    active = max(0, len(count.active) + made - stopped)
    uncounted = {"succeeded": count.uncounted_succeeded, "failed": count.uncounted_failed}
    counts = {"active": active, "succeeded": count.succeeded, "failed": count.failed}
    status: Obj = {
        "ready": count.ready,
        "terminating": count.terminating,
        "uncountedTerminatedPods": {name: list(uids) for name, uids in uncounted.items() if uids},
        **{name: number for name, number in counts.items() if number},
    }
    if count.completed_indexes:
        status["completedIndexes"] = indexes_text(count.completed_indexes)
    if job["spec"].get("backoffLimitPerIndex") is not None:
        status["failedIndexes"] = indexes_text(count.failed_indexes)
    return status


def _suspension(job: Obj, conditions: list[Obj], suspended: bool, now: float) -> list[Obj]:
    known = find(conditions, "Suspended")
    if suspended == (known is not None and known.get("status") == "True"):
        return conditions
    word = "suspended" if suspended else "resumed"
    wanted = {
        "type": "Suspended",
        "status": "True" if suspended else "False",
        "reason": f"Job{word.capitalize()}",
        "message": f"Job {word}",
    }
    return _with_probe_time(conditions, wanted, now)


def _with_ending(conditions: list[Obj], ending: Ending, over: bool, now: float) -> list[Obj]:
    kinds = ["FailureTarget" if ending.failed else "SuccessCriteriaMet"]
    if over:
        kinds.append("Failed" if ending.failed else "Complete")
    for kind in kinds:
        if find(conditions, kind) is None:
            wanted = {
                "type": kind,
                "status": "True",
                "reason": ending.reason,
                "message": ending.message,
            }
            conditions = _with_probe_time(conditions, wanted, now)
    return conditions


def _with_probe_time(conditions: Sequence[Obj], wanted: Obj, now: float) -> list[Obj]:
    return with_condition(conditions, {**wanted, "lastProbeTime": time_text(now)}, now)


def _condition_events(job: Obj, status: Obj) -> list[Action]:
    """What is new since the last status."""
    about = reference_to(job)
    before = {
        condition["type"]: condition.get("status")
        for condition in (job.get("status") or {}).get("conditions") or ()
    }
    events: list[Action] = []
    for condition in status.get("conditions") or ():
        kind, state = condition["type"], condition["status"]
        if before.get(kind) == state:
            continue
        if kind == "Suspended":
            word = "Suspended" if state == "True" else "Resumed"
            events.append(Record(about, "Normal", word, f"Job {word.lower()}"))
        elif kind == "Complete":
            events.append(Record(about, "Normal", "Completed", "Job completed"))
        elif kind == "Failed":
            events.append(Record(about, "Warning", condition["reason"], condition["message"]))
    return events


def _again(job: Obj, wanted: Wanted, now: float) -> float | None:
    times = [wanted.again_seconds, _seconds_to_deadline(job, now)]
    coming = [time_ for time_ in times if time_ is not None and time_ > 0]
    return min(coming) if coming else None


def _seconds_to_deadline(job: Obj, now: float) -> float | None:
    deadline = job["spec"].get("activeDeadlineSeconds")
    if deadline is None or job["spec"].get("suspend"):
        return None
    started = (job.get("status") or {}).get("startTime")
    return (seconds_of(started) if started else now) + float(deadline) - now


def _restarted_too_often(job: Obj, count: Tally, limit: int) -> bool:
    """With OnFailure the kubelet restarts in place: its restarts count as failures."""
    if (job["spec"]["template"].get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    restarts = 0
    for pod in count.active:
        status = pod.get("status") or {}
        for field in ("initContainerStatuses", "containerStatuses"):
            restarts += sum(int(item.get("restartCount") or 0) for item in status.get(field) or ())
    return restarts > 0 if limit == 0 else restarts >= limit


async def _plan_key(view: View, key: str) -> Plan:
    job = view.cache(JOBS).get(key)
    pods = view.cache(PODS).by("job", key)
    if job is None:
        if not any(has_finalizer(pod) for pod in pods) or await _exists(view, key):
            return NOTHING
        return Plan([finalizer_removal(pod) for pod in pods if has_finalizer(pod)])
    mine: list[Obj] = []
    strangers: list[Obj] = []
    for pod in pods:
        ours = (controller_of(pod) or {}).get("uid") == uid_of(job)
        (mine if ours else strangers).append(pod)
    # Pods of an earlier Job of this name: nobody will ever count them.
    held = [finalizer_removal(pod) for pod in strangers if has_finalizer(pod)]
    if held:
        return Plan(held, again_seconds=0.0)
    if not is_finished(job):
        claimed = await claims(view, JOBS, job, mine, (FINALIZER,))
        if claimed:
            return Plan(claimed)
    return plan(job, mine, view.now)


async def _exists(view: View, key: str) -> bool:
    namespace, _, name = key.partition("/")
    try:
        await view.client.get(JOBS, namespace, name)
    except NotFound:
        return False
    return True


@looks_at(OWNERS)
def _by_job(pod: Obj) -> Iterable[str]:
    controller = controller_of(pod)
    if controller is None or controller.get("kind") != JOBS.kind:
        return ()
    return (f"{namespace_of(pod)}/{controller.get('name', '')}",)


@looks_at(ANYTHING, controller=JOBS.kind, orphans=OFFERED)
def _job_of_pod(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    return {*controllers_of(JOBS.kind, old, new), *may_adopt(caches, JOBS, old, new)}
