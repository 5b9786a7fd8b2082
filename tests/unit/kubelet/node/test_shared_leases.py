import asyncio

from sampan.core.tasks import Tasks
from sampan.kubelet.node.shared_leases import SHARES, SOON_AT_ONCE, SharedLeases
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock


class World:
    def __init__(self):
        self.clock, self.tasks = LoopClock(), Tasks("test")
        self.renewed, self.refused = [], set()
        self.alone = []
        self.leases = SharedLeases(self.renew, self.clock, 20.0)

    async def renew(self, times):
        self.renewed.append((asyncio.get_running_loop().time(), sorted(times)))
        return self.refused & times.keys()

    async def keep(self, node):
        while True:
            await self.leases.due(node)
            self.alone.append(node)

    def times_of(self, node):
        return [when for when, nodes in self.renewed if node in nodes]


def test_each_is_renewed_once_in_a_heartbeat_and_all_of_a_share_in_one_call():
    async def main():
        world = World()
        nodes = [f"n{number}" for number in range(2 * SHARES)]
        for node in nodes:
            world.tasks.start(node, world.keep(node))
        world.tasks.start("leases", world.leases.run())
        await world.clock.sleep(60.5)
        assert len(world.renewed) == 3 * SHARES
        for node in nodes:
            first, second, third = world.times_of(node)
            assert round(second - first, 6) == round(third - second, 6) == 20.0
        assert world.alone == []
        await world.tasks.stop()

    virtual_time.run(main())


def test_who_was_not_renewed_does_it_alone_and_waits_again():
    async def main():
        world = World()
        for node in ("a", "b"):
            world.tasks.start(node, world.keep(node))
        world.tasks.start("leases", world.leases.run())
        world.refused = {"a"}
        await world.clock.sleep(20.5)
        assert world.alone == ["a"]
        world.refused = set()
        await world.clock.sleep(20.0)
        assert world.alone == ["a"]
        assert len(world.times_of("a")) == 2
        await world.tasks.stop()

    virtual_time.run(main())


def test_one_that_was_away_is_renewed_soon_and_then_with_its_share():
    async def main():
        world = World()
        for number in range(SHARES):
            world.tasks.start("other", world.keep(f"n{number}"))
        world.tasks.start("leases", world.leases.run())
        await world.clock.sleep(7.2)
        back = [f"back{number}" for number in range(SOON_AT_ONCE + 1)]
        waiting = [world.tasks.start(node, world.leases.due(node, soon=True)) for node in back]
        await world.clock.sleep(1.2)
        for node in back:
            assert world.times_of(node), "within a heartbeat's share or two"
        await world.clock.sleep(20.0)
        assert all(len(world.times_of(node)) >= 2 for node in back)
        world.refused = {back[0]}
        await world.clock.sleep(20.0)
        assert [task.done() for task in waiting] == [True] + [False] * SOON_AT_ONCE
        await world.tasks.stop()

    virtual_time.run(main())


def test_a_node_that_is_gone_is_not_renewed():
    async def main():
        world = World()
        task = world.tasks.start("a", world.keep("a"))
        world.tasks.start("leases", world.leases.run())
        await world.clock.sleep(10.0)
        task.cancel()
        await world.clock.sleep(60.0)
        assert len(world.times_of("a")) == 1
        await world.tasks.stop()

    virtual_time.run(main())


def test_while_nobody_waits_nothing_happens_and_who_comes_is_renewed_in_time():
    async def main():
        world = World()
        world.tasks.start("leases", world.leases.run())
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        assert not loop._scheduled, "no timer runs"
        await world.clock.sleep(70.3)
        world.tasks.start("a", world.keep("a"))
        await world.clock.sleep(20.0)
        [first] = world.times_of("a")
        await world.clock.sleep(7.0)
        world.tasks.start("b", world.keep("b"))
        await world.clock.sleep(20.0)
        assert len(world.times_of("b")) == 1
        assert [round(when - first, 6) for when in world.times_of("a")] == [0.0, 20.0]
        await world.tasks.stop()

    virtual_time.run(main())


def test_who_joins_while_others_sleep_is_renewed_within_a_heartbeat():
    async def main():
        world = World()
        world.tasks.start("leases", world.leases.run())
        for number in range(3 * SHARES):
            joined = asyncio.get_running_loop().time()
            world.leases.keep(f"n{number}", lambda: None)
            await world.clock.sleep(20.1)
            assert joined <= world.times_of(f"n{number}")[0] <= joined + 20.1
        await world.tasks.stop()

    virtual_time.run(main())


def test_who_was_told_to_renew_alone_is_no_longer_kept():
    async def main():
        world, told = World(), []
        world.tasks.start("leases", world.leases.run())
        world.refused = {"a"}
        world.leases.keep("a", lambda: told.append("a"))
        await world.clock.sleep(100.0)
        assert told == ["a"]
        assert len(world.times_of("a")) == 1
        await world.tasks.stop()

    virtual_time.run(main())


def test_a_node_that_is_let_go_and_kept_again_is_renewed_when_it_was_due():
    """An idle node that gets a pod: its agent takes the lease over."""

    async def main():
        world = World()
        for number in range(2 * SHARES):
            world.tasks.start("other", world.keep(f"n{number}"))
        kept = world.tasks.start("kept", world.keep("idle"))
        world.tasks.start("leases", world.leases.run())
        await world.clock.sleep(15.0)
        [last] = world.times_of("idle")
        kept.cancel()
        await world.clock.sleep(2.0)
        world.tasks.start("agent", world.leases.due("idle", soon=True))
        await world.clock.sleep(20.0)
        assert [round(when - last, 6) for when in world.times_of("idle")] == [0.0, 20.0]
        await world.tasks.stop()

    virtual_time.run(main())


def test_a_node_that_was_away_for_its_turn_or_longer_is_renewed_soon():
    for others in (0, 2 * SHARES):
        virtual_time.run(_away(others))


async def _away(others):
    world = World()
    for number in range(others):
        world.tasks.start("other", world.keep(f"n{number}"))
    kept = world.tasks.start("kept", world.keep("away"))
    world.tasks.start("leases", world.leases.run())
    await world.clock.sleep(21.0)
    kept.cancel()
    await world.clock.sleep(60.0)
    world.tasks.start("agent", world.leases.due("away", soon=True))
    await world.clock.sleep(1.5)
    assert world.times_of("away")[-1] > 81.0
    await world.tasks.stop()
