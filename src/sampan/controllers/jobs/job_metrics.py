"""job_controller_* and cronjob_controller_*.

Job: from what a plan wrote to upstream's counters of syncs, of finished Jobs and of their pods, and
    to how late a CronJob's Jobs are made.
Invariant: a Job is counted as finished once, by the write that says so.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj, annotations_of, meta_of, seconds_of, status_of
from sampan.api.resources import JOBS, PODS
from sampan.api.rules.conditions import condition_of, is_true
from sampan.controllers.actions import Create, Delete, Outcome, Patch, answered
from sampan.controllers.controller import Caches, Counting, Key, Note
from sampan.core.metrics import Metrics

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_FINISHED = {"Complete": "succeeded", "Failed": "failed"}
_SYNC_SECONDS = tuple(0.004 * 2**power for power in range(15))
_SKEW_SECONDS = tuple(2.0**power for power in range(10))


def job_counting(metrics: Metrics) -> Counting:
    labels = ("completion_mode", "result", "action")
    seconds = metrics.histogram(
        "job_controller_job_sync_duration_seconds", "The time it took to sync a job", labels,
        _SYNC_SECONDS,
    )  # fmt: skip
    syncs = metrics.counter("job_controller_job_syncs_total", "The number of job syncs", labels)
    finished = metrics.counter(
        "job_controller_jobs_finished_total", "The number of finished jobs",
        ("completion_mode", "result", "reason"),
    )  # fmt: skip
    pods = metrics.counter(
        "job_controller_job_pods_finished_total",
        "The number of finished Pods that are fully tracked",
        ("completion_mode", "result"),
    )

    def counting(caches: Caches, key: Key) -> Note | None:
        before = caches(JOBS).get(key) if isinstance(key, str) else None
        if before is None:
            return None
        mode = str(before["spec"].get("completionMode") or "NonIndexed")

        def note(outcomes: Sequence[Outcome], took: float) -> None:
            failed = any(outcome.error is not None for outcome in outcomes)
            at = (mode, "error" if failed else "success", sync_action(outcomes))
            syncs.add(*at)
            seconds.observe(took, *at)
            last = before
            for job in answered(outcomes, Patch, JOBS):
                for result, number in finished_pods(last, job):
                    pods.add(mode, result, by=number)
                verdict = new_verdict(last, job)
                if verdict is not None:
                    finished.add(mode, *verdict)
                last = job

        return note

    return counting


def sync_action(outcomes: Sequence[Outcome]) -> str:
    for action, name in ((Create, "pods_created"), (Delete, "pods_deleted")):
        for outcome in outcomes:
            asked = outcome.action
            if isinstance(asked, action) and getattr(asked, "resource", None) is PODS:
                return name
    return "tracking"


def finished_pods(before: Obj, after: Obj) -> list[tuple[str, int]]:
    """How many more have succeeded and failed; none where completions were taken back."""
    old, new = status_of(before), status_of(after)
    grown = {name: (new.get(name) or 0) - (old.get(name) or 0) for name in ("succeeded", "failed")}
    return [(name, number) for name, number in grown.items() if number > 0]


def new_verdict(before: Obj, after: Obj) -> tuple[str, str] | None:
    """How the Job has ended, and why, if it has only now."""
    if _ended(before) is not None:
        return None
    return _ended(after)


def _ended(job: Obj) -> tuple[str, str] | None:
    for kind, result in _FINISHED.items():
        if is_true(job, kind):
            return result, str((condition_of(job, kind) or {}).get("reason") or "")
    return None


def cron_job_counting(metrics: Metrics) -> Counting:
    skew = metrics.histogram(
        "cronjob_controller_job_creation_skew_duration_seconds",
        "Time between when a cronjob is scheduled to be run, and when the corresponding job is "
        "created",
        buckets=_SKEW_SECONDS,
    )

    def note(outcomes: Sequence[Outcome], _took: float) -> None:
        for job in answered(outcomes, Create, JOBS):
            at = annotations_of(job).get(SCHEDULED_AT)
            if at:
                skew.observe(seconds_of(meta_of(job)["creationTimestamp"]) - seconds_of(at))

    return lambda _caches, _key: note
