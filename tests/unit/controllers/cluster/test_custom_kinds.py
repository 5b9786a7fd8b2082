"""Kinds from definitions, for those who deal with every kind: garbage, namespaces."""

import asyncio
from contextlib import asynccontextmanager

from sampan.api.objects import copy_of
from sampan.api.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    NAMESPACES,
    Resource,
)
from sampan.client.informer import Informers
from sampan.controllers.cluster.custom_kinds import custom_resource
from sampan.controllers.cluster.garbage_collector import garbage_collector
from sampan.controllers.cluster.namespace import namespace_controller
from sampan.controllers.runner import ControllerRunner
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from tests.support import virtual_time
from tests.support.worlds.small_api import SmallApi

WIDGETS = Resource("example.com", "v1", "Widget", "widgets", namespaced=True)


def definition(established="True", versions=(("v1", True),)):
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [
                {"name": name, "served": served, "storage": name == "v1"}
                for name, served in versions
            ],
        },
        "status": {"conditions": [{"type": "Established", "status": established}]},
    }


def test_a_definition_is_a_kind_once_it_is_served():
    assert custom_resource(definition()) == WIDGETS
    assert custom_resource(definition("False")) is None
    assert custom_resource(definition(versions=[("v1", False)])) is None
    assert custom_resource(None) is None


def test_the_stored_version_is_preferred_and_must_be_served():
    assert custom_resource(definition(versions=[("v2", True), ("v1", True)])).version == "v1"
    assert custom_resource(definition(versions=[("v2", True), ("v1", False)])).version == "v2"


def widget(**meta):
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default", **meta},
    }


def owned_by(owner):
    reference = {
        "apiVersion": "example.com/v1beta1",  # a kind is the same in each of its versions
        "kind": "Widget",
        "name": "w",
        "uid": owner["metadata"]["uid"],
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "default", "ownerReferences": [reference]},
    }


@asynccontextmanager
async def at_work(controller):
    clock = virtual_time.LoopClock()
    api, tasks = SmallApi(clock), Tasks("test")
    informers = Informers(api, clock=clock)
    runner = ControllerRunner(api, informers, clock, Metrics(), [controller])
    tasks.start("controllers", runner.run())
    await runner.answered()
    try:
        yield api
    finally:
        await tasks.stop()
        await informers.stop()


def test_what_a_custom_object_owns_goes_with_it():
    async def story():
        async with at_work(garbage_collector()) as api:
            owner = await api.create(WIDGETS, widget())
            await api.create(CONFIG_MAPS, owned_by(owner))
            await api.delete(WIDGETS, "default", "w")
            await asyncio.sleep(5)
            assert api.objects(CONFIG_MAPS), "nobody serves Widgets: who knows whether it lives?"
            await api.create(CUSTOM_RESOURCE_DEFINITIONS, definition())
            await asyncio.sleep(5)
            assert api.objects(CONFIG_MAPS) == []
            owner = await api.create(WIDGETS, widget())
            await api.create(CONFIG_MAPS, owned_by(owner))
            await asyncio.sleep(5)
            assert len(api.objects(CONFIG_MAPS)) == 1
            await api.delete(WIDGETS, "default", "w")
            await asyncio.sleep(5)
            assert api.objects(CONFIG_MAPS) == []
            await api.delete(CUSTOM_RESOURCE_DEFINITIONS, "", "widgets.example.com")
            await asyncio.sleep(5)
            before = len(api.calls)
            await asyncio.sleep(100)
            assert not any("widgets" in one for one in api.calls[before:]), "nobody asks any more"

    virtual_time.run(story())


def test_a_custom_object_goes_with_its_owner_of_a_built_in_kind():
    async def story():
        async with at_work(garbage_collector()) as api:
            await api.create(CUSTOM_RESOURCE_DEFINITIONS, definition())
            named = {"metadata": {"name": "c", "namespace": "default"}}
            owner = await api.create(
                CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", **named}
            )
            uid = owner["metadata"]["uid"]
            reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": uid}
            await api.create(WIDGETS, widget(ownerReferences=[reference]))
            await asyncio.sleep(5)
            assert len(api.objects(WIDGETS)) == 1
            await api.delete(CONFIG_MAPS, "default", "c")
            await asyncio.sleep(5)
            assert api.objects(WIDGETS) == []

    virtual_time.run(story())


def test_a_namespace_takes_its_custom_objects_along():
    async def story():
        async with at_work(namespace_controller()) as api:
            await api.create(CUSTOM_RESOURCE_DEFINITIONS, definition())
            await api.create(WIDGETS, widget())
            space = {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "default", "deletionTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"finalizers": ["kubernetes"]},
            }
            await api.create(NAMESPACES, copy_of(space))
            await asyncio.sleep(5)
            assert api.objects(WIDGETS) == []
            [ended] = api.objects(NAMESPACES)
            assert ended["spec"]["finalizers"] == []

    virtual_time.run(story())
