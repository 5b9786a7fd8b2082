"""CronJobs: Jobs at the strokes of a schedule.

Job: decide which Job is due, which old ones go, and what the status says.
Invariant: one stroke makes at most one Job: its name is made of the stroke's time.
Invariant: with Forbid no two run at once; with Replace the old ones go first.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sampan.api.errors import AlreadyExists
from sampan.api.objects import (
    Obj,
    annotations_of,
    controller_of,
    copy_of,
    is_deleted,
    labels_of,
    meta_of,
    name_of,
    namespace_of,
    seconds_of,
    time_text,
    uid_of,
)
from sampan.api.resources import CRON_JOBS, JOBS
from sampan.api.rules.conditions import is_true
from sampan.api.rules.cron import Schedule, ScheduleError, next_after, parse
from sampan.client.events import reference as reference_to
from sampan.client.indexer import by_controller_uid
from sampan.controllers.actions import (
    NOTHING,
    Action,
    Create,
    Delete,
    Outcome,
    Plan,
    Record,
    deletion,
    status_patch,
)
from sampan.controllers.controller import Caches, Controller, View, own_key
from sampan.controllers.workloads.pod_control import controller_reference
from sampan.core.fast_dataclass import dataclass

MANY_MISSED = 100
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def cronjob_controller() -> Controller:
    return Controller(
        name="cronjob-controller",
        component="cronjob-controller",
        aliases=("cronjob",),
        wakes={CRON_JOBS: own_key, JOBS: _cron_job_of},
        planned=_plan_key,
        indices={JOBS: {"controller": by_controller_uid}},
    )


def plan(cron_job: Obj, jobs: Sequence[Obj], now: float) -> Plan:
    if is_deleted(cron_job):
        return NOTHING
    active, words = _active(cron_job, jobs)
    history = _surplus_history(cron_job, jobs)
    due = _due(cron_job, now)
    start: list[Action] = []
    # Made already, though we never heard so: it must not be made again when it is gone one day.
    known = due.at is not None and any(name_of(job) == job_name(cron_job, due.at) for job in jobs)
    if due.at is not None and not known:
        start, refusal = _start_actions(cron_job, active, due, now)
        words += refusal
    words += due.words
    made = [action for action in start if isinstance(action, Create)]

    def then(outcomes: Sequence[Outcome]) -> list[Action]:
        created = _created_job(made, outcomes)
        status = _status(cron_job, jobs, active, start, created, due.at)
        if known and due.at is not None:
            status["lastScheduleTime"] = time_text(due.at)
        patch = status_patch(CRON_JOBS, cron_job, status)
        said = [*words, *_outcome_words(cron_job, outcomes)]
        return [*said, patch] if patch is not None else said

    return Plan([*history, *start], then, due.next_seconds)


@dataclass(frozen=True, slots=True)
class _Due:
    at: float | None = None  # the latest stroke that has not been answered
    zone: ZoneInfo | None = None
    next_seconds: float | None = None
    words: Sequence[Action] = ()


def _due(cron_job: Obj, now: float) -> _Due:
    spec, about = cron_job["spec"], reference_to(cron_job)
    zone_name = spec.get("timeZone") or "Etc/UTC"
    try:
        zone = ZoneInfo(zone_name)
    except (ZoneInfoNotFoundError, ValueError):
        message = f'invalid timeZone: "{zone_name}": unknown time zone {zone_name}'
        return _Due(words=[Record(about, "Warning", "UnknownTimeZone", message)])
    if spec.get("suspend"):
        return _Due()
    try:
        schedule = parse(spec.get("schedule") or "")
    except ScheduleError as error:
        message = f"unparseable schedule: {spec.get('schedule')} : {error}"
        return _Due(words=[Record(about, "Warning", "UnparseableSchedule", message)])
    latest, missed = _missed_schedules(schedule, _earliest(cron_job, now), now, zone)
    words: list[Action] = []
    if missed > MANY_MISSED:
        message = (
            "too many missed start times. Set or decrease "
            ".spec.startingDeadlineSeconds or check clock skew"
        )
        words.append(Record(about, "Warning", "TooManyMissedTimes", message))
    following = next_after(schedule, now, zone)
    left = None if following is None else max(0.0, following - now) + 0.1  # as upstream: not early
    return _Due(latest, zone, left, words)


def _earliest(cron_job: Obj, now: float) -> float:
    status = cron_job.get("status") or {}
    since = status.get("lastScheduleTime") or meta_of(cron_job).get("creationTimestamp")
    earliest = seconds_of(since) if since else now
    deadline = cron_job["spec"].get("startingDeadlineSeconds")
    return earliest if deadline is None else max(earliest, now - float(deadline))


def _missed_schedules(
    schedule: Schedule, earliest: float, now: float, zone: ZoneInfo
) -> tuple[float | None, int]:
    """The latest stroke after `earliest` up to `now`, and how many there were (at least)."""
    latest: float | None = None
    count = 0
    moment = next_after(schedule, earliest, zone)
    while moment is not None and moment <= now:
        latest, count = moment, count + 1
        if count > MANY_MISSED:
            # Long asleep: the last stroke matters, not the exact number of those before it.
            return _latest(schedule, latest, now, zone), count
        moment = next_after(schedule, moment, zone)
    return latest, count


def _latest(schedule: Schedule, known: float, now: float, zone: ZoneInfo) -> float:
    """The last stroke up to `now`, by halves; `known` is an earlier one. However long it was asleep
    (since 1970, somebody wrote), it takes some thirty looks."""
    if schedule.every_seconds:
        return known + (now - known) // schedule.every_seconds * schedule.every_seconds
    after = now  # no stroke in (after, now]
    while after - known > 1:
        middle = (known + after) / 2
        stroke = next_after(schedule, middle, zone)
        if stroke is not None and stroke <= now:
            known = stroke
        else:
            after = middle
    return known


def _start_actions(
    cron_job: Obj, active: Sequence[Obj], due: _Due, now: float
) -> tuple[list[Action], list[Action]]:
    """The deletions and the creation that the stroke asks for, or the words of a refusal."""
    assert due.at is not None
    spec, about = cron_job["spec"], reference_to(cron_job)
    deadline = spec.get("startingDeadlineSeconds")
    if deadline is not None and due.at + float(deadline) < now:
        stamp = datetime.fromtimestamp(due.at, UTC).strftime("%a, %d %b %Y %H:%M:%S %z")
        message = f"Missed scheduled time to start a job: {stamp}"
        return [], [Record(about, "Warning", "MissSchedule", message)]
    policy = spec.get("concurrencyPolicy") or "Allow"
    if policy == "Forbid" and active:
        message = (
            "Not starting job because prior execution is running and concurrency policy is Forbid"
        )
        return [], [Record(about, "Normal", "JobAlreadyActive", message)]
    replaced: list[Action] = []
    if policy == "Replace":
        replaced = [deletion(JOBS, job) for job in active if not is_deleted(job)]
    job = new_job(cron_job, due.at, due.zone or ZoneInfo("Etc/UTC"))
    return [*replaced, Create(JOBS, job, settled=(AlreadyExists,))], []


def job_name(cron_job: Obj, at: float) -> str:
    return f"{name_of(cron_job)}-{int(at // 60)}"


def new_job(cron_job: Obj, at: float, zone: ZoneInfo) -> Obj:
    template = cron_job["spec"].get("jobTemplate") or {}
    stamp = datetime.fromtimestamp(at, zone).isoformat().replace("+00:00", "Z")
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": job_name(cron_job, at),
            "namespace": namespace_of(cron_job),
            "labels": dict(labels_of(template)),
            "annotations": {**annotations_of(template), SCHEDULED_AT: stamp},
            "ownerReferences": [controller_reference(CRON_JOBS, cron_job)],
        },
        "spec": copy_of(template.get("spec") or {}),
    }


def _active(cron_job: Obj, jobs: Sequence[Obj]) -> tuple[list[Obj], list[Action]]:
    """The Jobs that run, and what is said about those that came or went since the last look."""
    about = reference_to(cron_job)
    listed = {item.get("uid"): item for item in (cron_job.get("status") or {}).get("active") or ()}
    running = [job for job in jobs if not _is_finished(job)]
    words: list[Action] = []
    for job in jobs:
        name = name_of(job)
        if _is_finished(job) and uid_of(job) in listed:
            kind = "Complete" if is_true(job, "Complete") else "Failed"
            message = f"Saw completed job: {name}, condition: {kind}"
            words.append(Record(about, "Normal", "SawCompletedJob", message))
        elif (
            not _is_finished(job) and uid_of(job) not in listed and not _is_own_name(cron_job, job)
        ):
            message = f"Saw a job that the controller did not create or forgot: {name}"
            words.append(Record(about, "Warning", "UnexpectedJob", message))
    there = {uid_of(job) for job in jobs}
    for uid, item in listed.items():
        if uid not in there:
            message = f"Active job went missing: {item.get('name')}"
            words.append(Record(about, "Normal", "MissingJob", message))
    return running, words


def _is_own_name(cron_job: Obj, job: Obj) -> bool:
    prefix, _, number = name_of(job).rpartition("-")
    return prefix == name_of(cron_job) and number.isdigit()


def _is_finished(job: Obj) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def _surplus_history(cron_job: Obj, jobs: Sequence[Obj]) -> list[Action]:
    surplus: list[Action] = []
    for kind, field, default in (
        ("Complete", "successfulJobsHistoryLimit", 3),
        ("Failed", "failedJobsHistoryLimit", 1),
    ):
        limit = cron_job["spec"].get(field)
        finished = [job for job in jobs if is_true(job, kind) and not is_deleted(job)]
        finished.sort(
            key=lambda job: ((job.get("status") or {}).get("startTime") or "", name_of(job))
        )
        count = len(finished) - (default if limit is None else int(limit))
        surplus += [deletion(JOBS, job) for job in finished[: max(0, count)]]
    return surplus


def _created_job(made: Sequence[Action], outcomes: Sequence[Outcome]) -> Obj | None:
    for outcome in outcomes:
        if outcome.action in made and outcome.error is None:
            return outcome.result
    return None


def _last_success(jobs: Sequence[Obj]) -> str:
    ends = [
        (job.get("status") or {}).get("completionTime") or ""
        for job in jobs
        if is_true(job, "Complete")
    ]
    return max(ends, default="")


def _status(
    cron_job: Obj,
    jobs: Sequence[Obj],
    active: Sequence[Obj],
    start: Sequence[Action],
    created: Obj | None,
    at: float | None,
) -> Obj:
    status: Obj = dict(cron_job.get("status") or {})
    gone = {
        action.uid for action in start if not isinstance(action, Create) and hasattr(action, "uid")
    }
    running = [job for job in active if uid_of(job) not in gone]
    if created is not None and at is not None:
        running.append(created)
        status["lastScheduleTime"] = time_text(at)
    references = [_job_reference(job) for job in running]
    status.pop("active", None)
    if references:
        status["active"] = references
    last = max(_last_success(jobs), status.get("lastSuccessfulTime") or "")
    if last:
        status["lastSuccessfulTime"] = last
    return status


def _job_reference(job: Obj) -> Obj:
    meta = meta_of(job)
    return {
        "kind": JOBS.kind,
        "namespace": meta.get("namespace"),
        "name": meta.get("name"),
        "uid": meta.get("uid"),
        "apiVersion": JOBS.api_version,
    }


def _outcome_words(cron_job: Obj, outcomes: Sequence[Outcome]) -> list[Action]:
    about = reference_to(cron_job)
    words: list[Action] = []
    for outcome in outcomes:
        if isinstance(outcome.action, Create):
            if outcome.error is not None:
                message = f"Error creating job: {outcome.error.message}"
                words.append(Record(about, "Warning", "FailedCreate", message))
            elif outcome.result is not None:
                message = f"Created job {name_of(outcome.result)}"
                words.append(Record(about, "Normal", "SuccessfulCreate", message))
        elif isinstance(outcome.action, Delete) and outcome.error is None:
            message = f"Deleted job {outcome.action.name}"
            words.append(Record(about, "Normal", "SuccessfulDelete", message))
    return words


async def _plan_key(view: View, key: str) -> Plan:
    cron_job = view.cache(CRON_JOBS).get(key)
    if cron_job is None:
        return NOTHING
    return plan(cron_job, view.cache(JOBS).by("controller", uid_of(cron_job)), view.now)


def _cron_job_of(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    keys: set[str] = set()
    for job in (old, new):
        controller = controller_of(job) if job is not None else None
        if job is not None and controller is not None and controller.get("kind") == "CronJob":
            keys.add(f"{namespace_of(job)}/{controller.get('name', '')}")
    return keys
