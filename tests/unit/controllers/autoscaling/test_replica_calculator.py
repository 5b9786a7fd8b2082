import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.controllers.autoscaling.replica_calculator import (
    CannotCompute,
    Sample,
    Tolerances,
    Usage,
    for_average,
    for_utilization,
    group_pods,
    requests_milli,
    samples_of,
)

NOW = 1_700_000_000.0
LONG_AGO = "2023-11-01T00:00:00Z"


def pod(number, request="1", ready="True", phase="Running", started=LONG_AGO, **meta):
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": started}
    return {
        "metadata": {"name": f"p{number}", **meta},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": request}}}]},
        "status": {"phase": phase, "startTime": started, "conditions": [condition]},
    }


def used(*milli):
    return {f"p{number}": Sample(one, NOW, 15.0) for number, one in enumerate(milli)}


def wanted(pods, samples, percent, tolerances=Tolerances()):  # noqa: B008  # frozen
    return for_utilization(
        len(pods), percent, Usage("cpu", "", pods, samples), tolerances, NOW
    ).replicas


def test_replicas_follow_the_ratio_of_use_to_goal():
    pods = [pod(number) for number in range(3)]
    assert wanted(pods, used(900, 900, 900), 30) == 9
    assert wanted(pods, used(100, 100, 100), 50) == 1


def test_small_deviations_are_tolerated():
    pods = [pod(number) for number in range(10)]
    assert wanted(pods, used(*[540] * 10), 50) == 10
    assert wanted(pods, used(*[560] * 10), 50) == 12
    assert wanted(pods, used(*[560] * 10), 50, Tolerances(up=0.2)) == 10


def test_a_pod_without_metrics_holds_a_change_back():
    pods = [pod(number) for number in range(4)]
    assert wanted(pods, used(1000, 1000, 1000), 50) == 6  # as if the fourth were idle
    assert wanted(pods, used(250, 250, 250), 50) == 4  # as if it were at its request


def test_what_is_not_ready_does_not_count_when_growing():
    pods = [pod(0), pod(1, phase="Pending")]
    assert wanted(pods, used(1000), 50) == 2


def test_failed_and_going_pods_are_ignored():
    pods = [pod(0), pod(1, phase="Failed"), pod(2, deletionTimestamp=LONG_AGO)]
    groups = group_pods(pods, used(1, 1, 1), "cpu", NOW)
    assert (groups.ready, groups.ignored) == (1, {"p1", "p2"})


def test_a_starting_pod_is_not_measured_yet():
    just_now = "2023-11-14T22:13:10Z"  # ten seconds ago
    groups = group_pods([pod(0, started=just_now)], used(1000), "cpu", NOW)
    assert groups.unready == {"p0"}
    assert group_pods([pod(0, started=just_now)], used(1000), "memory", NOW).ready == 1


def test_a_container_without_a_request_cannot_have_a_percentage():
    bare = {**pod(0), "spec": {"containers": [{"name": "c"}]}}
    with pytest.raises(CannotCompute, match="missing request for cpu in container c of Pod p0"):
        wanted([bare], used(1), 50)


def test_averages_need_no_requests():
    pods = [pod(number) for number in range(2)]
    found = for_average(2, 100, Usage("cpu", "", pods, used(300, 100)), Tolerances(), NOW)
    assert (found.replicas, found.utilization, found.average_milli) == (4, None, 200)


def test_a_pod_is_measured_whole_or_not_at_all():
    metrics = [
        {
            "metadata": {"name": "a"},
            "timestamp": LONG_AGO,
            "window": "1m10.5s",
            "containers": [
                {"name": "x", "usage": {"cpu": "100m"}},
                {"name": "y", "usage": {"cpu": "50m"}},
            ],
        },
        {"metadata": {"name": "b"}, "containers": [{"name": "x", "usage": {"memory": "1Mi"}}]},
    ]
    found = samples_of(metrics, "cpu", "")
    assert (found["a"].milli, found["a"].window_seconds) == (150, 70.5)
    assert list(found) == ["a"]
    assert samples_of(metrics, "cpu", "y")["a"].milli == 50


@given(
    st.lists(st.integers(0, 3000), min_size=1, max_size=8), st.integers(0, 4), st.integers(1, 200)
)
def test_unknown_pods_never_turn_a_change_round(use, missing, percent):
    known = [pod(number) for number in range(len(use))]
    alone = wanted(known, used(*use), percent)
    pods = known + [pod(len(use) + number) for number in range(missing)]
    together = wanted(pods, used(*use), percent)
    if alone > len(known):
        assert together >= len(pods)
    if alone < len(known):
        assert together <= len(pods)


def test_requests_of_the_pod_as_a_whole_count_where_it_has_them():
    whole = {
        "metadata": {"name": "p"},
        "spec": {
            "resources": {"requests": {"cpu": "300m"}},
            "containers": [{"name": "c"}, {"name": "d", "resources": {"requests": {"cpu": "1m"}}}],
        },
    }
    assert requests_milli(whole, "cpu", "") == 300
    assert requests_milli(whole, "cpu", "d") == 1
    with pytest.raises(CannotCompute, match="missing pod-level request for memory in Pod p"):
        requests_milli(whole, "memory", "")
    with pytest.raises(CannotCompute, match="container x not found in Pod p"):
        requests_milli(whole, "cpu", "x")
