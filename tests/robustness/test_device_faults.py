"""kill -9 of the agent, and of the drivers, at every step of what pods get of their own.

Three pods, one after the other, each with a device of a plugin, a claim of a DRA driver, a
processor and memory; there is enough for two. Every function of the managers is a fault point, by
its name and how often it was entered. Whatever was under way then, the next agent finishes it:
nothing is given to two, and in the end all of it is free. [H2, H4, H5]
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sampan.api.resources import RESOURCE_CLAIMS
from sampan.core.backoff import Backoff
from sampan.core.clock import SystemClock
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.drivers.device_plugin import device_plugin
from sampan.drivers.device_plugin.device_plugin import DevicePlugin
from sampan.drivers.device_plugin.settings import DevicePluginSettings
from sampan.drivers.dra.dra_driver import DraDriver
from sampan.drivers.dra.settings import NAME, DraSettings
from sampan.kubelet.contracts.resources_hook import ClaimFailure, GrantFailure, PodRefused
from sampan.kubelet.device_manager.device_manager import DeviceManager
from sampan.kubelet.dra import dra_manager
from sampan.kubelet.dra.dra_drivers import DraDrivers
from sampan.kubelet.dra.dra_manager import DraManager
from sampan.kubelet.plugin_manager import plugin_manager
from sampan.kubelet.plugin_manager.plugin_manager import PluginManager
from sampan.kubelet.resource_managers.cpu_manager import CpuManager
from sampan.kubelet.resource_managers.cpu_options import CpuOptions
from sampan.kubelet.resource_managers.cpu_policy import static_policy
from sampan.kubelet.resource_managers.cpu_sets import NO_CPUS, parse_cpus
from sampan.kubelet.resource_managers.cpu_topology import Cpu, CpuTopology
from sampan.kubelet.resource_managers.cpusets import Cpusets
from sampan.kubelet.resource_managers.machine_topology import NumaMemory
from sampan.kubelet.resource_managers.managers import Managers
from sampan.kubelet.resource_managers.memory_manager import MemoryManager, initial_nodes
from sampan.kubelet.resource_managers.numa import NumaNodes
from sampan.kubelet.resource_managers.resource_admission import ResourceAdmission
from sampan.kubelet.resource_managers.topology_metrics import TopologyMetrics
from sampan.kubelet.resource_managers.topology_policies import TopologySettings
from tests.support.parts.killed_lives import in_child, killed_at, noting, untouched
from tests.support.parts.processes import eventually
from tests.support.seed import drawn
from tests.support.worlds.small_api import SmallApi

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
WATCHED = (
    "/sampan/kubelet/device_manager/", "/sampan/kubelet/dra/",
    "/sampan/kubelet/resource_managers/", "/sampan/kubelet/plugin_manager/",
)  # fmt: skip
TIMES, KILLS = 3, 16
NODE, GPU, MI = "n1", "example.com/gpu", 1 << 20
THREE = CpuTopology({number: Cpu(number, 0, 0, 0) for number in range(3)})  # one is reserved
# Who comes and goes, in this order; a and c have the same claimed device.
STORY = (("up", "a"), ("up", "b"), ("down", "a"), ("up", "c"), ("down", "b"), ("down", "c"))
CLAIMED = {"a": "gpu-0", "b": "gpu-1", "c": "gpu-0"}
RESTLESS = "id-old"  # a container on what everybody shares


class Ledger:
    """What a runtime would have: it outlives the agent."""

    def __init__(self, path):
        self._path = path

    def note(self, **said):
        with open(self._path, "a") as file:
            file.write(json.dumps(said) + "\n")

    def lines(self):
        if not self._path.exists():
            return []
        return [json.loads(line) for line in self._path.read_text().splitlines()]

    def running(self):
        """uid → what it was started with. Nobody may have what another has."""
        found = {}
        for line in self.lines():
            if "up" in line:
                for uid, other in found.items():
                    shared = set(line["has"]) & set(other)
                    assert not shared, f"{uid} and {line['up']} have {shared}"
                found[line["up"]] = line["has"]
            elif "down" in line:
                found.pop(line["down"], None)
        return found

    def ended(self):
        return {line["down"] for line in self.lines() if "down" in line}

    def cpus_of_others(self):
        moves = [line["cpus"] for line in self.lines() if "cpus" in line]
        return moves[-1] if moves else ""

    async def update_container(self, container_id, resources):
        """As a runtime."""
        if container_id == RESTLESS:
            self.note(cpus=resources.cpus)


class Agent:
    """One life of what a kubelet has for devices."""

    def __init__(self, root, ledger, api):
        self.ledger, clock, metrics = ledger, SystemClock(), Metrics()
        kubelet = str(root / "kubelet")
        self.tasks = tasks = Tasks("agent")
        numa = NumaNodes((0,))
        memory = initial_nodes({0: NumaMemory(300 * MI)}, {0: {"memory": 100 * MI}})
        policy = static_policy(THREE, 1, NO_CPUS, CpuOptions())
        managers = Managers(
            numa,
            CpuManager(policy, kubelet, tasks=tasks, metrics=metrics),
            MemoryManager(memory, kubelet, tasks=tasks, metrics=metrics),
        )
        self.devices = DeviceManager(kubelet, numa, tasks=tasks, clock=clock, metrics=metrics)
        self.drivers = DraDrivers(api, NODE, kubelet, tasks=tasks, clock=clock)
        claims = DraManager(
            self.drivers, api, kubelet, tasks=tasks, clock=clock, metrics=metrics
        )  # fmt: skip
        self.drivers.changed = lambda _name: claims.driver_came()
        cpusets = Cpusets(managers.cpu, ledger, tasks=tasks, clock=clock, retry_seconds=1.0)
        cpusets.running = self._running
        topology = TopologySettings("restricted")
        self.admission = ResourceAdmission(
            self.devices, managers, topology, TopologyMetrics(metrics, clock, topology),
            cpusets=cpusets, claims=claims,
        )  # fmt: skip
        self.plugins = PluginManager(
            f"{kubelet}/plugins_registry", {"DRAPlugin": self.drivers}, clock=clock
        )

    def _running(self):
        found = [((uid, "c"), f"id-{uid}") for uid in self.ledger.running()]
        return [*found, (("old", "x"), RESTLESS)]

    @contextlib.asynccontextmanager
    async def lives(self):
        """Until both drivers are here."""
        self.tasks.supervise("devices", self.devices.run)
        self.tasks.supervise("plugins", self.plugins.run)
        gone = self.ledger.ended()
        self.admission.keep_only(lambda uid: uid not in gone)
        try:
            yield self
        finally:
            await self.tasks.stop()
            await self.drivers.close()

    async def up(self, uid):
        pod = pod_of(uid)
        if uid in self.ledger.running():
            self.admission.goes_on(pod)
            return
        await patiently(lambda: self._admit(pod))
        await patiently(lambda: self.admission.prepare(pod))
        (container,) = pod["spec"]["containers"]
        grants = await patiently(lambda: self.admission.grants(pod, container))
        has = [
            *grants.cdi_devices,
            *(device.container_path for device in grants.devices),
            *(f"cpu {number}" for number in sorted(parse_cpus(grants.cpus))),
        ]
        assert len(has) == 3, has
        # By its own name: the claim of another pod makes another name of the same device.
        has.append(CLAIMED[uid])
        self.ledger.note(up=uid, has=has)
        self.admission.started(uid, "c", f"id-{uid}")

    async def _admit(self, pod):
        if not self.devices.offered().get(GPU, (0, 0))[1]:
            raise ClaimFailure("the scheduler finds no room")
        await self.admission.admit(pod)

    async def down(self, uid):
        if uid not in self.ledger.ended():
            self.ledger.note(down=uid)
        await patiently(lambda: self.admission.unprepare(uid))
        self.admission.release(uid)

    async def story(self):
        for step, uid in STORY:
            if uid not in self.ledger.ended():
                await getattr(self, step)(uid)


def pod_of(uid):
    amounts = {"cpu": "1", "memory": "100Mi", GPU: "1"}
    resources = {"requests": amounts, "limits": amounts, "claims": [{"name": "mine"}]}
    return {
        "metadata": {"name": uid, "namespace": "shop", "uid": uid},
        "spec": {
            "resourceClaims": [{"name": "mine", "resourceClaimName": uid}],
            "containers": [{"name": "c", "resources": resources}],
        },
    }


async def patiently(work):
    """As controllers: another try, until it works."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await work()
            except (PodRefused, ClaimFailure, GrantFailure):
                await asyncio.sleep(0.02)


