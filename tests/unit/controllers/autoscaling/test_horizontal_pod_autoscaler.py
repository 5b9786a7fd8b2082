from dataclasses import replace

import pytest

from sampan.api.errors import NotFound
from sampan.api.resources import DEPLOYMENTS
from sampan.controllers.actions import Outcome, Patch, Record
from sampan.controllers.autoscaling.horizontal_pod_autoscaler import Situation, plan_autoscaler
from sampan.controllers.autoscaling.metric_readings import Reading
from sampan.controllers.autoscaling.replica_calculator import samples_of
from sampan.controllers.autoscaling.scaling_behavior import Memory, Moment

NOW = 1_700_000_000.0
LONG_AGO = "2023-11-01T00:00:00Z"
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}


def autoscaler(*metrics, least=1, most=10):
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default", "uid": "h1", "generation": 1},
        "spec": {"minReplicas": least, "maxReplicas": most, "metrics": list(metrics or [CPU])},
    }


def pod(number):
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO}
    return {
        "metadata": {"name": f"p{number}"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}]},
        "status": {"phase": "Running", "startTime": LONG_AGO, "conditions": [ready]},
    }


def situation(obj, replicas, cpu="100m", failure="", memory=None):
    scale = {
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas},
        "status": {"selector": "app=web"},
    }
    measured = [
        {
            "metadata": {"name": f"p{number}"},
            "timestamp": "2023-11-14T22:13:20Z",
            "window": "15s",
            "containers": [{"name": "c", "usage": {"cpu": cpu}}],
        }
        for number in range(replicas)
    ]
    pods = [pod(number) for number in range(replicas)]
    readings = [
        Reading(failure=failure or "nobody serves it")
        if failure or one["type"] != "Resource"
        else Reading(samples=samples_of(measured, "cpu", ""))
        for one in obj["spec"]["metrics"]
    ]
    return Situation(
        obj, DEPLOYMENTS, scale, pods, readings, memory or Memory((Moment(NOW - 1, 1),))
    )


def conditions(patch):
    return {
        one["type"]: (one["status"], one["reason"]) for one in patch.patch["status"]["conditions"]
    }


@pytest.mark.kubernetes("1.37")
def test_busy_pods_get_company():
    plan, memory = plan_autoscaler(situation(autoscaler(), 2), NOW)
    [rescale] = plan.actions
    assert (rescale.subresource, rescale.patch) == ("scale", {"spec": {"replicas": 4}})
    event, status = plan.then([Outcome(rescale, {})])
    assert event.message == (
        "New size: 4; reason: cpu resource utilization (percentage of request) above target"
    )
    assert conditions(status) == {
        "AbleToScale": ("True", "SucceededRescale"),
        "ScalingActive": ("True", "ValidMetricFound"),
        "ScalingLimited": ("False", "DesiredWithinRange"),
        "ScaledToZero": ("False", "NotScaledToZero"),
    }
    body = status.patch["status"]
    assert (body["currentReplicas"], body["desiredReplicas"]) == (2, 4)
    assert body["currentMetrics"][0]["resource"]["current"] == {
        "averageUtilization": 100,
        "averageValue": "100m",
    }
    assert memory.added == (Moment(NOW, 2),)
    assert plan.again_seconds == 15.0


def test_a_refused_change_is_told():
    plan, _ = plan_autoscaler(situation(autoscaler(), 2), NOW)
    error = NotFound("gone")
    event, status = plan.then([Outcome(plan.actions[0], error=error)])
    assert (event.type, event.reason) == ("Warning", "FailedRescale")
    assert conditions(status)["AbleToScale"] == ("False", "FailedUpdateScale")


def test_bounds_come_before_metrics():
    plan, _ = plan_autoscaler(situation(autoscaler(least=3), 2), NOW)
    assert plan.actions[0].patch == {"spec": {"replicas": 3}}
    plan, _ = plan_autoscaler(situation(autoscaler(most=1), 2), NOW)
    assert plan.actions[0].patch == {"spec": {"replicas": 1}}


