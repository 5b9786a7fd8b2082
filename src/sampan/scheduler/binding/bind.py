"""What the scheduler writes: bindings and the PodScheduled condition.

Job: decisions → API calls. No policy: the loop decides what to make of a failure.
"""

from sampan.api.objects import Obj, meta_of, name_of, namespace_of, time_text, uid_of
from sampan.api.resources import PODS
from sampan.api.rules.conditions import condition_of
from sampan.client.contract import Client

UNSCHEDULABLE, GATED, FAILED = "Unschedulable", "SchedulingGated", "SchedulerError"
GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"


async def bind(client: Client, pod: Obj, node: str) -> None:
    """Raises Conflict where the pod is already bound, NotFound where it is gone."""
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        # The uid: never bind a namesake that was created meanwhile.
        "metadata": {"namespace": namespace_of(pod), "name": name_of(pod), "uid": uid_of(pod)},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    await client.create(PODS, binding, namespace_of(pod), subresource="binding", name=name_of(pod))


def not_scheduled(
    pod: Obj, reason: str, message: str, now: float, nominated: str | None = None
) -> Obj | None:
    """The patch that sets PodScheduled=False, and where room is made for the pod (None: as it is;
    empty: nowhere any more); None where the pod already says so. Pure."""
    known = (pod.get("status") or {}).get("nominatedNodeName") or ""
    moved = nominated is not None and nominated != known
    condition: Obj = {"type": "PodScheduled", "status": "False", "reason": reason}
    condition["message"] = message
    generation = meta_of(pod).get("generation")
    if generation and reason != GATED:  # of gates the API server has told, and named none
        condition["observedGeneration"] = generation
    before = condition_of(pod, "PodScheduled")
    same = before and all(before.get(field) == value for field, value in condition.items())
    if same and not moved:
        return None
    if before and before.get("status") == "False" and before.get("lastTransitionTime"):
        condition["lastTransitionTime"] = before["lastTransitionTime"]
    else:
        condition["lastTransitionTime"] = time_text(now)
    condition["lastProbeTime"] = None
    # With the uid, a patch for a pod that was replaced meanwhile is refused.
    status: Obj = {"conditions": [condition]}
    if moved:
        status["nominatedNodeName"] = nominated or None
    return {"metadata": {"uid": uid_of(pod)}, "status": status}


def nominated(pod: Obj, node: str) -> Obj | None:
    """The patch that names the node that the pod is about to be bound to (empty: none any more);
    None where the pod already says so. Pure."""
    if ((pod.get("status") or {}).get("nominatedNodeName") or "") == node:
        return None
    return {"metadata": {"uid": uid_of(pod)}, "status": {"nominatedNodeName": node or None}}


async def write_status(client: Client, pod: Obj, patch: Obj) -> None:
    await client.patch(PODS, namespace_of(pod), name_of(pod), patch, subresource="status")
