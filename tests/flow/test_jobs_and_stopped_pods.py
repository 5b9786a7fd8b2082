"""Pods of Jobs that are told to stop: whether and as what they are counted, whoever told them."""

from sampan.api.resources import JOBS, PODS
from tests.support.worlds.control_plane import story

with_jobs = story(["job-controller", "garbage-collector-controller"])
INDEXED = {"completionMode": "Indexed"}
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"
FAILURES = "batch.kubernetes.io/job-index-failure-count"


async def create(plane, **spec):
    container = {"name": "c", "image": "i"}
    pod = {"containers": [container], "restartPolicy": "Never", "nodeName": "n1"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "work", "namespace": "default"},
        "spec": {"template": {"spec": pod}, **spec},
    }
    await plane.client.create(JOBS, job)
    await plane.settled()
    for each in await pods(plane):
        await report(plane, each, "Running")
    await plane.settled()


async def pods(plane):
    found = (await plane.client.list(PODS, "default")).items
    return sorted(found, key=lambda pod: pod["metadata"]["name"])


async def report(plane, pod, phase, code=0, **conditions):
    """What a kubelet reports."""
    stamp = plane.time_text()
    state = {"running": {"startedAt": stamp}}
    if phase != "Running":
        state = {"terminated": {"exitCode": code, "finishedAt": stamp, "startedAt": stamp}}
    container = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
    listed = [{"type": kind, "status": status} for kind, status in conditions.items()]
    status = {"phase": phase, "containerStatuses": [{**container, "state": state}]}
    patch = {"status": {**status, "conditions": listed}}
    name = pod["metadata"]["name"]
    await plane.client.patch(PODS, "default", name, patch, patch_type="merge", subresource="status")


async def end(plane, pod, code=0):
    """As a kubelet ends a pod that was told to stop."""
    await report(plane, pod, "Failed" if code else "Succeeded", code)
    name = pod["metadata"]["name"]
    await plane.client.delete(PODS, "default", name, grace_seconds=0)


async def end_all_that_stop(plane, code=0):
    for pod in await pods(plane):
        if "deletionTimestamp" in pod["metadata"]:
            await end(plane, pod, code)
    await plane.settled(seconds=2)


async def change(plane, **spec):
    await plane.client.patch(JOBS, "default", "work", {"spec": spec}, patch_type="merge")
    await plane.settled()


async def status(plane):
    return (await plane.client.get(JOBS, "default", "work"))["status"]


def counts(found):
    return {name: found[name] for name in ("active", "succeeded", "failed") if found.get(name)}


@with_jobs
async def test_a_deleted_pod_that_ends_with_zero_late_has_failed_and_its_index_runs_again(plane):
    await create(plane, parallelism=1, completions=1, **INDEXED)
    [pod] = await pods(plane)
    await plane.client.delete(PODS, "default", pod["metadata"]["name"])
    await plane.settled(seconds=1.5)  # it is listed as failed now
    await end(plane, pod)
    await plane.settled(seconds=2)
    found = await status(plane)
    assert counts(found) == {"failed": 1}
    assert "completedIndexes" not in found
    await plane.settled(seconds=12)
    [again] = await pods(plane)
    assert again["metadata"]["uid"] != pod["metadata"]["uid"]
    await report(plane, again, "Succeeded")
    await plane.settled()
    assert counts(await status(plane)) == {"succeeded": 1, "failed": 1}


@with_jobs
async def test_a_deleted_pod_that_ends_with_zero_at_once_has_succeeded(plane):
    await create(plane, parallelism=1, completions=1, **INDEXED)
    [pod] = await pods(plane)
    await plane.client.delete(PODS, "default", pod["metadata"]["name"])
    await end(plane, pod)
    await plane.settled(seconds=2)
    found = await status(plane)
    assert counts(found) == {"succeeded": 1}
    assert found["completedIndexes"] == "0"


