import pytest

from sampan.api.errors import NotFound
from sampan.api.resources import EVENTS, JOBS, PODS
from tests.support.worlds.control_plane import story

with_jobs = story(
    ["job-controller", "ttl-after-finished-controller", "garbage-collector-controller"]
)
INDEX = "batch.kubernetes.io/job-completion-index"


async def create(plane, **spec):
    template = {
        "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"},
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "work", "namespace": "default"},
        "spec": {"template": template, **spec},
    }
    await plane.client.create(JOBS, job)
    await plane.settled()


async def pods(plane, *phases):
    listed = (await plane.client.list(PODS, "default")).items
    living = [one for one in listed if "deletionTimestamp" not in one["metadata"]]
    return [one for one in living if not phases or one["status"].get("phase") in phases]


async def finish(plane, pod, code=0):
    """What a kubelet reports when the container ends."""
    stamp = plane.time_text()
    terminated = {"exitCode": code, "finishedAt": stamp, "startedAt": stamp}
    status = {
        "phase": "Failed" if code else "Succeeded",
        "containerStatuses": [
            {
                "name": "c",
                "image": "i",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"terminated": terminated},
            }
        ],
    }
    name = pod["metadata"]["name"]
    await plane.client.patch(
        PODS, "default", name, {"status": status}, patch_type="merge", subresource="status"
    )


async def finish_all(plane, code=0):
    for pod in await pods(plane, "Pending", "Running"):
        await finish(plane, pod, code)
    await plane.settled()


async def status(plane):
    return (await plane.client.get(JOBS, "default", "work"))["status"]


async def conditions(plane):
    stated = (await status(plane)).get("conditions") or ()
    return {one["type"]: one["reason"] for one in stated if one["status"] == "True"}


async def reasons(plane):
    return [one["reason"] for one in (await plane.client.list(EVENTS, "default")).items]