async def make_api():
    api = SmallApi(SystemClock())
    await api.node(NODE)
    for uid, device in CLAIMED.items():
        result = {"driver": NAME, "pool": NODE, "device": device, "request": "r"}
        status = {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": uid, "uid": uid}],
        }
        metadata = {"name": uid, "namespace": "shop", "uid": f"claim-{uid}"}
        await api.create(
            RESOURCE_CLAIMS, {"metadata": metadata, "spec": {}, "status": status}, "shop"
        )  # fmt: skip
    return api


class Place:
    """A root, and drivers beside it that are a process of their own."""

    def __init__(self):
        self.root = Path(tempfile.mkdtemp(prefix="sampan-df-"))
        self.faults = self.root / "faults.json"
        self.directory = self.root / "kubelet" / "device-plugins"
        self.driver = 0

    def start_drivers(self):
        self.driver = os.fork()
        if self.driver == 0:
            try:
                asyncio.run(self._drive())
            finally:
                os._exit(70)

    async def _drive(self):
        device_plugin.RETRY_SECONDS = 0.05
        plugin = DevicePlugin(
            DevicePluginSettings(GPU, str(self.directory), 2, faults=str(self.faults)),
            SystemClock(),
        )
        api = await make_api()
        dra = DraDriver(
            DraSettings(
                NODE, devices=2, cdi_directory=str(self.root / "cdi"), faults=str(self.faults)
            ),
            lambda: api,
            str(self.root / "kubelet" / "plugins" / "dra.sock"),
            str(self.root / "kubelet" / "plugins_registry" / "dra.sock"),
            SystemClock(),
        )
        await plugin.start()
        await dra.start()
        await asyncio.get_running_loop().create_future()

    def stop_drivers(self):
        if self.driver:
            os.kill(self.driver, signal.SIGKILL)
            os.waitpid(self.driver, 0)
            self.driver = 0

    def ledger(self):
        return Ledger(self.root / "ledger")

    def live(self, hook):
        """An agent lives the story, or what is left of it."""

        def life(write):
            plugin_manager.RETRY = dra_manager.RETRY = Backoff(0.05, 0.2)
            hook(write)
            asyncio.run(self._live())

        return in_child(life)

    async def _live(self):
        ledger = self.ledger()
        async with Agent(self.root, ledger, await make_api()).lives() as agent:
            await agent.story()
            await patiently(lambda: self._all_free(ledger))

    async def _all_free(self, ledger):
        left = self.held()
        if left or ledger.cpus_of_others() != "0-2":
            raise ClaimFailure(f"{left} {ledger.cpus_of_others()}")

    def held(self):
        """What is given, as it is on disk."""
        kubelet, found = self.root / "kubelet", []
        for name in ("cpu_manager_state", "memory_manager_state"):
            if (kubelet / name).exists():
                found += json.loads((kubelet / name).read_text())["entries"]
        for path, place in (
            (kubelet / "dra_manager_state", "ClaimInfoStateList"),
            (self.directory / "kubelet_internal_checkpoint", "PodDeviceEntries"),
        ):
            if path.exists():
                data = json.loads(path.read_text())["Data"]
                found += (json.loads(data) if isinstance(data, str) else data)[place] or []
        return found + [path.name for path in (self.root / "cdi").glob("*.json")]

    def forget(self):
        (self.root / "ledger").unlink(missing_ok=True)


