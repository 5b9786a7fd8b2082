"""An API that refuses, lacks or is slow to show one kind, each kind in turn: everybody else works.

The dial is FaultyClient's, between the real API server and every controller.
"""

import asyncio

import pytest

from sampan.api.errors import Forbidden, NotFound, UnknownPath
from sampan.api.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    JOBS,
    NAMESPACES,
    PODS,
    REPLICA_SETS,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from sampan.controllers.catalog import all_controllers
from tests.support import virtual_time
from tests.support.worlds.control_plane import ControlPlane
from tests.support.worlds.controller_worlds import HEALING_SECONDS, SETTINGS, named_object
from tests.support.worlds.faulty_client import Faults, FaultyClient

LABELS = {"app": "web"}
TEMPLATE = {
    "metadata": {"labels": LABELS},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
CONTROLLERS = {controller.name: controller for controller in all_controllers(SETTINGS)}
KINDS = sorted(
    {
        resource.group_resource
        for controller in CONTROLLERS.values()
        for resource in (*controller.wakes, *controller.indices)
    }
)


async def begin(client):
    """What users ask for, one thing of each of several controllers."""
    for name in ("team", "going"):
        await client.create(NAMESPACES, named_object("v1", "Namespace", name, ""))
    deployment = named_object(
        "apps/v1", "Deployment", "web",
        spec={"replicas": 2, "selector": {"matchLabels": LABELS}, "template": TEMPLATE},
    )  # fmt: skip
    await client.create(DEPLOYMENTS, deployment, "default")
    service = {"selector": LABELS, "ports": [{"port": 80}]}
    await client.create(SERVICES, named_object("v1", "Service", "web", spec=service), "default")
    template = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
    job = named_object("batch/v1", "Job", "once", spec={"template": template})
    await client.create(JOBS, job, "default")
    quota = named_object("v1", "ResourceQuota", "q", spec={"hard": {"services": "5", "pods": "9"}})
    await client.create(RESOURCE_QUOTAS, quota, "default")
    owner = await client.create(CONFIG_MAPS, named_object("v1", "ConfigMap", "owner"), "default")
    await create_owned(client, owner)
    await client.delete(CONFIG_MAPS, "default", "owner")
    await client.delete(NAMESPACES, "", "going")


async def create_owned(client, owner):
    name, uid = owner["metadata"]["name"], owner["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}
    secret = named_object("v1", "Secret", "owned", meta={"ownerReferences": [reference]})
    await client.create(SECRETS, secret, "default")


async def finds(client, resource, namespace, name):
    try:
        return await client.get(resource, namespace, name)
    except NotFound:
        return None


async def count(client, resource):
    return len((await client.list(resource, "default")).items)


async def quota_of(client, name):
    found = await client.get(RESOURCE_QUOTAS, "default", "q")
    return ((found.get("status") or {}).get("used") or {}).get(name)


async def slices_there(client):
    selector = "kubernetes.io/service-name=web"
    found = await client.list(ENDPOINT_SLICES, "default", label_selector=selector)
    return len(found.items) == 1


async def pods_there(client):
    return await count(client, PODS) == 3 and await count(client, REPLICA_SETS) == 1


async def account_there(client):
    return await finds(client, SERVICE_ACCOUNTS, "team", "default") is not None


async def trust_there(client):
    return await finds(client, CONFIG_MAPS, "team", "kube-root-ca.crt") is not None


async def services_counted(client):
    return await quota_of(client, "services") == "2"  # with kubernetes


async def pods_counted(client):
    return await quota_of(client, "pods") == "3"


async def owned_is_gone(client):
    return await finds(client, SECRETS, "default", "owned") is None


async def namespace_is_gone(client):
    return await finds(client, NAMESPACES, "", "going") is None


# What must come about, and the kinds without which it cannot.
WORKLOADS = {"deployments.apps", "replicasets.apps", "jobs.batch", "pods"}
OUTCOMES = {
    pods_there: WORKLOADS,
    slices_there: {"services", "pods", "nodes", "endpointslices.discovery.k8s.io"},
    account_there: {"namespaces", "serviceaccounts"},
    trust_there: {"namespaces", "configmaps"},
    services_counted: {"services", "resourcequotas"},
    pods_counted: {"resourcequotas", *WORKLOADS},
    owned_is_gone: {"configmaps", "secrets"},
    # A kind that may not be listed may have content left; one that nobody serves has none.
    namespace_is_gone: {"namespaces"},
}


def running(plane):
    """By what the metrics say."""
    lines = plane.metrics.render().splitlines()
    return {
        line.split('name="')[1].split('"')[0]
        for line in lines
        if line.startswith("running_managed_controllers{") and line.endswith(" 1")
    }


def needing(kind):
    return {
        name
        for name, controller in CONTROLLERS.items()
        if kind in {
            resource.group_resource
            for resource in {*controller.wakes, *controller.indices} - set(controller.optional)
        }
    }  # fmt: skip


async def story(kind, turn, *, may_hold_content=True, heals_in_seconds=HEALING_SECONDS):
    """`turn`: the dial. A namespace does not go where a kind may hold something in it."""
    faults = Faults(virtual_time.LoopClock())
    turn(faults)
    plane = ControlPlane(
        lambda: all_controllers(SETTINGS), around=lambda client: FaultyClient(client, faults)
    )
    async with plane:
        await begin(plane.client)
        await asyncio.sleep(100)
        assert running(plane) == CONTROLLERS.keys() - needing(kind)
        for outcome, kinds in OUTCOMES.items():
            blocked = kind in kinds or (outcome is namespace_is_gone and may_hold_content)
            assert blocked or await outcome(plane.client), outcome.__name__
        faults.end()
        await asyncio.sleep(heals_in_seconds)
        assert running(plane) == CONTROLLERS.keys()
        for outcome in OUTCOMES:
            assert await outcome(plane.client), outcome.__name__


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_that_is_refused_holds_up_only_who_needs_it(kind):
    """[L3]"""

    def turn(faults):
        faults.refusals[kind] = Forbidden("not for you")

    virtual_time.run(story(kind, turn))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if ".k8s.io" in kind or "." not in kind])
