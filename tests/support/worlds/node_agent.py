"""What the kubelet has for plugins, as for a real node, beside an API in memory.

Job: one life of NodePlugins: built, joined, run, closed.
"""

import random
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from sampan.api.objects import Obj
from sampan.api.resources import NODES
from sampan.core.clock import Clock
from sampan.core.flag import Flag
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.context import NodeContext
from sampan.kubelet.node.machine import SIMULATED, Machine
from sampan.kubelet.node_plugins import NodeHooks, NodePlugins
from sampan.kubelet.settings import KubeletSettings
from tests.support.worlds.small_api import SmallApi

NODE = "n1"


@dataclass
class Heard:
    """What the rest of a kubelet would hear."""

    woken: int = 0
    poked: int = 0
    woken_pods: list[str] = field(default_factory=list)
    events: list[tuple[Obj, str, str, str]] = field(default_factory=list)

    def wake(self) -> None:
        self.woken += 1

    def poke(self) -> None:
        self.poked += 1


@asynccontextmanager
async def node_agent(
    api: SmallApi,
    root: str,
    clock: Clock,
    heard: Heard,
    active_pods: Callable[[], Iterable[Obj]] = lambda: (),
    machine: Machine = SIMULATED,
) -> AsyncIterator[NodePlugins]:
    metrics = Metrics()
    context = NodeContext(
        KubeletSettings(NODE, root_dir=root), api, runtime=None, clock=clock, metrics=metrics,  # type: ignore[arg-type]
        rng=random.Random(1),
    )  # fmt: skip
    plugins = NodePlugins(context, machine)
    registered = Flag()
    registered.set()
    plugins.join(NodeHooks(
        node=lambda: api.find(NODES, "", NODE) or {}, registered=registered, poke=heard.poke,
        wake=heard.wake, wake_pod=heard.woken_pods.append,
        tell=lambda *event: heard.events.append(event), running=lambda: (),
        active_pods=active_pods,
    ))  # fmt: skip
    tasks = Tasks("agent")
    for name, loop in plugins.loops():
        tasks.supervise(name, loop)
    try:
        yield plugins
    finally:
        await tasks.stop()
        await plugins.close()
