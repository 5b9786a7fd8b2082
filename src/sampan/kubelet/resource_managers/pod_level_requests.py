"""Pod-level requests, as the static CPU and memory policies count them. Pure.

Job: init containers one after the other, sidecars and the others at the same time.
"""

from collections.abc import Callable

from sampan.api.objects import Obj, spec_of
from sampan.api.rules.pods import containers, init_containers, is_sidecar


def has_pod_level_requests(pod: Obj) -> bool:
    """Its resources are the pod's: as upstream, no container of it gets anything of its own."""
    whole = spec_of(pod).get("resources") or {}
    return any(whole.get(kind) for kind in ("requests", "limits"))


def most_at_once(pod: Obj, needs: Callable[[Obj], int]) -> int:
    beginning, beside = 0, 0
    for container in init_containers(pod):
        if is_sidecar(container):
            beside += needs(container)
        else:
            beginning = max(beginning, beside + needs(container))
    return max(beginning, beside + sum(needs(container) for container in containers(pod)))
