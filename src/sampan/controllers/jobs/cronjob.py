"""CronJobs: Jobs at the strokes of a schedule.

Job: decide which Job is due, which old ones go, and what the status says.
Invariant: one stroke makes at most one Job: its name is made of the stroke's time.
Invariant: of those in status.active no two run at once with Forbid, and with Replace the old ones
    go first; what is not listed is not touched.
"""

from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sampan.api.errors import AlreadyExists
from sampan.api.objects import (
    Obj,
    annotations_of,
    controller_of,
    copy_of,
    is_deleted,
    key_of,
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
from sampan.controllers.controller import Caches, Controller, Later, View, Wake, own_key
from sampan.controllers.jobs.job_metrics import SCHEDULED_AT, cron_job_counting
from sampan.controllers.workloads.pod_control import controller_reference
from sampan.core.fast_dataclass import dataclass

MANY_MISSED = 100


def cronjob_controller(now: Callable[[], float]) -> Controller:
    """`now` for who changes a schedule: the next stroke of the new one is waited for."""
    return Controller(
        name="cronjob-controller",
        component="cronjob-controller",
        aliases=("cronjob",),
        wakes={CRON_JOBS: _waker(now), JOBS: _cron_job_of},
        planned=_plan_key,
        indices={JOBS: {"controller": by_controller_uid}},
        counted=cron_job_counting,
    )


def plan(
    cron_job: Obj, jobs: Sequence[Obj], now: float, exists: Callable[[str], bool] | None = None
) -> Plan:
    """`jobs`: those that it controls; `exists`: of any Job of its namespace, by name."""
    old = _surplus_history(cron_job, jobs)
    active, events = _active(cron_job, jobs, {uid_of(job) for job in old}, exists)
    due = _Due() if is_deleted(cron_job) else _due(cron_job, now)
    start = _Start()
    if due.at is not None:
        start = _start(cron_job, jobs, active, due, now)
    removals = [deletion(JOBS, job) for job in (*old, *start.replaced)]
    made = [Create(JOBS, start.job, settled=(AlreadyExists,))] if start.job is not None else []

    def then(outcomes: Sequence[Outcome]) -> list[Action]:
        done = [outcome.action for outcome in outcomes if outcome.error is None]
        gone = {action.uid for action in done if isinstance(action, Delete)}
        listed = [item for item in active if item.get("uid") not in gone]
        created = _created_job(outcomes) or start.known
        status = _status(cron_job, jobs, listed, created, due.at)
        patch = status_patch(CRON_JOBS, cron_job, status)
        told = [*events, *due.events, *start.events, *_outcome_events(cron_job, outcomes)]
        return [*told, patch] if patch is not None else told

    return Plan([*removals, *made], then, due.next_seconds)


@dataclass(frozen=True, slots=True)
class _Due:
    at: float | None = None  # the latest stroke that has not been answered
    zone: ZoneInfo | None = None
    next_seconds: float | None = None
    events: Sequence[Action] = ()


@dataclass(frozen=True, slots=True)
class _Start:
    """What a stroke asks for."""

    job: Obj | None = None  # to be made
    known: Obj | None = None  # made already, though we never heard so
    replaced: Sequence[Obj] = ()  # Jobs that go before
    events: Sequence[Action] = ()


def _due(cron_job: Obj, now: float) -> _Due:
    spec, about = cron_job["spec"], reference_to(cron_job)
    zone_name = spec.get("timeZone") or "Etc/UTC"
    try:
        zone = ZoneInfo(zone_name)
    except (ZoneInfoNotFoundError, ValueError):
        message = f'invalid timeZone: "{zone_name}": unknown time zone {zone_name}'
        return _Due(events=[Record(about, "Warning", "UnknownTimeZone", message)])
    if spec.get("suspend"):
        return _Due()
    try:
        schedule = parse(spec.get("schedule") or "")
    except ScheduleError as error:
        message = f'unparseable schedule: "{spec.get("schedule")}" : {error}'
        return _Due(events=[Record(about, "Warning", "UnparseableSchedule", message)])
    try:
        latest, missed = _missed_schedules(schedule, _earliest(cron_job, now), now, zone)
    except ScheduleError as error:
        message = f"invalid schedule: {spec.get('schedule')} : {error}"
        return _Due(events=[Record(about, "Warning", "InvalidSchedule", message)])
    events: list[Action] = []
    if missed > MANY_MISSED:
        message = (
            "too many missed start times. Set or decrease "
            ".spec.startingDeadlineSeconds or check clock skew"
        )
        events.append(Record(about, "Warning", "TooManyMissedTimes", message))
    following = next_after(schedule, now, zone)
    left = None if following is None else max(0.0, following - now) + 0.1  # as upstream: not early
    return _Due(latest, zone, left, events)


def _earliest(cron_job: Obj, now: float) -> float:
    status = cron_job.get("status") or {}
    since = status.get("lastScheduleTime") or meta_of(cron_job).get("creationTimestamp")
    earliest = seconds_of(since) if since else now
    deadline = cron_job["spec"].get("startingDeadlineSeconds")
    return earliest if deadline is None else max(earliest, now - max(0.0, float(deadline)))


def _missed_schedules(
    schedule: Schedule, earliest: float, now: float, zone: ZoneInfo
) -> tuple[float | None, int]:
    """The latest stroke after `earliest` up to `now`, and about how many there were. As upstream:
    the first two say how far apart they are, and of the others only those of two such spans before
    now are looked for. Raises ScheduleError where there are no two."""
    first = next_after(schedule, earliest, zone)
    if first is not None and now < first:
        return None, 0
    second = None if first is None else next_after(schedule, first, zone)
    if first is None or second is None:
        raise ScheduleError("time difference between two schedules is less than 1 second")
    if now < second:
        return first, 1
    apart = round(second - first)
    count = int(now - first) // apart + 1
    known = next_after(schedule, first + (count - 2) * apart, zone)
    latest = _latest(schedule, known, now, zone) if known is not None and known <= now else None
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


def _start(
    cron_job: Obj, jobs: Sequence[Obj], active: Sequence[Obj], due: _Due, now: float
) -> _Start:
    assert due.at is not None
    spec, about = cron_job["spec"], reference_to(cron_job)
    deadline = spec.get("startingDeadlineSeconds")
    if deadline is not None and due.at + float(deadline) < now:
        stamp = datetime.fromtimestamp(due.at, UTC).strftime("%a, %d %b %Y %H:%M:%S %z")
        message = f"Missed scheduled time to start a job: {stamp}"
        return _Start(events=[Record(about, "Warning", "MissSchedule", message)])
    name = job_name(cron_job, due.at)
    if any(item.get("name") == name for item in active):
        return _Start()
    policy = spec.get("concurrencyPolicy") or "Allow"
    if policy == "Forbid" and active:
        message = (
            "Not starting job because prior execution is running and concurrency policy is Forbid"
        )
        return _Start(events=[Record(about, "Normal", "JobAlreadyActive", message)])
    listed = {item.get("uid") for item in active} if policy == "Replace" else set()
    replaced = [job for job in jobs if uid_of(job) in listed]
    known = [job for job in jobs if name_of(job) == name]
    if known:
        return _Start(known=known[0], replaced=replaced)
    job = new_job(cron_job, due.at, due.zone or ZoneInfo("Etc/UTC"))
    return _Start(job=job, replaced=replaced)


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


def _active(
    cron_job: Obj, jobs: Sequence[Obj], old: Container[str], exists: Callable[[str], bool] | None
) -> tuple[list[Obj], list[Action]]:
    """What of status.active still runs, and what is told of those that came or went. A Job that is
    not listed (somebody made it of the template by hand) runs beside: it neither holds the schedule
    up nor is it replaced."""
    status = cron_job.get("status") or {}
    listed = [item for item in status.get("active") or () if item.get("uid") not in old]
    children = {uid_of(job): job for job in jobs}
    events = _seen_jobs(cron_job, children, {item.get("uid") for item in listed})
    running: list[Obj] = []
    for item in listed:
        job, name = children.get(item.get("uid", "")), str(item.get("name"))
        if job is not None and _is_finished(job):
            continue
        if job is not None or (exists is not None and exists(name)):
            running.append(item)
        else:
            message = f"Active job went missing: {name}"
            events.append(Record(reference_to(cron_job), "Normal", "MissingJob", message))
    return running, events


def _seen_jobs(
    cron_job: Obj, children: Mapping[str, Obj], listed: Container[object]
) -> list[Action]:
    about = reference_to(cron_job)
    events: list[Action] = []
    for uid, job in children.items():
        finished = _is_finished(job)
        if finished and uid in listed:
            kind = "Complete" if is_true(job, "Complete") else "Failed"
            message = f"Saw completed job: {name_of(job)}, condition: {kind}"
            events.append(Record(about, "Normal", "SawCompletedJob", message))
        elif not finished and uid not in listed:
            message = f"Saw a job that the controller did not create or forgot: {name_of(job)}"
            events.append(Record(about, "Warning", "UnexpectedJob", message))
    return events


def _is_finished(job: Obj) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def _surplus_history(cron_job: Obj, jobs: Sequence[Obj]) -> list[Obj]:
    surplus: list[Obj] = []
    for kind, field in (
        ("Complete", "successfulJobsHistoryLimit"),
        ("Failed", "failedJobsHistoryLimit"),
    ):
        limit = cron_job["spec"].get(field)
        finished = [job for job in jobs if is_true(job, kind) and not is_deleted(job)]
        finished.sort(
            key=lambda job: ((job.get("status") or {}).get("startTime") or "", name_of(job))
        )
        count = 0 if limit is None else len(finished) - int(limit)
        surplus += finished[: max(0, count)]
    return surplus


def _created_job(outcomes: Sequence[Outcome]) -> Obj | None:
    for outcome in outcomes:
        if isinstance(outcome.action, Create) and outcome.error is None:
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
    created: Obj | None,
    at: float | None,
) -> Obj:
    status: Obj = dict(cron_job.get("status") or {})
    references = list(active)
    if created is not None and at is not None:
        references.append(_job_reference(created))
        status["lastScheduleTime"] = time_text(at)
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


