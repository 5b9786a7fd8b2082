"""What metrics of pods, of objects and of what is outside ask for, and how it is told."""

import pytest

from sampan.controllers.autoscaling.metric_readings import Reading
from sampan.controllers.autoscaling.metric_replicas import MetricFailed, Target, proposal
from sampan.controllers.autoscaling.replica_calculator import Sample, Tolerances

NOW = 1_700_000_000.0
LONG_AGO = "2023-11-01T00:00:00Z"
SELECTOR = {"matchLabels": {"queue": "mail"}}


def pod(number, ready=True):
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": LONG_AGO}
    return {
        "metadata": {"name": f"p{number}"},
        "spec": {"containers": [{"name": "c"}]},
        "status": {"phase": "Running", "startTime": LONG_AGO, "conditions": [condition]},
    }


def target(replicas=2, pods=None, reported=None):
    found = [pod(number) for number in range(replicas)] if pods is None else pods
    reported = replicas if reported is None else reported
    return Target("ns", replicas, reported, found, Tolerances(), NOW)


def samples(*values):
    return Reading(
        samples={f"p{number}": Sample(value, NOW, 60.0) for number, value in enumerate(values)}
    )


def pods_metric(average="10"):
    goal = {"type": "AverageValue", "averageValue": average}
    return {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": goal}}


def object_metric(**goal):
    described = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"}
    metric = {"name": "hits"}
    return {
        "type": "Object",
        "object": {"describedObject": described, "metric": metric, "target": goal},
    }


def external_metric(selector=None, **goal):
    metric = {"name": "waiting", **({"selector": selector} if selector else {})}
    return {"type": "External", "external": {"metric": metric, "target": goal}}


VALUE = {"type": "Value", "value": "100"}
AVERAGE = {"type": "AverageValue", "averageValue": "50"}


@pytest.mark.parametrize(
    ("metric", "reading", "replicas", "name", "current"),
    [
        (pods_metric(), samples(20_000, 20_000), 4, "pods metric rps", {"averageValue": "20"}),
        (pods_metric(), samples(10_500, 10_000), 2, "pods metric rps", {"averageValue": "10250m"}),
        (object_metric(**VALUE), Reading(milli=300_000), 6, "Ingress metric hits",
         {"value": "300"}),
        (object_metric(**AVERAGE), Reading(milli=300_000), 6, "external metric hits(nil)",
         {"averageValue": "150"}),
        (external_metric(**VALUE), Reading(values=[100_000, 200_000]), 6,
         "external metric waiting(nil)", {"value": "300"}),
        (external_metric(**AVERAGE), Reading(values=[300_000]), 6,
         "external metric waiting(nil)", {"averageValue": "150"}),
        (external_metric(**VALUE), Reading(values=[105_000]), 2,
         "external metric waiting(nil)", {"value": "105"}),
    ],
)  # fmt: skip
def test_what_a_metric_asks_for(metric, reading, replicas, name, current):
    found = proposal(metric, reading, target())
    assert (found.replicas, found.name) == (replicas, name)
    [status] = [item for key, item in found.status.items() if key != "type"]
    assert found.status["type"] == metric["type"]
    assert status["current"] == current


def test_only_pods_that_are_ready_count_for_a_value_of_all():
    waiting = target(pods=[pod(0), pod(1, ready=False)])
    assert proposal(external_metric(**VALUE), Reading(values=[300_000]), waiting).replicas == 3


def test_from_nothing_a_value_starts_pods():
    asleep = target(replicas=0, pods=[])
    assert proposal(external_metric(**VALUE), Reading(values=[300_000]), asleep).replicas == 3


def test_the_largest_numbers_are_bounded():
    huge = Reading(values=[2**62, 2**62])
    found = proposal(external_metric(type="Value", value="1m"), huge, target())
    assert found.replicas == 2**31 - 1


def test_a_selector_is_part_of_the_name_and_of_the_status():
    found = proposal(external_metric(SELECTOR, **VALUE), Reading(values=[1]), target())
    assert found.name == (
        "external metric waiting(&LabelSelector{MatchLabels:map[string]string{queue: mail,},"
        "MatchExpressions:[]LabelSelectorRequirement{},})"
    )
    assert found.status["external"]["metric"] == {"name": "waiting", "selector": SELECTOR}


@pytest.mark.kubernetes("1.37")
@pytest.mark.parametrize(
    ("metric", "reason", "why", "told"),
    [
        (pods_metric(), "FailedGetPodsMetric", "unable to get metric rps: gone",
         "failed to get pods metric value: unable to get metric rps: gone"),
        (object_metric(**VALUE), "FailedGetObjectMetric",
         "unable to get metric hits on Ingress ns/main: gone",
         "failed to get object metric value: unable to get metric hits on Ingress ns/main: gone"),
        (object_metric(**AVERAGE), "FailedGetObjectMetric",
         "unable to get metric hits on Ingress ns/main: gone",
         "failed to get object metric value: failed to get hits object metric: "
         "unable to get metric hits on Ingress ns/main: gone"),
        (external_metric(**VALUE), "FailedGetExternalMetric",
         "unable to get external metric ns/waiting/nil: gone",
         "failed to get waiting external metric value: failed to get external metric waiting: "
         "unable to get external metric ns/waiting/nil: gone"),
        (external_metric(**AVERAGE), "FailedGetExternalMetric",
         "unable to get external metric ns/waiting/nil: gone",
         "failed to get waiting external metric value: failed to get waiting external metric: "
         "unable to get external metric ns/waiting/nil: gone"),
        ({"type": "Other"}, "InvalidMetricSourceType", 'unknown metric source type "Other"',
         'unknown metric source type "Other"'),
    ],
)  # fmt: skip
def test_why_a_metric_failed_is_told_in_upstreams_wordings(metric, reason, why, told):
    with pytest.raises(MetricFailed) as failed:
        proposal(metric, Reading(failure="gone"), target())
    assert (failed.value.reason, failed.value.why, str(failed.value)) == (reason, why, told)