@with_jobs
async def test_pods_of_a_suspended_job_are_not_counted(plane):
    for code in (0, 143):
        await create(plane, parallelism=3, completions=3, backoffLimit=1)
        started = (await status(plane))["startTime"]
        await change(plane, suspend=True)
        await end_all_that_stop(plane, code)
        found = await status(plane)
        assert counts(found) == {}, code
        assert [one["type"] for one in found["conditions"]] == ["Suspended"]
        assert found["startTime"] == started
        assert await pods(plane) == []
        await plane.settled(seconds=5)
        await change(plane, suspend=False)
        assert (await status(plane))["startTime"] > started
        await plane.client.delete(JOBS, "default", "work", propagation="Background")
        await plane.settled()
        await end_all_that_stop(plane, code)


@with_jobs
async def test_surplus_pods_of_a_lowered_parallelism_are_not_counted(plane):
    for code in (0, 143):
        await create(plane, parallelism=3, completions=3)
        await change(plane, parallelism=1)
        await end_all_that_stop(plane, code)
        assert counts(await status(plane)) == {"active": 1}, code
        await plane.client.delete(JOBS, "default", "work", propagation="Background")
        await plane.settled()
        await end_all_that_stop(plane, code)


@with_jobs
async def test_pods_beyond_the_completions_of_a_smaller_indexed_job_are_not_counted(plane):
    await create(plane, parallelism=5, completions=5, backoffLimit=1, **INDEXED)
    await change(plane, parallelism=2, completions=2)
    await end_all_that_stop(plane, 143)
    found = await status(plane)
    assert counts(found) == {"active": 2}
    assert "conditions" not in found


@with_jobs
async def test_pods_that_a_success_policy_stops_are_not_counted(plane):
    rules = {"rules": [{"succeededCount": 1}]}
    await create(plane, parallelism=3, completions=3, successPolicy=rules, **INDEXED)
    first, *_ = await pods(plane)
    await report(plane, first, "Succeeded")
    await plane.settled()
    await end_all_that_stop(plane)
    found = await status(plane)
    assert counts(found) == {"succeeded": 1}
    assert found["completedIndexes"] == "0"
    kinds = [one["type"] for one in found["conditions"] if one["status"] == "True"]
    assert kinds == ["SuccessCriteriaMet", "Complete"]


@with_jobs
async def test_pods_of_a_job_that_failed_are_counted_as_failed_whatever_they_say(plane):
    await create(plane, parallelism=3, completions=3, backoffLimit=0)
    first, *_ = await pods(plane)
    await report(plane, first, "Failed", 1)
    await plane.settled()
    await end_all_that_stop(plane, 0)
    found = await status(plane)
    assert counts(found) == {"failed": 3}
    kinds = [(one["type"], one["reason"]) for one in found["conditions"]]
    assert kinds == [
        ("FailureTarget", "BackoffLimitExceeded"),
        ("Failed", "BackoffLimitExceeded"),
    ]


@with_jobs
async def test_ignored_failures_of_an_index_have_a_count_of_their_own(plane):
    condition = [{"type": "DisruptionTarget", "status": "True"}]
    policy = {"rules": [{"action": "Ignore", "onPodConditions": condition}]}
    await create(
        plane, parallelism=1, completions=1, backoffLimitPerIndex=1, podFailurePolicy=policy,
        **INDEXED,
    )  # fmt: skip
    for failures in range(3):
        [pod] = [one for one in await pods(plane) if one["status"]["phase"] != "Failed"]
        notes = pod["metadata"]["annotations"]
        assert notes[FAILURES] == "0"
        assert notes.get(IGNORED) == (str(failures) if failures else None)
        await report(plane, pod, "Failed", 1, DisruptionTarget="True")
        await plane.settled()
        # The pause grows with them as with others.
        await plane.settled(seconds=10 * 2**failures - 2)
        left = [one for one in await pods(plane) if one["status"]["phase"] != "Failed"]
        assert left == []
        await plane.settled(seconds=3)
        assert counts(await status(plane)) == {"active": 1}


@with_jobs
async def test_pods_of_a_job_that_was_orphaned_lose_the_finalizer(plane):
    await create(plane, parallelism=2)
    await plane.client.delete(JOBS, "default", "work", propagation="Orphan")
    await plane.settled()
    for pod in await pods(plane):
        assert "ownerReferences" not in pod["metadata"]
        assert "finalizers" not in pod["metadata"]
