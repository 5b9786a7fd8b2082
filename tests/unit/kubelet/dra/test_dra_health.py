"""What drivers say of their devices' health, and how long it holds."""

import asyncio

from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.tasks import Tasks
from sampan.kubelet.dra.dra_health import DraHealth
from sampan.plugins.dra import DeviceHealth
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock

HOLDERS = {("pool", "a"): frozenset({"u1", "u2"}), ("pool", "b"): frozenset({"u3"})}


class World:
    def __init__(self):
        self.clock, self.woken, self.tasks = LoopClock(), [], Tasks("test")
        self.health = DraHealth(self.clock, lambda _driver: HOLDERS)
        self.health.changed = self.woken.append
        self.said = asyncio.Queue()

    def follow(self):
        self.tasks.start("follow", self.health.follow("d", self._watch))

    async def _watch(self):
        while True:
            answer = await self.said.get()
            if answer is None:
                raise GrpcFailure("gone", code="UNAVAILABLE")
            yield answer

    async def say(self, device, health, seconds=0.0, message=""):
        self.said.put_nowait([DeviceHealth("pool", device, health, seconds, message)])
        await self.clock.sleep(0.1)

    def of(self, device):
        return self.health.of("d", "pool", device)[0]


def told(story):
    async def run():
        world = World()
        world.follow()
        await story(world)
        await world.tasks.stop()

    virtual_time.run(run())


def test_pods_hear_of_a_device_that_changes():
    """[H3]"""

    async def story(world):
        assert world.of("a") == "Unknown"
        await world.say("a", "Healthy")
        assert world.of("a") == "Healthy"
        assert world.woken == ["u1", "u2"]
        await world.say("a", "Healthy")
        assert world.woken == ["u1", "u2"]
        await world.say("b", "Unhealthy")
        assert world.woken == ["u1", "u2", "u3"]
        assert world.of("b") == "Unhealthy"

    told(story)


def test_what_is_not_said_again_in_time_is_unknown():
    async def story(world):
        await world.say("a", "Healthy")
        await world.say("b", "Healthy", 100.0)
        await world.clock.sleep(31.0)
        assert (world.of("a"), world.of("b")) == ("Unknown", "Healthy")
        await world.clock.sleep(100.0)
        assert world.of("b") == "Unknown"

    told(story)


def test_of_a_driver_that_is_gone_nothing_is_known():
    async def story(world):
        await world.say("a", "Healthy")
        world.said.put_nowait(None)
        await world.clock.sleep(0.1)
        assert world.of("a") == "Unknown"
        assert world.woken == ["u1", "u2", "u1", "u2"]

    told(story)


def test_what_a_driver_says_about_it_wakes_its_pods_and_is_cut():
    """[V1] ResourceHealthStatusMessage"""

    async def story(world):
        await world.say("a", "Unhealthy", message="too hot")
        assert world.health.of("d", "pool", "a") == ("Unhealthy", "too hot")
        await world.say("a", "Unhealthy", message="é" * 600)
        assert world.woken == ["u1", "u2"] * 2
        assert world.health.of("d", "pool", "a")[1] == "é" * 510 + "..."
        await world.clock.sleep(31)
        assert world.health.of("d", "pool", "a") == ("Unknown", "")

    told(story)
