"""All containers of a pod are restarted in place, on a simulated node. Virtual time."""

import pytest

from sampan.api import features
from sampan.api.features import Release
from tests.support import virtual_time
from tests.support.worlds.simulated_node import SimulatedNode

RULES = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}]
IMAGE = {"image": "app:1"}
MAIN = {"name": "main", **IMAGE}
WATCHER = {"name": "watcher", **IMAGE, "restartPolicy": "Never", "restartPolicyRules": RULES}
SIDE = {"name": "side", **IMAGE, "restartPolicy": "Always"}
SETUP = {"name": "setup", **IMAGE}
SCRIPT = {"exit-after-seconds.watcher": "30", "exit-code.watcher": "42,0"}


@pytest.fixture(autouse=True)
def _with_the_gate():
    with features.used(Release("1.37")):
        yield


def condition(status):
    kind = "AllContainersRestarting"
    return next(
        (one["status"] for one in status.get("conditions") or () if one["type"] == kind), ""
    )


def named(node, name):
    status = node.status()
    kinds = ("initContainerStatuses", "containerStatuses")
    return next(one for kind in kinds for one in status.get(kind) or () if one["name"] == name)


def test_an_exit_restarts_all_containers_in_the_same_sandbox():
    async def story():
        async with SimulatedNode() as node:
            await node.make(
                containers=[MAIN, WATCHER], initContainers=[SETUP, SIDE], restartPolicy="Never",
                script={**SCRIPT, "stop-seconds.main": "1"},
            )  # fmt: skip
            await node.until_phase("Running")
            await node.settle()
            assert condition(node.status()) == "False"
            before, ip = await node.observed(), node.status()["podIP"]
            await node.until(lambda: condition(node.status()) == "True")
            assert named(node, "watcher")["state"]["terminated"]["exitCode"] == 42
            await node.until(lambda: named(node, "watcher")["restartCount"] == 1)
            await node.until(lambda: "running" in named(node, "watcher")["state"])
            assert condition(node.status()) == "False"
            after = await node.observed()
            assert [one.id for one in after.sandboxes] == [one.id for one in before.sandboxes]
            assert node.status()["podIP"] == ip
            there = {one.id for one in after.containers}
            assert there.isdisjoint(one.id for one in before.containers)
            for name in ("main", "setup", "side", "watcher"):
                told = named(node, name)
                assert told["restartCount"] == 1
                assert told["lastState"]["terminated"]["reason"] == "RestartingAllContainers"
                assert told["lastState"]["terminated"]["exitCode"] == 137
            order = sorted(after.containers, key=lambda one: one.created_at)
            assert [one.name for one in order] == ["setup", "side", "main", "watcher"]
            assert {one.attempt for one in order} == {1}
            await node.settle()
            assert node.events().count(("Killing", "killing")) == 2  # main and side
            # This time it ends well, and is not begun again.
            await node.until(lambda: "terminated" in named(node, "watcher")["state"])
            await node.settle()
            assert named(node, "main")["restartCount"] == 1
            assert "running" in named(node, "main")["state"]

    virtual_time.run(story())


def test_an_agent_that_was_restarted_between_end_and_start_goes_on():
    async def story():
        async with SimulatedNode() as node:
            script = {**SCRIPT, "create-seconds.main": "5"}
            await node.make(containers=[MAIN, WATCHER], restartPolicy="Never", script=script)
            await node.until_phase("Running")
            await node.until(lambda: named(node, "main")["restartCount"] == 1)
            await node.stop()
            await node.start()
            await node.until(lambda: "running" in named(node, "watcher")["state"])
            for name in ("main", "watcher"):
                assert named(node, name)["restartCount"] == 1
            seen = await node.observed()
            assert sorted(one.name for one in seen.containers) == ["main", "watcher"]

    virtual_time.run(story())


def test_an_init_container_may_ask_for_it():
    async def story():
        async with SimulatedNode() as node:
            setup = SETUP | {"restartPolicy": "Never", "restartPolicyRules": RULES}
            script = {"exit-after-seconds.setup": "1", "exit-code.setup": "42,42,0"}
            first = {"name": "first", **IMAGE}
            await node.make(initContainers=[first, setup], restartPolicy="Never", script=script)
            await node.until_phase("Running")
            assert named(node, "first")["restartCount"] == 2
            assert named(node, "setup")["restartCount"] == 2
            assert named(node, "main")["restartCount"] == 0

    virtual_time.run(story())


def test_a_node_without_the_feature_refuses_such_a_pod():
    async def story():
        with features.used(Release("1.37", gates={"RestartAllContainersOnContainerExits": False})):
            async with SimulatedNode() as node:
                assert "RestartAllContainersOnContainerExits" not in (
                    node.node()["status"].get("declaredFeatures") or ()
                )
                await node.make(containers=[WATCHER])
                await node.until_phase("Failed")
                status = node.status()
                assert status["reason"] == "PodFeatureUnsupported"
                assert status["message"] == (
                    "Pod was rejected: Pod requires node features that are not available: "
                    "RestartAllContainersOnContainerExits"
                )

    virtual_time.run(story())


def test_a_node_declares_what_it_can():
    async def story():
        async with SimulatedNode() as node:
            declared = node.node()["status"]["declaredFeatures"]
            assert "RestartAllContainersOnContainerExits" in declared
            assert declared == sorted(declared)

    virtual_time.run(story())
