"""CronJobs: strokes that were missed, and the plan."""

from zoneinfo import ZoneInfo

import pytest

from sampan.api.objects import time_text
from sampan.api.rules.cron import next_after, parse
from sampan.controllers.jobs.cronjob import MANY_MISSED, _missed_schedules, new_job, plan
from tests.support.generators.workload_objects import (
    made_objects,
    reasons,
    removed_names,
    status_in,
    without_trouble,
)
from tests.support.processor_time import quickest_seconds

NOW = 1_800_000_000.0
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    "text",
    ["* * * * *", "*/7 * * * *", "0 0 1 1 *", "* * 1 1 *", "59 23 31 12 *", "0 0 29 2 1",
     "30 2 * * 0", "@every 90s", "0 12 * 1-3 *"],
)  # fmt: skip
@pytest.mark.parametrize("asleep_days", [0.01, 3, 400])
def test_the_last_stroke_is_the_one_before_now(text, asleep_days):
    schedule, earliest = parse(text), NOW - asleep_days * 86_400
    latest, count = _missed_schedules(schedule, earliest, NOW, BERLIN)
    if latest is None:
        first = next_after(schedule, earliest, BERLIN)
        assert count == 0 or not is_regular(schedule, earliest)
        assert count or first is None or first > NOW
        return
    assert earliest < latest <= NOW
    following = next_after(schedule, latest, BERLIN)
    assert following is not None
    assert following > NOW


def is_regular(schedule, earliest):
    """Its strokes are as far apart as the first two are."""
    first = next_after(schedule, earliest, BERLIN)
    second = next_after(schedule, first, BERLIN)
    before = next_after(schedule, NOW - 2 * (second - first), BERLIN)
    return before is not None and before <= NOW


def test_what_was_missed_before_a_pause_of_the_schedule_is_not_made_up_for():
    """As upstream, which takes the first two strokes for the measure of all."""
    office_hours, ten = parse("*/5 9-17 * * *"), 1_699_956_000.0  # 2023-11-14T10:00:00Z
    utc = ZoneInfo("UTC")
    assert _missed_schedules(office_hours, ten, ten + 12 * 3600, utc) == (None, 144)
    assert _missed_schedules(office_hours, ten, ten + 7 * 3600, utc) == (ten + 7 * 3600, 84)


@pytest.mark.slow
def test_an_age_of_sleep_costs_no_age():
    """An attack: lastScheduleTime of 1970, which took 16 s of everybody's time."""

    def ages():
        for text in ("* * 1 1 *", "* * * * *", "* * * 1 *"):
            _, count = _missed_schedules(parse(text), 0.0, NOW, BERLIN)
            assert count > MANY_MISSED
        before_the_last_minute = 2_674_700.0
        assert _missed_schedules(parse("* * * 1 *"), before_the_last_minute, NOW, BERLIN) == (
            1_800_000_000.0, 63,
        )  # fmt: skip

    assert quickest_seconds(ages) < 0.5


# The plan

MIDNIGHT = 1_699_920_000.0  # 2023-11-14T00:00:00Z


def cron_job(schedule="0 * * * *", last=None, **spec):
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {
            "name": "tick",
            "namespace": "ns",
            "uid": "u",
            "creationTimestamp": time_text(MIDNIGHT - 60),
        },
        "spec": {
            "schedule": schedule,
            "concurrencyPolicy": "Allow",
            "jobTemplate": {"spec": {"template": {"spec": {"containers": []}}}},
            **spec,
        },
        "status": {} if last is None else {"lastScheduleTime": time_text(last)},
    }


def job_at(owner, moment, kind="", *, ended=None):
    job = new_job(owner, moment, ZoneInfo("Etc/UTC"))
    job["metadata"] |= {"uid": f"j{moment}", "creationTimestamp": time_text(moment)}
    job["status"] = {"startTime": time_text(moment)}
    if kind:
        job["status"]["conditions"] = [{"type": kind, "status": "True"}]
        job["status"]["completionTime"] = time_text(ended or moment + 1)
    return job


