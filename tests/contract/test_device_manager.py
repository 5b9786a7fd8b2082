"""The device manager and plugins that really register at its socket [H2]."""

import asyncio
import json
import os
import shutil
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sampan.core.clock import SystemClock
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.drivers.device_plugin.device_plugin import DevicePlugin
from sampan.drivers.device_plugin.settings import DevicePluginSettings
from sampan.kubelet.contracts.resources_hook import GrantFailure, PodRefused
from sampan.kubelet.contracts.runtime import Device
from sampan.kubelet.device_manager import device_manager
from sampan.kubelet.device_manager.device_manager import DeviceManager
from sampan.kubelet.resource_managers.managers import Managers
from sampan.kubelet.resource_managers.numa import NumaNodes
from sampan.kubelet.resource_managers.resource_admission import ResourceAdmission
from sampan.kubelet.resource_managers.topology_metrics import TopologyMetrics
from sampan.kubelet.resource_managers.topology_policies import TopologySettings
from sampan.plugins import device_plugin as protocol
from sampan.plugins.device_plugin import Options

pytestmark = pytest.mark.slow
GPU = "example.com/gpu"
NUMA = NumaNodes((0, 1))


class World:
    def __init__(self, root, settings):
        self.root, self.settings = root, settings
        self.directory = root / "device-plugins"
        self.manager: DeviceManager | None = None
        self.changes, self.sick = 0, []

    @asynccontextmanager
    async def agent(self):
        tasks = Tasks("agent")
        manager = self.manager = DeviceManager(
            str(self.root), NUMA, tasks=tasks, clock=SystemClock(), metrics=Metrics()
        )
        manager.changed = self._count
        manager.health_changed = self.sick.append
        self.metrics = Metrics()
        counted = TopologyMetrics(self.metrics, SystemClock(), self.settings)
        admission = ResourceAdmission(manager, Managers(NUMA), self.settings, counted)
        tasks.supervise("devices", manager.run)
        try:
            yield admission
        finally:
            await tasks.stop()

    def _count(self):
        self.changes += 1

    @asynccontextmanager
    async def plugin(self, count=4, **settings):
        chosen = DevicePluginSettings(GPU, str(self.directory), count, **settings)
        plugin = DevicePlugin(chosen, SystemClock())
        await plugin.start()
        try:
            await self.until(lambda: self.offered() == (count, count))
            yield plugin
        finally:
            await plugin.stop()

    def offered(self):
        return self.manager.offered().get(GPU) if self.manager else None

    def held(self, uid, container="c"):
        found = self.manager.allocated(uid, container).get(GPU)
        return sorted(found.devices) if found else []

    async def until(self, condition):
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.005)


@pytest.fixture
def world():
    root = Path(tempfile.mkdtemp(prefix="sampan-dev-"))
    yield World(root, TopologySettings())
    shutil.rmtree(root)


def pod(uid, amount=1, **more):
    limits = {"limits": {GPU: str(amount)}}
    spec = {"containers": [{"name": "c", "resources": limits}], **more}
    return {"metadata": {"name": uid, "namespace": "shop", "uid": uid}, "spec": spec}


def told(world, story, **plugin):
    async def run():
        async with world.agent() as admission, world.plugin(**plugin):
            await story(admission)

    asyncio.run(run())


def test_devices_are_offered_given_once_and_free_again_with_their_pod(world):
    async def story(admission):
        first, second = pod("u1", 3), pod("u2", 2)
        assert admission.awaits(first)
        await admission.admit(first)
        assert not admission.awaits(first)
        assert world.held("u1") == ["device-0", "device-1", "device-2"]
        with pytest.raises(PodRefused) as refused:
            await admission.admit(second)
        assert refused.value.verdict.reason == "UnexpectedAdmissionError"
        assert refused.value.verdict.message == (
            "Pod was rejected: Allocate failed due to requested number of devices unavailable for "
            "example.com/gpu. Requested: 2, Available: 1, which is unexpected"
        )
        admission.release("u1")
        await admission.admit(second)
        assert world.held("u2") == ["device-0", "device-1"]

    told(world, story)


