import asyncio

import pytest

from sampan.api.resources import CRON_JOBS, EVENTS, JOBS
from tests.support.worlds.control_plane import story

with_cron = story(["cronjob-controller", "garbage-collector-controller"])
# Virtual time begins at 22:13:20 UTC.


async def create(plane, schedule="*/5 * * * *", **spec):
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    cron_job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "tick", "namespace": "default"},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": template}}, **spec},
    }
    await plane.client.create(CRON_JOBS, cron_job)
    await plane.settled()


async def jobs(plane):
    listed = (await plane.client.list(JOBS, "default")).items
    return {one["metadata"]["name"]: one for one in listed}


async def wait(plane, minutes):
    await asyncio.sleep(minutes * 60)
    await plane.settled()


async def finish(plane, name, kind="Complete"):
    stamp = plane.time_text()
    condition = {"type": kind, "status": "True", "lastTransitionTime": stamp}
    reached = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
    status = {"conditions": [{**condition, "type": reached}, condition], "startTime": stamp}
    if kind == "Complete":
        status["completionTime"] = stamp
    await plane.client.patch(
        JOBS, "default", name, {"status": status}, patch_type="merge", subresource="status"
    )
    await plane.settled()


async def status(plane):
    return (await plane.client.get(CRON_JOBS, "default", "tick")).get("status") or {}


async def reasons(plane):
    return {one["reason"] for one in (await plane.client.list(EVENTS, "default")).items}


@with_cron
async def test_each_stroke_makes_one_job(plane):
    await create(plane)
    assert await jobs(plane) == {}
    await wait(plane, 2)
    [name] = await jobs(plane)
    assert name == f"tick-{(1_700_000_000 + 100) // 60}"
    job = (await jobs(plane))[name]
    annotations = job["metadata"]["annotations"]
    scheduled = annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert scheduled == "2023-11-14T22:15:00Z"
    assert (await status(plane))["lastScheduleTime"] == "2023-11-14T22:15:00Z"
    assert [one["name"] for one in (await status(plane))["active"]] == [name]
    await wait(plane, 10)
    assert len(await jobs(plane)) == 3
    skew = "cronjob_controller_job_creation_skew_duration_seconds"
    assert f'{skew}_bucket{{le="1.0"}} 3' in plane.metrics.render()
    await finish(plane, name)
    found = await status(plane)
    assert name not in [one["name"] for one in found["active"]]
    assert found["lastSuccessfulTime"]
    assert {"SuccessfulCreate", "SawCompletedJob"} <= await reasons(plane)


@with_cron
async def test_forbid_skips_while_one_runs(plane):
    await create(plane, concurrencyPolicy="Forbid")
    await wait(plane, 12)
    [name] = await jobs(plane)
    assert "JobAlreadyActive" in await reasons(plane)
    await finish(plane, name)
    await wait(plane, 5)
    assert len(await jobs(plane)) == 2


@with_cron
async def test_replace_ends_the_one_that_runs(plane):
    await create(plane, concurrencyPolicy="Replace")
    await wait(plane, 2)
    [first] = await jobs(plane)
    await wait(plane, 5)
    [second] = await jobs(plane)
    assert second != first


@with_cron
async def test_a_suspended_cron_job_makes_none_and_catches_up_with_one(plane):
    await create(plane, suspend=True)
    await wait(plane, 60)
    assert await jobs(plane) == {}
    patch = {"spec": {"suspend": False}}
    await plane.client.patch(CRON_JOBS, "default", "tick", patch, patch_type="merge")
    await plane.settled()
    assert len(await jobs(plane)) == 1


@with_cron
async def test_strokes_that_are_too_old_are_not_made_up_for(plane):
    await create(plane, suspend=True, startingDeadlineSeconds=30)
    await wait(plane, 64)  # the last stroke is more than two minutes ago
    patch = {"spec": {"suspend": False}}
    await plane.client.patch(CRON_JOBS, "default", "tick", patch, patch_type="merge")
    await plane.settled()
    assert await jobs(plane) == {}


