import asyncio

from sampan.api.objects import micro_time_text
from sampan.core.tasks import Tasks
from sampan.kubelet.node.leases_on_demand import LeasesOnDemand
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock


class World:
    def __init__(self):
        self.clock, self.tasks = LoopClock(), Tasks("test")
        self.renewed, self.refused, self.alone = [], set(), []
        self.leases = LeasesOnDemand(self.renew, self.clock, 36.0)

    async def renew(self, times):
        assert set(times.values()) == {micro_time_text(self.clock.now())}
        self.renewed.append((asyncio.get_running_loop().time(), sorted(times)))
        return self.refused & times.keys()

    async def keep(self, node, *, soon=False):
        while True:
            await self.leases.due(node, soon=soon)
            self.alone.append(node)

    async def begin(self, *nodes):
        for node in nodes:
            self.tasks.start(node, self.keep(node))
        self.tasks.start("leases", self.leases.run())
        await asyncio.sleep(0)


def told(main):
    async def whole():
        world = World()
        await main(world)
        await world.tasks.stop()

    virtual_time.run(whole())


def test_who_reads_them_finds_all_of_them_renewed_and_nobody_else_has_them_renewed():
    async def main(world):
        await world.begin("a", "b")
        await world.clock.sleep(1000.0)
        assert world.renewed == []
        await world.leases.renew()
        assert world.renewed == [(1000.0, ["a", "b"])]

    told(main)


def test_while_somebody_follows_them_they_are_renewed_as_often_as_ever():
    async def main(world):
        await world.begin("a")
        await world.clock.sleep(10.0)
        with world.leases.followed():
            await world.clock.sleep(80.0)
            assert [when for when, _ in world.renewed] == [46.0, 82.0]
        await world.clock.sleep(1000.0)
        assert len(world.renewed) <= 3, "the one that was on its way"

    told(main)


def test_who_could_not_be_renewed_does_it_alone_and_waits_again():
    async def main(world):
        await world.begin("a", "b")
        world.refused = {"a"}
        await world.leases.renew()
        await asyncio.sleep(0)
        assert world.alone == ["a"]
        world.refused = set()
        await world.leases.renew()
        assert world.renewed[-1][1] == ["a", "b"]

    told(main)


def test_the_last_word_of_a_node_and_the_first_of_one_that_was_away():
    async def main(world):
        await world.begin("a")
        await world.leases.say_last_word("a")
        assert world.renewed == [(0.0, ["a"])]
        world.tasks.start("b", world.keep("b", soon=True))
        await asyncio.sleep(0)
        assert world.renewed[1:] == [(0.0, ["b"])]

    told(main)


def test_a_node_that_is_gone_is_not_renewed():
    async def main(world):
        await world.begin()
        task = world.tasks.start("a", world.keep("a"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        await world.leases.renew()
        assert world.renewed == []

    told(main)