def active(owner, *jobs):
    owner["status"]["active"] = [
        {"name": one["metadata"]["name"], "uid": one["metadata"]["uid"]} for one in jobs
    ]
    return owner


def test_a_stroke_makes_one_job_named_after_it():
    found = plan(cron_job(), (), MIDNIGHT + 5)
    [job] = made_objects(found)
    assert job["metadata"]["name"] == f"tick-{int(MIDNIGHT) // 60}"
    notes = job["metadata"]["annotations"]
    assert notes["batch.kubernetes.io/cronjob-scheduled-timestamp"] == "2023-11-14T00:00:00Z"
    assert found.again_seconds == pytest.approx(3600 - 5 + 0.1)
    status = status_in(without_trouble(found))
    assert status["lastScheduleTime"] == "2023-11-14T00:00:00Z"
    assert [one["name"] for one in status["active"]] == [job["metadata"]["name"]]


def test_between_strokes_nothing_happens():
    assert made_objects(plan(cron_job(last=MIDNIGHT), (), MIDNIGHT + 1800)) == []
    assert made_objects(plan(cron_job(suspend=True), (), MIDNIGHT + 5)) == []


def test_of_several_missed_strokes_the_last_one_counts():
    [job] = made_objects(plan(cron_job(last=MIDNIGHT), (), MIDNIGHT + 3 * 3600 + 5))
    assert job["metadata"]["name"].endswith(str(int(MIDNIGHT + 3 * 3600) // 60))


def test_a_stroke_beyond_its_deadline_is_missed():
    owner = cron_job(startingDeadlineSeconds=60)
    assert made_objects(plan(owner, (), MIDNIGHT + 30))
    assert made_objects(plan(owner, (), MIDNIGHT + 90)) == []


@pytest.mark.parametrize(
    ("policy", "creates", "deletes", "words"),
    [
        ("Allow", 1, 0, []),
        ("Forbid", 0, 0, ["JobAlreadyActive"]),
        ("Replace", 1, 1, []),
    ],
)
def test_what_happens_while_the_last_job_still_runs(policy, creates, deletes, words):
    owner = cron_job(last=MIDNIGHT - 3600, concurrencyPolicy=policy)
    running = job_at(owner, MIDNIGHT - 3600)
    found = plan(active(owner, running), [running], MIDNIGHT + 5)
    assert (len(made_objects(found)), len(removed_names(found))) == (creates, deletes)
    assert [one for one in reasons(without_trouble(found)) if one == "JobAlreadyActive"] == words


def test_the_history_is_kept_short():
    owner = cron_job(last=MIDNIGHT, successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    moments = [MIDNIGHT - 3600 * hours for hours in (1, 2, 3)]
    done = [job_at(owner, moment, "Complete") for moment in moments]
    failed = job_at(owner, MIDNIGHT - 14400, "Failed")
    gone = removed_names(plan(owner, [*done, failed], MIDNIGHT + 60))
    kept = done[0]["metadata"]["name"]
    assert kept not in gone
    assert len(gone) == 3


def test_a_job_that_ended_is_told_of_and_no_longer_active():
    owner = cron_job(last=MIDNIGHT)
    done = job_at(owner, MIDNIGHT, "Complete")
    after = without_trouble(plan(active(owner, done), [done], MIDNIGHT + 60))
    assert "SawCompletedJob" in reasons(after)
    assert status_in(after)["active"] is None
    assert status_in(after)["lastSuccessfulTime"]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"schedule": "nonsense"}, "UnparseableSchedule"),
        ({"timeZone": "No/Zone"}, "UnknownTimeZone"),
    ],
)
def test_what_cannot_be_run_is_told(spec, reason):
    found = plan(cron_job(**spec), (), MIDNIGHT + 5)
    assert made_objects(found) == []
    assert reason in reasons(without_trouble(found))
