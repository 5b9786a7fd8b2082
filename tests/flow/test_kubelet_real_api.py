"""The node agent against the real API server: what the small API of the other stories takes for
granted. Virtual time, simulated runtime."""

import asyncio
import random
import tempfile

import pytest

from sampan.api.errors import NotFound
from sampan.api.resources import EVENTS, LEASES, NODES, PODS
from sampan.kubelet.context import NodeContext
from sampan.kubelet.kubelet import Kubelet
from sampan.kubelet.settings import KubeletSettings
from sampan.kubelet.simulated.runtime import SimulatedRuntime
from tests.support.worlds.control_plane import story
from tests.support.worlds.simulated_node import pod_named

pytestmark = pytest.mark.slow


class Node:
    """A simulated node in a control plane."""

    def __init__(self, plane):
        self.plane = plane
        self.runtime = SimulatedRuntime(clock=plane.clock)
        self._directory = tempfile.TemporaryDirectory()
        self._task = None

    async def __aenter__(self):
        self.kubelet = Kubelet(
            NodeContext(
                settings=KubeletSettings(
                    "node-1",
                    simulated=True,
                    root_dir=f"{self._directory.name}/root",
                    log_dir=f"{self._directory.name}/logs",
                ),
                client=self.plane.as_user("system:node:node-1"),
                runtime=self.runtime,
                clock=self.plane.clock,
                metrics=self.plane.metrics,
                rng=random.Random(1),
            )
        )
        self._task = asyncio.get_running_loop().create_task(self.kubelet.run())
        async with asyncio.timeout(10):
            await self.kubelet.node_ready.wait()
        return self

    async def __aexit__(self, *_):
        self._task.cancel()
        await asyncio.wait([self._task])
        self._directory.cleanup()

    async def make(self, name="web", **words):
        pod = pod_named(name, node_name="node-1", **words)
        return await self.plane.client.create(PODS, pod, "default")

    async def pod(self, name="web"):
        return await self.plane.client.get(PODS, "default", name)

    async def until_phase(self, phase, name="web"):
        async with asyncio.timeout(60):
            while (await self.pod(name))["status"].get("phase") != phase:
                await asyncio.sleep(0.01)

    async def until_gone(self, name="web"):
        async with asyncio.timeout(60):
            while True:
                try:
                    await self.pod(name)
                except NotFound:
                    return
                await asyncio.sleep(0.01)


@story(["namespace", "serviceaccount"])
async def test_a_node_registers_and_a_pod_lives_and_goes(plane):
    """[N8] [N14] [N17]"""
    async with Node(plane) as node:
        shown = await plane.client.get(NODES, "", "node-1")
        assert shown["metadata"]["labels"]["kubernetes.io/hostname"] == "node-1"
        await node.make(automountServiceAccountToken=False)
        await node.until_phase("Running")
        await asyncio.sleep(1)
        pod = await node.pod()
        status = pod["status"]
        conditions = {one["type"]: one["status"] for one in status["conditions"]}
        assert set(conditions.values()) == {"True"}
        assert {"Ready", "ContainersReady", "Initialized"} <= conditions.keys()
        assert status["podIPs"] == [{"ip": status["podIP"]}]
        assert status["containerStatuses"][0]["ready"] is True
        assert status["observedGeneration"] == pod["metadata"]["generation"]
        listed = await plane.client.list(EVENTS, "default")
        reasons = [event["reason"] for event in listed.items]
        assert {"Pulled", "Created", "Started"} <= set(reasons)
        before = plane.clock.monotonic()
        await plane.client.delete(PODS, "default", "web")
        await node.until_gone()
        assert plane.clock.monotonic() - before < 0.1
        await asyncio.sleep(1)
        assert await node.runtime.pods() == []


@story(["namespace", "serviceaccount"])
async def test_nothing_is_written_twice(plane):
    """[N14] written only when changed"""
    async with Node(plane) as node:
        await node.make(automountServiceAccountToken=False)
        await node.until_phase("Running")
        await asyncio.sleep(70)  # by then the node also shows the image that was pulled
        before = await node.pod()
        node_before = await plane.client.get(NODES, "", "node-1")
        await asyncio.sleep(150)
        after = await node.pod()
        assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        node_after = await plane.client.get(NODES, "", "node-1")
        assert (
            node_after["metadata"]["resourceVersion"] == node_before["metadata"]["resourceVersion"]
        )


@story(["namespace", "serviceaccount"])
async def test_a_sandbox_that_is_replaced_changes_the_address(plane):
    """[N9] a list that is merged by key must lose the old entry"""
    async with Node(plane) as node:
        await node.make(automountServiceAccountToken=False)
        await node.until_phase("Running")
        await asyncio.sleep(1)
        old = (await node.pod())["status"]["podIP"]
        seen = (await node.runtime.pods())[0]
        node.runtime.kill_sandbox(seen.sandboxes[0].id)
        await asyncio.sleep(5)
        status = (await node.pod())["status"]
        assert status["podIP"] != old
        assert status["podIPs"] == [{"ip": status["podIP"]}]
        assert status["containerStatuses"][0]["restartCount"] == 1
        assert status["phase"] == "Running"


@story(["namespace", "serviceaccount"])
async def test_a_crash_loop_loses_its_reasons_when_it_is_over(plane):
    """[N12] a merge of conditions keeps what it is not told of"""
    async with Node(plane) as node:
        script = {"exit-after-seconds": "1", "exit-code": "1"}
        await node.make(script=script, automountServiceAccountToken=False)
        async with asyncio.timeout(60):
            while "waiting" not in (await _container(node))["state"]:
                await asyncio.sleep(0.05)
        conditions = {one["type"]: one for one in (await node.pod())["status"]["conditions"]}
        assert conditions["Ready"]["reason"] == "ContainersNotReady"
        async with asyncio.timeout(60):
            while "running" not in (await _container(node))["state"]:
                await asyncio.sleep(0.05)
        conditions = {one["type"]: one for one in (await node.pod())["status"]["conditions"]}
        assert conditions["Ready"]["status"] == "True"
        assert not conditions["Ready"].get("reason")
        assert not conditions["Ready"].get("message")


async def _container(node):
    statuses = (await node.pod())["status"].get("containerStatuses")
    return statuses[0] if statuses else {"state": {}}


@story(["namespace", "serviceaccount"])
async def test_a_completed_pod_stays_until_it_is_deleted(plane):
    async with Node(plane) as node:
        await node.make(
            restartPolicy="Never",
            script={"exit-after-seconds": "2"},
            automountServiceAccountToken=False,
        )
        await node.until_phase("Succeeded")
        await asyncio.sleep(100)
        assert (await node.pod())["status"]["phase"] == "Succeeded"
        await plane.client.delete(PODS, "default", "web")
        await node.until_gone()


@story(["namespace", "serviceaccount"])
async def test_the_lease_is_kept(plane):
    """[N17]"""
    async with Node(plane):
        await asyncio.sleep(60)
        lease = await plane.client.get(LEASES, "kube-node-lease", "node-1")
        assert lease["spec"]["holderIdentity"] == "node-1"
        assert lease["metadata"]["ownerReferences"][0]["kind"] == "Node"
        first = lease["spec"]["renewTime"]
        await asyncio.sleep(15)
        lease = await plane.client.get(LEASES, "kube-node-lease", "node-1")
        assert lease["spec"]["renewTime"] > first
