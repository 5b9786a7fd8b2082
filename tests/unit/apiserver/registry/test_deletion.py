import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.calls import Options
from sampan.api.errors import Conflict
from sampan.api.objects import seconds_of
from sampan.api.resources import PODS
from sampan.apiserver.registry import pods
from sampan.apiserver.registry.deletion import Mark, Pending, Remove, check_preconditions, plan
from sampan.apiserver.registry.strategy import Strategy

PLAIN = Strategy()
NOW = 1_700_000_000.0


def pod(**meta):
    return {
        "metadata": {"name": "x", "uid": "u", "resourceVersion": "5", **meta},
        "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30},
        "status": {"phase": "Running"},
    }


def test_a_plain_object_goes_at_once():
    assert plan(PLAIN, pod(), Options(), NOW) == Remove()


def test_finalizers_hold_it():
    planned = plan(PLAIN, pod(finalizers=["a"], generation=1), Options(), NOW)
    meta = planned.obj["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 0
    assert meta["deletionTimestamp"]
    assert meta["generation"] == 2
    assert plan(PLAIN, planned.obj, Options(), NOW + 9) == Pending()


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_has_ended_needs_no_grace(phase):
    ended = {**pod(), "status": {"phase": phase}}
    planned = plan(pods.STRATEGY, ended, Options(), NOW)
    assert isinstance(planned, Remove)
    assert planned.last["metadata"]["deletionGracePeriodSeconds"] == 0  # a watcher sees that
    nowhere = {**pod(), "spec": {}}
    assert isinstance(plan(pods.STRATEGY, nowhere, Options(), NOW), Remove)


@given(st.lists(st.none() | st.integers(-1, 60), min_size=1, max_size=8))
def test_grace_only_shrinks(asked):
    obj, grace, asked_at = pod(), None, 0.0
    for step, seconds in enumerate(asked):
        planned = plan(pods.STRATEGY, obj, Options(grace_seconds=seconds), NOW + step)
        if isinstance(planned, Remove):
            return
        if isinstance(planned, Pending):
            assert grace is not None
            continue
        assert isinstance(planned, Mark)
        obj = planned.obj
        meta = obj["metadata"]
        new = meta["deletionGracePeriodSeconds"]
        assert grace is None or new < grace
        if grace is None:
            asked_at = NOW + step
        assert seconds_of(meta["deletionTimestamp"]) == asked_at + new
        grace = new


def test_propagation_replaces_the_collectors_finalizers():
    both = pod(finalizers=["mine", "orphan"])
    planned = plan(PLAIN, both, Options(propagation="Foreground"), NOW)
    assert planned.obj["metadata"]["finalizers"] == ["mine", "foregroundDeletion"]
    assert plan(PLAIN, pod(finalizers=["orphan"]), Options(propagation="Background"), NOW) == (
        Remove()
    )


def test_preconditions_must_hold():
    check_preconditions(PODS, pod(), Options(precondition_uid="u"))
    with pytest.raises(Conflict, match=r"the UID in the precondition \(v\) does not match"):
        check_preconditions(PODS, pod(), Options(precondition_uid="v"))
    with pytest.raises(Conflict, match="The object might have been modified"):
        check_preconditions(PODS, pod(), Options(precondition_resource_version="4"))
