"""Every object of a resource is written in the version that is stored now, and its definition told.

The conditions and their words are those of upstream's storageversionmigrator in v1.37.
"""

import asyncio

import pytest

from sampan.api import features
from sampan.api.errors import Invalid
from sampan.api.features import Release
from sampan.api.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    STORAGE_VERSION_MIGRATIONS,
    Resource,
)
from tests.support.worlds.control_plane import story

pytestmark = pytest.mark.slow
with_migrator = story(["storage-version-migrator-controller"])
BOATS = Resource("example.com", "v1", "Boat", "boats")
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def on(minor, **gates):
    def decorated(test):
        def run():
            given = {"storagemigration.k8s.io/v1beta1": "true"} if gates else {}
            with features.used(Release(minor, gates=gates, runtime_config=given)):
                test()

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorated


def definition(storage):
    versions = [
        {
            "name": name, "served": True, "storage": name == storage,
            "schema": {"openAPIV3Schema": ANY},
        }
        for name in ("v1", "v2")
    ]  # fmt: skip
    names = {"plural": "boats", "kind": "Boat", "singular": "boat", "listKind": "BoatList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    return {"metadata": {"name": "boats.example.com"}, "spec": spec}


def migration(name, resource, group=""):
    spec = {"resource": {"group": group, "resource": resource}}
    return {"metadata": {"name": name}, "spec": spec}


def told(obj):
    return {
        each["type"]: (each["status"], each["reason"], each["message"])
        for each in obj["status"]["conditions"]
    }


async def found(plane, name):
    return await plane.client.get(STORAGE_VERSION_MIGRATIONS, "", name)


async def boat(plane, name):
    head = {"apiVersion": "example.com/v1", "kind": "Boat"}
    body = {**head, "metadata": {"name": name, "namespace": "default"}}
    await plane.client.create(BOATS, body)


async def stored_versions(plane):
    entries = (await plane.store.range("/registry/boats.example.com/")).entries
    return [entry.value.partition(b"example.com/")[2][:2].decode() for entry in entries]


@on("1.37")
@with_migrator
async def test_custom_objects_are_stored_in_the_new_version_and_the_definition_forgets_the_old(
    plane,
):
    """[V1] [A6]"""
    client = plane.client
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition("v1"))
    await asyncio.sleep(1)
    await boat(plane, "a")
    await boat(plane, "b")
    patch = {"spec": {"versions": definition("v2")["spec"]["versions"]}}
    name = "boats.example.com"
    await client.patch(CUSTOM_RESOURCE_DEFINITIONS, "", name, patch, patch_type="merge")
    await asyncio.sleep(1)
    before = await client.get(CUSTOM_RESOURCE_DEFINITIONS, "", name)
    assert before["status"]["storedVersions"] == ["v1", "v2"]
    assert await stored_versions(plane) == ["v1", "v1"]

    await client.create(STORAGE_VERSION_MIGRATIONS, migration("m", "boats", "example.com"))
    await plane.settled()
    assert await stored_versions(plane) == ["v2", "v2"]
    assert told(await found(plane, "m")) == {
        "Running": ("False", "MigrationCompleted", "Migration completed"),
        "Succeeded": ("True", "StorageVersionMigrationSucceeded", "Migration completed"),
    }
    after = await client.get(CUSTOM_RESOURCE_DEFINITIONS, "", name)
    assert after["status"]["storedVersions"] == ["v2"]
    assert told(after)["StorageMigrating"] == (
        "False",
        "MigrationSucceeded",
        "The migration has succeeded and the stored versions have been updated",
    )


@on("1.37")
@with_migrator
async def test_what_is_stored_as_it_should_be_is_not_written(plane):
    made = await plane.client.create(
        CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "default"}}
    )
    await plane.client.create(STORAGE_VERSION_MIGRATIONS, migration("m", "configmaps"))
    await plane.settled()
    now = await plane.client.get(CONFIG_MAPS, "default", "a")
    assert now["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert told(await found(plane, "m"))["Succeeded"][0] == "True"


@on("1.37")
@with_migrator
async def test_a_resource_that_nobody_serves_is_waited_for_and_then_the_migration_fails(plane):
    await plane.client.create(STORAGE_VERSION_MIGRATIONS, migration("m", "ships", "example.com"))
    await plane.settled(seconds=50)
    assert "Failed" not in told(await found(plane, "m"))
    await plane.settled(seconds=20)
    assert told(await found(plane, "m")) == {
        "Running": ("False", "MigrationCompleted", "Migration completed"),
        "Failed": ("True", "StorageVersionMigrationFailed", "resource does not exist in discovery"),
    }


@on("1.37")
@with_migrator
async def test_one_migration_of_a_resource_runs_at_a_time_the_oldest_first(plane):
    await plane.client.create(STORAGE_VERSION_MIGRATIONS, migration("z", "ships"))
    await asyncio.sleep(2)
    await plane.client.create(STORAGE_VERSION_MIGRATIONS, migration("a", "ships"))
    await plane.settled(seconds=5)
    assert told(await found(plane, "z"))["Running"][0] == "True"
    assert (await found(plane, "a")).get("status", {}) == {}
    await plane.settled(seconds=120)
    assert told(await found(plane, "a"))["Failed"][0] == "True"


@on("1.37")
@with_migrator
async def test_a_resource_that_cannot_be_written_is_not_migrated(plane):
    await plane.client.create(STORAGE_VERSION_MIGRATIONS, migration("m", "componentstatuses"))
    await plane.settled()
    assert told(await found(plane, "m"))["Failed"] == (
        "True",
        "StorageVersionMigrationFailed",
        'resource "/v1, Resource=componentstatuses" does not support discovery operations:'
        " [update patch list]",
    )


@on("1.37")
@with_migrator
async def test_what_is_migrated_never_changes_and_an_end_is_an_end(plane):
    client = plane.client
    await client.create(STORAGE_VERSION_MIGRATIONS, migration("m", "configmaps"))
    await plane.settled()
    other = {"spec": {"resource": {"resource": "secrets"}}}
    with pytest.raises(Invalid, match="field is immutable"):
        await client.patch(STORAGE_VERSION_MIGRATIONS, "", "m", other, patch_type="merge")
    for status, why in (
        ({"resourceVersion": "7"}, "field is immutable"),
        ({"conditions": []}, "Success condition cannot be set to false once it is true"),
        ({"resourceVersion": "07"}, "resource version is not well formed: 07"),
    ):
        with pytest.raises(Invalid, match=why):
            await client.patch(
                STORAGE_VERSION_MIGRATIONS, "", "m", {"status": status}, patch_type="merge",
                subresource="status",
            )  # fmt: skip
    with pytest.raises(Invalid, match="resource is required to be set"):
        await client.create(STORAGE_VERSION_MIGRATIONS, migration("n", ""))


@on("1.36", StorageVersionMigrator=True)
@with_migrator
async def test_an_older_version_has_them_where_the_gate_is_on(plane):
    """[V2]"""
    beta = Resource(
        "storagemigration.k8s.io", "v1beta1", "StorageVersionMigration", "storageversionmigrations",
        namespaced=False, has_versions=True,
    )  # fmt: skip
    await plane.client.create(beta, migration("m", "configmaps"))
    await plane.settled()
    made = await plane.client.get(beta, "", "m")
    assert told(made)["Succeeded"][0] == "True"
    assert made["apiVersion"] == "storagemigration.k8s.io/v1beta1"
