"""Resizes in place: which containers have other resources than they were given. Pure.

Job: a running container, what it has → the change that is left to make, or that it must restart.
"""

from sampan.api.objects import Obj
from sampan.api.quantity import ZERO
from sampan.api.rules.pod_resources import quantities
from sampan.kubelet.contracts.resize_state import WHOLE, Applied, Resources, actual_resources
from sampan.kubelet.contracts.runtime import ContainerStatus
from sampan.kubelet.contracts.spec import RESIZABLE, pod_level_resources, resources_of
from sampan.kubelet.pods.planning.actions import Update


def is_whole_resized(pod: Obj, applied: Applied) -> bool:
    """The pod as a whole has other resources than it was given."""
    return WHOLE in applied and applied[WHOLE] != pod_level_resources(pod)


def update_of(
    pod: Obj, container: Obj, running: ContainerStatus, applied: Applied
) -> Update | None:
    """None: it has what it was given."""
    has: Resources = actual_resources(running, applied)
    wants: Resources = resources_of(container)
    if is_whole_resized(pod, applied):
        has, wants = _bounded(has, applied[WHOLE]), _bounded(wants, pod_level_resources(pod))
    if wants == has:
        return None
    memory, cpu = _direction(has, wants, "memory"), _direction(has, wants, "cpu")
    return Update(running.id, running.name, memory, cpu) if memory or cpu else None


def _bounded(own: Resources, whole: Resources) -> Resources:
    """A container without a limit of its own has the pod's."""
    return {**own, "limits": {**whole.get("limits", {}), **own.get("limits", {})}}


def needs_restart(container: Obj, update: Update) -> bool:
    """The container says itself which change it takes only when it starts."""
    return any(
        item.get("restartPolicy") == "RestartContainer"
        and item.get("resourceName") in RESIZABLE
        and getattr(update, item["resourceName"]) != 0
        for item in container.get("resizePolicy") or ()
    )


def _direction(has: Resources, wants: Resources, name: str) -> int:
    """As upstream: by the limit where that changes, else by the request."""
    for kind in ("limits", "requests"):
        before = quantities(has.get(kind)).get(name, ZERO)
        after = quantities(wants.get(kind)).get(name, ZERO)
        if before != after:
            return 1 if before < after else -1
    return 0
