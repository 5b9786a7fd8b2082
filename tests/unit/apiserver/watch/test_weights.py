import asyncio

from sampan.api.resources import CONFIG_MAPS, PODS
from tests.support.worlds.control_plane import story
from tests.support.worlds.simulated_node import pod_named


def config_map(number, size):
    meta = {"name": f"m{number}", "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta,
        "data": {"k": f"{number:0{size}d}"},
    }


async def weighed(plane):
    return {part.name: part for part in await plane.metrics.memory.parts()}


@story([])
async def test_objects_weigh_as_bytes_and_parsed_and_their_past_apart(plane):
    before = await weighed(plane)
    for number in range(40):
        await plane.client.create(CONFIG_MAPS, config_map(number, 10_000), "default")
    await plane.client.create(PODS, pod_named("web"), "default")
    after = await weighed(plane)
    others = after["API objects: others"].bytes - before["API objects: others"].bytes
    assert 40 * 20_000 < others < 40 * 24_000
    assert after["API objects: pods"].count == 1
    past = after["API changes of late"].bytes
    assert past < 40 * 10_000, "each state is still true"
    for number in range(40):
        patch = {"data": {"k": "short"}}
        await plane.client.patch(CONFIG_MAPS, "default", f"m{number}", patch)
    await asyncio.sleep(0)
    later = await weighed(plane)
    assert later["API changes of late"].bytes > past + 40 * 20_000
    assert later["API objects: others"].bytes < after["API objects: others"].bytes - 40 * 15_000
