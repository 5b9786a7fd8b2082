"""A pod's phase, from the statuses of its containers. Pure.

Job: as upstream's getPhase: init containers that failed for good, those that are waited for, then
    whether anything runs, comes back, or has ended.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj
from sampan.api.rules.pods import containers, init_containers, is_sidecar
from sampan.kubelet.contracts.spec import restarts_after_exit
from sampan.kubelet.status.restart_all_containers import was_removed


def phase_of(
    pod: Obj, inits: Sequence[Obj], normals: Sequence[Obj], *, has_begun: bool, ending: bool
) -> str:
    """`inits` and `normals` are in the order of the spec. `has_begun`: a normal container was made
    in the sandbox that there is. `ending`: nothing is started any more."""
    paired = list(zip(init_containers(pod), inits, strict=True))
    ordinary = [(container, item) for container, item in paired if not is_sidecar(container)]
    sidecars = [item for container, item in paired if is_sidecar(container)]
    if any(_has_failed(pod, container, item) for container, item in ordinary):
        return "Failed"
    awaited = any(map(_is_awaited, (item for _, item in ordinary)))
    if awaited or (any(map(_is_starting, sidecars)) and not has_begun):
        return "Pending"
    return _phase_of_lasting(pod, sidecars, normals, ending=ending)


def _phase_of_lasting(
    pod: Obj, sidecars: Sequence[Obj], normals: Sequence[Obj], *, ending: bool
) -> str:
    lasting = [*sidecars, *normals]
    if not normals or any(map(_never_began, lasting)):
        return "Pending"
    if any("running" in item["state"] for item in lasting):
        return "Running"
    paired = zip(containers(pod), normals, strict=True)
    if not ending and any(_comes_back(pod, container, item) for container, item in paired):
        return "Running"
    ends = [item["state"].get("terminated") or {} for item in normals]
    return "Succeeded" if all(end.get("exitCode") == 0 for end in ends) else "Failed"


def _end(status: Obj) -> Obj | None:
    """Its newest."""
    for key in ("state", "lastState"):
        if end := (status.get(key) or {}).get("terminated"):
            found: Obj = end
            return found
    return None


def _begins_again(pod: Obj, container: Obj, end: Obj) -> bool:
    return restarts_after_exit(pod, container, int(end["exitCode"])) or was_removed(end)


def _has_failed(pod: Obj, container: Obj, status: Obj) -> bool:
    """An init container that failed, and is not tried again."""
    end = None if "running" in status["state"] else _end(status)
    return end is not None and end["exitCode"] != 0 and not _begins_again(pod, container, end)


def _comes_back(pod: Obj, container: Obj, status: Obj) -> bool:
    end = _end(status)
    return end is None or _begins_again(pod, container, end)


def _never_began(status: Obj) -> bool:
    return "waiting" in status["state"] and "terminated" not in (status.get("lastState") or {})


def _is_awaited(status: Obj) -> bool:
    """An init container. As upstream: one that failed is not counted here."""
    return "running" in status["state"] or _never_began(status)


def _is_starting(status: Obj) -> bool:
    """A sidecar."""
    if "running" in status["state"]:
        return not status.get("started")
    return _never_began(status)
