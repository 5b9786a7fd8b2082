"""The plan of PodDisruptionBudgets: how many pods may go."""

import pytest

from sampan.api.objects import time_text
from sampan.api.resources import REPLICA_SETS
from sampan.controllers.actions import NOTHING, Record
from sampan.controllers.workloads.disruption import (
    DISRUPTED_SECONDS,
    STALE_SECONDS,
    Situation,
    plan,
    plan_contested,
    plan_stale,
)
from tests.support.generators.workload_objects import NOW, owner_of, pod_of, reasons, status_in

OWNER = owner_of(REPLICA_SETS)


def budget(status=None, **spec):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "ns", "uid": "b", "generation": 3},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
        "status": status or {},
    }


def pods(healthy, unhealthy=0):
    return [
        pod_of(REPLICA_SETS, OWNER, f"p{number}", ready=number < healthy)
        for number in range(healthy + unhealthy)
    ]


def planned(made, found, scale=None, now=NOW):
    return plan(Situation(made, found, 0 if scale is None else scale), now)


@pytest.mark.parametrize(
    ("spec", "healthy", "unhealthy", "scale", "allowed", "desired", "expected"),
    [
        ({"minAvailable": 2}, 3, 0, None, 1, 2, 3),
        ({"minAvailable": 2}, 2, 1, None, 0, 2, 3),
        ({"minAvailable": 5}, 3, 0, None, 0, 5, 3),
        ({"minAvailable": "50%"}, 3, 0, 3, 1, 2, 3),  # rounded up
        ({"minAvailable": "50%"}, 2, 2, 4, 0, 2, 4),
        ({"maxUnavailable": 1}, 3, 0, 3, 1, 2, 3),
        ({"maxUnavailable": 1}, 2, 1, 3, 0, 2, 3),
        ({"maxUnavailable": "50%"}, 4, 0, 4, 2, 2, 4),
        ({"maxUnavailable": 1}, 3, 0, 10, 0, 9, 10),  # seven were never made
        ({"maxUnavailable": 0}, 3, 0, 3, 0, 3, 3),
    ],
)  # fmt: skip
def test_as_many_may_go_as_are_healthy_beyond_the_desired(
    spec, healthy, unhealthy, scale, allowed, desired, expected
):
    status = status_in(planned(budget(**spec), pods(healthy, unhealthy), scale).actions)
    assert status["disruptionsAllowed"] == allowed
    assert status["desiredHealthy"] == desired
    assert status["expectedPods"] == expected
    assert status["currentHealthy"] == healthy
    [condition] = status["conditions"]
    assert condition["reason"] == ("SufficientPods" if allowed else "InsufficientPods")
    assert status["observedGeneration"] == 3


def test_a_pod_that_was_just_evicted_counts_as_gone_for_a_while():
    evicted = {"disruptedPods": {"p0": time_text(NOW - 10)}}
    found = planned(budget(status=evicted, minAvailable=1), pods(3))
    status = status_in(found.actions)
    assert (status["currentHealthy"], status["disruptionsAllowed"]) == (2, 1)
    assert found.again_seconds == DISRUPTED_SECONDS - 10
    late = {"disruptedPods": {"p0": time_text(NOW - DISRUPTED_SECONDS - 1)}}
    again = status_in(planned(budget(status=late, minAvailable=1), pods(3)).actions)
    assert again["currentHealthy"] == 3


def test_a_pod_that_goes_is_not_healthy():
    leaving = pod_of(REPLICA_SETS, OWNER, "leaving", deleted=True)
    status = status_in(planned(budget(minAvailable=1), [*pods(2), leaving]).actions)
    assert status["currentHealthy"] == 2


def test_percentages_need_controllers_that_are_known():
    found = planned(budget(maxUnavailable=1), pods(3), scale='found no controllers for pod "p0"')
    status = status_in(found.actions)
    assert status["disruptionsAllowed"] == 0
    assert status["conditions"][0]["reason"] == "SyncFailed"
    assert reasons(found.actions) == ["CalculateExpectedPodCountFailed"]


def test_pods_that_nobody_manages_are_told_of():
    found = plan(Situation(budget(maxUnavailable=1), pods(1), 0, unmanaged=True), NOW)
    [event] = [action for action in found.actions if isinstance(action, Record)]
    assert event.reason == "UnmanagedPods"
    assert "(selector: &LabelSelector{MatchLabels:map[string]string{app: web,}," in event.message


def test_a_pod_with_several_budgets_is_told_of():
    other = {"metadata": {"name": "more"}}
    pod = pod_of(REPLICA_SETS, OWNER, "p")
    [event] = plan_contested(pod, [budget(), other]).actions
    assert (event.reason, event.message) == (
        "MultiplePodDisruptionBudgets",
        'Pod "ns"/"p" matches multiple PodDisruptionBudgets.  Chose "more" arbitrarily.',
    )
    assert plan_contested(pod, [budget()]) is NOTHING


def test_what_the_kubelet_ends_may_take_as_long_as_it_takes():
    marked = pod_of(REPLICA_SETS, OWNER, "p")
    mark = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    marked["status"]["conditions"].append({**mark, "lastTransitionTime": time_text(NOW)})
    assert plan_stale(marked, NOW + 10 * STALE_SECONDS) is NOTHING


def test_a_budget_without_pods_allows_nothing_and_says_so():
    found = planned(budget(minAvailable=0), [])
    assert reasons(found.actions) == ["NoPods"]
    assert status_in(found.actions)["disruptionsAllowed"] == 0


def test_a_mark_for_disruption_that_came_to_nothing_is_taken_back():
    marked = pod_of(REPLICA_SETS, OWNER, "p")
    mark = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    marked["status"]["conditions"].append({**mark, "lastTransitionTime": time_text(NOW)})
    assert plan_stale(marked, NOW + 10).again_seconds == STALE_SECONDS - 10
    [action] = plan_stale(marked, NOW + STALE_SECONDS + 1).actions
    assert action.subresource == "status"
    marked["metadata"]["deletionTimestamp"] = time_text(NOW)
    assert list(plan_stale(marked, NOW + STALE_SECONDS + 1).actions) == []