@pytest.fixture(scope="module")
def place():
    made = Place()
    made.start_drivers()
    yield made
    made.stop_drivers()
    shutil.rmtree(made.root)


def check_all_is_well(place, after):
    code, said = place.live(untouched)
    assert code == 0, "\n".join([after, *said])
    assert place.ledger().running() == {}, after
    assert place.held() == [], after
    place.forget()


def test_nothing_is_given_to_two_wherever_the_agent_is_killed(place):
    code, points = place.live(noting(WATCHED, TIMES))
    assert code == 0, "\n".join(points)
    assert len(points) > 300
    assert place.held() == []
    for point in drawn().sample(points, KILLS):
        place.forget()
        code, _ = place.live(killed_at(WATCHED, point, TIMES))
        # 0: this life did not come by that point so often.
        assert code in (-signal.SIGKILL, 0), (point, code)
        place.ledger().running()  # nobody has what another has
        check_all_is_well(place, f"killed at {point}")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ["Allocate", "NodePrepareResources", "NodeUnprepareResources"])
def test_nothing_is_given_to_two_wherever_the_drivers_are_killed(place, method, when):
    place.forget()
    place.faults.write_text(json.dumps({method: {"die": when, "times": 1}}))
    with ThreadPoolExecutor(1) as beside:
        living = beside.submit(place.live, untouched)
        eventually(lambda: os.waitpid(place.driver, os.WNOHANG)[0], 60)
        place.faults.unlink()
        place.start_drivers()
        code, said = living.result(120)
    assert code == 0, "\n".join(said)
    check_all_is_well(place, f"drivers died {when} {method}")
