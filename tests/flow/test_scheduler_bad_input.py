"""[S2] [S4] Nonsense from outside: it is told, and the rest goes on."""

import random

import pytest

from sampan.api.resources import (
    DEVICE_CLASSES,
    NODES,
    PERSISTENT_VOLUMES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SERVICES,
)
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.scheduler.loop import Scheduler
from tests.support import virtual_time
from tests.support.generators.device_objects import device_class, device_request, resource_claim
from tests.support.virtual_time import LoopClock
from tests.support.worlds.small_api import SmallApi

HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NONSENSE_NODES = {
    "quantities": {"status": {"allocatable": {"cpu": "lots", "memory": "-5", "pods": "many"}}},
    "negative": {"status": {"allocatable": {"cpu": "-4", "memory": "8Gi", "pods": "10"}}},
    "huge": {"status": {"allocatable": {"cpu": "9e300", "memory": "9E", "pods": "10"}}},
    "nothing": {"status": None, "spec": None},
    "images": {"status": {"images": [{"names": None}, {"sizeBytes": 10**30, "names": ["x"]}]}},
    "taints": {"spec": {"taints": [{}, {"key": "a"}]}},
}


def story(test):
    async def main():
        clock = LoopClock()
        api = SmallApi(clock)
        scheduler = Scheduler(api, clock=clock, rng=random.Random(1), metrics=Metrics())
        tasks = Tasks("test")
        running = tasks.start("scheduler", scheduler.run())
        try:
            await test(api, clock)
            assert not running.done(), "the scheduler has stopped"
        finally:
            await tasks.stop()

    virtual_time.run(main())


async def the_rest_goes_on(api, clock):
    await api.node("good")
    await api.pod("usual", cpu="1")
    await clock.sleep(20)
    assert "usual" in dict(api.bindings)


@pytest.mark.parametrize("kind", NONSENSE_NODES)
def test_a_node_that_says_nonsense(kind):
    async def test(api, clock):
        odd = {"kind": "Node", "metadata": {"name": "odd"}, **NONSENSE_NODES[kind]}
        await api.create(NODES, odd)
        await api.pod("before", cpu="1")
        await clock.sleep(1)
        if kind != "huge":
            assert api.bindings == []
            assert api.pod_scheduled("before")["message"].startswith("0/1 nodes are available: 1 ")
        await the_rest_goes_on(api, clock)
        assert dict(api.bindings)["before"] in ("good", "odd")

    story(test)


def near(app, kind="podAffinity", key=HOST):
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {kind: {REQUIRED: [term]}}


def test_pods_that_each_want_the_other_there_first():
    """Neither is the first of its kind: both wait, and are told."""

    async def test(api, clock):
        await api.node("n")
        await api.patch(NODES, "", "n", {"metadata": {"labels": {HOST: "n"}}})
        await api.pod("a", labels={"app": "a"}, affinity=near("b"))
        await api.pod("b", labels={"app": "b"}, affinity=near("a"))
        await clock.sleep(30)
        assert api.bindings == []
        for name in "ab":
            assert "1 node(s) didn't match pod affinity rules" in api.pod_scheduled(name)["message"]
        await the_rest_goes_on(api, clock)
        # A third one breaks the circle.
        await api.pod("c", labels={"app": "b"}, nodeSelector={HOST: "n"})
        await clock.sleep(30)
        assert {"a", "b"} <= {name for name, _ in api.bindings}

    story(test)


def test_a_pod_that_wants_to_be_near_and_away_from_the_same():
    async def test(api, clock):
        await api.node("n")
        await api.patch(NODES, "", "n", {"metadata": {"labels": {HOST: "n"}}})
        await api.pod("there", labels={"app": "x"})
        await clock.sleep(1)
        both = {**near("x"), **near("x", "podAntiAffinity")}
        await api.pod("torn", labels={"app": "y"}, affinity=both)
        await clock.sleep(5)
        assert (
            "1 node(s) didn't match pod anti-affinity rules" in api.pod_scheduled("torn")["message"]
        )
        await the_rest_goes_on(api, clock)

    story(test)


@pytest.mark.parametrize(
    "spec",
    [
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}}},
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["x"]}]}]}}}},
        {"nodeSelector": {"no-such-label": ""}},
        {"topologySpreadConstraints": [
            {"topologyKey": "", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": None}]},
        {"containers": [{"name": "c", "resources": {"requests": {"cpu": "9E"}}}]},
        {"priority": -(2**31), "containers": [
            {"name": "c", "resources": {"requests": {"example.com/x": "1"}}}]},
        {"schedulerName": "default-scheduler", "nodeSelector": {"a": "b"}, "tolerations": [
            {"operator": "Sometimes"}]},
    ],
)  # fmt: skip
def test_a_pod_that_asks_for_the_impossible(spec):
    async def test(api, clock):
        await api.node("n")
        await api.pod("odd", **spec)
        await clock.sleep(5)
        assert ("odd", "n") not in api.bindings
        assert api.pod_scheduled("odd")["reason"] == "Unschedulable"
        await the_rest_goes_on(api, clock)

    story(test)


def test_objects_beside_the_pod_that_say_nonsense():
    async def test(api, clock):
        await api.create(SERVICES, {"metadata": {"name": "s"}, "spec": None}, "default")
        volume = {"metadata": {"name": "v"}, "spec": {"capacity": {"storage": "?"}, "claimRef": {}}}
        await api.create(PERSISTENT_VOLUMES, volume)
        await api.create(RESOURCE_SLICES, {"metadata": {"name": "s"}, "spec": {"devices": [{}]}})
        await api.create(DEVICE_CLASSES, device_class("gpu", "device.", "1 +"))
        made = resource_claim("c", [{"name": "r", "exactly": device_request()}])
        await api.create(RESOURCE_CLAIMS, made, "default")
        await api.node("n")
        await api.pod("odd", resourceClaims=[{"name": "c", "resourceClaimName": "c"}])
        await clock.sleep(5)
        assert "1 cannot allocate all claims" in api.pod_scheduled("odd")["message"]
        there = {"driver": "d", "pool": {"name": "p"}, "nodeName": "n", "devices": [{"name": "x"}]}
        await api.create(RESOURCE_SLICES, {"metadata": {"name": "t"}, "spec": there})
        await clock.sleep(20)
        assert "class gpu: selector #0: CEL compile error" in api.pod_scheduled("odd")["message"]
        await the_rest_goes_on(api, clock)

    story(test)


def test_a_pod_whose_node_is_nowhere():
    async def test(api, clock):
        await api.pod("lost", nodeName="nowhere", cpu="1")
        await the_rest_goes_on(api, clock)
        assert api.find(PODS, "default", "lost")["spec"]["nodeName"] == "nowhere"

    story(test)
