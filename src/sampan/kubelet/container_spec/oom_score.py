"""oom_score_adj of a container, by QoS class and request.

Job: (pod, container, memory of the node) → what is added to its processes' score. Pure.
Invariant: BestEffort goes before Burstable, Burstable before Guaranteed.
"""

from sampan.api.objects import Obj
from sampan.api.quantity import ZERO
from sampan.api.rules import pod_resources
from sampan.api.rules.pods import containers, init_containers, is_critical, is_sidecar
from sampan.api.rules.qos import BEST_EFFORT, GUARANTEED, qos_class
from sampan.client.by_identity import OF_ANY_SIZE, by_identity
from sampan.core.fast_dataclass import dataclass

KEEP, KILL_FIRST = -997, 1000
_NODE_CRITICAL = "system-node-critical"
_MEMORY = "memory"


def oom_score(pod: Obj, container: Obj, memory_bytes: int) -> int:
    """The more of the node's memory a container asked for, the longer it lives."""
    spec = pod.get("spec") or {}
    if is_critical(pod) and spec.get("priorityClassName") == _NODE_CRITICAL:
        return KEEP
    whole = _whole(spec)
    if whole.quality == GUARANTEED:
        return KEEP
    if whole.quality == BEST_EFFORT or not memory_bytes:
        return KILL_FIRST
    request = _memory_request(container)
    if is_sidecar(container) and container["name"] in whole.inits:
        # It never goes before the containers that it serves.
        request = max(request, whole.least_request)
    score = 1000 - 1000 * (request + whole.share_of_the_rest) // memory_bytes
    return max(1000 + KEEP, min(score, KILL_FIRST - 1))


@dataclass(frozen=True, slots=True)
class _Whole:
    """What the scores of all containers of a pod have in common."""

    quality: str
    inits: frozenset[str]
    least_request: int  # of the containers that sidecars serve
    share_of_the_rest: int


@by_identity(8, OF_ANY_SIZE)
def _whole(spec: Obj) -> _Whole:
    pod = {"spec": spec}
    return _Whole(
        qos_class(pod),
        frozenset(item["name"] for item in init_containers(pod)),
        min((_memory_request(item) for item in containers(pod)), default=0),
        _share_of_the_rest(spec),
    )


def _memory_request(container: Obj) -> int:
    written = (container.get("resources") or {}).get("requests")
    return pod_resources.quantities(written).get(_MEMORY, ZERO).value()


def _share_of_the_rest(spec: Obj) -> int:
    """Of the memory that the pod asks for beyond its containers' own requests, for each of them."""
    written = (spec.get("resources") or {}).get("requests")
    whole = pod_resources.quantities(written).get(_MEMORY, ZERO).value()
    if not whole:
        return 0
    own = pod_resources.container_requests(spec).get(_MEMORY, ZERO).value()
    count = len(spec.get("containers") or ()) + len(spec.get("initContainers") or ())
    return max(0, whole - own) // count
