"""Who reads what somebody else is writing waits for it; who reads something else does not."""

import asyncio

import pytest

from sampan.api.errors import NotFound
from sampan.api.resources import CONFIG_MAPS
from sampan.apiserver.registry.generic import PLAIN
from tests.support import virtual_time
from tests.support.generators.api_requests import api_server
from tests.support.worlds.control_plane import published_schema

PATH = "/api/v1/namespaces/default/configmaps"


def run(story):
    async def main():
        async with api_server(published_schema()) as api:
            for name in ("a", "b"):
                await api.made(PATH, {"metadata": {"name": name}, "data": {"is": "old"}})
            await story(api.server._registry)

    virtual_time.run(main())


def data_of(item):
    return item.obj["data"]["is"]


def cached(registry):
    return registry.cached(CONFIG_MAPS, "default", "a")


def half_written(registry):
    """The store has it, the cache does not."""
    item = cached(registry)
    new = {**item.obj, "data": {"is": "new"}}
    steps = registry.replace(CONFIG_MAPS, item, new, PLAIN).__await__()
    steps.send(None)
    assert data_of(cached(registry)) == "old"
    return steps


def test_who_reads_what_is_being_written_waits_for_it():
    async def story(registry):
        steps = half_written(registry)
        assert data_of(await registry.current(CONFIG_MAPS, "default", "a")) == "new"
        with pytest.raises(StopIteration) as end:
            steps.send(None)
        assert data_of(end.value.value) == "new"

    run(story)


def test_a_write_whose_writer_went_away_is_waited_for_as_well():
    async def story(registry):
        steps = half_written(registry)
        with pytest.raises(asyncio.CancelledError):
            steps.throw(asyncio.CancelledError())
        assert data_of(cached(registry)) == "old"
        assert data_of(await registry.current(CONFIG_MAPS, "default", "a")) == "new"

    run(story)


def test_a_removal_is_waited_for_as_well():
    async def story(registry):
        steps = registry.remove(CONFIG_MAPS, cached(registry), PLAIN).__await__()
        steps.send(None)
        with pytest.raises(NotFound):
            await registry.current(CONFIG_MAPS, "default", "a")
        with pytest.raises(StopIteration):
            steps.send(None)

    run(story)


def test_who_reads_something_else_waits_for_nobody():
    async def story(registry):
        steps = half_written(registry)
        other = registry.current(CONFIG_MAPS, "default", "b").__await__()
        with pytest.raises(StopIteration) as end:
            other.send(None)
        assert data_of(end.value.value) == "old"
        assert data_of(await registry.current(CONFIG_MAPS, "default", "a")) == "new"
        with pytest.raises(StopIteration):
            steps.send(None)

    run(story)
