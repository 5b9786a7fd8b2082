import asyncio
import random

import pytest

from sampan.api.errors import Conflict, ServiceUnavailable
from sampan.api.resources import CONFIG_MAPS, DEPLOYMENTS, EVENTS, SECRETS
from sampan.client.informer import Informers
from sampan.controllers.actions import NOTHING, Create, Plan
from sampan.controllers.controller import Controller, own_key
from sampan.controllers.runner import ControllerRunner
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from tests.support import virtual_time
from tests.support.worlds.faulty_client import Faults, FaultyClient
from tests.support.worlds.small_api import SmallApi


def obj(name):
    return {"metadata": {"name": name, "namespace": "ns", "uid": name}}


class World:
    """A runner over a small API; `plans` are the keys in the order in which they were planned."""

    def __init__(self):
        self.clock = virtual_time.LoopClock()
        self.api, self.faults = SmallApi(self.clock), Faults(self.clock)
        self.client = FaultyClient(self.api, self.faults)
        self.metrics = Metrics()
        self.plans = []
        self.tasks = Tasks("test")
        self.informers = Informers(self.client, clock=self.clock)

    def controller(self, planned, name="test", wakes=(CONFIG_MAPS,), **keywords):
        async def noted(view, key):
            self.plans.append(key)
            return await planned(view, key)

        return Controller(name, name, dict.fromkeys(wakes, own_key), noted, **keywords)

    def start(self, *controllers):
        runner = ControllerRunner(
            self.client, self.informers, self.clock, self.metrics, controllers, random.Random(1)
        )
        self.tasks.start("runner", runner.run())
        return runner

    async def stop(self):
        await self.tasks.stop()
        await self.informers.stop()

    async def restart(self):
        """Nothing is remembered but what the API has."""
        await self.stop()
        self.tasks = Tasks("test")
        self.informers = Informers(self.client, clock=self.clock)


def told(story):
    async def run():
        world = World()
        try:
            await story(world)
        finally:
            await world.stop()

    virtual_time.run(run())


async def nothing(_view, _key):
    return NOTHING


def test_a_change_wakes_its_key_and_idleness_costs_nothing():
    async def story(world):
        runner = world.start(world.controller(nothing))
        await asyncio.sleep(1)
        world.api.put(CONFIG_MAPS, obj("a"))
        await asyncio.sleep(1)
        assert world.plans == ["ns/a"]
        assert runner.idle()
        await asyncio.sleep(10_000)
        assert world.plans == ["ns/a"]

    told(story)


def test_a_failure_is_tried_again_and_stops_nobody_else():
    async def story(world):
        failures = [RuntimeError("bug"), ServiceUnavailable("down"), Conflict("changed")]

        async def planned(_view, key):
            if key == "ns/bad" and failures:
                raise failures.pop()
            return NOTHING

        world.start(world.controller(planned, workers=1), world.controller(nothing, "other"))
        await asyncio.sleep(1)
        world.api.put(CONFIG_MAPS, obj("bad"))
        world.api.put(CONFIG_MAPS, obj("good"))
        await asyncio.sleep(60)
        assert world.plans.count("ns/bad") == 4 + 1  # thrice tried again, and the other one's
        assert world.plans.count("ns/good") == 2
        assert "workqueue_retries_total" in world.metrics.names()

    told(story)


def test_an_object_at_which_a_controller_fails_is_told_of_and_backed_off_also_after_a_restart():
    async def story(world):
        async def planned(_view, key):
            if key == "ns/bad":
                raise KeyError("spec")
            return NOTHING

        controller = world.controller(planned, workers=1)
        for starts in (1, 2):
            world.start(controller)
            world.api.put(CONFIG_MAPS, {"kind": "ConfigMap", **obj("bad")})
            world.api.put(CONFIG_MAPS, obj(f"good-{starts}"))
            await asyncio.sleep(600)
            *earlier, event = world.api.objects(EVENTS)
            assert len(earlier) == starts - 1
            assert (event["type"], event["reason"]) == ("Warning", "FailedSync")
            assert event["involvedObject"]["name"] == "bad"
            assert event["message"] == "Error syncing by test, will try again: KeyError: 'spec'"
            assert f"ns/good-{starts}" in world.plans
            # 14 times in the first minute, once a minute from then on.
            assert world.plans.count("ns/bad") < starts * 30
            await world.restart()

    told(story)


def test_an_object_at_which_a_controller_fails_has_a_condition_until_it_succeeds():
    """Whatever each error says, also where another process goes on, and others' stay."""

    async def story(world):
        errors = [f"the {number}th" for number in range(1000)]
        fails = True

        async def planned(_view, key):
            if fails and key == "ns/bad":
                raise KeyError(errors.pop(0))
            return NOTHING

        own = {"type": "Available", "status": "True"}
        bad = {"kind": "Deployment", **obj("bad"), "status": {"conditions": [own], "replicas": 1}}
        controller = world.controller(planned, wakes=(DEPLOYMENTS,))
        other = world.controller(nothing, "other", wakes=(DEPLOYMENTS,))
        world.start(controller, other)
        world.api.put(DEPLOYMENTS, bad)
        await asyncio.sleep(600)
        [seen] = world.api.objects(DEPLOYMENTS)
        assert seen["status"]["conditions"] == [
            own,
            {
                "type": "SyncFailed", "status": "True", "reason": "FailedSync",
                "message": "Error syncing by test, will try again: KeyError: 'the 0th'",
                "lastTransitionTime": seen["status"]["conditions"][1]["lastTransitionTime"],
            },
        ]  # fmt: skip
        assert seen["status"]["replicas"] == 1
        assert world.plans.count("ns/bad") < 2 * 30
        await world.restart()
        fails = False
        world.start(controller, other)
        await asyncio.sleep(10)
        [seen] = world.api.objects(DEPLOYMENTS)
        assert seen["status"] == {"conditions": [own], "replicas": 1}

    told(story)


