"""What a node survives: its agent restarted, the API gone, the runtime gone. Virtual time."""

import asyncio

import pytest

from sampan.api.errors import Forbidden, UnknownPath
from sampan.api.resources import NODES, PODS
from sampan.kubelet.container_spec.generate import NodeFacts, sandbox_spec
from sampan.kubelet.contracts.runtime import ContainerState
from tests.support import virtual_time
from tests.support.worlds.simulated_node import SimulatedNode


def ready_condition(node):
    return next(one for one in node.node()["status"]["conditions"] if one["type"] == "Ready")


def test_a_restarted_agent_touches_nothing_that_runs():
    """[N21]"""

    async def story():
        async with SimulatedNode() as node:
            await node.make()
            await node.make("crashes", script={"exit-after-seconds": "1", "exit-code": "1"})
            await node.until_phase("Running")
            await node.until(lambda: node.container("crashes").get("restartCount") == 2)
            await node.settle()
            before, status = await node.observed(), node.status()
            await node.stop()
            await asyncio.sleep(5)
            await node.start()
            await asyncio.sleep(1)
            await node.settle()
            assert await node.observed() == before
            assert node.status() == status
            assert node.container("crashes")["restartCount"] == 2
            # The pause goes on where it was: 20 s after the end, not at once and not 10 s.
            await node.until(lambda: node.container("crashes")["restartCount"] == 3)
            assert node.clock.monotonic() > 30

    virtual_time.run(story())


def test_pods_that_were_deleted_meanwhile_are_cleaned_up_after_a_restart():
    """[N21] [N3]"""

    async def story():
        async with SimulatedNode() as node:
            for name in ("asked", "forced", "stays"):
                await node.make(name)
                await node.until_phase("Running", name)
            await node.settle()
            await node.stop()
            await node.delete("asked")
            await node.delete("forced", grace_seconds=0)
            await asyncio.sleep(1)
            assert len(await node.runtime.pods()) == 3
            await node.start()
            await node.until(lambda: not node.has("asked"))
            await asyncio.sleep(3)
            await node.settle()
            assert [one.name for one in await node.runtime.pods()] == ["stays"]
            assert node.container("stays")["restartCount"] == 0

    virtual_time.run(story())


def test_a_restart_in_the_middle_of_a_start_loses_nothing():
    """[N21]"""

    async def story():
        async with SimulatedNode() as node:
            await node.make(script={"start-seconds": "10"})
            await asyncio.sleep(5)
            await node.stop()
            await node.start()
            await node.until_phase("Running")
            assert node.container()["restartCount"] == 0
            seen = await node.observed()
            assert seen is not None
            assert len(seen.sandboxes) == 1
            assert [one.state for one in seen.containers] == [ContainerState.RUNNING]

    virtual_time.run(story())


def test_nothing_is_cleaned_up_before_the_source_has_spoken():
    """[N3]"""

    async def story():
        async with SimulatedNode() as node:
            await node.make()
            await node.until_phase("Running")
            await node.settle()
            await node.stop()
            node.api.go_down()
            await node.start(wait=False)
            await asyncio.sleep(60)
            seen = await node.observed()
            assert seen is not None
            assert seen.containers[0].state is ContainerState.RUNNING
            node.api.come_back()
            await asyncio.sleep(60)
            assert await node.observed() == seen

    virtual_time.run(story())


def test_statuses_are_written_when_the_api_is_back():
    """[N14] never lost across an outage, and pods go on meanwhile"""

    async def story():
        async with SimulatedNode() as node:
            await node.make(restartPolicy="Never", script={"exit-after-seconds": "10"})
            await node.until_phase("Running")
            node.api.go_down()
            await asyncio.sleep(60)
            assert node.status()["phase"] == "Running"
            node.api.come_back()
            await node.until_phase("Succeeded", seconds=30)

    virtual_time.run(story())


def test_a_foreign_change_of_the_status_is_overwritten():
    """[N14] the kubelet is the truth"""

    async def story():
        async with SimulatedNode() as node:
            await node.make()
            await node.until_phase("Running")
            await node.settle()
            mine = {one["type"]: one["status"] for one in node.status()["conditions"]}
            lie = {
                "status": {
                    "phase": "Pending",
                    "conditions": [
                        {"type": "Ready", "status": "False"},
                        {"type": "example.com/theirs", "status": "True"},
                    ],
                }
            }
            await node.api.patch(PODS, "default", "web", lie, subresource="status")
            await node.until_phase("Running")
            after = {one["type"]: one["status"] for one in node.status()["conditions"]}
            assert after == {**mine, "example.com/theirs": "True"}

    virtual_time.run(story())


