"""Eviction of the victims of a preemption: condition, event, deletion.

Job: victims → API calls. No policy: victims.py chose them.
"""

from sampan.api.errors import NotFound
from sampan.api.objects import Obj, time_text
from sampan.api.resources import PODS
from sampan.client.contract import Client, Preconditions
from sampan.client.events import EventRecorder
from sampan.scheduler.model.assigned_pod import BY_SCHEDULER, AssignedPod


def disruption(victim: AssignedPod, scheduler: str, now: float) -> Obj:
    """The patch that says why the pod goes, for the controllers that count its failures. Pure."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": BY_SCHEDULER,
        "message": f"{scheduler}: preempting to accommodate a higher priority pod",
        "lastTransitionTime": time_text(now),
    }
    return {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}


async def evict(client: Client, victim: AssignedPod, scheduler: str, now: float) -> bool:
    """Gracefully; False where the pod is gone already."""
    patch = disruption(victim, scheduler, now)
    try:
        await client.patch(PODS, victim.namespace, victim.name, patch, subresource="status")
        await client.delete(
            PODS, victim.namespace, victim.name, preconditions=Preconditions(victim.uid)
        )
    except NotFound:
        return False
    return True


def tell(events: EventRecorder, victim: AssignedPod, preemptor_uid: str, node: str) -> None:
    about = {
        "kind": "Pod", "apiVersion": "v1",
        "namespace": victim.namespace, "name": victim.name, "uid": victim.uid,
    }  # fmt: skip
    events.record(about, "Normal", "Preempted", f"Preempted by pod {preemptor_uid} on node {node}")
