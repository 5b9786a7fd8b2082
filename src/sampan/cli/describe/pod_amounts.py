"""What a pod asks for and is limited to, summed over its containers. Pure.

Job: requests and limits as the scheduler counts them.
"""

from sampan.api import quantity
from sampan.api.objects import Obj

Amounts = dict[str, quantity.Quantity]


def pod_amounts(pod: Obj) -> tuple[Amounts, Amounts]:
    return _amounts(pod, "requests"), _amounts(pod, "limits")


def _amounts(pod: Obj, field: str) -> Amounts:
    spec = pod["spec"]
    total: Amounts = {}
    for container in spec.get("containers") or []:
        for name, amount in ((container.get("resources") or {}).get(field) or {}).items():
            total[name] = total.get(name, quantity.from_value(0)) + quantity.value_of(amount)
    sidecars: Amounts = {}
    for container in spec.get("initContainers") or []:
        own = (container.get("resources") or {}).get(field) or {}
        is_sidecar = container.get("restartPolicy") == "Always"
        for name, text in own.items():
            amount = quantity.value_of(text)
            if is_sidecar:
                sidecars[name] = sidecars.get(name, quantity.from_value(0)) + amount
                total[name] = total.get(name, quantity.from_value(0)) + amount
            else:
                needed = amount + sidecars.get(name, quantity.from_value(0))
                total[name] = max(total.get(name, quantity.from_value(0)), needed)
    return total