def test_a_watch_that_breaks_or_is_too_old_loses_no_pod():
    """[N1]"""

    async def story():
        async with SimulatedNode() as node:
            await node.make("one")
            await node.until_phase("Running", "one")
            node.api.break_watches()
            await node.make("two")
            await node.delete("one", grace_seconds=0)
            node.api.compact()
            await node.until_phase("Running", "two")
            await asyncio.sleep(20)
            assert [one.name for one in await node.runtime.pods()] == ["two"]

    virtual_time.run(story())


def test_a_runtime_that_goes_down_makes_the_node_not_ready_until_it_is_back():
    """[N4] [N17]"""

    async def story():
        async with SimulatedNode() as node:
            await node.make()
            await node.until_phase("Running")
            node.runtime.go_down("connection refused")
            await node.until(lambda: ready_condition(node)["status"] == "False", 1.0)
            assert ready_condition(node)["reason"] == "KubeletNotReady"
            assert "connection refused" in ready_condition(node)["message"]
            assert not node.kubelet.node_ready.is_set()
            await node.make("later")
            await asyncio.sleep(60)
            assert node.status("later")["phase"] == "Pending"
            node.runtime.come_back()
            await node.until(lambda: ready_condition(node)["status"] == "True", 6.0)
            await node.until_phase("Running", "later", 12.0)
            assert node.container()["restartCount"] == 0

    virtual_time.run(story())


def test_an_exit_that_no_event_told_of_is_found_by_looking():
    """[R2] relist is the safety net"""

    async def story():
        async with SimulatedNode() as node:
            await node.make(restartPolicy="Never")
            await node.until_phase("Running")
            await node.settle()
            seen = await node.observed()
            assert seen is not None
            listeners, node.runtime._listeners = node.runtime._listeners, set()
            node.runtime.crash(seen.containers[0].id, exit_code=0)
            node.runtime._listeners = listeners
            await node.until_phase("Succeeded", seconds=11.0)

    virtual_time.run(story())


def test_a_deleted_node_registers_again():
    """[N17]"""

    async def story():
        async with SimulatedNode(status_report_seconds=30.0) as node:
            await node.api.delete(NODES, "", "node-1")
            await node.until(lambda: node.api.find(NODES, "", "node-1") is not None, 31.0)
            assert ready_condition(node)["status"] == "True"

    virtual_time.run(story())


def test_an_idle_node_writes_nothing_but_its_lease():
    """[N4] [N17] between events nothing runs but the stated timers"""

    async def story():
        async with SimulatedNode() as node:
            for number in range(20):
                await node.make(f"pod-{number}")
            await asyncio.sleep(5)
            await node.settle()
            tasks = len(asyncio.all_tasks())
            assert tasks < 15  # none of them belongs to a pod
            node.api.calls.clear()
            node.runtime.calls.clear()
            await asyncio.sleep(3600)
            writes = [call for call in node.api.calls if not call.startswith(("list", "watch"))]
            kinds = set(writes)
            assert kinds == {"patch leases", "patch status nodes"}
            assert writes.count("patch status nodes") == 12
            assert 340 <= writes.count("patch leases") <= 360
            assert node.runtime.calls.keys() <= {"info", "pods", "images"}
            assert node.runtime.calls["pods"] <= 361

    virtual_time.run(story())


def test_a_restarted_agent_never_shows_its_node_as_not_ready():
    """[N17] [N21]"""

    async def story():
        async with SimulatedNode() as node:
            await node.settle()
            since = ready_condition(node)["lastTransitionTime"]
            await asyncio.sleep(5)
            for _ in range(3):
                await node.stop()
                await node.start()
                await asyncio.sleep(5)
            assert ready_condition(node)["status"] == "True"
            assert ready_condition(node)["lastTransitionTime"] == since

    virtual_time.run(story())


def test_a_node_whose_runtime_is_not_there_registers_and_says_why():
    """[N17]"""

    async def story():
        node = SimulatedNode()
        node.runtime.go_down("no such file or directory")
        await node.start(wait=False)
        await asyncio.sleep(2)
        assert ready_condition(node)["status"] == "False"
        assert "no such file or directory" in ready_condition(node)["message"]
        node.runtime.come_back()
        await node.until(lambda: ready_condition(node)["status"] == "True", 2.0)
        await node.__aexit__(None, None, None)

    virtual_time.run(story())


