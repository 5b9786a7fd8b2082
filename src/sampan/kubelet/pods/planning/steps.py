"""Steps of a plan: what becomes of one container. Pure.

Job: what the parts of a plan share: their inputs, their results, a container that is replaced.
"""

from dataclasses import field

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.contracts.probes_hook import Checks
from sampan.kubelet.contracts.resize_state import Applied
from sampan.kubelet.contracts.runtime import ContainerStatus, Role
from sampan.kubelet.pods.planning.actions import Action, KillContainer, Update
from sampan.kubelet.pods.planning.resizes import needs_restart, update_of
from sampan.kubelet.pods.planning.starts import Starts


@dataclass(slots=True)
class Step:
    """What becomes of one container, or of several."""

    actions: list[Action] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)  # it goes on with other resources
    resized: bool = False  # it restarts because of other resources
    goes_on: bool = False  # the next one may begin; of a normal container: it is, or will be, alive
    failed: bool = False  # and with it the pod

    def add(self, other: "Step") -> None:
        self.actions = self.actions + other.actions
        self.updates = self.updates + other.updates
        self.resized = self.resized or other.resized


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the steps of one plan are decided by."""

    pod: Obj
    starts: Starts
    checks: Checks
    applied: Applied


def ended_by(container: Obj, last: ContainerStatus, why: str, probe: str = "") -> KillContainer:
    """`probe`: the one that it failed, which may say itself how long the container gets."""
    grace = (container.get(f"{probe}Probe") or {}).get("terminationGracePeriodSeconds")
    return KillContainer(last.id, last.name, why, None if grace is None else float(grace))


def resized(inputs: Inputs, container: Obj, role: Role, last: ContainerStatus) -> Step:
    """A running container that nothing else happens to: has it what it was given?"""
    update = update_of(inputs.pod, container, last, inputs.applied)
    if update is None:
        return Step(goes_on=True)
    if not needs_restart(container, update):
        return Step(updates=[update], goes_on=True)
    kill = ended_by(container, last, f"Container {last.name} resize requires restart")
    start = inputs.starts.after_kill(container, role, last)
    return Step([kill, start], resized=True, goes_on=True)
