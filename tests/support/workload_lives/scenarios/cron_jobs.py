"""CronJobs: concurrency, deadlines, time zones, history, and what a user does between strokes."""

from typing import Any

from tests.support.workload_lives.manifests import cron_job, job
from tests.support.workload_lives.steps import (
    Life,
    change_meta,
    change_spec,
    create,
    life,
    remove,
    until_second,
    wait,
)

_LONG = {"life": "run"}
_IN_A_MINUTE = "{{in 1 minutes at {}}}"


def _over_strokes(count: int, *steps: Any, **spec: Any) -> Life:
    """Made ten seconds before a stroke; seen ten after the last of so many."""
    made = create(cron_job(**spec))
    return life(until_second(50), made, *steps, wait(20 + 60 * (count - 1)))


def _zone(zone: str) -> Life:
    return _over_strokes(1, schedule=_IN_A_MINUTE.format(zone), timeZone=zone)


def _from_hand(meta: dict[str, Any]) -> dict[str, Any]:
    """As `kubectl create job --from` makes it; its owner's uid is filled in by nobody."""
    made = job("by-hand", pod=_LONG)
    made["metadata"] |= meta
    return made


LIVES: dict[str, Life] = {
    "cron-forbids": _over_strokes(2, concurrencyPolicy="Forbid", pod=_LONG),
    "cron-replaces": _over_strokes(2, concurrencyPolicy="Replace", pod=_LONG),
    "cron-allows": _over_strokes(2, concurrencyPolicy="Allow", pod=_LONG),
    "cron-forbids-nothing": _over_strokes(2, concurrencyPolicy="Forbid"),
    "cron-keeps-one": _over_strokes(3, successfulJobsHistoryLimit=1),
    "cron-keeps-none": _over_strokes(
        2, successfulJobsHistoryLimit=0, failedJobsHistoryLimit=0
    ),
    "cron-failures-kept": _over_strokes(
        3, failedJobsHistoryLimit=1, pod={"life": "fail:1:1"}, job={"backoffLimit": 0}
    ),
    "cron-in-kolkata": _zone("Asia/Kolkata"),
    "cron-in-new-york": _zone("America/New_York"),
    "cron-in-chatham": _zone("Pacific/Chatham"),
    "cron-in-utc": _zone("Etc/UTC"),
    "cron-in-another-zone": life(
        until_second(50),
        create(cron_job(schedule=_IN_A_MINUTE.format("Asia/Kolkata"), timeZone="Asia/Tokyo")),
        wait(20),
    ),
    "cron-nowhere": life(create(cron_job(timeZone="Nowhere/None")), wait(2)),
    "cron-by-name": _over_strokes(1, schedule="@every 1m"),
    "cron-of-a-wrong-day": life(
        until_second(50), create(cron_job(schedule="0 0 31 2 *")), wait(20)
    ),
    "cron-bad-schedule": life(
        create(cron_job(schedule="* * * *")), create(cron_job(schedule="61 * * * *")),
        create(cron_job(schedule="TZ=UTC * * * * *")), wait(2),
    ),
    "cron-schedule-changed": life(
        until_second(50), create(cron_job(schedule="0 0 1 1 *")), wait(3),
        change_spec("cronjobs", "c", schedule="* * * * *"), wait(3), wait(15),
    ),
    "cron-schedule-changed-to-none": life(
        until_second(50), create(cron_job()), wait(3),
        change_spec("cronjobs", "c", schedule="0 0 1 1 *"), wait(20),
    ),
    "cron-suspended-over-a-stroke": life(
        until_second(50), create(cron_job(suspend=True)), wait(20),
        change_spec("cronjobs", "c", suspend=False), wait(8),
    ),
    "cron-suspended-with-a-deadline": life(
        until_second(50), create(cron_job(suspend=True, startingDeadlineSeconds=30)), wait(20),
        change_spec("cronjobs", "c", suspend=False), wait(8),
    ),
    "cron-suspended-too-long": life(
        until_second(50), create(cron_job(suspend=True, startingDeadlineSeconds=11)), wait(30),
        change_spec("cronjobs", "c", suspend=False), wait(8),
    ),
    "cron-suspended-while-running": life(
        until_second(50), create(cron_job(pod=_LONG)), wait(15),
        change_spec("cronjobs", "c", suspend=True), wait(60),
    ),
    "cron-deleted-in-the-background": life(
        until_second(50), create(cron_job(pod=_LONG)), wait(15), remove("cronjobs", "c"), wait(6)
    ),
    "cron-deleted-in-the-foreground": life(
        until_second(50), create(cron_job(pod=_LONG)), wait(15),
        remove("cronjobs", "c", propagationPolicy="Foreground"), wait(6),
    ),
    "cron-deleted-orphaning": life(
        until_second(50), create(cron_job(pod=_LONG)), wait(15),
        remove("cronjobs", "c", propagationPolicy="Orphan"), wait(6),
    ),
    "cron-job-deleted": life(
        until_second(50), create(cron_job(pod=_LONG)), wait(15),
        remove("jobs", "a=b#0", propagationPolicy="Background"), wait(6),
    ),
    "cron-template-metadata": life(
        until_second(50),
        create(cron_job(pod=_LONG)), change_spec("cronjobs", "c", jobTemplate={
            "metadata": {"labels": {"x": "y"}, "annotations": {"n": "o"}, "name": "ignored"},
        }),
        wait(20),
    ),
    "cron-template-changed-while-running": life(
        until_second(50), create(cron_job(pod=_LONG)), wait(15),
        change_spec("cronjobs", "c", jobTemplate={"spec": {"parallelism": 2}}), wait(60),
    ),
    "cron-job-stranger": life(
        until_second(40), create(cron_job(concurrencyPolicy="Forbid", pod=_LONG)),
        create(_from_hand({"annotations": {"cronjob.kubernetes.io/instantiate": "manual"}})),
        wait(35),
    ),
    "cron-that-fails": _over_strokes(1, pod={"life": "fail:1:1"}, job={"backoffLimit": 0}),
    "cron-quota-of-jobs": life(
        create({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
            "spec": {"hard": {"count/jobs.batch": "0"}},
        }),
        until_second(50), create(cron_job()), wait(25),
    ),
    "cron-annotated": life(
        until_second(50), create(cron_job(pod=_LONG)),
        change_meta("cronjobs", "c", annotations={"x": "y"}, labels={"l": "m"}), wait(20),
    ),
}  # fmt: skip