def test_a_container_is_told_of_its_devices(world):
    async def story(admission):
        wanted = pod("u1", 2)
        await admission.admit(wanted)
        grants = await admission.grants(wanted, wanted["spec"]["containers"][0])
        assert grants.env == (("EXAMPLE_COM_GPU", "device-0,device-1"),)
        assert grants.devices == (
            Device("/dev/gpu-device-0", "/dev/null"), Device("/dev/gpu-device-1", "/dev/null"),
        )  # fmt: skip
        assert grants.annotations == {"example.com.gpu.devices": "2"}
        other = pod("u2", 0)
        assert await admission.grants(other, other["spec"]["containers"][0]) != grants

    told(world, story)


def test_a_plugin_may_name_cdi_devices_prefer_some_and_be_called_before_the_start(world, tmp_path):
    faults = tmp_path / "faults.json"

    async def story(admission):
        wanted = pod("u1", 2)
        await admission.admit(wanted)
        assert world.held("u1") == ["device-2", "device-3"]
        grants = await admission.grants(wanted, wanted["spec"]["containers"][0])
        assert grants.cdi_devices == ("example.com/gpu=device-3", "example.com/gpu=device-2")
        faults.write_text(json.dumps({"PreStartContainer": {"code": "INTERNAL", "message": "no"}}))
        with pytest.raises(GrantFailure) as failed:
            await admission.grants(wanted, wanted["spec"]["containers"][0])
        assert str(failed.value) == (
            "device plugin PreStartContainer rpc failed with err: rpc error: code = Internal "
            "desc = no"
        )

    told(
        world, story, cdi_kind="example.com/gpu", prefers_last=True, pre_start=True,
        faults=str(faults),
    )  # fmt: skip


def test_an_allocation_that_fails_refuses_the_pod_and_holds_nothing(world, tmp_path):
    faults = tmp_path / "faults.json"
    faults.write_text(json.dumps({"Allocate": {"code": "INTERNAL", "message": "no", "times": 1}}))

    async def story(admission):
        with pytest.raises(PodRefused) as refused:
            await admission.admit(pod("u1", 4))
        assert "rpc error: code = Internal desc = no" in str(refused.value)
        assert world.held("u1") == []
        await admission.admit(pod("u2", 4))

    told(world, story, faults=str(faults))


def test_what_cannot_be_written_down_is_not_given(world):
    """The next agent would give it to another. [H2]"""

    async def story(admission):
        path = world.directory / "kubelet_internal_checkpoint"
        await world.until(path.exists)
        os.mkdir(f"{path}.new")
        with pytest.raises(PodRefused) as refused:
            await admission.admit(pod("u1"))
        assert "failed to write checkpoint file" in refused.value.verdict.message
        assert world.held("u1") == []
        os.rmdir(f"{path}.new")
        await admission.admit(pod("u2"))
        assert world.held("u2") == ["device-0"]

    told(world, story)


def test_many_may_write_the_checkpoint_at_once(world):
    async def story(admission):
        pods = [pod(f"u{number}") for number in range(4)]
        for one in pods:
            await admission.admit(one)
        for one in pods[:3]:
            admission.release(one["metadata"]["uid"])
        await admission.admit(pod("last", 3))
        path = world.directory / "kubelet_internal_checkpoint"

        def holders():
            entries = json.loads(path.read_text())["Data"]["PodDeviceEntries"]
            return sorted(entry["PodUID"] for entry in entries)

        await world.until(lambda: holders() == ["last", "u3"])

    told(world, story)


def test_sick_devices_are_counted_but_not_offered_and_their_pods_hear_of_it(world, tmp_path):
    health = tmp_path / "health.json"
    health.write_text("{}")

    async def story(admission):
        await admission.admit(pod("u1"))
        health.write_text(json.dumps({"device-0": "Unhealthy", "device-3": "Unhealthy"}))
        await world.until(lambda: world.offered() == (4, 2))
        assert world.sick == ["u1"]
        sick = {"resourceID": "device-0", "health": "Unhealthy"}
        assert admission.health(pod("u1"), "c") == [{"name": GPU, "resources": [sick]}]
        assert admission.health(pod("u2"), "c") == []
        health.write_text("{}")
        await world.until(lambda: world.offered() == (4, 4))
        assert world.sick == ["u1", "u1"]

    told(world, story, health=str(health))