def test_a_target_of_nothing_is_left_alone():
    [patch] = plan_autoscaler(situation(autoscaler(), 0), NOW)[0].actions
    assert conditions(patch)["ScalingActive"] == ("False", "ScalingDisabled")


QUEUE = {
    "type": "External",
    "external": {"metric": {"name": "jobs"}, "target": {"type": "AverageValue", "averageValue": 1}},
}


def to_zero(replicas, jobs, *stored, least=0):
    """What is planned for a queue with so many jobs."""
    obj = {**autoscaler(QUEUE, least=least), "status": {"conditions": list(stored)}}
    found = situation(obj, replicas, memory=Memory((Moment(NOW - 1, 0),)))
    return plan_autoscaler(replace(found, readings=[Reading(values=(1000 * jobs,))]), NOW)[0]


@pytest.mark.kubernetes("1.37")
def test_what_was_scaled_to_zero_comes_back():
    """[V1] and says who did it"""
    [rescale] = to_zero(1, 0).actions
    assert rescale.patch == {"spec": {"replicas": 0}}
    _, status = to_zero(1, 0).then([Outcome(rescale, {})])
    assert conditions(status)["ScaledToZero"] == ("True", "ScaledToZero")
    [stopped] = [
        one for one in status.patch["status"]["conditions"] if one["type"] == "ScaledToZero"
    ]
    assert to_zero(0, 2, stopped).actions[0].patch == {"spec": {"replicas": 2}}
    assert to_zero(0, 0, stopped, least=1).actions[0].patch == {"spec": {"replicas": 1}}
    [patch] = to_zero(0, 0, stopped).actions
    assert conditions(patch)["ScalingActive"] == ("True", "ValidMetricFound")


@pytest.mark.kubernetes("1.37")
def test_what_somebody_else_stopped_stays_stopped():
    [patch] = to_zero(0, 2).actions
    assert conditions(patch)["ScalingActive"] == ("False", "ScalingDisabled")


@pytest.mark.kubernetes("1.37")
def test_a_status_says_which_generation_it_is_of():
    [patch] = to_zero(0, 2).actions
    assert patch.patch["status"]["observedGeneration"] == 1


@pytest.mark.kubernetes("1.37")
def test_without_metrics_nothing_moves_and_it_says_why():
    found = situation(autoscaler(), 2, failure="no such resource")
    plan, _ = plan_autoscaler(found, NOW)
    events = [one for one in plan.actions if isinstance(one, Record)]
    assert [one.reason for one in events] == [
        "FailedGetResourceMetric",
        "FailedComputeMetricsReplicas",
    ]
    why = "failed to get cpu utilization: unable to get metrics for resource cpu: no such resource"
    assert events[0].message == why
    assert events[1].message == (
        "invalid metrics (1 invalid out of 1), first error is: "
        f"failed to get cpu resource metric value: {why}"
    )
    [patch] = [one for one in plan.actions if isinstance(one, Patch)]
    assert conditions(patch)["ScalingActive"] == ("False", "FailedGetResourceMetric")
    assert patch.patch["status"]["currentMetrics"] == [{"type": ""}]
    assert patch.patch["status"]["observedGeneration"] == 1


def test_metrics_that_cannot_be_read_stop_only_shrinking():
    target = {"type": "AverageValue", "averageValue": "10"}
    pods = {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": target}}
    [*_, patch] = plan_autoscaler(situation(autoscaler(pods), 2), NOW)[0].actions
    assert conditions(patch)["ScalingActive"] == ("False", "FailedGetPodsMetric")
    growing, _ = plan_autoscaler(situation(autoscaler(pods, CPU), 2), NOW)
    assert growing.actions[-1].patch == {"spec": {"replicas": 4}}
    idle = situation(autoscaler(pods, CPU), 2, cpu="1m")
    assert all(
        one.subresource != "scale"
        for one in plan_autoscaler(idle, NOW)[0].actions
        if isinstance(one, Patch)
    )