def test_what_surfaces_of_a_pod_that_has_ended_is_ended():
    """[N7] a start that was cancelled may still succeed later"""

    async def story():
        async with SimulatedNode() as node:
            await node.make(restartPolicy="Never", script={"exit-after-seconds": "1"})
            await node.until_phase("Succeeded")
            await node.settle()
            pod = node.pod()
            place = NodeFacts("node-1", root_dir="", log_root="")
            await node.runtime.run_sandbox(sandbox_spec(pod, attempt=1, node=place))
            await asyncio.sleep(15)
            seen = await node.observed()
            assert seen is not None
            assert not any(one.ready for one in seen.sandboxes)
            assert node.status()["phase"] == "Succeeded"

    virtual_time.run(story())


def test_a_mirror_pod_without_its_static_pod_is_removed_and_never_run():
    """[N5]"""

    async def story():
        async with SimulatedNode() as node:
            await node.make(annotations={"kubernetes.io/config.mirror": "hash"})
            await node.until(lambda: not node.has())
            assert "run_sandbox" not in node.runtime.calls

    virtual_time.run(story())


def test_a_completed_pod_whose_containers_were_collected_keeps_its_status():
    """[N14] [N21]"""

    async def story():
        async with SimulatedNode() as node:
            script = {"exit-after-seconds": "1", "exit-code": "3"}
            await node.make(restartPolicy="Never", script=script)
            await node.until_phase("Failed")
            await node.settle()
            before = node.status()
            await node.stop()
            seen = await node.observed()
            assert seen is not None
            await node.runtime.remove_sandbox(seen.sandboxes[0].id)
            await node.start()
            await asyncio.sleep(5)
            assert node.status() == before

    virtual_time.run(story())


def test_a_pod_that_cannot_be_cleaned_up_says_so_and_goes_when_it_can():
    """Nothing is tried for ever in silence."""

    async def story():
        async with SimulatedNode() as node:
            await node.make(script={"fail": "remove_sandbox:3:the shim is stuck"})
            await node.until_phase("Running")
            await node.delete()
            await node.until(lambda: not node.has())
            await asyncio.sleep(60)
            await node.settle()
            assert ("FailedKillPod", "error cleaning up pod: the shim is stuck") in node.events()
            assert await node.observed() is None

    virtual_time.run(story())


@pytest.mark.parametrize("error", [UnknownPath("no such kind"), Forbidden("not for you")], ids=str)
@pytest.mark.parametrize("plural", ["leases", "events", "runtimeclasses", "configmaps", "secrets"])
def test_a_kind_that_the_api_lacks_or_refuses_holds_up_nobody_who_needs_it_not(plural, error):
    """An older server, or a stricter one: the node runs what it can, and goes on when it may."""

    async def story():
        node = SimulatedNode()
        node.api.without[plural] = error
        async with node:
            await node.make(automountServiceAccountToken=False)
            await node.until_phase("Running")
            await asyncio.sleep(60)
            assert ready_condition(node)["status"] == "True"
            await node.delete()
            await node.until(lambda: not node.has())
            del node.api.without[plural]
            await asyncio.sleep(60)
            await node.make("later")
            await node.until_phase("Running", "later")

    virtual_time.run(story())


@pytest.mark.parametrize("error", [UnknownPath("no such kind"), Forbidden("not for you")], ids=str)
@pytest.mark.parametrize("plural", ["pods", "nodes"])
def test_what_runs_goes_on_while_the_api_shows_no_pods_or_nodes(plural, error):
    """[N3] That a kind is not shown does not say that its objects are gone."""

    async def story():
        async with SimulatedNode() as node:
            await node.make()
            await node.until_phase("Running")
            before = (await node.observed()).sandboxes
            node.api.without[plural] = error
            node.api.break_watches()
            await asyncio.sleep(300)
            assert (await node.observed()).sandboxes == before
            del node.api.without[plural]
            await asyncio.sleep(60)
            assert (await node.observed()).sandboxes == before
            await node.make("later")
            await node.until_phase("Running", "later")
            assert ready_condition(node)["status"] == "True"

    virtual_time.run(story())


@pytest.mark.parametrize("plural", ["pods", "nodes"])
def test_a_node_that_needs_a_kind_comes_up_when_it_is_shown(plural):
    async def story():
        async with SimulatedNode() as node:
            await node.stop()
            node.api.remove(NODES, "", node.settings.node_name)
            node.api.without[plural] = Forbidden("not for you")
            await node.start(wait=False)
            await asyncio.sleep(100)
            node.api.without.clear()
            await asyncio.sleep(60)
            await node.make()
            await node.until_phase("Running")
            assert ready_condition(node)["status"] == "True"

    virtual_time.run(story())
