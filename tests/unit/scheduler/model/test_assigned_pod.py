from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.objects import copy_of
from sampan.scheduler.model.assigned_pod import assigned_pod_after, assigned_pod_of
from tests.support.generators.random_clusters import pods

_resources = st.sampled_from(({}, {"requests": {"cpu": "4"}}))
_statuses = st.fixed_dictionaries(
    {},
    optional={
        "startTime": st.sampled_from(("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")),
        "phase": st.sampled_from(("Pending", "Running")),
        "conditions": st.sampled_from(
            (
                [{"type": "Ready", "status": "True"}],
                [{"type": "PodResizePending", "reason": "Infeasible"}],
                [
                    {
                        "type": "DisruptionTarget", "status": "True",
                        "reason": "PreemptionByScheduler",
                    }
                ],
            )
        ),
        "containerStatuses": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from(("c0", "c1")), "resources": _resources},
                optional={"allocatedResources": st.just({"cpu": "8"}), "ready": st.booleans()},
            ),
            max_size=2,
        ),
    },
)  # fmt: skip


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(pods(with_demands=True), _statuses, _statuses, st.booleans(), st.sampled_from("0123"))
def test_a_change_is_followed_as_if_the_pod_were_looked_at_anew(pod, old, new, goes, change):
    """Of the status alone, of labels, of the spec."""
    before = {**pod, "status": old}
    after = copy_of({**pod, "status": new})
    if goes:
        after["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if change == "1":
        after["metadata"]["labels"] = {"another": "one"}
    if change == "3":
        after["spec"]["nodeName"] = "another"
    if change == "2":
        after["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "7"}}
    found, expected = (
        assigned_pod_after(assigned_pod_of(before), before, after),
        assigned_pod_of(after),
    )
    for one in fields(expected):
        assert getattr(found, one.name) == getattr(expected, one.name), one.name


def test_a_status_that_says_nothing_new_costs_nothing():
    pod = {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [{"name": "c"}]}}
    there = assigned_pod_of(pod)
    told = {**pod, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert assigned_pod_after(there, pod, told) is there


def test_a_pod_that_got_its_node_and_what_it_asked_for_is_not_looked_at_anew():
    asked = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}
    spec = {"containers": [{"name": "c", "resources": asked}]}
    pod = {"metadata": {"name": "p", "uid": "u"}, "spec": spec}
    there = assigned_pod_of(pod)
    bound = {**pod, "spec": {**spec, "nodeName": "n"}}
    assert assigned_pod_after(there, pod, bound) is there
    has = {"name": "c", "resources": asked, "allocatedResources": asked["requests"]}
    runs = {**bound, "status": {"containerStatuses": [has]}}
    assert assigned_pod_after(there, bound, runs) is there
    more = {**has, "allocatedResources": {"cpu": "3", "memory": "1Gi"}}
    grows = {**bound, "status": {"containerStatuses": [more]}}
    assert assigned_pod_after(there, runs, grows).usage != there.usage
