import asyncio
import logging

from sampan.api.errors import Forbidden
from sampan.api.resources import CONFIG_MAPS, PODS, SECRETS
from sampan.client.cache_sync import OPTIONAL_SECONDS, caches_of
from sampan.client.informer import Informers
from sampan.core.tasks import Tasks
from tests.support import virtual_time
from tests.support.worlds.faulty_client import Faults, FaultyClient
from tests.support.worlds.small_api import SmallApi

NEEDED, OPTIONAL = (PODS, CONFIG_MAPS), (SECRETS,)


def begun_at(turn, heal_after_seconds=100.0):
    """When the part begins, in seconds, with the dial turned before it starts."""
    found = []

    async def part(informers, clock):
        informers.start()
        needed = [informers.of(resource) for resource in NEEDED]
        await caches_of("part", needed, [informers.of(resource) for resource in OPTIONAL])
        assert all(informer.is_synced() for informer in needed)
        found.append(clock.monotonic())

    async def story():
        clock = virtual_time.LoopClock()
        faults, tasks = Faults(clock), Tasks("test")
        turn(faults)
        informers = Informers(FaultyClient(SmallApi(clock), faults), clock=clock)
        tasks.start("part", part(informers, clock))
        await asyncio.sleep(heal_after_seconds)
        faults.end()
        await asyncio.sleep(100)
        await tasks.stop()
        await informers.stop()

    virtual_time.run(story())
    return found[0]


def test_a_part_begins_at_once_where_all_kinds_are_shown():
    assert begun_at(lambda _faults: None) < 1


def test_a_kind_that_is_optional_and_refused_is_not_waited_for(caplog):
    assert begun_at(lambda faults: faults.refusals.update(secrets=Forbidden("no"))) < 1
    assert "beginning without a kind part=part kind=secrets" in caplog.text


def test_a_kind_that_is_optional_and_slow_is_waited_for_a_while():
    begun = begun_at(lambda faults: faults.delays.update(secrets=1000.0))
    assert OPTIONAL_SECONDS <= begun < OPTIONAL_SECONDS + 1


def test_a_kind_that_is_needed_is_waited_for_and_named_once(caplog):
    caplog.set_level(logging.INFO, "sampan")
    begun = begun_at(lambda faults: faults.refusals.update(configmaps=Forbidden("no")))
    assert 100 < begun < 200
    assert caplog.text.count("waiting for a required resource part=part kind=configmaps") == 1
    assert "required resource is served now part=part kind=configmaps" in caplog.text