def test_a_kind_that_nobody_serves_holds_up_only_who_needs_it(kind):
    """[L3] An older server, or one that comes up."""

    def turn(faults):
        faults.refusals[kind] = UnknownPath("404 page not found")

    virtual_time.run(story(kind, turn, may_hold_content=False))


SLOW = ("configmaps", "nodes", "pods", "resourceclaims.resource.k8s.io", "secrets", "services")


@pytest.mark.parametrize("kind", SLOW)
def test_a_kind_that_is_slow_to_come_holds_up_only_who_needs_it(kind):
    def turn(faults):
        faults.delays[kind] = 250.0

    virtual_time.run(story(kind, turn, heals_in_seconds=300.0))


@pytest.mark.parametrize("error", [UnknownPath("404 page not found"), Forbidden("no")], ids=str)
def test_an_owner_of_a_kind_that_is_not_shown_is_not_taken_for_gone(error):
    async def told():
        faults = Faults(virtual_time.LoopClock())
        faults.refusals["configmaps"] = error
        plane = ControlPlane(
            lambda: all_controllers(SETTINGS), around=lambda client: FaultyClient(client, faults)
        )
        async with plane:
            client = plane.client
            owner = named_object("v1", "ConfigMap", "owner")
            await create_owned(client, await client.create(CONFIG_MAPS, owner, "default"))
            await asyncio.sleep(300)
            assert not await owned_is_gone(client)
            faults.end()
            await asyncio.sleep(HEALING_SECONDS)
            assert not await owned_is_gone(client)
            await client.delete(CONFIG_MAPS, "default", "owner")
            await asyncio.sleep(1)
            assert await owned_is_gone(client)

    virtual_time.run(told())
