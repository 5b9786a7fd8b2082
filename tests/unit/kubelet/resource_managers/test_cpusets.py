"""Running containers follow the shared pool."""

from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.contracts.runtime import RuntimeFailure
from sampan.kubelet.device_manager.device_manager import DeviceManager
from sampan.kubelet.resource_managers.cpu_manager import CpuManager
from sampan.kubelet.resource_managers.cpu_options import CpuOptions
from sampan.kubelet.resource_managers.cpu_policy import static_policy
from sampan.kubelet.resource_managers.cpu_sets import NO_CPUS
from sampan.kubelet.resource_managers.cpu_topology import Cpu, CpuTopology
from sampan.kubelet.resource_managers.cpusets import Cpusets
from sampan.kubelet.resource_managers.managers import Managers
from sampan.kubelet.resource_managers.numa import Hint, NumaNodes
from sampan.kubelet.resource_managers.resource_admission import ResourceAdmission
from sampan.kubelet.resource_managers.topology_metrics import TopologyMetrics
from sampan.kubelet.resource_managers.topology_policies import TopologySettings
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.unit.kubelet.resource_managers.test_cpu_manager import pod, the_container

FOUR = CpuTopology({n: Cpu(n, 0, 0, 0) for n in range(4)})


class Runtime:
    def __init__(self):
        self.cpus, self.fails = {}, 0

    async def update_container(self, container_id, resources):
        if self.fails:
            self.fails -= 1
            raise RuntimeFailure("no")
        self.cpus[container_id] = resources.cpus


class Node:
    def __init__(self, root):
        self.tasks, self.runtime, self.clock = Tasks("test"), Runtime(), LoopClock()
        self.root = str(root)
        self.cpus = CpuManager(
            static_policy(FOUR, 1, NO_CPUS, CpuOptions()), str(root), tasks=self.tasks,
            metrics=Metrics(),
        )  # fmt: skip
        self.cpusets = Cpusets(
            self.cpus, self.runtime, tasks=self.tasks, clock=self.clock, retry_seconds=10.0
        )
        self.running = {}
        self.cpusets.running = lambda: [(place, name) for name, place in self.running.items()]

    def admission(self):
        devices = DeviceManager(
            self.root, NumaNodes(), tasks=self.tasks, clock=self.clock, metrics=Metrics()
        )
        settings = TopologySettings()
        counted = TopologyMetrics(Metrics(), self.clock, settings)
        return ResourceAdmission(
            devices, Managers(cpu=self.cpus), settings, counted, cpusets=self.cpusets
        )

    async def pin(self, uid):
        one = pod(uid, "1")
        await self.cpus.allocate(one, the_container(one), Hint(None, True))

    async def settle(self, seconds=0.1):
        await self.clock.sleep(seconds)


def test_everybody_else_leaves_a_processor_that_somebody_gets(tmp_path):
    """[H5]"""

    async def story():
        node = Node(tmp_path)
        node.running = {"id-1": ("old", "x")}
        await node.pin("a")
        await node.settle()
        assert node.runtime.cpus == {"id-1": "0,2-3"}
        node.cpus.release("a")
        await node.settle()
        assert node.runtime.cpus == {"id-1": "0-3"}

    virtual_time.run(story())


def test_a_container_that_was_created_on_the_old_pool_is_moved_once_it_runs(tmp_path):
    async def story():
        node = Node(tmp_path)
        node.cpusets.granted(("new", "x"), "0-3")
        await node.pin("a")
        await node.settle()
        assert node.runtime.cpus == {}
        node.cpusets.started(("new", "x"), "id-2")
        await node.settle()
        assert node.runtime.cpus == {"id-2": "0,2-3"}

    virtual_time.run(story())


def test_who_has_what_he_should_have_is_left_alone(tmp_path):
    async def story():
        node = Node(tmp_path)
        await node.pin("a")
        node.cpusets.granted(("new", "x"), "0,2-3")
        node.cpusets.started(("new", "x"), "id-2")
        node.running = {"id-2": ("new", "x")}
        node.cpusets.look()
        await node.settle()
        assert node.runtime.cpus == {}

    virtual_time.run(story())


def test_the_next_agent_moves_those_whom_the_one_before_did_not(tmp_path):
    """It ended between what it wrote down and what it did. [H5]"""

    async def story():
        first = Node(tmp_path)
        first.runtime.fails = 1
        first.running = {"id-1": ("old", "x")}
        await first.pin("a")
        await first.settle()
        await first.tasks.stop()
        after = Node(tmp_path)
        after.running = {"id-1": ("old", "x"), "id-2": ("a", "c")}
        after.admission().keep_only({"old", "a"}.__contains__)
        await after.settle()
        assert after.runtime.cpus == {"id-1": "0,2-3", "id-2": "1"}
        after.runtime.cpus.clear()
        after.admission().keep_only({"old", "a"}.__contains__)
        await after.settle()
        assert after.runtime.cpus == {}  # everybody is where he should be

    virtual_time.run(story())


def test_what_failed_is_tried_again(tmp_path):
    async def story():
        node = Node(tmp_path)
        node.running = {"id-1": ("old", "x")}
        node.runtime.fails = 2
        await node.pin("a")
        await node.settle(15.0)
        assert node.runtime.cpus == {}
        await node.settle(10.0)
        assert node.runtime.cpus == {"id-1": "0,2-3"}

    virtual_time.run(story())
