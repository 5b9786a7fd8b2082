"""scheduler/intake.py: changes in their order, long ones beside the loop and alone."""

import asyncio
import threading
from functools import partial

from sampan.core.side_thread import SideThread
from sampan.core.tasks import Tasks
from sampan.scheduler.intake import Intake, done_at_once


def is_long(obj):
    return obj["long"]


class World:
    """What the listeners made of what they were told, and in which thread."""

    def __init__(self):
        self.made, self.beside = [], []
        self.go = threading.Event()
        self.go.set()

    def plain(self, old, new):
        self.made.append((new or old)["name"])

    def steps(self, old, new):
        name = yield partial(self.worked_out, new or old)
        self.made.append(name)

    def worked_out(self, obj):
        if threading.current_thread() is not threading.main_thread():
            self.beside.append(obj["name"])
            assert self.go.wait(10)
        if obj["name"] == "bad":
            raise ValueError("bad")
        return obj["name"]


def obj(name, long=False):
    return {"name": name, "long": long}


def run(story):
    async def main():
        side, tasks, world = SideThread("test"), Tasks("test"), World()
        intake = Intake(side, tasks)
        told = intake.in_steps(world.steps, is_long)
        plain = intake.through(world.plain)
        try:
            await asyncio.wait_for(story(world, intake, told, plain), 60)
        finally:
            world.go.set()
            await tasks.stop()
            side.close()

    asyncio.run(main())


def test_what_is_short_is_done_at_once():
    async def story(world, intake, told, plain):
        told(None, obj("a"))
        plain(obj("b"), None)
        assert world.made == ["a", "b"]
        assert world.beside == []
        await intake.settled()

    run(story)


def test_changes_are_applied_in_their_order_and_only_long_ones_beside_the_loop():
    async def story(world, intake, told, plain):
        told(None, obj("first"))
        told(None, obj("long", long=True))
        for at in range(100):
            (told if at % 2 else plain)(None, obj(at))
        told(obj("long", long=True), None)
        assert world.made == ["first"]
        await intake.settled()
        assert world.made == ["first", "long", *range(100), "long"]
        assert world.beside == ["long", "long"]

    run(story)


def test_nobody_changes_anything_while_somebody_works_beside_the_loop():
    async def story(world, intake, told, plain):
        world.go.clear()
        async with intake.turn:
            async with asyncio.TaskGroup() as group:
                work = group.create_task(intake.alone(lambda: world.worked_out(obj("attempt"))))
                await asyncio.sleep(0)
                assert not intake.is_free
                plain(None, obj("a"))
                told(None, obj("b"))
                freed = group.create_task(intake.freed())
                await asyncio.sleep(0.01)
                assert world.made == []
                assert not freed.done()
                world.go.set()
            assert work.result() == "attempt"
            assert intake.is_free
            assert world.made == []  # its turn goes on
        await intake.settled()
        assert world.made == ["a", "b"]

    run(story)


def test_whoever_waits_until_it_is_free_finds_it_free():
    async def story(world, intake, _told, _plain):
        async def wait():
            await intake.freed()
            assert intake.is_free

        async def work():
            async with intake.turn:
                for _ in range(3):
                    await intake.alone(lambda: None)

        async with asyncio.TaskGroup() as group:
            group.create_task(work())
            await asyncio.sleep(0)
            group.create_task(wait())

    run(story)


def test_what_fails_is_left_out_and_the_others_come_in():
    async def story(world, intake, told, plain):
        for name in ("bad", "good"):
            told(None, obj(name, long=True))
        plain(None, obj("last"))
        await intake.settled()
        assert world.made == ["good", "last"]

    run(story)


def test_steps_at_once_are_sent_what_they_asked_for():
    got = []

    def steps():
        for number in range(3):
            got.append((yield partial(pow, number, 2)))

    done_at_once(steps())
    assert got == [0, 1, 4]
