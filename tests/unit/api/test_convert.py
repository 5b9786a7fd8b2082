"""Between the version that a client speaks and the one that is stored."""

from sampan.api.convert import from_stored, to_stored
from sampan.api.resources import PODS, by_kind

EVENTS = by_kind("events.k8s.io/v1", "Event")
AUTOSCALERS = by_kind("autoscaling/v1", "HorizontalPodAutoscaler")

EVENT = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "e"},
    "regarding": {"kind": "Pod"},
    "note": "hello",
    "reportingController": "example.com/c",
    "deprecatedCount": 3,
    "reason": "R",
}
AUTOSCALER = {
    "apiVersion": "autoscaling/v1",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "a", "annotations": {"mine": "x"}},
    "spec": {"maxReplicas": 3, "minReplicas": 1, "targetCPUUtilizationPercentage": 50},
    "status": {"currentReplicas": 1, "currentCPUUtilizationPercentage": 10},
}


def test_a_kind_with_one_version_is_stored_as_it_is():
    pod = {"kind": "Pod"}
    assert to_stored(PODS, pod) is pod
    assert from_stored(PODS, pod) is pod


def test_events_of_both_groups_are_one():
    """[A5] core Events and events.k8s.io are one store."""
    stored = to_stored(EVENTS, EVENT)
    assert stored == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod"},
        "message": "hello",
        "reportingComponent": "example.com/c",
        "count": 3,
        "reason": "R",
    }
    assert from_stored(EVENTS, stored) == EVENT


def test_an_autoscaler_is_stored_with_metrics():
    stored = to_stored(AUTOSCALERS, AUTOSCALER)
    assert stored["apiVersion"] == "autoscaling/v2"
    assert stored["spec"]["metrics"] == [
        {
            "type": "Resource",
            "resource": {
                "name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50},
            },
        }
    ]
    assert stored["status"]["currentMetrics"][0]["resource"]["current"] == {
        "averageUtilization": 10
    }
    assert from_stored(AUTOSCALERS, stored) == AUTOSCALER


def test_what_the_old_version_cannot_say_travels_in_annotations():
    new = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a"},
        "spec": {
            "maxReplicas": 3,
            "metrics": [{"type": "Pods", "pods": {"metric": {"name": "m"}}}],
            "behavior": {"scaleUp": {"selectPolicy": "Max"}},
        },
        "status": {"conditions": [{"type": "AbleToScale", "status": "True"}]},
    }
    old = from_stored(AUTOSCALERS, new)
    assert "metrics" not in old["spec"]
    assert set(old["metadata"]["annotations"]) == {
        "autoscaling.alpha.kubernetes.io/metrics",
        "autoscaling.alpha.kubernetes.io/behavior",
        "autoscaling.alpha.kubernetes.io/conditions",
    }
    assert to_stored(AUTOSCALERS, old) == new


def test_a_spoilt_annotation_is_passed_over():
    spoilt = {
        "metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/metrics": "{"}},
        "spec": {},
    }
    assert "metrics" not in to_stored(AUTOSCALERS, spoilt)["spec"]
