"""APIServices: their strategy.

Job: a service in this process is available from its first moment. Pure.
"""

from collections.abc import Callable

from sampan.api.objects import Obj, spec_of
from sampan.apiserver.registry.strategy import Strategy

MANAGED = "kube-aggregator.kubernetes.io/automanaged"  # the label of those that are ours
# What a Local APIService of somebody's own has served: scripted metrics.
SCRIPTED_VERSIONS = frozenset(
    {
        ("custom.metrics.k8s.io", "v1beta2"),
        ("custom.metrics.k8s.io", "v1beta1"),
        ("external.metrics.k8s.io", "v1beta1"),
    }
)
LOCAL = {
    "type": "Available",
    "status": "True",
    "reason": "Local",
    "message": "Local APIServices are always available",
}


def strategy(now_text: Callable[[], str]) -> Strategy:
    def prepare_create(service: Obj) -> None:
        service["status"] = {}
        if spec_of(service).get("service") is None:
            condition = {**LOCAL, "lastTransitionTime": now_text()}
            service["status"] = {"conditions": [condition]}

    return Strategy(prepare_create=prepare_create)
