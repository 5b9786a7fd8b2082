"""Workloads reach their fixed point from wherever arbitrary changes and restarts left them."""

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.errors import NotFound
from sampan.api.resources import DEPLOYMENTS, JOBS, PODS, REPLICA_SETS, STATEFUL_SETS
from sampan.controllers.catalog import ControllerSettings, all_controllers
from sampan.controllers.controller import selected
from sampan.testing import virtual_time
from sampan.testing.control_plane import ControlPlane

NAMES = ["deployment", "replicaset", "statefulset", "job", "garbagecollector"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("scale"), st.integers(0, 5)),
        st.tuples(st.just("image"), st.sampled_from(["v1", "v2", "v3"])),
        st.tuples(st.just("ready"), st.integers(0, 3)),
        st.tuples(st.just("fail"), st.integers(0, 3)),
        st.tuples(st.just("delete"), st.integers(0, 3)),
        st.tuples(st.just("wait"), st.sampled_from([0.0, 0.01, 1.0, 30.0])),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=12,
)


def controllers():
    return selected(all_controllers(ControllerSettings(root_ca="PEM")), NAMES)


class World:
    def __init__(self, plane, resource):
        self.plane, self.resource = plane, resource
        self.replicas, self.image = 2, "v1"

    async def create(self, **spec):
        await self.plane.client.create(
            self.resource,
            {
                "apiVersion": self.resource.api_version,
                "kind": self.resource.kind,
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {
                    "replicas": 2,
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {
                        "metadata": {"labels": {"app": "web"}},
                        "spec": {"containers": [{"name": "c", "image": "v1"}]},
                    },
                    **spec,
                },
            },
        )

    async def do(self, verb, value):
        match verb:
            case "scale":
                self.replicas = value
                await self.change({"replicas": value})
            case "image":
                self.image = value
                containers = [{"name": "c", "image": value}]
                await self.change({"template": {"spec": {"containers": containers}}})
            case "ready":
                await self.set_phase("Running", value)
            case "fail":
                await self.set_phase("Failed", value)
            case "delete":
                for pod in (await self.pods())[:value]:
                    with suppress(NotFound):
                        await self.plane.client.delete(PODS, "default", pod["metadata"]["name"])
            case "wait":
                await asyncio.sleep(value)
            case "restart":
                await self.plane.stop_controllers()
                await self.plane.start_controllers()

    async def change(self, spec):
        await self.plane.client.patch(
            self.resource, "default", "web", {"spec": spec}, patch_type="merge"
        )

    async def pods(self):
        listed = (await self.plane.client.list(PODS, "default")).items
        return [one for one in listed if "deletionTimestamp" not in one["metadata"]]

    async def set_phase(self, phase, most):
        status = "True" if phase == "Running" else "False"
        stamp = self.plane.time_text()
        ready = {"type": "Ready", "status": status, "lastTransitionTime": stamp}
        patch = {"status": {"phase": phase, "conditions": [ready]}}
        waiting = [pod for pod in await self.pods() if pod["status"].get("phase") == "Pending"]
        for pod in waiting[:most]:
            name = pod["metadata"]["name"]
            with suppress(NotFound):  # deleted in this very moment
                await self.plane.client.patch(PODS, "default", name, patch, subresource="status")
        return len(waiting)

    async def at_rest(self):
        """Pods become ready until nothing happens any more."""
        for _ in range(60):
            await self.plane.settled(seconds=1)
            if not await self.set_phase("Running", 100):
                return
        raise AssertionError("it never comes to rest")

    async def living(self):
        return [one for one in await self.pods() if one["status"]["phase"] != "Failed"]


def told(resource, steps, check, **spec):
    async def story():
        async with ControlPlane(controllers) as plane:
            world = World(plane, resource)
            await world.create(**spec)
            for verb, value in steps:
                await world.do(verb, value)
            await world.at_rest()
            await check(world)
            before = plane.store.revision
            await plane.settled(seconds=1)
            assert plane.store.revision == before, "it writes although nothing changes"

    virtual_time.run(story())


