"""Probes of a pod, as the steps of the pod ask for them.

Job: the questions that the steps of a pod ask of its probes.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.contracts.runtime import ObservedPod


@dataclass(frozen=True, slots=True)
class Checks:
    """What the probes say, by container id. Absent: there is no such probe, or no result yet."""

    doomed: Mapping[str, str]  # the probe that failed for good: liveness, startup
    started: Mapping[str, bool]
    ready: Mapping[str, bool]


NO_CHECKS = Checks({}, {}, {})


class Probes(Protocol):
    def follow(self, pod: Obj, observed: ObservedPod | None) -> None:
        """The pod as it is now: probe what runs, stop probing what does not. Cheap to repeat."""

    def checks(self, uid: str) -> Checks:
        """What the probes of this pod say, by container id; a change wakes the pod."""

    def end(self, uid: str, changed: Callable[[], object]) -> None:
        """The pod is being ended: only its readiness is asked for still, and `changed` is called
        when it is another one."""

    def stop(self, uid: str) -> None:
        """No more probes, but the last results stay."""

    def forget(self, uid: str) -> None: ...
