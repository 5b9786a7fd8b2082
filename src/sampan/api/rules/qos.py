"""QoS classes: Guaranteed, Burstable or BestEffort.

Job: pod → its QoS class, by what the spec says, not by what was recorded. Pure.
Invariant: amounts are compared, not their spelling: `1.500` and `1.5` are one limit.
"""

from sampan.api import features, quantity
from sampan.api.objects import Obj
from sampan.api.quantity import ZERO, Quantity
from sampan.api.rules import pod_resources
from sampan.api.rules.pods import containers, init_containers

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"
_COUNTED = ("cpu", "memory")


def qos_class(pod: Obj) -> str:
    """As ComputePodQOS: resources of the pod as a whole stand in place of its containers'."""
    whole = (pod.get("spec") or {}).get("resources")
    if whole is not None and _counts(pod):
        return _class_of(whole)
    classes = {
        _class_of(container.get("resources") or {})
        for container in (*init_containers(pod), *containers(pod))
    }
    if len(classes) > 1:
        return BURSTABLE
    return classes.pop() if classes else BEST_EFFORT


def _counts(pod: Obj) -> bool:
    """Something is asked for as a whole; without the gate nothing is something, too."""
    if not features.enabled("PodLevelResourcesFixKubeletQOSClass"):
        return True
    return pod_resources.is_set_as_a_whole(pod)


def _class_of(resources: Obj) -> str:
    requests, limits = _amounts(resources.get("requests")), _amounts(resources.get("limits"))
    if not requests and not limits:
        return BEST_EFFORT
    return GUARANTEED if len(limits) == len(_COUNTED) and requests == limits else BURSTABLE


def _amounts(written: Obj | None) -> dict[str, Quantity]:
    """Of what counts; an amount of zero counts as none."""
    read = {name: quantity.value_of(text) for name, text in (written or {}).items()}
    return {name: read[name] for name in _COUNTED if read.get(name, ZERO).nanos > 0}
