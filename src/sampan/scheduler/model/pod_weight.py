"""How much of a pod the scheduler has to look at. Pure.

Job: count it, roughly and fast, before anything is made of it.
"""

from sampan.api.objects import Obj, is_larger, labels_of

LONG = 200  # a decision about less than that takes a few milliseconds
_LISTS = (
    "containers", "initContainers", "volumes", "tolerations", "nodeSelector", "schedulingGates",
    "topologySpreadConstraints",
)  # fmt: skip


def is_long(pod: Obj) -> bool:
    """Whether it is worked out beside the loop."""
    spec = pod.get("spec") or {}
    weight = len(labels_of(pod))
    for name in _LISTS:
        if listed := spec.get(name):
            weight += len(listed)
    if weight > LONG:
        return True
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        weight += len(container.get("ports") or ())
        if resources := container.get("resources"):
            weight += sum(len(resources.get(kind) or ()) for kind in ("requests", "limits"))
    if weight > LONG:
        return True
    asked = [spec[name] for name in ("affinity", "topologySpreadConstraints") if spec.get(name)]
    return bool(asked) and is_larger(asked, 2 * LONG)
