"""When a Job is over: failed by its limits or policies, or successful.

Job: the verdict that was given before, or the one that is due now, in upstream's order. Pure.
Invariant: a verdict that the status has is never changed.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj, seconds_of
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.conditions import condition_of, is_true
from sampan.controllers.jobs.job_pod_facts import completions_of, has_index_limit, is_indexed
from sampan.controllers.jobs.job_policy import matched_success_rule
from sampan.controllers.jobs.job_tally import Tally
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Ending:
    """Why the Job is over; it is so only when its last pod has stopped."""

    failed: bool
    reason: str
    message: str

    @property
    def interim_type(self) -> str:
        return "FailureTarget" if self.failed else "SuccessCriteriaMet"

    @property
    def final_type(self) -> str:
        return "Failed" if self.failed else "Complete"


COMPLETED = Ending(False, "CompletionsReached", "Reached expected number of succeeded pods")


def is_finished(job: Obj) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def ending_of(job: Obj, found: Tally, now: float) -> Ending | None:
    """But for enough completions, which is known when surplus pods are gone: see is_complete."""
    for kind, failed in (("SuccessCriteriaMet", False), ("FailureTarget", True)):
        before = condition_of(job, kind)
        if before is not None and before.get("status") == "True":
            return Ending(failed, before.get("reason", ""), before.get("message", ""))
    return _failure(job, found, now) or _failure_of_indexes(job, found) or _success(job, found)


def is_complete(job: Obj, found: Tally, active: int) -> bool:
    completions = completions_of(job)
    if active > 0:
        return False
    return found.succeeded > 0 if completions is None else found.succeeded >= completions


def seconds_to_deadline(job: Obj, now: float) -> float | None:
    deadline = job["spec"].get("activeDeadlineSeconds")
    if deadline is None or job["spec"].get("suspend"):
        return None
    started = (job.get("status") or {}).get("startTime")
    return (seconds_of(started) if started else now) + float(deadline) - now


def _failure(job: Obj, found: Tally, now: float) -> Ending | None:
    if found.fatal:
        return Ending(True, "PodFailurePolicy", found.fatal)
    limit = job["spec"].get("backoffLimit")
    limit = 6 if limit is None else int(limit)
    if found.failed > limit or _restarted_too_often(job, found.pods, limit):
        message = "Job has reached the specified backoff limit"
        return Ending(True, "BackoffLimitExceeded", message)
    left = seconds_to_deadline(job, now)
    if left is not None and left <= 0:
        message = "Job was active longer than specified deadline"
        return Ending(True, "DeadlineExceeded", message)
    return None


def _failure_of_indexes(job: Obj, found: Tally) -> Ending | None:
    if not is_indexed(job) or not has_index_limit(job):
        return None
    failed, most = found.failed_indexes.total(), job["spec"].get("maxFailedIndexes")
    if most is not None and failed > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return Ending(True, "MaxFailedIndexesExceeded", message)
    if failed > 0 and failed + found.completed_indexes.total() >= (completions_of(job) or 0):
        return Ending(True, "FailedIndexes", "Job has failed indexes")
    return None


def _success(job: Obj, found: Tally) -> Ending | None:
    if not is_indexed(job):
        return None
    rule = matched_success_rule(job, found.completed_indexes, completions_of(job) or 0)
    if rule is None:
        return None
    return Ending(False, "SuccessPolicy", f"Matched rules at index {rule}")


def _restarted_too_often(job: Obj, pods: Sequence[Obj], limit: int) -> bool:
    """With OnFailure the kubelet restarts in place: its restarts count as failures."""
    if (job["spec"]["template"].get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    restarts = 0
    for pod in pods:
        if pod_facts.phase(pod) in ("Running", "Pending"):
            status = pod.get("status") or {}
            for field in ("initContainerStatuses", "containerStatuses"):
                listed = status.get(field) or ()
                restarts += sum(int(item.get("restartCount") or 0) for item in listed)
    return restarts > 0 if limit == 0 else restarts >= limit
