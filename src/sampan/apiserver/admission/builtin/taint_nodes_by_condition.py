"""TaintNodesByCondition: a new Node starts with the not-ready taint.

Job: put the not-ready taint on every node that is created.
"""

from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer

NOT_READY = "node.kubernetes.io/not-ready"


def plugin(_parts: PluginInitializer) -> Steps:
    return Steps(_taint)


def _taint(attributes: Attributes) -> None:
    if attributes.obj is None:
        return
    spec = attributes.obj.setdefault("spec", {})
    taints = spec.get("taints") or []
    if not any(
        taint.get("key") == NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints
    ):
        spec["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]
