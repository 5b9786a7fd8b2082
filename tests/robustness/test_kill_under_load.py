"""`kill -9` of a whole control plane under load, again and again. [E2]

Writers create, update and delete over HTTPS and write down what they were answered; watchers
follow, resume from the last revision that they saw, and list again where they must. After each
restart every answered write is there, every other one whole or not at all, and in the end every
watcher's story is in order, without gaps and repetitions. SAMPAN_KILLS and SAMPAN_SEED change
the run.
"""

import asyncio
import os
from dataclasses import dataclass, field

import pytest

from sampan.api.errors import ApiError, NotFound
from sampan.api.resources import CONFIG_MAPS
from sampan.client import kubeconfig, rest
from sampan.client.contract import Preconditions
from sampan.core.clock import SystemClock
from sampan.core.tasks import Tasks
from tests.robustness.followers import (
    NAMESPACE,
    Audience,
    Follower,
    all_caught_up,
    listed,
    value_of,
)
from tests.support.history import Answered, Value, revision_faults, unseen, watch_faults, whole
from tests.support.parts.sampan_process import SampanProcess
from tests.support.seed import SEED, drawn

KILLS = int(os.environ.get("SAMPAN_KILLS", "5"))
WRITERS, NAMES_EACH, WATCHERS = 8, 4, 4
SELECTOR = "test=kill"
LOAD_SECONDS = 4.0  # at most, between two kills

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120 + 20 * KILLS)]


@dataclass
class World(Audience):
    answered: list[Answered] = field(default_factory=list)
    writes: int = 0
    doubtful: int = 0


class Writer:
    """The only one who writes its names, so it knows what must be there: `now`, or, after a write
    without an answer, perhaps `tried`."""

    def __init__(self, world, number):
        self.world = world
        self.names = [f"w{number}-{one}" for one in range(NAMES_EACH)]
        self.now: dict[str, Value | None] = dict.fromkeys(self.names)
        self.numbers = dict.fromkeys(self.names, 0)  # of the newest value that was stored
        self.tried: dict[str, int | None] = {}  # the number of a doubtful write; None: a deletion

    async def run(self):
        while not self.world.stop.is_set():
            name = self.world.rng.choice(self.names)
            try:
                if name in self.tried:
                    await self.find_out(name)
                else:
                    await self.write(name)
            except ApiError:
                await asyncio.sleep(0.02)  # it is down

    async def write(self, name):
        before, world = self.now[name], self.world
        deletes = before is not None and world.rng.random() < 0.2
        number = self.numbers[name] + 1
        self.tried[name] = None if deletes else number
        known = world.known
        world.writes += 1
        try:
            if deletes:
                await world.client.delete(
                    CONFIG_MAPS,
                    NAMESPACE,
                    name,
                    preconditions=Preconditions(revision=before.revision),
                )
                self.settle(name, None)
                return
            made = await self.put(name, number, before)
        except ApiError:
            world.doubtful += 1
            raise
        value = value_of(made)
        world.answered.append(Answered(name, value, known))
        world.told(value.revision)
        assert value.number == number
        self.settle(name, value)

    async def put(self, name, number, before):
        metadata = {"name": name, "namespace": NAMESPACE, "labels": {"test": "kill"}}
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        obj["data"] = whole(number, self.world.rng.choice([10, 1000, 5000]))
        if before is None:
            return await self.world.client.create(CONFIG_MAPS, obj, NAMESPACE)
        metadata["resourceVersion"] = str(before.revision)
        return await self.world.client.update(CONFIG_MAPS, obj)

    async def find_out(self, name):
        try:
            found = value_of(await self.world.client.get(CONFIG_MAPS, NAMESPACE, name))
        except NotFound:
            found = None
        self.judge(name, found)
        self.settle(name, found)

    def settle(self, name, value):
        self.tried.pop(name, None)
        self.now[name] = value
        if value is not None:
            self.numbers[name] = value.number

    def judge(self, name, found):
        """Whether what is there may be there."""
        if found == self.now[name]:
            return
        assert name in self.tried, f"{name}: {self.now[name]} was answered, {found} is there"
        number = None if found is None else found.number
        assert number == self.tried[name], f"{name}: {found}, of {self.now[name]}, {self.tried}"


async def check_after_restart(world, writers):
    """Nobody writes: what is there must be what was answered, or whole what was tried."""
    found = await listed(world)
    assert found.revision >= world.known, f"revisions went back: {found.revision} < {world.known}"
    for writer in writers:
        for name in writer.names:
            writer.judge(name, found.values.get(name))
            writer.settle(name, found.values.get(name))
    ours = {name for writer in writers for name in writer.names}
    assert set(found.values) <= ours
    return found


async def story(process):
    connection = kubeconfig.load(str(process.kubeconfig), {}, "").connection()
    world = World(rest.connect(connection, clock=SystemClock()), SELECTOR, drawn())
    writers = [Writer(world, number) for number in range(WRITERS)]
    followers, tasks = [Follower(world) for _ in range(WATCHERS)], Tasks("test")
    following = [tasks.start("watcher", one.run()) for one in followers]
    try:
        for round_number in range(KILLS + 1):
            world.stop.clear()
            writing = [tasks.start("writer", writer.run()) for writer in writers]
            await under_load(world)
            if round_number < KILLS:
                process.kill()
            world.stop.set()
            done, _ = await asyncio.wait(writing)
            for task in done:
                task.result()
            if round_number < KILLS:
                await asyncio.to_thread(process.up)
            final = await check_after_restart(world, writers)
        await all_caught_up(followers, following, final)
    finally:
        await tasks.stop()
        await world.client.close()
    return world, followers


async def under_load(world):
    """Until some writes were sent, however quick the machine is; then in the middle of others."""
    enough = world.writes + world.rng.randint(50, 300)
    try:
        async with asyncio.timeout(LOAD_SECONDS):
            while world.writes < enough:
                await asyncio.sleep(0.001)
    except TimeoutError:
        return


def test_no_answered_write_is_lost_and_no_watcher_misled(tmp_path, capsys):
    process = SampanProcess(tmp_path, "--runtime", "none").up()
    try:
        world, followers = asyncio.run(story(process))
    finally:
        process.kill()
    told = sum(len(one.story) for one in followers)
    with capsys.disabled():
        print(
            f"\nseed {SEED}: {KILLS} kills, {world.writes} writes, {len(world.answered)} puts "
            f"answered, {world.doubtful} in doubt, {told} events told, {world.expired} × 410"
        )
    assert world.doubtful >= KILLS // 2, "the kills hit nobody: there was no load"
    assert revision_faults(world.answered) == []
    for follower in followers:
        assert watch_faults(follower.story) == []
        assert unseen(follower.story, world.answered) == []


def test_the_outcome_of_a_doubtful_write_is_one_of_two():
    """The judge of the test above, judged."""
    writer = Writer(None, 0)
    name = writer.names[0]
    writer.settle(name, Value(3, 10))
    writer.judge(name, Value(3, 10))
    with pytest.raises(AssertionError, match="was answered"):
        writer.judge(name, None)
    writer.tried[name] = 4
    writer.judge(name, Value(4, 12))
    with pytest.raises(AssertionError):
        writer.judge(name, Value(2, 8))
