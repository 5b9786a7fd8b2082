"""Defaults of horizontal pod autoscalers, in both versions.

Job: fill in the least number of replicas, a metric and the behaviour, as upstream does.
Invariant: without a metric, CPU at 80 % is the goal.
"""

from sampan.api.defaults.fill import fill, spec_of
from sampan.api.objects import Obj, annotations_of, copy_of

# Where autoscaling/v1 keeps the metrics that it has no field for.
METRICS_ANNOTATION = "autoscaling.alpha.kubernetes.io/metrics"

_CPU_METRIC: Obj = {
    "type": "Resource",
    "resource": {
        "name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 80},
    },
}
_UP = [
    {"type": "Pods", "value": 4, "periodSeconds": 15},
    {"type": "Percent", "value": 100, "periodSeconds": 15},
]
_DOWN = [{"type": "Percent", "value": 100, "periodSeconds": 15}]


def default_autoscaler_v1(obj: Obj) -> None:
    spec = spec_of(obj)
    fill(spec, minReplicas=1)
    if not annotations_of(obj).get(METRICS_ANNOTATION):
        fill(spec, targetCPUUtilizationPercentage=80)


def default_autoscaler(obj: Obj) -> None:
    spec = spec_of(obj)
    fill(spec, minReplicas=1)
    if not spec.get("metrics"):
        spec["metrics"] = [copy_of(_CPU_METRIC)]
    behaviour = spec.get("behavior")
    if behaviour is None:
        return
    fill(behaviour, scaleUp={}, scaleDown={})
    fill(behaviour["scaleUp"], stabilizationWindowSeconds=0, selectPolicy="Max", policies=_UP)
    fill(behaviour["scaleDown"], selectPolicy="Max", policies=_DOWN)
