"""docs/flows/custom_object.md, followed: the files that its steps name are entered, no others."""

import asyncio
from pathlib import Path

import pytest

from sampan.api.resources import CONFIG_MAPS, by_kind
from sampan.core.fast_dataclass import replace
from tests.support.worlds import followed_stories as stories
from tests.support.worlds import followed_way as way

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "flows" / "custom_object.md"
STEPS = way.steps_in(PAGE.read_text().partition("What can go wrong")[0])
DEFINITIONS = by_kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
THINGS = replace(CONFIG_MAPS, group="example.com", version="v1", kind="Thing", plural="things")
ELSEWHERE = {
    "apiserver/extension/definitions.py": "before: with the definition",
    "apiserver/extension/conversion_webhook.py": "there is no webhook",
    "apiserver/printers/custom_columns.py": "nobody asks for a table",
    "api/json_path/template.py": "nobody asks for a table",
}
FOLDERS = ("api/custom/", "apiserver/extension/", "api/validation/custom_resources/")
SIZE = {"type": "integer", "minimum": 1, "default": 3}
SPEC = {
    "type": "object",
    "properties": {"size": SIZE},
    "x-kubernetes-validations": [{"rule": "self.size < 10"}],
}
VERSION = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}},
}
NAMES = {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"}


def is_established(definition) -> bool:
    conditions = definition.get("status", {}).get("conditions", [])
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


async def define(client) -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": NAMES, "versions": [VERSION],
        },
    }  # fmt: skip
    created = await client.create(DEFINITIONS, definition)
    await stories.seen(client, DEFINITIONS, created, is_established)


async def watched(client) -> None:
    meta = {"name": "a", "namespace": "default"}
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": meta, "spec": {}}
    revision = (await client.list(THINGS, "default")).revision
    watch = client.watch(THINGS, "default", revision=revision)
    async with asyncio.TaskGroup() as group:
        event = group.create_task(anext(watch))
        await client.create(THINGS, thing)
    assert event.result().object["spec"] == {"size": 3}


@pytest.fixture(scope="module")
def entered(tmp_path_factory) -> way.Entries:
    return asyncio.run(way.followed(tmp_path_factory.mktemp("cluster"), watched, define))


def test_every_file_that_a_step_names_is_entered(entered):
    assert way.missing(STEPS, entered, set(ELSEWHERE)) == []


def test_no_file_of_custom_kinds_is_left_out(entered):
    left = way.left_out(STEPS, entered)
    assert [path for path in left if path.startswith(FOLDERS)] == []