@with_jobs
async def test_a_job_runs_to_completion(plane):
    await create(plane)
    [pod] = await pods(plane)
    assert pod["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    assert (await status(plane))["active"] == 1
    await finish_all(plane)
    found = await status(plane)
    assert found["succeeded"] == 1
    assert "active" not in found
    assert found["completionTime"]
    assert found["uncountedTerminatedPods"] == {}
    assert await conditions(plane) == {
        "SuccessCriteriaMet": "CompletionsReached",
        "Complete": "CompletionsReached",
    }
    [pod] = await pods(plane)
    assert not pod["metadata"].get("finalizers")
    assert await reasons(plane) == ["SuccessfulCreate", "Completed"]


@with_jobs
async def test_parallelism_and_completions(plane):
    await create(plane, parallelism=2, completions=5)
    done = 0
    while (await status(plane)).get("completionTime") is None:
        active = await pods(plane, "Pending")
        assert len(active) == min(2, 5 - done)
        await finish(plane, active[0])
        await plane.settled()
        done += 1
    assert (await status(plane))["succeeded"] == done == 5


@with_jobs
async def test_a_work_queue_ends_when_one_succeeded_and_the_rest_ended(plane):
    await create(plane, parallelism=3)
    first, *others = await pods(plane)
    await finish(plane, first)
    await plane.settled()
    assert len(await pods(plane, "Pending")) == 2
    assert "Complete" not in await conditions(plane)
    for pod in others:
        await finish(plane, pod)
    await plane.settled()
    assert (await conditions(plane))["Complete"] == "CompletionsReached"
    assert (await status(plane))["succeeded"] == 3


@with_jobs
async def test_failures_are_tried_again_with_growing_pauses_up_to_the_limit(plane):
    await create(plane, backoffLimit=2)
    await finish_all(plane, code=1)
    assert await pods(plane, "Pending") == []
    await plane.settled(seconds=11)
    assert len(await pods(plane, "Pending")) == 1
    await finish_all(plane, code=1)
    await plane.settled(seconds=11)
    assert await pods(plane, "Pending") == []
    await plane.settled(seconds=10)
    await finish_all(plane, code=1)
    await plane.settled()
    assert await conditions(plane) == {
        "FailureTarget": "BackoffLimitExceeded",
        "Failed": "BackoffLimitExceeded",
    }
    assert (await status(plane))["failed"] == 3
    await plane.settled(seconds=1000)
    assert len(await pods(plane)) == 3


@with_jobs
async def test_a_deadline_ends_a_job(plane):
    await create(plane, activeDeadlineSeconds=100)
    await plane.settled(seconds=101)
    await plane.settled()
    assert (await conditions(plane))["Failed"] == "DeadlineExceeded"
    assert await pods(plane) == []


@with_jobs
async def test_indexed_completions(plane):
    await create(plane, completions=4, parallelism=2, completionMode="Indexed")
    active = {pod["metadata"]["annotations"][INDEX]: pod for pod in await pods(plane)}
    assert set(active) == {"0", "1"}
    pod = active["1"]
    assert pod["metadata"]["name"].startswith("work-1-")
    assert pod["spec"]["hostname"] == "work-1"
    assert pod["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"
    await finish(plane, pod)
    await plane.settled()
    assert (await status(plane))["completedIndexes"] == "1"
    await finish_all(plane)
    await finish_all(plane)
    assert (await status(plane))["completedIndexes"] == "0-3"
    assert (await conditions(plane))["Complete"] == "CompletionsReached"


@with_jobs
async def test_limits_per_index(plane):
    await create(
        plane, completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=1
    )
    for _ in range(2):
        for pod in await pods(plane, "Pending"):
            index = pod["metadata"]["annotations"][INDEX]
            await finish(plane, pod, code=1 if index == "1" else 0)
        await plane.settled(seconds=60)
        await plane.settled()
    found = await status(plane)
    assert (found["completedIndexes"], found["failedIndexes"]) == ("0", "1")
    assert (await conditions(plane))["Failed"] == "FailedIndexes"


@with_jobs
async def test_a_failure_policy_can_fail_the_job_or_ignore_the_failure(plane):
    rules = [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
    await create(plane, backoffLimit=0, podFailurePolicy={"rules": rules})
    [pod] = await pods(plane)
    patch = {"status": {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}}
    name = pod["metadata"]["name"]
    await plane.client.patch(PODS, "default", name, patch, subresource="status")
    await finish_all(plane, code=1)
    await plane.settled(seconds=15)
    assert await conditions(plane) == {}
    await finish_all(plane, code=42)
    assert (await conditions(plane))["Failed"] == "PodFailurePolicy"


@with_jobs
async def test_a_success_policy_ends_a_job_early(plane):
    await create(
        plane,
        completions=3,
        parallelism=3,
        completionMode="Indexed",
        successPolicy={"rules": [{"succeededIndexes": "0"}]},
    )
    for pod in await pods(plane):
        if pod["metadata"]["annotations"][INDEX] == "0":
            await finish(plane, pod)
    await plane.settled()
    assert (await conditions(plane))["Complete"] == "SuccessPolicy"
    assert await pods(plane, "Pending") == []


@with_jobs
async def test_suspending_stops_the_pods_and_resuming_starts_them(plane):
    await create(plane, suspend=True)
    assert await pods(plane) == []
    assert await conditions(plane) == {"Suspended": "JobSuspended"}
    for suspend, count in ((False, 1), (True, 0), (False, 1)):
        patch = {"spec": {"suspend": suspend}}
        await plane.client.patch(JOBS, "default", "work", patch, patch_type="merge")
        await plane.settled(seconds=30)
        assert len(await pods(plane)) == count
    await finish_all(plane)
    assert "Complete" in await conditions(plane)
    assert {"Suspended", "Resumed"} <= set(await reasons(plane))


@with_jobs
async def test_a_finished_job_goes_after_its_time_to_live(plane):
    await create(plane, ttlSecondsAfterFinished=60)
    await finish_all(plane)
    await plane.settled(seconds=50)
    assert (await status(plane))["succeeded"] == 1
    await plane.settled(seconds=20)
    with pytest.raises(NotFound):
        await status(plane)
    assert await pods(plane) == []


@with_jobs
async def test_a_deleted_job_leaves_no_pods_behind(plane):
    await create(plane, parallelism=3, completions=3)
    await plane.client.delete(JOBS, "default", "work", propagation="Background")
    await plane.settled(seconds=5)
    assert (await plane.client.list(PODS, "default")).items == []


@with_jobs
async def test_a_job_that_somebody_else_manages_is_left_alone(plane):
    await create(plane, managedBy="example.com/mine")
    assert await pods(plane) == []


@with_jobs
async def test_nothing_is_lost_or_counted_twice_across_restarts(plane):
    await create(plane, parallelism=4, completions=20)
    for _ in range(40):
        await plane.stop_controllers()
        active = await pods(plane, "Pending")
        for pod in active[:2]:
            await finish(plane, pod)
        await plane.start_controllers()
        await plane.settled()
        if not active:
            break
    found = await status(plane)
    assert found["succeeded"] == 20
    assert len(await pods(plane)) == 20


@with_jobs
async def test_a_pod_without_an_owner_that_matches_is_adopted_and_counted(plane):
    stray = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stray", "namespace": "default", "labels": {"run": "mine"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"},
    }
    await plane.client.create(PODS, stray)
    template = {
        "metadata": {"labels": {"run": "mine"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"},
    }
    await create(
        plane,
        template=template,
        manualSelector=True,
        selector={"matchLabels": {"run": "mine"}},
    )
    [adopted] = await pods(plane)
    assert adopted["metadata"]["name"] == "stray"
    assert adopted["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    await finish(plane, adopted)
    await plane.settled()
    job = await plane.client.get(JOBS, "default", "work")
    assert job["status"]["succeeded"] == 1, job["status"]


@with_jobs
async def test_a_pod_that_no_longer_matches_is_let_go_and_replaced(plane):
    await create(plane)
    [pod] = await pods(plane)
    labels = {"batch.kubernetes.io/controller-uid": "another"}
    patch = {"metadata": {"labels": labels}}
    name = pod["metadata"]["name"]
    await plane.client.patch(PODS, "default", name, patch, patch_type="merge")
    await plane.settled()
    found = {one["metadata"]["name"]: one["metadata"] for one in await pods(plane)}
    assert not found[name].get("ownerReferences")
    assert not found[name].get("finalizers")
    [other] = [one for one in await pods(plane) if one["metadata"]["name"] != name]
    await finish(plane, pod)  # it is nobody's success
    await plane.settled()
    assert "succeeded" not in await status(plane)
    await finish(plane, other)
    await plane.settled()
    assert (await status(plane))["succeeded"] == 1


@with_jobs
async def test_a_replacement_may_have_to_wait_until_the_pod_before_has_ended(plane):
    for policy, living in (("TerminatingOrFailed", 1), ("Failed", 0)):
        await create(plane, podReplacementPolicy=policy)
        [pod] = await pods(plane)
        held = {"metadata": {"finalizers": [*pod["metadata"]["finalizers"], "example.com/held"]}}
        name = pod["metadata"]["name"]
        await plane.client.patch(PODS, "default", name, held, patch_type="merge")
        await plane.client.delete(PODS, "default", name)
        # A failure is paused for; one that is only going away was never one.
        await plane.settled(seconds=11)
        await plane.settled()
        assert len(await pods(plane)) == living, policy
        assert (await status(plane))["terminating"] == 1
        await finish(plane, pod, code=1)
        await plane.settled(seconds=21)
        await plane.settled()
        assert len(await pods(plane)) == 1
        free = {"metadata": {"finalizers": None}}
        await plane.client.patch(PODS, "default", name, free, patch_type="merge")
        await plane.client.delete(JOBS, "default", "work", propagation="Background")
        await plane.settled()
        for one in await pods(plane):
            await plane.client.delete(PODS, "default", one["metadata"]["name"], grace_seconds=0)
        await plane.settled()


@with_jobs
async def test_what_became_of_jobs_and_their_pods_is_counted(plane):
    await create(plane, completions=2, parallelism=2)
    await finish_all(plane)
    assert (await conditions(plane))["Complete"] == "CompletionsReached"
    told = plane.metrics.render()
    assert (
        'job_controller_jobs_finished_total{completion_mode="NonIndexed",result="succeeded",'
        'reason="CompletionsReached"} 1'
    ) in told
    start = 'completion_mode="NonIndexed",result="succeeded"'
    assert f"job_controller_job_pods_finished_total{{{start}}} 2" in told
    synced = 'completion_mode="NonIndexed",result="success"'
    assert f'job_controller_job_syncs_total{{{synced},action="pods_created"}} 1' in told
    assert f'job_controller_job_syncs_total{{{synced},action="tracking"}}' in told
    assert f'job_controller_job_sync_duration_seconds_count{{{synced},action="tracking"}}' in told


@with_jobs
async def test_a_failed_job_is_counted_with_its_reason(plane):
    await create(plane, backoffLimit=0, completionMode="Indexed", completions=1)
    await finish_all(plane, code=1)
    told = plane.metrics.render()
    assert (
        'job_controller_jobs_finished_total{completion_mode="Indexed",result="failed",'
        'reason="BackoffLimitExceeded"} 1'
    ) in told
    failed = 'completion_mode="Indexed",result="failed"'
    assert f"job_controller_job_pods_finished_total{{{failed}}} 1" in told
