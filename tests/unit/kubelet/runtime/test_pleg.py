"""[R2] [N4] events wake, looking is the safety net."""

import asyncio
import random

from sampan.client.no_api_client import NoApiClient
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.container_spec.generate import NodeFacts, sandbox_spec
from sampan.kubelet.context import NodeContext
from sampan.kubelet.runtime.observed import Observations
from sampan.kubelet.runtime.pleg import Pleg, RuntimeHealth
from sampan.kubelet.settings import KubeletSettings
from sampan.kubelet.simulated.runtime import SimulatedRuntime
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.simulated_node import pod_named


class Stage:
    def __init__(self):
        self.clock = LoopClock()
        self.runtime = SimulatedRuntime(clock=self.clock)
        self.health = RuntimeHealth()
        self.woken, self.found, self.changes = [], [], []
        self.relist = Pleg(
            NodeContext(
                KubeletSettings("n"),
                NoApiClient(),
                self.runtime,
                self.clock,
                Metrics(),
                random.Random(1),
            ),
            observations=Observations(self.runtime),
            health=self.health,
            wake=self.woken.append,
            found=lambda pods: self.found.append(len(pods)),
            health_changed=lambda: self.changes.append(self.health.ready),
        )

    async def sandbox(self, name):
        pod = pod_named(name)
        pod["metadata"] |= {"uid": name, "namespace": "default"}
        return await self.runtime.run_sandbox(
            sandbox_spec(pod, attempt=0, node=NodeFacts("n", root_dir="", log_root=""))
        )


def told(story):
    async def run():
        stage, tasks = Stage(), Tasks("test")
        tasks.start("events", stage.relist.watch_events())
        tasks.start("relist", stage.relist.run())
        await asyncio.sleep(3)
        await story(stage)
        await tasks.stop()

    virtual_time.run(run())


def test_an_event_wakes_its_own_pod_at_once():
    async def story(stage):
        await stage.sandbox("a")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert stage.woken == ["a"]

    told(story)


def test_with_a_healthy_stream_everything_is_looked_at_seldom():
    async def story(stage):
        before = stage.runtime.calls["pods"]
        await asyncio.sleep(100)
        assert stage.runtime.calls["pods"] - before == 10

    told(story)


def test_a_broken_stream_is_noticed_at_once_and_everything_looked_at_when_it_is_back():
    async def story(stage):
        stage.runtime.go_down("gone")
        await asyncio.sleep(0.1)
        assert stage.changes == [True, False]
        assert stage.health.message == "gone"
        await asyncio.sleep(30)
        asked = stage.runtime.calls["info"]
        await asyncio.sleep(30)
        assert stage.runtime.calls["info"] - asked <= 15  # it has become patient
        stage.runtime.come_back()
        looks = len(stage.found)
        await asyncio.sleep(6)
        assert stage.changes == [True, False, True]
        assert len(stage.found) > looks

    told(story)
