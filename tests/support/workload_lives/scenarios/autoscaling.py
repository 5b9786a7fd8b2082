"""HorizontalPodAutoscalers: metrics of every source, behaviours, what is said without any."""

from typing import Any

from sampan.api.objects import Obj
from tests.support.workload_lives.manifests import deployment, made, replica_set, service
from tests.support.workload_lives.steps import (
    Life,
    Step,
    change_spec,
    create,
    life,
    measure,
    remove,
    wait,
)


def _resource(name: str = "cpu", **target: Any) -> Obj:
    return {"type": "Resource", "resource": {"name": name, "target": _target(**target)}}


def _container(name: str = "cpu", container: str = "c", **target: Any) -> Obj:
    words = {"name": name, "container": container, "target": _target(**target)}
    return {"type": "ContainerResource", "containerResource": words}


def _pods(name: str, **target: Any) -> Obj:
    return {"type": "Pods", "pods": {"metric": {"name": name}, "target": _target(**target)}}


def _object(name: str, **target: Any) -> Obj:
    described = {"apiVersion": "v1", "kind": "Service", "name": "s"}
    words = {"metric": {"name": name}, "describedObject": described, "target": _target(**target)}
    return {"type": "Object", "object": words}


def _external(name: str, **target: Any) -> Obj:
    return {"type": "External", "external": {"metric": {"name": name}, "target": _target(**target)}}


def _target(**words: Any) -> Obj:
    kinds = {
        "averageUtilization": "Utilization", "averageValue": "AverageValue", "value": "Value",
    }  # fmt: skip
    [name] = words
    return {"type": kinds[name], **words}


def _scaler(
    *metrics: Obj,
    low: int = 1,
    high: int = 10,
    kind: str = "Deployment",
    name: str = "d",
    **spec: Any,
) -> Obj:
    target = {"apiVersion": "apps/v1", "kind": kind, "name": name}
    words = {
        "scaleTargetRef": target, "minReplicas": low, "maxReplicas": high,
        "metrics": list(metrics or (_resource(averageUtilization=50),)), **spec,
    }  # fmt: skip
    return made("autoscaling/v2", "HorizontalPodAutoscaler", "h", words)


def _scaled(
    scaler: Obj, *steps: Step, replicas: int = 2, seconds: float = 28, pod: Any = None, **said: Any
) -> Life:
    """Pods of 100m each; two syncs of the autoscaler."""
    return life(
        create(deployment(replicas=replicas, pod={"cpu": "100m", **(pod or {})})), measure(**said),
        wait(4), create(scaler), wait(seconds), *steps,
    )  # fmt: skip


def _rule(**policy: Any) -> Obj:
    """`Pods=4, Percent=100`: of fifteen seconds."""
    selected = policy.pop("select", None)
    window = policy.pop("window", None)
    rule: Obj = {"policies": [
        {"type": kind, "value": value, "periodSeconds": 60} for kind, value in policy.items()
    ]}  # fmt: skip
    if selected:
        rule["selectPolicy"] = selected
    if window is not None:
        rule["stabilizationWindowSeconds"] = window
    return rule


_LOAD = {"cpu": "100m"}
_METRICS = {
    "hpa-cpu-up": _scaled(_scaler(), cpu="100m"),
    "hpa-cpu-steady": _scaled(_scaler(), cpu="52m"),
    "hpa-cpu-down-waits": _scaled(_scaler(), cpu="5m", replicas=4),
    "hpa-cpu-value": _scaled(_scaler(_resource(averageValue="20m")), cpu="50m"),
    "hpa-memory": _scaled(_scaler(_resource("memory", averageValue="100Mi")), memory="250Mi"),
    "hpa-memory-without-requests": _scaled(
        _scaler(_resource("memory", averageUtilization=50)), memory="250Mi"
    ),
    "hpa-container": _scaled(_scaler(_container(averageUtilization=50)), cpu="80m"),
    "hpa-container-absent": _scaled(
        _scaler(_container(container="none", averageUtilization=50)), cpu="80m"
    ),
    "hpa-two-metrics": _scaled(
        _scaler(_resource(averageUtilization=50), _resource("memory", averageValue="100Mi")),
        cpu="60m", memory="290Mi",
    ),
    "hpa-one-of-two-missing": _scaled(
        _scaler(_resource(averageUtilization=50), _pods("rps", averageValue="1")), cpu="100m"
    ),
    "hpa-one-of-two-missing-down": _scaled(
        _scaler(_resource(averageUtilization=50), _pods("rps", averageValue="1")), cpu="5m",
        replicas=4,
    ),
    "hpa-pods-metric": _scaled(
        _scaler(_pods("rps", averageValue="10")), custom={"rps": ["25", "15"]}
    ),
    "hpa-object-value": life(
        create(deployment(replicas=2), service()), measure(objects={"services/s/hits": "30"}),
        wait(4), create(_scaler(_object("hits", value="10"))), wait(28),
    ),
    "hpa-object-average": life(
        create(deployment(replicas=2), service()), measure(objects={"services/s/hits": "30"}),
        wait(4), create(_scaler(_object("hits", averageValue="10"))), wait(28),
    ),
    "hpa-object-absent": life(
        create(deployment(replicas=2), service()), measure(objects={}), wait(4),
        create(_scaler(_object("hits", value="10"))), wait(20),
    ),
    "hpa-external-value": _scaled(
        _scaler(_external("waiting", value="10")), external={"waiting": ["20", "20"]}
    ),
    "hpa-external-average": _scaled(
        _scaler(_external("waiting", averageValue="10")), external={"waiting": ["20", "30"]}
    ),
    "hpa-external-absent": _scaled(_scaler(_external("waiting", value="10")), external={}),
    "hpa-no-metrics": _scaled(_scaler()),
    "hpa-some-pods-unmeasured": _scaled(_scaler(), cpu=["100m"], replicas=3),
    "hpa-some-pods-unmeasured-idle": _scaled(_scaler(), cpu=["5m"], replicas=3),
    "hpa-unready-pods": _scaled(_scaler(), cpu="100m", pod={"life": "notready"}),
    "hpa-tolerance": _scaled(
        _scaler(behavior={"scaleUp": {"tolerance": "500m"}}), cpu="70m"
    ),
    "hpa-no-requests": life(
        create(deployment(replicas=2)), measure(cpu="50m"), wait(4), create(_scaler()), wait(20)
    ),
    "hpa-pod-level": life(
        create(deployment(replicas=2, pod={"resources": {"requests": {"cpu": "100m"}}})),
        measure(cpu="100m"), wait(4), create(_scaler()), wait(28),
    ),
    "hpa-changing-load": _scaled(
        _scaler(), measure(cpu="300m"), wait(32), cpu="52m", seconds=20
    ),
}  # fmt: skip

