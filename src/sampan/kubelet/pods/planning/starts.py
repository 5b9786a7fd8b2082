"""Starts of containers: at once, or when their crash backoff lets them. Pure.

Job: a container that shall run, what there is of it, now → the actions that start it. Pure.
Invariant: every start but the first asks the crash backoff, whatever ended the one before it.
"""

from collections.abc import Mapping
from types import MappingProxyType

from sampan.api.objects import Obj
from sampan.core.backoff import Backoff
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.contracts.runtime import ContainerState, ContainerStatus, ObservedPod, Role
from sampan.kubelet.contracts.spec import latest, latest_ended
from sampan.kubelet.pods.planning.actions import (
    Action,
    HoldBack,
    KillContainer,
    RemoveContainer,
    StartContainer,
)
from sampan.kubelet.pods.planning.crash_backoff import CRASH, Turn, next_turn


@dataclass(frozen=True, slots=True)
class Restarts:
    """When containers come back, and how often they did, by name, where the runtime remembers none
    of them: as the pod's status has it."""

    backoff: Backoff = CRASH
    counts: Mapping[str, int] = MappingProxyType({})


USUAL = Restarts()


@dataclass(frozen=True, slots=True)
class Starts:
    """What every start of one plan is decided by."""

    observed: ObservedPod | None
    now: float
    restarts: Restarts = USUAL

    def of(self, container: Obj, role: Role) -> list[Action]:
        """Of one that does not run: start it now, or say until when it has to wait."""
        name, last = container["name"], latest(self.observed, container["name"])
        if last is None:
            return [StartContainer(name, role, self.restarts.counts.get(name, 0))]
        turn = self._turn(container, last)
        if last.state is ContainerState.CREATED:
            # Created but never started (we were interrupted): the same attempt once more.
            return [RemoveContainer(last.id), StartContainer(name, role, last.attempt, turn.streak)]
        if last.state is ContainerState.UNKNOWN:
            which = "Container" if role is Role.NORMAL else "Init container"
            why = f'{which} is in "{last.state}" state, try killing it before restart'
            return [KillContainer(last.id, name, why), self.after_kill(container, role, last)]
        if self.now < turn.due:
            return [HoldBack(name, turn.delay_seconds, turn.due)]
        return [StartContainer(name, role, last.attempt + 1, turn.streak)]

    def after_kill(self, container: Obj, role: Role, last: ContainerStatus) -> StartContainer:
        """Of one that is being stopped: as upstream, what counts is when the one before it ended,
        by the time when this one has."""
        turn = self._turn(container, last)
        held = HoldBack(last.name, turn.delay_seconds, turn.due) if turn.due > self.now else None
        return StartContainer(last.name, role, last.attempt + 1, turn.streak, held)

    def in_new_sandbox(self, container: Obj, role: Role) -> list[Action]:
        """Of one that will have been killed with the old sandbox, if it still runs."""
        last = latest(self.observed, container["name"])
        if last is not None and last.state is not ContainerState.EXITED:
            return [self.after_kill(container, role, last)]
        return self.of(container, role)

    def _turn(self, container: Obj, last: ContainerStatus) -> Turn:
        ended = latest_ended(self.observed, last.name)
        return next_turn(container, last, ended, self.now, self.restarts.backoff)
