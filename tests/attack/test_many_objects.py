"""Thousands of objects that belong together: nobody holds the loop, and nothing of them stays."""

import asyncio

import pytest

from sampan.api.errors import NotFound
from sampan.api.resources import CONFIG_MAPS
from sampan.controllers.cluster.garbage_collector import garbage_collector
from sampan.controllers.cluster.object_graph import ABSENT_REMEMBERED, ObjectGraph
from sampan.core.clock import SystemClock
from tests.support.generators.api_requests import api_server
from tests.support.parts.loop_holds import loop_holds
from tests.support.worlds.control_plane import ControlPlane, published_schema

pytestmark = [pytest.mark.usefixtures("settled_memory"), pytest.mark.slow, pytest.mark.timeout(600)]

MOST_SECONDS = 0.05
OWNED, DEFINED = 10_000, 1_000
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def config_map(name, *owners):
    meta = {"name": name, "namespace": "default", "ownerReferences": list(owners)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def reference(owner):
    meta = owner["metadata"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"],
            "blockOwnerDeletion": True}  # fmt: skip


async def exists(plane, name):
    try:
        await plane.client.get(CONFIG_MAPS, "default", name)
    except NotFound:
        return False
    return True


@pytest.mark.parametrize("propagation", ["Orphan", "Foreground"])
def test_an_owner_of_10_000_is_deleted_without_holding_anybody(propagation):
    async def deleted(plane):
        parent = await plane.client.create(CONFIG_MAPS, config_map("parent"))
        for number in range(OWNED):
            await plane.client.create(CONFIG_MAPS, config_map(f"d{number}", reference(parent)))
        await plane.settled()
        async with loop_holds() as holds:
            await plane.client.delete(CONFIG_MAPS, "default", "parent", propagation=propagation)
            async with asyncio.timeout(120):
                while await exists(plane, "parent"):
                    await asyncio.sleep(0.05)
        left = (await plane.client.list(CONFIG_MAPS, "default")).items
        assert [each for each in left if each["metadata"].get("ownerReferences")] == []
        for each in left:
            await plane.client.delete(CONFIG_MAPS, "default", each["metadata"]["name"])
        return holds.longest_seconds, len(left)

    async def main():
        async with ControlPlane(lambda: [garbage_collector()]) as plane:
            held = []
            for _ in range(3):  # the machine is shared: what counts is too long three times
                seconds, left = await deleted(plane)
                assert (left > OWNED) is (propagation == "Orphan")
                held.append(seconds)
                if seconds < MOST_SECONDS:
                    return
            raise AssertionError(held)

    asyncio.run(main())


def test_of_a_graph_of_10_000_nothing_stays():
    graph = ObjectGraph()
    parent = config_map("parent")
    parent["metadata"]["uid"] = "u"
    children = [config_map(f"d{number}", reference(parent)) for number in range(OWNED)]
    for number, child in enumerate(children):
        child["metadata"]["uid"] = str(number)
    for obj in (parent, *children):
        graph.changed(CONFIG_MAPS, None, obj)
    assert len(graph.dependents_of("u")) == OWNED
    looks = graph.changed(CONFIG_MAPS, parent, None)
    assert len(looks) == OWNED
    for child in children:
        graph.changed(CONFIG_MAPS, child, None)
    assert len(graph) == 0
    assert graph.dependents_of("u") == []
    for item in looks:
        graph.found_absent(item)
    assert sum(graph.is_known_absent(item) for item in looks) == ABSENT_REMEMBERED


def definition(number):
    plural, group = f"things{number}s", f"g{number % 50}.example.com"
    properties = {f"f{n}": {"type": "string", "description": "a field"} for n in range(20)}
    spec = {"type": "object", "properties": properties}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": plural, "singular": plural[:-1], "kind": plural[:-1].capitalize()}
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def test_the_documents_of_1_000_definitions_hold_nobody():
    async def main():
        async with api_server(published_schema(), clock=SystemClock()) as api:
            for number in range(DEFINED):
                await api.made(DEFINITIONS, definition(number))
            last = definition(DEFINED - 1)["metadata"]["name"].partition(".")
            async with asyncio.timeout(120):
                while (await api.get(f"/apis/{last[2]}/v1/{last[0]}")).status != 200:
                    await asyncio.sleep(0.05)
            held = {}
            for path in ("/openapi/v2", "/openapi/v3", "/openapi/v3/apis/g1.example.com/v1"):
                for number in range(3):
                    # Made anew for each: something has changed since.
                    await api.send(
                        "DELETE", f"{DEFINITIONS}/{definition(number)['metadata']['name']}"
                    )
                    async with loop_holds() as holds:
                        got = await api.get(path)
                    assert got.status == 200
                    held.setdefault(path, []).append(holds.longest_seconds)
                    if holds.longest_seconds < MOST_SECONDS:
                        break
            return held

    held = asyncio.run(main())
    assert all(min(each) < MOST_SECONDS for each in held.values()), held
