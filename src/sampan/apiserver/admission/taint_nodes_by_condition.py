"""TaintNodesByCondition: a new node takes no pods until somebody has seen that it is ready.

Job: put the not-ready taint on every node that is created.
"""

from sampan.api.resources import NODES
from sampan.apiserver.admission.chain import CREATE, Attributes, Plugin

NOT_READY = "node.kubernetes.io/not-ready"


def admit(attributes: Attributes) -> None:
    if attributes.obj is None or not attributes.is_main(NODES):
        return
    spec = attributes.obj.setdefault("spec", {})
    taints = spec.get("taints") or []
    if not any(one.get("key") == NOT_READY and one.get("effect") == "NoSchedule" for one in taints):
        spec["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]


PLUGIN = Plugin("TaintNodesByCondition", frozenset({CREATE}), mutate=admit)
