"""Cpusets of running containers: what everybody shares shrinks and grows while they run.

Job: have each running container on the processors that the CPU manager has for it by now.
Invariant: a container that was started on what was shared a moment ago is moved, too.
Invariant: one look at a time; what changes meanwhile is looked at afterwards.
Owner: ResourceAdmission tells it of starts; CpuManager of what changed.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.kubelet.contracts.runtime import LinuxResources, Runtime, RuntimeFailure
from sampan.kubelet.resource_managers.cpu_sets import cpus_text

if TYPE_CHECKING:
    from sampan.kubelet.resource_managers.cpu_manager import CpuManager

log = get_logger(__name__)

Place = tuple[str, str]  # uid of the pod, name of the container
Running = Callable[[], Iterable[tuple[Place, str]]]  # with the container's id


class Cpusets:
    def __init__(
        self,
        cpus: "CpuManager",
        runtime: Runtime,
        *,
        tasks: Tasks,
        clock: Clock,
        retry_seconds: float,
    ) -> None:
        self._cpus, self._runtime, self._tasks, self._clock = cpus, runtime, tasks, clock
        self._retry_seconds = retry_seconds
        self.running: Running = lambda: ()  # as was seen last
        self._granted: dict[Place, str] = {}
        self._fresh: dict[str, Place] = {}  # by id: started, and perhaps not seen yet
        self._has: dict[str, str] = {}  # by id: the cpuset
        self._is_looking = self._again = False
        cpus.pool_changed = self.look

    def granted(self, place: Place, cpus: str) -> None:
        """The container is about to be created with these."""
        self._granted[place] = cpus

    def started(self, place: Place, container_id: str) -> None:
        cpus = self._granted.pop(place, "")
        if cpus:
            self._fresh[container_id], self._has[container_id] = place, cpus
        if cpus != self._wanted(place):
            self.look()

    def look(self) -> None:
        self._again = True
        if not self._is_looking:
            self._is_looking = True
            self._tasks.start("cpusets", self._look())

    async def _look(self) -> None:
        try:
            while self._again:
                self._again = False
                if not await self._move_all():
                    await self._clock.sleep(self._retry_seconds)
                    self._again = True
        finally:
            self._is_looking = False

    async def _move_all(self) -> bool:
        """False: something is to be tried again."""
        seen = {container_id: place for place, container_id in self.running()}
        for container_id in seen.keys() & self._fresh.keys():
            del self._fresh[container_id]
        there = {**self._fresh, **seen}
        self._has = {name: cpus for name, cpus in self._has.items() if name in there}
        done = True
        for container_id, place in there.items():
            wanted = self._wanted(place)
            if wanted and self._has.get(container_id) != wanted:
                done &= await self._move(container_id, place, wanted)
        return done

    async def _move(self, container_id: str, place: Place, wanted: str) -> bool:
        try:
            await self._runtime.update_container(container_id, LinuxResources(cpus=wanted))
        except RuntimeFailure as error:
            if self._fresh.pop(container_id, None) is not None:
                return True  # it has ended before anybody saw it
            log.warning("container was not moved to other processors", container=place[1],
                        uid=place[0], cpus=wanted, error=error)  # fmt: skip
            return False
        self._has[container_id] = wanted
        return True

    def _wanted(self, place: Place) -> str:
        return cpus_text(self._cpus.cpus_of(*place))