def _outcome_events(cron_job: Obj, outcomes: Sequence[Outcome]) -> list[Action]:
    about = reference_to(cron_job)
    events: list[Action] = []
    for outcome in outcomes:
        if isinstance(outcome.action, Create):
            if outcome.error is not None:
                message = f"Error creating job: {outcome.error.message}"
                events.append(Record(about, "Warning", "FailedCreate", message))
            elif outcome.result is not None:
                message = f"Created job {name_of(outcome.result)}"
                events.append(Record(about, "Normal", "SuccessfulCreate", message))
        elif isinstance(outcome.action, Delete) and outcome.error is not None:
            message = f"Deleted job: {outcome.error.message}"
            events.append(Record(about, "Warning", "FailedDelete", message))
        elif isinstance(outcome.action, Delete):
            message = f"Deleted job {outcome.action.name}"
            events.append(Record(about, "Normal", "SuccessfulDelete", message))
    return events


async def _plan_key(view: View, key: str) -> Plan:
    cron_job = view.cache(CRON_JOBS).get(key)
    if cron_job is None:
        return NOTHING
    jobs, namespace = view.cache(JOBS), namespace_of(cron_job)
    children = jobs.by("controller", uid_of(cron_job))
    return plan(cron_job, children, view.now, lambda name: f"{namespace}/{name}" in jobs)


def _waker(now: Callable[[], float]) -> Wake:
    """A new schedule has its first stroke when it is due, not for those that it would have had."""

    def wake(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[Hashable]:
        if old is None or new is None or _timetable(old) == _timetable(new):
            return own_key(caches, old, new)
        seconds = _due(new, now()).next_seconds
        return own_key(caches, old, new) if seconds is None else (Later(key_of(new), seconds),)

    return wake


def _timetable(cron_job: Obj) -> tuple[object, object]:
    return cron_job["spec"].get("schedule"), cron_job["spec"].get("timeZone")


def _cron_job_of(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    keys: set[str] = set()
    for job in (old, new):
        controller = controller_of(job) if job is not None else None
        if job is not None and controller is not None and controller.get("kind") == "CronJob":
            keys.add(f"{namespace_of(job)}/{controller.get('name', '')}")
    return keys
