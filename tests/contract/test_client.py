"""What every client promises: in the process, over HTTPS, and those that only tests use."""

import asyncio
import itertools
from contextlib import asynccontextmanager

import pytest

from sampan.api.errors import AlreadyExists, Conflict, Expired, Invalid, NotFound, UnknownPath
from sampan.api.resources import CONFIG_MAPS, PODS
from sampan.client import kubeconfig, rest
from sampan.client.contract import Page, Preconditions
from sampan.core.clock import SystemClock
from tests.support.parts.served_api import served_api
from tests.support.worlds.control_plane import ControlPlane, published_schema
from tests.support.worlds.faulty_client import Faults, FaultyClient
from tests.support.worlds.small_api import SmallApi

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with served_api(published_schema(), tmp_path_factory.mktemp("served")) as api:
        yield api


@asynccontextmanager
async def opened(kind, request):
    if kind == "https":
        api = request.getfixturevalue("served")
        client = rest.connect(
            kubeconfig.load(str(api.admin), {}, "").connection(), clock=SystemClock()
        )
        try:
            yield client
        finally:
            await client.close()
    elif kind == "small":
        yield SmallApi(SystemClock())
    else:
        async with ControlPlane() as plane:
            faulty = FaultyClient(plane.client, Faults(plane.clock))
            yield plane.client if kind == "in process" else faulty


@pytest.fixture(params=["in process", "https", "faulty", "small"])
def told(request):
    """Runs a story with a client; the served API is shared, so names must be new ones."""

    def run(story):
        async def inside():
            async with opened(request.param, request) as client, asyncio.timeout(20):
                await story(client, f"x{next(NUMBERS)}")

        asyncio.run(inside())

    if request.param == "https":
        request.getfixturevalue("served")
    return run


def config_map(name, **meta):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", **meta},
        "data": {"k": "v"},
    }


def pod(name, node):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": node},
    }


async def first(events, count):
    found = []
    async for event in events:
        if event.type != "BOOKMARK":
            found.append((event.type, event.object["metadata"]["name"]))
        if len(found) == count:
            break
    await events.aclose()
    return found


def test_what_was_created_can_be_read_and_not_created_again(told):
    async def story(client, name):
        made = await client.create(CONFIG_MAPS, config_map(name))
        assert made["metadata"]["uid"]
        assert made["metadata"]["resourceVersion"]
        assert await client.get(CONFIG_MAPS, "default", name) == made
        with pytest.raises(AlreadyExists):
            await client.create(CONFIG_MAPS, config_map(name))
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAPS, "default", f"{name}-other")

    told(story)


def test_a_name_can_be_left_to_the_server(told):
    async def story(client, name):
        wanted = config_map("", generateName=f"{name}-")
        made = [await client.create(CONFIG_MAPS, wanted) for _ in range(2)]
        names = {one["metadata"]["name"] for one in made}
        assert len(names) == 2
        assert all(one.startswith(f"{name}-") for one in names)

    told(story)


def test_an_update_of_an_older_state_is_refused(told):
    async def story(client, name):
        made = await client.create(CONFIG_MAPS, config_map(name))
        changed = await client.update(CONFIG_MAPS, {**made, "data": {"k": "w"}})
        assert changed["data"] == {"k": "w"}
        with pytest.raises(Conflict):
            await client.update(CONFIG_MAPS, {**made, "data": {"k": "x"}})
        assert (await client.get(CONFIG_MAPS, "default", name))["data"] == {"k": "w"}

    told(story)


def test_a_patch_changes_what_it_names_and_knows_its_uid(told):
    async def story(client, name):
        made = await client.create(CONFIG_MAPS, config_map(name))
        patch = {"data": {"l": "w"}, "metadata": {"uid": made["metadata"]["uid"]}}
        changed = await client.patch(CONFIG_MAPS, "default", name, patch, patch_type="merge")
        assert changed["data"] == {"k": "v", "l": "w"}
        patch = {"data": {"k": None}}
        changed = await client.patch(CONFIG_MAPS, "default", name, patch, patch_type="merge")
        assert changed["data"] == {"l": "w"}
        other = {"metadata": {"uid": "another"}}
        with pytest.raises(Invalid, match="field is immutable"):
            await client.patch(CONFIG_MAPS, "default", name, other, patch_type="merge")

    told(story)


def test_lists_are_selected_by_labels_and_fields(told):
    async def story(client, name):
        await client.create(CONFIG_MAPS, config_map(f"{name}-a", labels={"of": name}))
        await client.create(CONFIG_MAPS, config_map(f"{name}-b"))
        listed = await client.list(CONFIG_MAPS, "default", label_selector=f"of={name}")
        assert [one["metadata"]["name"] for one in listed.items] == [f"{name}-a"]
        await client.create(PODS, pod(f"{name}-a", name))
        await client.create(PODS, pod(f"{name}-b", f"{name}-other"))
        listed = await client.list(PODS, field_selector=f"spec.nodeName={name}")
        assert [one["metadata"]["name"] for one in listed.items] == [f"{name}-a"]

    told(story)