async def check_pods(world):
    living = await world.living()
    assert len(living) == world.replicas
    assert {one["spec"]["containers"][0]["image"] for one in living} <= {world.image}
    found = (await world.plane.client.get(world.resource, "default", "web"))["status"]
    for field in ("readyReplicas", "updatedReplicas", "availableReplicas"):
        assert found.get(field, 0) == world.replicas, field


@pytest.mark.slow
@given(STEPS)
@settings(max_examples=50, deadline=None)
def test_a_deployment_always_gets_there(steps):
    async def check(world):
        await check_pods(world)
        sets = (await world.plane.client.list(REPLICA_SETS, "default")).items
        assert sum(one["spec"]["replicas"] > 0 for one in sets) <= 1
        templates = [str(one["spec"]["template"]["spec"]) for one in sets]
        assert len(set(templates)) == len(templates), "two sets for one template"

    told(DEPLOYMENTS, steps, check)


@pytest.mark.slow
@given(STEPS, st.sampled_from(["OrderedReady", "Parallel"]))
@settings(max_examples=50, deadline=None)
def test_a_stateful_set_always_gets_there(steps, policy):
    async def check(world):
        await check_pods(world)
        names = {one["metadata"]["name"] for one in await world.living()}
        assert names == {f"web-{number}" for number in range(world.replicas)}

    told(STATEFUL_SETS, steps, check, serviceName="web", podManagementPolicy=policy)


JOB_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("succeed"), st.integers(0, 3)),
        st.tuples(st.just("fail"), st.integers(0, 1)),
        st.tuples(st.just("wait"), st.sampled_from([0.0, 0.01, 30.0])),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=12,
)


@pytest.mark.slow
@given(JOB_STEPS, st.integers(1, 6), st.integers(1, 4), st.booleans())
@settings(max_examples=50, deadline=None)
def test_a_job_counts_every_completion_once(steps, completions, parallelism, indexed):
    async def story():
        async with ControlPlane(controllers) as plane:
            world = World(plane, JOBS)
            await world.create(**job_spec(completions, parallelism, indexed))
            ended = {"Succeeded": 0, "Failed": 0}

            async def end(phase, most):
                waiting = [one for one in await world.pods() if one["status"]["phase"] == "Pending"]
                for pod in waiting[:most]:
                    name = pod["metadata"]["name"]
                    patch = {"status": {"phase": phase}}
                    await plane.client.patch(PODS, "default", name, patch, subresource="status")
                    ended[phase] += 1

            for verb, value in steps:
                match verb:
                    case "succeed":
                        await end("Succeeded", value)
                    case "fail":
                        await end("Failed", value)
                    case _:
                        await world.do(verb, value)
            for _ in range(40):
                await plane.settled()
                status = (await plane.client.get(JOBS, "default", "web"))["status"]
                if status.get("completionTime"):
                    break
                await end("Succeeded", 1)
                await plane.settled(seconds=60)
            kinds = {one["type"] for one in status["conditions"] if one["status"] == "True"}
            assert "Complete" in kinds
            assert status["succeeded"] == ended["Succeeded"] == completions
            assert status.get("failed", 0) == ended["Failed"]
            assert status["uncountedTerminatedPods"] == {}
            for pod in await world.pods():
                assert not pod["metadata"].get("finalizers")

    virtual_time.run(story())


def job_spec(completions, parallelism, indexed):
    return {
        "completions": completions,
        "parallelism": min(parallelism, completions),
        "completionMode": "Indexed" if indexed else "NonIndexed",
        "backoffLimit": 100,
        "replicas": None,
        "selector": None,
        "template": {
            "spec": {"containers": [{"name": "c", "image": "v1"}], "restartPolicy": "Never"}
        },
    }
