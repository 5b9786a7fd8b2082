"""A cluster in this process, and what a workload needs of it.

Job: every part of a cluster with N simulated nodes in the running loop; many calls at once; wait
    for a number of objects by watching, at the cost of the changes.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path

from sampan.api.objects import Obj, key_of
from sampan.api.resources import NODES, Resource
from sampan.api.rules.nodes import is_ready, taints_of
from sampan.api.schema.published import Schema
from sampan.apiserver.authn.user import AUTHENTICATED, User
from sampan.client.contract import Client
from sampan.client.informer import Informer
from sampan.client.inprocess import InProcessClient
from sampan.client.reflector import Selection
from sampan.core.clock import Clock
from sampan.core.tasks import Tasks, all_of
from sampan.testing.kit.process.plane import Plane
from sampan.testing.kit.spec import Spec

AT_ONCE = 32
LONGEST_SECONDS = 3600.0


class World:
    def __init__(self, nodes: int, keys: Path, schema: Schema, clock: Clock) -> None:
        self.plane = Plane(Spec(nodes=nodes), keys, schema, clock)
        self.clock, self._nodes = clock, nodes
        self._tasks = Tasks("growth")

    async def start(self) -> None:
        """Returns when pods may be placed on every node."""
        await self.plane.start()
        await self.until(NODES, self._nodes, lambda node: is_ready(node) and not taints_of(node))

    async def stop(self) -> None:
        await self._tasks.stop()
        await self.plane.stop()

    @property
    def client(self) -> Client:
        return self.plane.admin()

    def as_user(self, name: str) -> Client:
        return InProcessClient(self.plane.server.as_user(User(name, (AUTHENTICATED,))))

    async def at_once(self, calls: Iterable[Coroutine[None, None, object]]) -> None:
        waiting = iter(calls)

        async def worker() -> None:
            for call in waiting:
                await call

        await all_of(worker() for _ in range(AT_ONCE))

    async def create(self, resource: Resource, objects: Iterable[Obj]) -> None:
        client = self.client
        await self.at_once(client.create(resource, obj) for obj in objects)

    async def delete(self, resource: Resource, names: Sequence[str], namespace: str = "") -> None:
        client = self.client
        await self.at_once(client.delete(resource, namespace, name) for name in names)

    async def until(
        self, resource: Resource, count: int, holds: Callable[[Obj], bool] = lambda _obj: True
    ) -> None:
        """Returns when it holds for exactly so many objects."""
        informer = Informer(self.client, Selection(resource), clock=self.clock)
        held: set[str] = set()
        there = asyncio.Event()

        def look(old: Obj | None, new: Obj | None) -> None:
            obj = new or old
            assert obj is not None
            if new is not None and holds(new):
                held.add(key_of(obj))
            else:
                held.discard(key_of(obj))
            (there.set if len(held) == count else there.clear)()

        informer.on_change(look)
        task = self._tasks.start("look", informer.run())
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                await informer.synced()
                while len(held) != count:
                    there.clear()
                    await there.wait()
        finally:
            task.cancel()
