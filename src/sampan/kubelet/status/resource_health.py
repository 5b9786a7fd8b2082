"""allocatedResourcesStatus: how the devices are that a container has.

Job: a pod's status and what is known of its devices → the status that says it. Pure.
Invariant: of a pod that has given its devices back the last word stays.
"""

from collections.abc import Callable, Sequence

from sampan.api.objects import Obj, status_of

FIELD = "allocatedResourcesStatus"


def with_resource_health(pod: Obj, status: Obj, health: Callable[[Obj, str], Sequence[Obj]]) -> Obj:
    """`health`: of a container, by its name. As upstream: of normal containers only."""
    before = {item["name"]: item for item in status_of(pod).get("containerStatuses") or ()}
    shown = []
    for item in status.get("containerStatuses") or ():
        found = health(pod, item["name"]) or before.get(item["name"], {}).get(FIELD)
        shown.append({**item, FIELD: list(found)} if found else item)
    return {**status, "containerStatuses": shown} if shown else status
