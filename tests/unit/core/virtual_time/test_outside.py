"""Whom virtual time waits for."""

import asyncio

import pytest

from sampan.core.http.messages import Request, Response, Stream
from sampan.core.virtual_time.client_activity import (
    FIRST_SECONDS,
    LEAST_SECONDS,
    LOOK_SECONDS,
)
from sampan.core.virtual_time.outside import MOST_STARVED, Outside, told
from sampan.core.virtual_time.patience import ANYBODY

POD = b'{"type":"ADDED","object":{}}\n'
BOOKMARK = b'{"type":"BOOKMARK","object":{}}\n'


class World:
    """An API server with one stream, and a clock in the test's hand."""

    def __init__(self, processes=None):
        self.now, self.revision = 100.0, 1
        self.outside = Outside(
            lambda: self.revision,
            lambda: self.now,
            processes,
            is_own=lambda request: request.headers.get("user-agent") == "own",
        )
        self.events: asyncio.Queue[bytes] = asyncio.Queue()
        self._handle = self.outside.around(self._answer)

    async def _answer(self, request):
        if "watch=" in request.query:
            return Stream(200, (), self._chunks())
        return Response(200, (), b"{}")

    async def _chunks(self):
        while True:
            yield await self.events.get()

    async def ask(self, agent="kopf/1.45 (linux)", method="GET", path="/api/v1/pods", query=""):
        return await self._handle(Request(method, path, query, {"user-agent": agent}, b""))

    async def watch(self, agent="kopf/1.45 (linux)"):
        return (await self.ask(agent, query="watch=true")).chunks

    def wait(self):
        return round(self.outside.wait_seconds(), 6)

    def pass_time(self):
        """Until it may move."""
        while (seconds := self.wait()) > 0:
            self.now += seconds


def story(play, **words):
    async def run():
        await play(World(**words))

    asyncio.run(run())


def test_without_clients_time_moves_at_once():
    assert World().wait() == 0.0


def test_one_that_asked_is_quiet_a_moment_later():
    async def play(world):
        await world.ask()
        assert world.wait() == LEAST_SECONDS
        world.now += LEAST_SECONDS
        assert world.wait() == 0.0
        assert world.wait() == 0.0

    story(play)


def test_one_that_watches_is_waited_for_when_it_was_told_something():
    async def play(world):
        chunks = await world.watch()
        world.pass_time()
        world.revision += 1
        assert world.wait() == 0.0, "it was told nothing"
        await world.events.put(POD)
        assert await anext(chunks) == POD
        assert world.wait() == FIRST_SECONDS
        world.pass_time()
        assert world.wait() == 0.0
        [waited] = world.outside.report()
        assert (waited.client, waited.watches, waited.waits) == ("kopf/1.45", 1, 2)
        await chunks.aclose()

    story(play)


def test_a_bookmark_tells_nothing():
    async def play(world):
        chunks = await world.watch()
        await world.events.put(POD)
        await anext(chunks)
        world.pass_time()
        await world.events.put(BOOKMARK)
        assert await anext(chunks) == BOOKMARK
        assert world.wait() == 0.0
        await chunks.aclose()

    story(play)


def test_who_never_stops_costs_the_patience_once_and_is_named():
    async def play(world):
        chunks = await world.watch()
        began = world.now
        while world.wait() > 0:
            world.now += LEAST_SECONDS / 2
            await world.ask(method="PUT")
        assert world.now - began >= world.outside.patience_seconds
        [line] = told(world.outside.report())
        assert line.startswith("kopf/1.45: 1 times, 10.0 s")
        assert line.endswith("was not quiet within the patience")
        began = world.now
        while world.wait() > 0:
            world.now += LEAST_SECONDS / 2
            await world.ask(method="PUT")
        assert world.now - began < 2 * FIRST_SECONDS
        await chunks.aclose()

    story(play)


