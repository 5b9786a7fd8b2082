"""The OOM score adjustment of a container: who is killed first when the node runs out of memory.

Job: (pod, container, memory of the node) → what is added to its processes' score. Pure.
Invariant: BestEffort goes before Burstable, Burstable before Guaranteed.
"""

from sampan.api.objects import Obj
from sampan.api.quantity import ZERO
from sampan.api.rules import pod_resources
from sampan.api.rules.pods import containers, init_containers, is_critical, is_sidecar
from sampan.api.rules.qos import BEST_EFFORT, GUARANTEED, qos_class

KEEP, KILL_FIRST = -997, 1000
_NODE_CRITICAL = "system-node-critical"
_MEMORY = "memory"


def oom_score(pod: Obj, container: Obj, memory_bytes: int) -> int:
    """The more of the node's memory a container asked for, the longer it lives."""
    spec = pod.get("spec") or {}
    if is_critical(pod) and spec.get("priorityClassName") == _NODE_CRITICAL:
        return KEEP
    quality = qos_class(pod)
    if quality == GUARANTEED:
        return KEEP
    if quality == BEST_EFFORT or not memory_bytes:
        return KILL_FIRST
    request = _memory_request(container)
    if is_sidecar(container) and container in init_containers(pod):
        # It never goes before the containers that it serves.
        request = max(request, min(_memory_request(item) for item in containers(pod)))
    score = 1000 - 1000 * (request + _share_of_the_rest(pod)) // memory_bytes
    return max(1000 + KEEP, min(score, KILL_FIRST - 1))


def _memory_request(container: Obj) -> int:
    written = (container.get("resources") or {}).get("requests")
    return pod_resources.quantities(written).get(_MEMORY, ZERO).value()


def _share_of_the_rest(pod: Obj) -> int:
    """Of the memory that the pod asks for beyond its containers' own requests, for each of them."""
    spec = pod.get("spec") or {}
    written = (spec.get("resources") or {}).get("requests")
    whole = pod_resources.quantities(written).get(_MEMORY, ZERO).value()
    if not whole:
        return 0
    own = pod_resources.container_requests(spec).get(_MEMORY, ZERO).value()
    return max(0, whole - own) // (len(containers(pod)) + len(init_containers(pod)))