def test_a_watch_gives_every_later_change_once_and_in_order(told):
    async def story(client, name):
        meta = {"labels": {"of": name}}
        await client.create(CONFIG_MAPS, config_map(f"{name}-before", **meta))
        listed = await client.list(CONFIG_MAPS, "default", label_selector=f"of={name}")
        await client.create(CONFIG_MAPS, config_map(f"{name}-a", **meta))
        await client.create(CONFIG_MAPS, config_map(f"{name}-unseen"))
        patch = {"data": {"k": "w"}}
        await client.patch(CONFIG_MAPS, "default", f"{name}-a", patch, patch_type="merge")
        await client.delete(CONFIG_MAPS, "default", f"{name}-a")
        events = client.watch(
            CONFIG_MAPS, "default", revision=listed.revision, label_selector=f"of={name}"
        )
        names = [(kind, f"{name}-a") for kind in ("ADDED", "MODIFIED", "DELETED")]
        assert await first(events, 3) == names

    told(story)


def test_a_pod_on_a_node_is_deleted_gracefully_and_then_for_good(told):
    async def story(client, name):
        made = await client.create(PODS, pod(name, name))
        with pytest.raises(Conflict):
            await client.delete(PODS, "default", name, preconditions=Preconditions("another"))
        await client.delete(
            PODS, "default", name, preconditions=Preconditions(made["metadata"]["uid"])
        )
        leaving = await client.get(PODS, "default", name)
        assert leaving["metadata"]["deletionGracePeriodSeconds"] == 30
        assert leaving["metadata"]["deletionTimestamp"]
        await client.delete(PODS, "default", name, grace_seconds=0)
        with pytest.raises(NotFound):
            await client.get(PODS, "default", name)

    told(story)


def test_a_list_can_be_read_page_by_page(told):
    async def story(client, name):
        wanted = [f"{name}-{letter}" for letter in "abc"]
        for each in reversed(wanted):
            await client.create(CONFIG_MAPS, config_map(each, labels={"of": name}))
        names, token = [], ""
        for count in (2, 1):
            page = await client.list(
                CONFIG_MAPS, "default", label_selector=f"of={name}", page=Page(2, token)
            )
            assert len(page.items) == count
            names += [obj["metadata"]["name"] for obj in page.items]
            token = page.continue_token
        assert names == wanted
        assert token == ""

    told(story)


def binding(pod, node, **meta):
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"], **meta},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def test_a_binding_gives_the_pod_that_it_means_its_node_once(told):
    async def story(client, name):
        async def bind(node, **meta):
            wanted = binding(waiting, node, **meta)
            await client.create(PODS, wanted, "default", subresource="binding", name=name)

        waiting = await client.create(PODS, pod(name, ""))
        with pytest.raises(Conflict):
            await bind("first", uid="another")
        await bind("first")
        assert (await client.get(PODS, "default", name))["spec"]["nodeName"] == "first"
        with pytest.raises(Conflict):
            await bind("second")
        assert (await client.get(PODS, "default", name))["spec"]["nodeName"] == "first"

    told(story)


def test_the_status_is_written_apart(told):
    async def story(client, name):
        await client.create(PODS, pod(name, name))
        patch = {"status": {"phase": "Running"}}
        changed = await client.patch(PODS, "default", name, patch, subresource="status")
        assert changed["status"]["phase"] == "Running"
        assert changed["spec"]["nodeName"] == name

    told(story)


def test_a_revision_that_is_no_longer_kept_has_expired():
    """Of the small one: the others' history is the store's affair, and tested there."""

    async def story():
        client = SmallApi(SystemClock())
        before = (await client.list(CONFIG_MAPS)).revision
        await client.create(CONFIG_MAPS, config_map("a"))
        client.compact()
        with pytest.raises(Expired):
            await first(client.watch(CONFIG_MAPS, revision=before), 1)

    asyncio.run(story())


def test_what_is_served_of_a_group_version(told):
    async def story(client, _name):
        found = {row.plural: row for row in await client.resources("apps", "v1")}
        assert found["deployments"].kind == "Deployment"
        assert found["deployments"].namespaced
        assert "list" in found["deployments"].verbs
        assert not [name for name in found if "/" in name]
        assert {row.plural for row in await client.resources("", "v1")} >= {"pods", "nodes"}
        with pytest.raises(UnknownPath):
            await client.resources("apps", "v9")

    told(story)