def test_a_plugin_that_goes_takes_its_health_along_and_after_a_while_its_devices(
    world, monkeypatch
):
    monkeypatch.setattr(device_manager, "STOP_GRACE_SECONDS", 0.2)

    async def run():
        async with world.agent() as admission:
            async with world.plugin():
                await admission.admit(pod("u1"))
            await world.until(lambda: world.offered() == (4, 0))
            with pytest.raises(PodRefused, match="no healthy devices present"):
                await admission.admit(pod("u2"))
            await world.until(lambda: world.offered() == (0, 0))
            assert world.held("u1") == ["device-0"]
            async with world.plugin():
                await admission.admit(pod("u3"))
                assert world.held("u3") == ["device-1"]

    asyncio.run(run())


def test_the_next_agent_knows_who_holds_what_and_plugins_register_again(world):
    async def run():
        async with world.agent() as admission, world.plugin():
            await admission.admit(pod("u1", 2))
            await admission.admit(pod("u2", 1))
        # The plugin is killed with the machine; or outlives the agent, below.
        async with world.agent() as admission:
            assert world.offered() == (0, 0)
            assert world.held("u1") == ["device-0", "device-1"]
            assert world.manager.least_allocatable("u1") == {GPU: 3}
            assert world.manager.least_allocatable("new") == {}
            admission.keep_only({"u1"}.__contains__)
            async with world.plugin():
                await admission.admit(pod("u3", 2))
                assert world.held("u3") == ["device-2", "device-3"]

    asyncio.run(run())


def test_a_plugin_outlives_the_agent(world):
    async def run():
        plugin = DevicePlugin(DevicePluginSettings(GPU, str(world.directory), 2), SystemClock())
        async with world.agent():
            await plugin.start()
            await world.until(lambda: world.offered() == (2, 2))
        async with world.agent():
            await world.until(lambda: world.offered() == (2, 2))
        await plugin.stop()

    asyncio.run(run())


def test_init_containers_hand_their_devices_on_and_sidecars_keep_theirs(world):
    limits = {"resources": {"limits": {GPU: "1"}}}
    inits = [
        {"name": "first", **limits},
        {"name": "side", "restartPolicy": "Always", **limits},
        {"name": "second", **limits},
    ]

    async def story(admission):
        await admission.admit(pod("u1", 1, initContainers=inits))
        names = {name: world.held("u1", name) for name in ("first", "side", "second", "c")}
        # The sidecar goes on with what the first had, the others share what the second had.
        assert names["first"] == names["side"] == ["device-0"]
        assert names["second"] == names["c"] == ["device-1"]

    told(world, story, count=2)


@pytest.mark.parametrize(("scope", "admitted"), [("container", True), ("pod", False)])
def test_devices_are_on_one_numa_node_where_that_is_asked_for(world, scope, admitted):
    world.settings = TopologySettings("single-numa-node", scope)
    spec = [{"name": name, "resources": {"limits": {GPU: "2"}}} for name in ("c", "d")]

    async def story(admission):
        wanted = pod("u1")
        wanted["spec"]["containers"] = spec
        if admitted:
            await admission.admit(wanted)
            assert world.held("u1", "c") == ["device-0", "device-2"]
            assert world.held("u1", "d") == ["device-1", "device-3"]
            return
        with pytest.raises(PodRefused) as refused:
            await admission.admit(wanted)
        assert refused.value.verdict.reason == "TopologyAffinityError"
        assert refused.value.verdict.message == (
            "Pod was rejected: Resources cannot be allocated with Topology locality"
        )

    told(world, story, numa_nodes=2)


def test_bad_registrations_are_refused_in_upstream_s_words(world, monkeypatch):
    monkeypatch.setattr(protocol, "DIAL_SECONDS", 0.2)

    async def run():
        async with world.agent():
            socket = str(world.directory / "kubelet.sock")
            await world.until(lambda: os.path.exists(socket))
            with pytest.raises(GrpcFailure) as refused:
                await protocol.register(socket, "x.sock", "cpu", Options())
            assert refused.value.message == 'the ResourceName "cpu" is invalid'
            with pytest.raises(GrpcFailure, match="failed to dial device plugin"):
                await protocol.register(socket, "x.sock", GPU, Options())

    asyncio.run(run())
