"""A control plane whose scheduler is stopped and started, and whose history is written down.

Job: run a scheduler on a client that a test makes unreliable; record every change of some kinds.
Owner: the stories of tests/robustness about the scheduler; what comes and goes is theirs.
"""

import random
from collections.abc import Callable

from sampan.api.objects import Obj
from sampan.api.resources import Resource
from sampan.client.contract import Client
from sampan.core.tasks import Tasks
from sampan.scheduler.loop import Scheduler
from tests.support.worlds.control_plane import ControlPlane


class SchedulerWorld:
    def __init__(
        self,
        plane: ControlPlane,
        rng: random.Random,
        unreliable: Callable[[Client, random.Random], Client],
    ) -> None:
        self.plane, self.rng, self.client = plane, rng, plane.client
        self.history: list[tuple[int, str, Resource, Obj]] = []
        self._unreliable = unreliable
        self._recording = Tasks("record")
        self._scheduling = Tasks("scheduler")

    def record(self, *resources: Resource) -> None:
        """Every change from now on, with its revision."""
        for resource in resources:
            self._recording.start(resource.plural, self._record(resource))

    async def restart(self) -> None:
        """Also the first start."""
        await self._scheduling.stop()
        self._scheduling = Tasks("scheduler")
        client = self._unreliable(self.plane.as_user("system:kube-scheduler"), self.rng)
        scheduler = Scheduler(
            client, clock=self.plane.clock, rng=self.rng, metrics=self.plane.metrics
        )
        self._scheduling.start("scheduler", scheduler.run())

    async def stop(self) -> None:
        await self._scheduling.stop()
        await self._recording.stop()

    async def _record(self, resource: Resource) -> None:
        revision = (await self.client.list(resource)).revision
        while True:
            async for event in self.client.watch(resource, revision=revision):
                found = int(event.object["metadata"]["resourceVersion"])
                revision = max(revision, found)
                if event.type != "BOOKMARK":
                    self.history.append((found, event.type, resource, event.object))
