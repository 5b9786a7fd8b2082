"""The plan of Jobs: pods until enough have succeeded, or too many failed."""

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.api.objects import time_text
from sampan.api.resources import JOBS
from sampan.controllers.actions import Patch
from sampan.controllers.jobs.job import plan
from sampan.controllers.jobs.job_pod_facts import FINALIZER
from tests.support.generators.workload_objects import (
    NOW,
    made_objects,
    owner_of,
    pod_of,
    removed_names,
    status_in,
    without_trouble,
)


def job(status=None, **spec):
    words = {"parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed"}
    started = {"startTime": time_text(NOW - 100)}
    return owner_of(JOBS, status={**started, **(status or {})}, **{**words, **spec})


def pod(owner, name, phase="Running", *, index=None, exit_code=1, **words):
    found = pod_of(JOBS, owner, name, phase=phase, **words)
    found["metadata"]["finalizers"] = [FINALIZER]
    if index is not None:
        note = {"batch.kubernetes.io/job-completion-index": str(index)}
        found["metadata"] |= {
            "annotations": note,
            "labels": {**found["metadata"]["labels"], **note},
        }
    ended = {
        "exitCode": 0 if phase == "Succeeded" else exit_code,
        "finishedAt": time_text(NOW - 500),
    }
    if phase in ("Succeeded", "Failed"):
        found["status"]["containerStatuses"] = [{"name": "c", "state": {"terminated": ended}}]
    return found


def planned(owner, *pods, now=NOW):
    found, _ = plan(owner, pods, now)
    return found


def conditions(found):
    listed = status_in(without_trouble(found)).get("conditions") or ()
    return {one["type"]: one["reason"] for one in listed if one["status"] == "True"}


@pytest.mark.parametrize(
    ("parallelism", "completions", "running", "succeeded", "expected"),
    [
        (1, 1, 0, 0, 1),
        (3, 5, 0, 0, 3),
        (3, 5, 1, 1, 2),
        (3, 5, 0, 4, 1),  # no more than are still missing
        (3, 5, 3, 0, 0),
        (0, 5, 0, 0, 0),
        (2, None, 0, 0, 2),  # a work queue: until one succeeds
    ],
)
def test_as_many_run_as_may_and_are_needed(parallelism, completions, running, succeeded, expected):
    owner = job(parallelism=parallelism, completions=completions)
    pods = [pod(owner, f"r{one}") for one in range(running)]
    pods += [pod(owner, f"s{one}", "Succeeded") for one in range(succeeded)]
    assert len(made_objects(planned(owner, *pods))) == expected


def test_too_many_are_stopped():
    owner = job(parallelism=1, completions=5)
    assert len(removed_names(planned(owner, pod(owner, "a"), pod(owner, "b")))) == 1


def test_pods_hold_a_finalizer_until_they_are_counted():
    owner = job(completions=2)
    done = pod(owner, "done", "Succeeded")
    [new] = made_objects(planned(owner, done))
    assert FINALIZER in new["metadata"]["finalizers"]


def test_a_job_is_complete_when_enough_have_succeeded():
    owner = job(completions=1)
    found = planned(owner, pod(owner, "done", "Succeeded"))
    assert made_objects(found) == []
    assert conditions(found)["SuccessCriteriaMet"] == "CompletionsReached"


def test_a_job_fails_when_too_many_pods_did():
    owner = job(backoffLimit=1)
    pods = [pod(owner, name, "Failed") for name in ("a", "b")]
    found = planned(owner, *pods)
    assert made_objects(found) == []
    assert conditions(found)["FailureTarget"] == "BackoffLimitExceeded"


def test_a_failure_is_followed_by_a_pause():
    owner = job(backoffLimit=6)
    fresh = pod(owner, "a", "Failed")
    ended = {"exitCode": 1, "finishedAt": time_text(NOW - 1)}
    fresh["status"]["containerStatuses"] = [{"name": "c", "state": {"terminated": ended}}]
    found = planned(owner, fresh)
    assert made_objects(found) == []
    assert found.again_seconds == pytest.approx(9, abs=1)


def test_a_job_beyond_its_deadline_is_stopped():
    owner = job(activeDeadlineSeconds=50)
    found = planned(owner, pod(owner, "a"))
    assert removed_names(found) == ["a"]
    assert conditions(found)["FailureTarget"] == "DeadlineExceeded"


def test_a_suspended_job_has_no_pods():
    owner = job(suspend=True)
    found = planned(owner, pod(owner, "a"))
    assert removed_names(found) == ["a"]
    assert conditions(found)["Suspended"] == "JobSuspended"


@pytest.mark.parametrize(("minor", "changes"), [("1.35", {}), ("1.36", {"startTime": None})])
def test_from_v1_36_on_a_job_that_is_suspended_has_not_begun(minor, changes):
    """[V1] MutableSchedulingDirectivesForSuspendedJobs"""
    owner = job({"startTime": time_text(NOW - 100)}, suspend=True)
    with features.used(Release(minor)):
        status = status_in(without_trouble(planned(owner, pod(owner, "a"))))
    assert {key: status[key] for key in ("startTime",) if key in status} == changes


def test_each_index_has_one_pod_until_it_succeeded():
    owner = job(parallelism=3, completions=3, completionMode="Indexed")
    pods = [pod(owner, "a", "Succeeded", index=0), pod(owner, "c", index=2)]
    [new] = made_objects(planned(owner, *pods))
    assert new["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == "1"
    status = status_in(without_trouble(planned(owner, *pods)))
    assert status["completedIndexes"] == "0"


def test_a_pod_failure_policy_may_end_the_job():
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    owner = job(podFailurePolicy={"rules": [rule]})
    found = planned(owner, pod(owner, "a", "Failed", exit_code=42))
    assert conditions(found)["FailureTarget"] == "PodFailurePolicy"
    other = planned(owner, pod(owner, "a", "Failed", exit_code=1))
    assert "FailureTarget" not in conditions(other)


def test_a_finished_job_only_lets_its_pods_go():
    over = {"conditions": [{"type": "Complete", "status": "True"}]}
    owner = job(status=over)
    found = planned(owner, pod(owner, "a", "Succeeded"))
    [release] = found.actions
    assert isinstance(release, Patch)
    assert release.patch["metadata"]["$deleteFromPrimitiveList/finalizers"] == [FINALIZER]


def test_a_job_that_somebody_else_manages_is_left_alone():
    assert list(planned(job(managedBy="example.com/mine")).actions) == []
