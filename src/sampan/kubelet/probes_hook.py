"""Where probes come in: who is probed, and what the probes say.

Job: the questions that the node agent asks of its probes, and the answer as long as there are none:
    a container that wants to be probed is not ready, and the user is told.
"""

from collections.abc import Callable
from typing import Protocol

from sampan.api.objects import Obj, uid_of
from sampan.kubelet.plan import NO_CHECKS, Checks
from sampan.kubelet.recorder import PodEvents
from sampan.kubelet.runtime import ObservedPod
from sampan.kubelet.spec import with_roles

KINDS = ("livenessProbe", "readinessProbe", "startupProbe")
Wake = Callable[[str], None]


class Probes(Protocol):
    def follow(self, pod: Obj, observed: ObservedPod | None) -> None:
        """The pod as it is now: probe what runs, stop probing what does not. Cheap to repeat."""

    def checks(self, uid: str) -> Checks:
        """What the probes of this pod say, by container id; a change wakes the pod."""

    def forget(self, uid: str) -> None: ...


ProbesMaker = Callable[[Wake, PodEvents], Probes]


class NoProbes:
    def __init__(self, wake: Wake, events: PodEvents) -> None:
        self._events = events
        self._told: set[str] = set()

    def follow(self, pod: Obj, observed: ObservedPod | None) -> None:
        if uid_of(pod) in self._told:
            return
        for _, container in with_roles(pod):
            for kind in KINDS:
                if kind in container:
                    self._told.add(uid_of(pod))
                    self._events.warning(
                        pod,
                        "ProbeNotSupported",
                        f"{kind} is not run by this node yet",
                        container=container["name"],
                    )

    def checks(self, uid: str) -> Checks:
        return NO_CHECKS

    def forget(self, uid: str) -> None:
        self._told.discard(uid)
