"""Controllers under arbitrary interleavings: one way to tell any such story.

Job: begin a world, do steps and faults to it, heal it, wait for rest, check what must hold.
Invariant: whatever happened, a healed world comes to rest, and at rest nothing is written.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from hypothesis import strategies as st

from sampan.api.errors import AlreadyExists, Conflict, Forbidden, NotFound
from sampan.api.objects import Obj
from sampan.api.resources import PODS, Resource
from sampan.controllers.catalog import ControllerSettings, all_controllers
from sampan.controllers.controller import Controller, selected_controllers
from tests.support import virtual_time
from tests.support.worlds.control_plane import ControlPlane
from tests.support.worlds.faulty_client import Fate, Faults, FaultyClient

Step = tuple[str, Any]
SETTINGS = ControllerSettings(root_ca="PEM", clock=virtual_time.LoopClock())
# Longer than the longest pause of the runner and of a reflector that was cut.
HEALING_SECONDS = 130.0

FAULTS: list[st.SearchStrategy[Step]] = [
    st.tuples(st.just("writes"), st.lists(st.sampled_from(Fate), min_size=1, max_size=5)),
    st.tuples(st.just("writes"), st.lists(st.sampled_from(Fate), min_size=1, max_size=5)),
    st.tuples(st.just("stall"), st.tuples(st.integers(0, 9), st.sampled_from([0.05, 20.0]))),
    st.tuples(st.just("cut"), st.booleans()),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("wait"), st.sampled_from([0.0, 0.005, 1.0, 30.0])),
]


class World(Protocol):
    async def begin(self) -> None: ...

    async def do(self, verb: str, value: Any) -> None: ...

    async def tend(self) -> bool:
        """What others do so that it goes on (kubelets, users): True where anything was done."""

    async def check(self) -> None:
        """At rest."""


def steps(*own: st.SearchStrategy[Step], most: int = 10) -> st.SearchStrategy[list[Step]]:
    """Of a world's own steps and of faults, about as many of each."""
    return st.lists(st.one_of(st.one_of(*own), st.one_of(*FAULTS)), max_size=most)


def play(
    names: Sequence[str],
    world_of: Callable[[ControlPlane], World],
    told: Sequence[Step],
    *,
    settings: ControllerSettings = SETTINGS,
    rest_seconds: float = 60.0,
) -> None:
    def controllers() -> list[Controller]:
        return selected_controllers(all_controllers(settings), names)

    async def story() -> None:
        clock = virtual_time.LoopClock()
        faults = Faults(clock)
        plane = ControlPlane(controllers, around=lambda client: FaultyClient(client, faults))
        async with plane:
            world = world_of(plane)
            await world.begin()
            for verb, value in told:
                await _step(plane, faults, world, verb, value)
            faults.end()
            await _come_to_rest(plane, world)
            await world.check()
            before = plane.store.revision
            await plane.settled(seconds=rest_seconds)
            assert plane.store.revision == before, "it writes although nothing changes"

    virtual_time.run(story())


async def _step(plane: ControlPlane, faults: Faults, world: World, verb: str, value: Any) -> None:
    match verb:
        case "writes":
            faults.writes.extend(value)
        case "stall":
            faults.stall(*value)
        case "cut":
            faults.cut(value)
        case "restart":
            await plane.stop_controllers()
            await plane.start_controllers()
        case "wait":
            await asyncio.sleep(value)
        case _:
            await world.do(verb, value)


async def _come_to_rest(plane: ControlPlane, world: World) -> None:
    await plane.settled(seconds=HEALING_SECONDS)
    for _ in range(60):
        await plane.settled(seconds=1)
        if not await world.tend():
            return
    raise AssertionError("it never comes to rest")


async def absent(call: Awaitable[object], *errors: type[Exception]) -> None:
    """A step that may come too late: what it is about is gone, or there already."""
    try:
        await call
    except errors:
        return


# What goes wrong with a step that comes too late, or too early.
TOO_LATE = (NotFound, AlreadyExists, Conflict, Forbidden)


def named_object(
    api_version: str, kind: str, name: str, namespace: str = "default", **rest: Any
) -> Obj:
    """An object; `meta` has more of its metadata."""
    meta = {"name": name, **rest.pop("meta", {})}
    if namespace:
        meta["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **rest}


def pod_of(name: str, labels: dict[str, str] | None = None, **spec: Any) -> Obj:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]
    meta = {"labels": labels or {}}
    return named_object("v1", "Pod", name, meta=meta, spec={"containers": containers, **spec})


class BaseWorld:
    """What most worlds need: they begin empty, and nobody has to tend them."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane, self.client = plane, plane.client

    async def begin(self) -> None:
        """Nothing is there."""

    async def tend(self) -> bool:
        return False

    async def items(self, resource: Resource, namespace: str = "default") -> list[Obj]:
        return (await self.client.list(resource, namespace)).items

    async def merge(
        self,
        resource: Resource,
        name: str,
        patch: Obj,
        namespace: str = "default",
        subresource: str = "",
    ) -> None:
        await self.client.patch(
            resource, namespace, name, patch, patch_type="merge", subresource=subresource
        )

    async def run_pod(self, name: str, ready: bool, address: str = "") -> None:
        """What a kubelet reports."""
        stamp = self.plane.time_text()
        condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": stamp}
        status: Obj = {"phase": "Running", "conditions": [condition]}
        if address:
            status |= {"podIP": address, "podIPs": [{"ip": address}]}
        await self.merge(PODS, name, {"status": status}, subresource="status")