@pytest.mark.slow
@with_cron
async def test_a_long_sleep_ends_with_one_job_of_the_last_stroke(plane):
    await create(plane, schedule="* * * * *", suspend=True)
    await wait(plane, 60 * 2)
    patch = {"spec": {"suspend": False}}
    await plane.client.patch(CRON_JOBS, "default", "tick", patch, patch_type="merge")
    await plane.settled()
    [name] = await jobs(plane)
    assert name == f"tick-{int(plane.clock.now() // 60)}"
    assert "TooManyMissedTimes" in await reasons(plane)


@with_cron
async def test_the_history_is_kept_short(plane):
    await create(plane, successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1)
    for number in range(6):
        await wait(plane, 5)
        running = [
            name
            for name, job in (await jobs(plane)).items()
            if not (job.get("status") or {}).get("conditions")
        ]
        for name in running:
            await finish(plane, name, "Complete" if number % 2 else "Failed")
    kinds = [one["status"]["conditions"][-1]["type"] for one in (await jobs(plane)).values()]
    assert (kinds.count("Complete"), kinds.count("Failed")) == (2, 1)


@with_cron
async def test_time_zones_are_honoured(plane):
    await create(plane, schedule="30 23 * * *", timeZone="Europe/Berlin")  # 22:30 UTC
    await wait(plane, 15)
    assert await jobs(plane) == {}
    await wait(plane, 3)
    [job] = (await jobs(plane)).values()
    annotations = job["metadata"]["annotations"]
    scheduled = annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert scheduled == "2023-11-14T23:30:00+01:00"


@with_cron
async def test_a_job_whose_making_nobody_heard_of_is_not_made_again(plane):
    """The answer to its creation was lost with the controller; later the history took it away."""
    await create(plane, successfulJobsHistoryLimit=0)
    await wait(plane, 2)
    [name] = await jobs(plane)
    forgotten = {"status": {"lastScheduleTime": None, "active": None}}
    await plane.stop_controllers()
    await plane.client.patch(
        CRON_JOBS, "default", "tick", forgotten, patch_type="merge", subresource="status"
    )
    await plane.start_controllers()
    await plane.settled()
    await finish(plane, name)
    await wait(plane, 1)
    assert await jobs(plane) == {}


async def make_by_hand(plane):
    """As `kubectl create job --from=cronjob/tick now` does."""
    cron_job = await plane.client.get(CRON_JOBS, "default", "tick")
    owner = {
        "apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "controller": True,
        "uid": cron_job["metadata"]["uid"],
    }  # fmt: skip
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "now", "ownerReferences": [owner]},
        "spec": cron_job["spec"]["jobTemplate"]["spec"],
    }
    await plane.client.create(JOBS, job, "default")
    await plane.settled()


@pytest.mark.parametrize("policy", ["Replace", "Forbid", "Allow"])
def test_a_job_that_somebody_made_of_the_template_runs_beside(policy):
    @with_cron
    async def story(plane):
        await create(plane, concurrencyPolicy=policy)
        await make_by_hand(plane)
        assert "UnexpectedJob" in await reasons(plane)
        await wait(plane, 2)
        assert len(await jobs(plane)) == 2
        assert "now" in await jobs(plane)
        assert [one["name"] for one in (await status(plane))["active"]] != ["now"]

    story()


@with_cron
async def test_a_new_schedule_begins_with_its_next_stroke(plane):
    await create(plane, "0 0 1 1 *")
    await wait(plane, 10)
    patch = {"spec": {"schedule": "* * * * *"}}
    await plane.client.patch(CRON_JOBS, "default", "tick", patch, patch_type="merge")
    await plane.settled(seconds=1)
    assert await jobs(plane) == {}
    await wait(plane, 1)
    assert len(await jobs(plane)) == 1


@with_cron
async def test_a_job_that_was_listed_and_is_gone_is_told_of(plane):
    await create(plane)
    await wait(plane, 2)
    [name] = await jobs(plane)
    await plane.client.delete(JOBS, "default", name, propagation="Background")
    await plane.settled()
    assert "MissingJob" in await reasons(plane)
    assert "active" not in await status(plane)