_BOUNDS = {
    "hpa-at-most": _scaled(_scaler(high=3), cpu="100m"),
    "hpa-at-least": _scaled(_scaler(low=5), cpu="50m"),
    "hpa-over-the-most": _scaled(_scaler(high=3), cpu="50m", replicas=6),
    "hpa-disabled": _scaled(_scaler(), replicas=0, cpu="50m"),
    "hpa-target-absent": life(create(_scaler(name="none")), wait(20)),
    "hpa-target-of-no-kind": life(create(_scaler(kind="Nothing")), wait(20)),
    "hpa-of-a-replicaset": life(
        create(replica_set("r", 2, pod=_LOAD)), measure(cpu="100m"), wait(4),
        create(_scaler(kind="ReplicaSet", name="r")), wait(28),
    ),
    "hpa-two-of-one-target": life(
        create(deployment(replicas=2, pod=_LOAD)), measure(cpu="100m"), wait(4),
        create(_scaler()), wait(5), create({**_scaler(), "metadata": {"name": "i"}}), wait(27),
    ),
    "hpa-scaled-by-hand": _scaled(
        _scaler(), change_spec("deployments", "d", replicas=1), wait(18), cpu="50m", seconds=18
    ),
    "hpa-changed": _scaled(
        _scaler(), change_spec("horizontalpodautoscalers", "h", minReplicas=4), wait(18),
        cpu="50m", seconds=18,
    ),
    "hpa-deleted": _scaled(
        _scaler(), remove("horizontalpodautoscalers", "h"), wait(3), cpu="50m", seconds=18
    ),
    "hpa-ten-times": _scaled(_scaler(high=100), cpu="900m"),
}  # fmt: skip

_BEHAVIOURS = {
    "hpa-up-by-pods": _scaled(_scaler(behavior={"scaleUp": _rule(Pods=1)}), cpu="400m"),
    "hpa-up-by-percent": _scaled(
        _scaler(behavior={"scaleUp": _rule(Percent=50)}), cpu="400m", replicas=4
    ),
    "hpa-up-by-the-least": _scaled(
        _scaler(behavior={"scaleUp": _rule(Pods=3, Percent=50, select="Min")}), cpu="400m"
    ),
    "hpa-up-by-the-most": _scaled(
        _scaler(behavior={"scaleUp": _rule(Pods=3, Percent=50, select="Max")}), cpu="400m"
    ),
    "hpa-up-disabled": _scaled(
        _scaler(behavior={"scaleUp": {"selectPolicy": "Disabled"}}), cpu="400m"
    ),
    "hpa-up-stabilized": _scaled(
        _scaler(behavior={"scaleUp": _rule(Pods=10, window=120)}), measure(cpu="400m"), wait(20),
        cpu="100m", seconds=18,
    ),
    "hpa-down-at-once": _scaled(
        _scaler(behavior={"scaleDown": {"stabilizationWindowSeconds": 0}}), cpu="5m", replicas=5
    ),
    "hpa-down-by-pods": _scaled(
        _scaler(behavior={"scaleDown": _rule(Pods=1, window=0)}), cpu="5m", replicas=5
    ),
    "hpa-down-by-percent": _scaled(
        _scaler(behavior={"scaleDown": _rule(Percent=30, window=0)}), cpu="5m", replicas=5
    ),
    "hpa-down-disabled": _scaled(
        _scaler(behavior={"scaleDown": {"selectPolicy": "Disabled"}}), cpu="5m", replicas=5
    ),
    "hpa-down-stabilized": _scaled(
        _scaler(behavior={"scaleDown": _rule(Pods=10, window=30)}), measure(cpu="5m"), wait(20),
        cpu="52m", replicas=4, seconds=18,
    ),
    "hpa-up-and-down": _scaled(
        _scaler(behavior={"scaleDown": _rule(Pods=2, window=0), "scaleUp": _rule(Pods=2)}),
        measure(cpu="5m"), wait(32), cpu="100m", seconds=32,
    ),
    "hpa-down-tolerance": _scaled(
        _scaler(behavior={"scaleDown": {"tolerance": "0.9", "stabilizationWindowSeconds": 0}}),
        cpu="20m", replicas=4,
    ),
}  # fmt: skip

LIVES: dict[str, Life] = {**_METRICS, **_BOUNDS, **_BEHAVIOURS}
