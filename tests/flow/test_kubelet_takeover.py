"""A simulated node whose process ended: the next one goes on from the pods' statuses."""

import asyncio

from sampan.api.objects import revision_of
from sampan.api.resources import PODS
from tests.support import virtual_time
from tests.support.worlds.simulated_node import SimulatedNode

ASKING = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "10m"}}}
PROBED = {
    "name": "main",
    "image": "app:2",
    "readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 5},
    "startupProbe": {"exec": {"command": ["true"]}, "periodSeconds": 5},
}
STEADY = {
    "plain": {},
    "asking": {"containers": [ASKING, {"name": "other", "image": "app:3"}]},
    "host": {"hostNetwork": True},
    "probed": {"containers": [PROBED]},
    "staged": {
        "initContainers": [
            {"name": "first", "image": "init:1"},
            {"name": "side", "image": "side:1", "restartPolicy": "Always"},
        ],
        "script": {"exit-after-seconds.first": "1"},
    },
    "done": {"restartPolicy": "Never", "script": {"exit-after-seconds": "1", "log": "bye"}},
    "failed": {
        "restartPolicy": "Never",
        "script": {"exit-after-seconds": "1", "exit-code": "3", "log": "bye"},
    },
    "revived": {"script": {"exit-after-seconds": "700", "exit-code": "1"}},
}


def revisions(node):
    return {pod["metadata"]["name"]: revision_of(pod) for pod in node.api.objects(PODS)}


async def ran_for_a_while(node):
    """All of them are as they stay for a while: one has ended and was started again."""
    for name, changes in STEADY.items():
        await node.make(name, **changes)
    await node.until(lambda: node.status("done").get("phase") == "Succeeded")
    await node.until(lambda: node.status("failed").get("phase") == "Failed")
    await node.until(lambda: node.container("probed").get("ready"))
    await node.until(lambda: node.container("revived").get("restartCount") == 1, 1000.0)
    await node.until(lambda: "running" in node.container("revived")["state"])
    await node.settle()


def test_a_new_process_writes_nothing_of_pods_that_go_on():
    async def story():
        async with SimulatedNode() as node:
            await ran_for_a_while(node)
            before, own = revisions(node), revision_of(node.node())
            await node.leave_to_new_process()
            await asyncio.sleep(30)
            await node.start()
            await asyncio.sleep(10)
            await node.settle()
            assert revisions(node) == before
            assert revision_of(node.node()) == own, "the node is as its status says"
            assert node.container("revived")["restartCount"] == 1

    virtual_time.run(story())


def test_addresses_and_ids_of_the_old_process_are_not_given_again():
    async def story():
        async with SimulatedNode() as node:
            await node.make("old")
            await node.until_phase("Running", "old")
            await node.settle()
            await node.leave_to_new_process()
            await node.start()
            for number in range(3):
                await node.make(f"new-{number}")
                await node.until_phase("Running", f"new-{number}")
            pods = node.api.objects(PODS)
            for shown in (
                [pod["status"]["podIP"] for pod in pods],
                [pod["status"]["containerStatuses"][0]["containerID"] for pod in pods],
            ):
                assert len({*shown}) == 4

    virtual_time.run(story())


def test_what_was_taken_over_lives_on_as_its_pod_and_its_script_say():
    async def story():
        async with SimulatedNode() as node:
            await node.make("ends", restartPolicy="Never", script={"exit-after-seconds": "100"})
            await node.make("leaves")
            await node.make("changes")
            for name in ("ends", "leaves", "changes"):
                await node.until_phase("Running", name)
            await node.settle()
            began = node.clock.monotonic()
            await node.leave_to_new_process()
            await asyncio.sleep(50)
            await node.delete("leaves")
            body = {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}
            await node.api.patch(PODS, "default", "changes", body)
            await node.start()
            await node.until(lambda: not node.has("leaves"))
            await node.until(lambda: node.container("changes")["image"] == "app:2")
            assert node.container("changes")["restartCount"] == 1
            await node.until_phase("Succeeded", "ends")
            assert 99 < node.clock.monotonic() - began < 102
            assert node.container("ends")["restartCount"] == 0

    virtual_time.run(story())


def test_a_crash_loop_goes_on_where_it_was():
    async def story():
        async with SimulatedNode() as node:
            await node.make(script={"exit-after-seconds": "1", "exit-code": "1"})
            await node.until(lambda: node.container().get("restartCount") == 3)
            await node.until(lambda: "waiting" in node.container()["state"])
            await node.settle()
            shown = node.container()
            await node.leave_to_new_process()
            await node.start()
            await node.until(lambda: node.container() == shown)
            await node.until(lambda: node.container()["restartCount"] == 4)
            await node.delete()
            await node.until(lambda: not node.has())

    virtual_time.run(story())


def test_a_pod_that_had_not_begun_is_started():
    async def story():
        async with SimulatedNode() as node:
            await node.make(script={"sandbox-seconds": "5"})
            await asyncio.sleep(1)
            await node.leave_to_new_process()
            await node.start()
            await node.until_phase("Running")
            assert node.container()["restartCount"] == 0

    virtual_time.run(story())


def test_looking_at_everything_again_makes_nothing_anew():
    async def story():
        async with SimulatedNode() as node:
            await node.make()
            await node.until_phase("Running")
            await node.settle()
            before = await node.observed()
            assert await node.observed() is before
            node.runtime.crash(before.containers[0].id)
            assert await node.observed() is not before

    virtual_time.run(story())