class Processes:
    """One, which is at work until then."""

    def __init__(self):
        self.world, self.until = None, float("-inf")
        self.given_up, self.share = False, 0.0

    def busy(self):
        return frozenset()

    @property
    def starved_seconds(self):
        return self.world.now * self.share

    def have_rested(self, seconds):
        return self.given_up or self.world.now - self.until >= seconds

    def give_up(self, _seconds):
        self.given_up = True


def test_a_process_at_work_is_waited_for_until_it_has_rested_as_long_as_it_is_slow():
    async def play(world):
        processes.world = world
        chunks = await world.watch()
        world.pass_time()
        await world.events.put(POD)
        await anext(chunks)
        processes.until = world.now + 3.0  # the machine is slow: then it sleeps for a tenth
        began = world.now
        world.pass_time()
        assert FIRST_SECONDS <= world.now - began - 3.0 <= FIRST_SECONDS + 2 * LOOK_SECONDS
        await chunks.aclose()

    processes = Processes()
    story(play, processes=processes)


def test_a_process_that_is_always_at_work_costs_the_patience():
    async def play(world):
        processes.world, processes.until = world, float("inf")
        await world.ask()
        began = world.now
        world.pass_time()
        assert abs(world.now - began - world.outside.patience_seconds) <= LOOK_SECONDS
        assert processes.given_up

    processes = Processes()
    story(play, processes=processes)


@pytest.mark.parametrize(("share", "times"), [(0.5, 2), (0.9, 10), (1.0, MOST_STARVED)])
def test_time_that_it_waits_for_a_processor_costs_no_patience(share, times):
    async def play(world):
        processes.world, processes.until, processes.share = world, float("inf"), share
        await world.ask()
        began = world.now
        world.pass_time()
        expected = times * world.outside.patience_seconds
        assert abs(world.now - began - expected) <= 2 * LOOK_SECONDS

    processes = Processes()
    story(play, processes=processes)


def test_one_that_is_expected_holds_time_until_it_watches():
    async def play(world):
        world.outside.expect("kopf")
        assert world.wait() > 0
        await world.ask()
        world.now += 5.0
        assert world.wait() > 0, "it watches nothing yet"
        chunks = await world.watch()
        await world.events.put(POD)
        await anext(chunks)
        world.pass_time()
        assert world.outside.missing == []
        await chunks.aclose()

    story(play)


def test_one_that_does_not_come_is_missing_in_the_end():
    async def play(world):
        world.now += 1000.0  # the span begins when somebody waits
        world.outside.expect("kopf", 3.0)
        began = world.now
        world.pass_time()
        assert 3.0 <= world.now - began < 3.1
        assert world.outside.missing == ["kopf"]
        assert world.wait() == 0.0

    story(play)


def test_anybody_may_come_and_nobody_is_missed():
    async def play(world):
        world.outside.expect(ANYBODY)
        assert world.outside.is_known
        assert world.wait() > 0
        await world.ask("own")
        assert world.wait() > 0, "that is no client"
        await world.ask("kubectl/v1.35")
        world.pass_time()
        world.outside.expect(ANYBODY, 1.0)
        assert world.wait() == 0.0, "somebody is there"
        assert world.outside.missing == []

    story(play)


def test_elections_are_nobodys_activity():
    async def play(world):
        await world.ask(method="PUT", path="/apis/coordination.k8s.io/v1/namespaces/a/leases/b")
        assert world.wait() == 0.0

    story(play)


def test_an_answer_from_abroad_is_waited_for():
    world = World()
    with world.outside.abroad("https://127.0.0.1:9443/validate"):
        assert world.wait() > 0
    assert world.wait() == 0.0
    assert [waited.client for waited in world.outside.report()] == ["https://127.0.0.1:9443"]


def test_a_fork_has_no_clients():
    async def play(world):
        await world.ask()
        world.outside.forget()
        assert world.wait() == 0.0

    story(play)
