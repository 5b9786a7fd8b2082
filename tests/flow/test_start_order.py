"""What a start waits for: nothing that a cluster which was up before can do without."""

import asyncio
import io

import pytest

from sampan.api.resources import NODES, PODS, SERVICE_ACCOUNTS
from sampan.cmd.cluster.all_in_one import AllInOne
from sampan.cmd.cluster.data_dir import open_data_dir
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.settings import UpSettings
from sampan.core.clock import SystemClock
from sampan.core.tasks import all_of
from tests.support.generators.api_requests import pod

pytestmark = pytest.mark.slow


def cluster_in(path, waits):
    data, clock = open_data_dir(str(path)), SystemClock()
    settings = UpSettings(data_dir=str(path), port=0, runtime="simulated", nodes=1)
    cluster = AllInOne(settings, data, Progress(io.StringIO(), clock), clock)
    cluster.waits = waits
    return cluster


async def ready_nodes(client):
    return [
        node
        for node in (await client.list(NODES)).items
        for condition in node["status"]["conditions"]
        if condition["type"] == "Ready" and condition["status"] == "True"
    ]


async def until_running(client, name):
    async with asyncio.timeout(60):
        while (await client.get(PODS, "default", name))["status"]["phase"] != "Running":
            await asyncio.sleep(0.02)


async def until_accounts(client):
    async with asyncio.timeout(60):
        while not (await client.list(SERVICE_ACCOUNTS, "default")).items:
            await asyncio.sleep(0.02)


def test_a_first_start_has_its_controllers_and_a_later_one_is_ready_without(tmp_path):
    async def first():
        cluster = cluster_in(tmp_path, "for nodes")
        await cluster.start()
        try:
            await until_accounts(cluster.admin())  # nobody has started the rest
        finally:
            await cluster.stop()

    async def again():
        cluster = cluster_in(tmp_path, "for nodes")
        await cluster.start()
        client = cluster.admin()
        try:
            assert len(await ready_nodes(client)) == 1
            assert not await is_scheduled(client, "waits")
            # Who asks for a decision early is answered when there is somebody who knows.
            _, answer = await all_of([cluster.start_rest(), cluster._why("default/nobody")])
            assert answer is None
            await until_running(client, "waits")
        finally:
            await cluster.stop()

    asyncio.run(first())
    asyncio.run(again())


async def is_scheduled(client, name):
    """A pod that was just made, after a while in which a scheduler would have seen it."""
    waiting = pod(name)
    waiting["metadata"]["namespace"] = "default"
    await client.create(PODS, waiting)
    for _ in range(20):
        await asyncio.sleep(0)
    return "nodeName" in (await client.get(PODS, "default", name))["spec"]


def test_who_waits_for_the_api_alone_gets_nodes_with_the_rest(tmp_path):
    async def scenario():
        cluster = cluster_in(tmp_path, "for the API")
        await cluster.start()
        client = cluster.admin()
        try:
            assert not (await client.list(NODES)).items
            await cluster.start_rest()
            assert len(await ready_nodes(client)) == 1
        finally:
            await cluster.stop()

    asyncio.run(scenario())
