"""The status of a Job: counters, conditions, and the events that tell of them.

Job: from what was counted and decided to the status, before and after finalizers go. Pure.
"""

from collections.abc import Sequence

from sampan.api import features
from sampan.api.objects import Obj, time_text
from sampan.api.rules.conditions import find, with_condition
from sampan.client.events import reference as reference_to
from sampan.controllers.actions import Action, Record
from sampan.controllers.jobs.job_ending import Ending
from sampan.controllers.jobs.job_indexes import Indexes
from sampan.controllers.jobs.job_pod_facts import completions_of, has_index_limit
from sampan.controllers.jobs.job_tally import Counted
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """What runs, after pods were made and told to stop."""

    active: int
    ready: int
    terminating: int


def interim_status(
    job: Obj, progress: Progress, ending: Ending | None, *, managed: bool, now: float
) -> Obj:
    """Conditions and times; `managed`: pods were made or stopped as the Job now asks for."""
    before: Obj = job.get("status") or {}
    suspended = bool(job["spec"].get("suspend"))
    status: Obj = {name: before[name] for name in ("startTime",) if before.get(name)}
    if not suspended and not status:
        status["startTime"] = time_text(now)
    conditions = list(before.get("conditions") or ())
    if ending is not None:
        conditions = _with(conditions, ending.interim_type, ending.reason, ending.message, now)
    elif managed:
        changed = _with_suspension(conditions, suspended, now)
        if changed is not conditions and not suspended:
            status["startTime"] = time_text(now)
        elif changed is not conditions and features.enabled(
            "MutableSchedulingDirectivesForSuspendedJobs"
        ):
            status.pop("startTime", None)  # it may be sent elsewhere before it goes on
        conditions = changed
    status |= {"ready": progress.ready, "terminating": progress.terminating}
    if progress.active:
        status["active"] = progress.active
    if conditions:
        status["conditions"] = conditions
    return status


def with_counters(
    job: Obj, status: Obj, counted: Counted, completed: Indexes, failed: Indexes
) -> Obj:
    uncounted = {"succeeded": counted.uncounted_succeeded, "failed": counted.uncounted_failed}
    found: Obj = {
        **status,
        "uncountedTerminatedPods": {name: list(uids) for name, uids in uncounted.items() if uids},
    }
    succeeded = completed.total() if completed else counted.succeeded
    counts = {"succeeded": succeeded, "failed": counted.failed}
    found |= {name: number for name, number in counts.items() if number}
    if completed:
        found["completedIndexes"] = str(completed)
    if has_index_limit(job):
        found["failedIndexes"] = str(failed)
    return found


def final_status(status: Obj, ending: Ending, now: float) -> Obj:
    conditions = _with(
        status.get("conditions") or (), ending.final_type, ending.reason, ending.message, now
    )
    found = {**status, "conditions": conditions}
    return found if ending.failed else {**found, "completionTime": time_text(now)}


def suspension_events(job: Obj, status: Obj) -> list[Action]:
    """What is new since the stored status."""
    known = find((job.get("status") or {}).get("conditions") or (), "Suspended")
    found = find(status.get("conditions") or (), "Suspended")
    if found is None or (known is not None and known.get("status") == found["status"]):
        return []
    word = "Suspended" if found["status"] == "True" else "Resumed"
    return [Record(reference_to(job), "Normal", word, f"Job {word.lower()}")]


def final_events(job: Obj, status: Obj, ending: Ending) -> list[Action]:
    about = reference_to(job)
    if ending.failed:
        return [Record(about, "Warning", ending.reason, ending.message)]
    events: list[Action] = []
    completions = completions_of(job)
    if completions is not None and int(status.get("succeeded") or 0) > completions:
        message = "Too many succeeded pods running after completion count reached"
        events.append(Record(about, "Warning", "TooManySucceededPods", message))
    return [*events, Record(about, "Normal", "Completed", "Job completed")]


def _with_suspension(conditions: list[Obj], suspended: bool, now: float) -> list[Obj]:
    """The very list where nothing changes: never to have been suspended needs no condition."""
    known = find(conditions, "Suspended")
    if suspended == (known is not None and known.get("status") == "True"):
        return conditions
    word = "suspended" if suspended else "resumed"
    status = "True" if suspended else "False"
    return _with(conditions, "Suspended", f"Job{word.capitalize()}", f"Job {word}", now, status)


def _with(
    conditions: Sequence[Obj],
    kind: str,
    reason: str,
    message: str,
    now: float,
    status: str = "True",
) -> list[Obj]:
    known = find(conditions, kind)
    if known is not None and known.get("status") == status:
        return list(conditions)
    wanted = {"type": kind, "status": status, "reason": reason, "message": message}
    return with_condition(conditions, {**wanted, "lastProbeTime": time_text(now)}, now)
