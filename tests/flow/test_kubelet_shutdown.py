"""Graceful node shutdown, and the end of those who make room. Virtual time."""

import asyncio

from sampan.core.tasks import Tasks
from sampan.kubelet.node.shutdown_steps import steps_of
from tests.support import virtual_time
from tests.support.worlds.simulated_node import SimulatedNode

MESSAGE = "Pod was terminated in response to imminent node shutdown."
CRITICAL = 2_000_001_000


def condition(conditions, kind):
    found = [one for one in conditions if one["type"] == kind]
    return {key: found[0].get(key) for key in ("status", "reason", "message")} if found else None


def test_pods_end_in_the_order_of_their_importance_and_say_why():
    """[N17]"""

    async def story():
        async with SimulatedNode(shutdown=steps_of(30.0, 10.0)) as node:
            await node.make("web", script={"stop-seconds": "5"})
            await node.make("stuck", script={"stop-seconds": "never"})
            await node.make("critical", priority=CRITICAL, script={"stop-seconds": "2"})
            for name in ("web", "stuck", "critical"):
                await node.until_phase("Running", name)
            began = node.clock.monotonic()
            down = Tasks("story").start("shutdown", node.kubelet.shut_down())
            await asyncio.sleep(0.5)
            ready = condition(node.node()["status"]["conditions"], "Ready")
            assert ready == {
                "status": "False", "reason": "KubeletNotReady", "message": "node is shutting down",
            }  # fmt: skip
            await node.make("late")
            await node.until_phase("Failed", "late")
            assert node.status("late")["reason"] == "NodeShutdown"
            refused = "Pod was rejected as the node is shutting down."
            assert node.status("late")["message"] == f"Pod was rejected: {refused}"
            assert ("NodeShutdown", refused) in node.events("late")
            await asyncio.sleep(7)
            assert node.status("web")["phase"] == "Failed"
            assert node.status("critical")["phase"] == "Running", "its turn has not come"
            await down
            assert 20 <= node.clock.monotonic() - began < 24
            for name in ("web", "stuck", "critical"):
                status = node.status(name)
                assert (status["phase"], status["reason"]) == ("Failed", "Terminated")
                assert status["message"] == MESSAGE
                assert condition(status["conditions"], "DisruptionTarget") == {
                    "status": "True", "reason": "TerminationByKubelet", "message": MESSAGE,
                }  # fmt: skip
            exits = node.container("stuck")["state"]["terminated"]["exitCode"]
            assert exits == 137, "its grace is the time of its group"

    virtual_time.run(story())


def test_a_pod_that_has_succeeded_stays_so():
    """[N14] [N17]"""

    async def story():
        async with SimulatedNode(shutdown=steps_of(10.0, 2.0)) as node:
            await node.make("done", restartPolicy="Never", script={"exit-after-seconds": "1"})
            await node.until_phase("Succeeded", "done")
            await node.kubelet.shut_down()
            assert node.status("done")["phase"] == "Succeeded"
            assert "reason" not in node.status("done")

    virtual_time.run(story())


def test_an_api_that_is_gone_holds_nobody_up():
    """[N17]"""

    async def story():
        async with SimulatedNode(shutdown=steps_of(30.0, 10.0)) as node:
            await node.make("web", script={"stop-seconds": "1"})
            await node.until_phase("Running", "web")
            node.api.go_down()
            began = node.clock.monotonic()
            await node.kubelet.shut_down()
            assert node.clock.monotonic() - began < 10
            pod = await node.observed("web")
            assert not any(one.state == "running" for one in pod.containers)
            node.api.come_back()

    virtual_time.run(story())


def test_a_critical_pod_waits_until_its_victim_has_ended():
    """[N5] Never do both hold the room."""

    def asking(cpu):
        resources = {"requests": {"cpu": cpu}}
        return [{"name": "main", "image": "app:1", "resources": resources}]

    async def story():
        async with SimulatedNode() as node:
            script = {"stop-seconds": "8"}
            await node.make("victim", containers=asking("3"), script=script)
            await node.until_phase("Running", "victim")
            await node.make("critical", containers=asking("2"), priority=CRITICAL)
            await asyncio.sleep(7)
            assert node.status("critical")["phase"] == "Pending"
            assert await node.observed("critical") is None, "nothing of it is there yet"
            await node.until_phase("Running", "critical")
            assert node.status("victim")["phase"] == "Failed"
            found = condition(node.status("victim")["conditions"], "DisruptionTarget")
            assert found["message"] == (
                "Pod was preempted by Kubelet to accommodate a critical pod."
            )

    virtual_time.run(story())