def test_a_wake_that_fails_does_not_stop_the_others():
    async def story(world):
        def broken(_caches, _old, _new):
            raise RuntimeError("bug")

        bad = Controller("bad", "bad", {CONFIG_MAPS: broken}, nothing)
        world.start(bad, world.controller(nothing))
        await asyncio.sleep(1)
        world.api.put(CONFIG_MAPS, obj("a"))
        await asyncio.sleep(1)
        assert world.plans == ["ns/a"]

    told(story)


def test_a_key_is_not_planned_before_its_own_writes_are_seen():
    async def story(world):
        async def planned(_view, _key):
            if world.plans != ["ns/a"]:
                return NOTHING
            # What it creates is answered at once; the watch tells of it later.
            world.faults.silences[CONFIG_MAPS.group_resource] = world.clock.monotonic() + 10
            return Plan([Create(CONFIG_MAPS, obj("new"))])

        world.start(world.controller(planned, wakes=(CONFIG_MAPS, SECRETS)))
        await asyncio.sleep(1)
        world.api.put(CONFIG_MAPS, obj("a"))
        await asyncio.sleep(1)
        assert world.api.find(CONFIG_MAPS, "ns", "new")
        # Woken by others, but the cache has not caught up with the creation yet.
        world.api.put(SECRETS, obj("a"))
        world.api.put(SECRETS, obj("b"))
        await asyncio.sleep(5)
        assert world.plans == ["ns/a", "ns/b"]
        world.api.put(CONFIG_MAPS, obj("a"))
        await asyncio.sleep(10)
        assert sorted(world.plans[2:]) == ["ns/a", "ns/new"]

    told(story)


def test_a_plan_can_ask_for_another_look():
    async def story(world):
        async def planned(_view, _key):
            return Plan(again_seconds=10) if len(world.plans) < 3 else NOTHING

        world.start(world.controller(planned))
        await asyncio.sleep(1)
        world.api.put(CONFIG_MAPS, obj("a"))
        await asyncio.sleep(15)
        assert len(world.plans) == 2
        await asyncio.sleep(100)
        assert len(world.plans) == 3

    told(story)


def test_what_is_only_looked_up_wakes_nobody():
    async def story(world):
        world.start(world.controller(nothing, indices={SECRETS: {}}))
        await asyncio.sleep(1)
        assert world.client.lists == 2  # both are kept
        assert world.plans == []

    told(story)


class SlowClock(virtual_time.LoopClock):
    """Whose time also passes where somebody works."""

    worked_seconds = 0.0

    def monotonic(self):
        return super().monotonic() + self.worked_seconds


def test_thousands_of_keys_for_which_nothing_is_to_be_done_let_others_have_the_loop():
    async def story(world):
        world.clock, turns, seen = SlowClock(), [0], []

        async def planned(_view, _key):
            world.clock.worked_seconds += 0.001
            seen.append(turns[0])
            return NOTHING

        async def count_turns():
            while True:
                turns[0] += 1
                await asyncio.sleep(0)

        world.start(world.controller(planned, workers=1))
        await asyncio.sleep(1)
        world.tasks.start("others", count_turns())
        for number in range(100):
            world.api.put(CONFIG_MAPS, obj(f"c{number}"))
        while len(seen) < 100:
            await asyncio.sleep(0)
        assert max(seen.count(turn) for turn in seen) < 10

    told(story)


class SlowClient(FaultyClient):
    async def create(self, *given, **named):
        await asyncio.sleep(0.3)
        return await super().create(*given, **named)


@pytest.mark.parametrize(("unfinished", "pause_seconds"), [(False, 0.3), (True, 0.0)])
def test_a_key_rests_as_long_as_its_writes_took_unless_there_is_more_to_do(
    unfinished, pause_seconds
):
    async def story(world):
        planned_at = []

        async def planned(_view, _key):
            planned_at.append(world.clock.monotonic())
            if len(planned_at) > 1:
                return NOTHING
            return Plan([Create(SECRETS, obj("new"))], unfinished=unfinished)

        world.client = SlowClient(world.api, world.faults)
        world.start(world.controller(planned))
        await asyncio.sleep(1)
        world.api.put(CONFIG_MAPS, obj("a"))
        await asyncio.sleep(0.1)
        world.api.put(CONFIG_MAPS, obj("a"))  # while it writes
        await asyncio.sleep(10)
        first, second = planned_at
        assert second - first == pytest.approx(0.3 + pause_seconds, abs=0.05)

    told(story)
