"""Measuring, and doing what was decided [N18]."""

import random
from dataclasses import replace

from sampan.client.no_api_client import NoApiClient
from sampan.core.metrics import Metrics
from sampan.kubelet.context import NodeContext
from sampan.kubelet.contracts.runtime import ContainerState
from sampan.kubelet.eviction.eviction_manager import (
    GONE_SECONDS,
    EvictablePods,
    EvictionManager,
    NodeCallbacks,
    measured,
)
from sampan.kubelet.eviction.eviction_rules import (
    IMAGEFS,
    MEMORY,
    NODEFS,
    PIDS,
    Available,
)
from sampan.kubelet.images.image_gc import Disk, ImageGCManager, ImageGCPolicy
from sampan.kubelet.settings import KubeletSettings
from sampan.kubelet.simulated.runtime import SimulatedRuntime
from sampan.kubelet.stats.node_stats import NodeStats
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.observed_pods import UID, container, observed_pod

POD = {
    "metadata": {"name": "web", "namespace": "default", "uid": UID},
    "spec": {"containers": [{"name": "main"}]},
}


class Stage:
    """One pod on a node whose figures the test chooses."""

    def __init__(self, tmp_path, pod=POD, runtime=None, others=()):
        self.there = {MEMORY: Available(1 << 30, 8 << 30), NODEFS: Available(50, 100)}
        self.evicted, self.conditions, self.said, self.told = [], [], [], []
        self.metrics, self.over = Metrics(), False
        self.clock = clock = LoopClock()
        self.runtime = runtime or SimulatedRuntime(clock=clock, images=["unused:1"])
        stats = NodeStats(
            cgroups=None, pods=lambda: [pod], observed=lambda _: observed_pod(container())
        )
        images = ImageGCManager(
            self.runtime, "/", settings=ImageGCPolicy(), clock=clock,
            warn=lambda *_: None, disk=lambda _: Disk(100, 50),
        )  # fmt: skip
        settings = KubeletSettings("n", root_dir=str(tmp_path), log_dir=str(tmp_path / "logs"))
        self.watch = EvictionManager(
            NodeContext(
                settings, NoApiClient(), self.runtime, clock, self.metrics, random.Random(1)
            ),
            stats=stats,
            images=images,
            pods=EvictablePods(
                lambda: [pod, *others],
                lambda _: self.over,
                self.evict,
                self,
            ),
            node=NodeCallbacks(lambda *words: self.told.append(words), self.conditions.append),
            measure=lambda *_: self.there,
        )

    def evict(self, uid, grace, verdict):
        self.evicted.append((uid, grace, verdict.reason))
        self.disruption = verdict.disruption

    def warning(self, pod, reason, message):
        self.said.append((reason, message))


def test_a_node_without_memory_says_so_and_evicts(tmp_path):
    stage = Stage(tmp_path)

    async def story():
        await stage.watch.look()
        assert (stage.evicted, stage.conditions) == ([], [])
        stage.there = {**stage.there, MEMORY: Available(1, 8 << 30)}
        await stage.watch.look()

    virtual_time.run(story())
    assert stage.conditions == [frozenset({"MemoryPressure"})]
    assert stage.evicted == [(UID, 0.0, "Evicted")]
    assert stage.said[0][0] == "Evicted"
    assert stage.disruption == stage.said[0][1]
    assert stage.told == [("EvictionThresholdMet", "Attempting to reclaim memory")]
    assert 'kubelet_evictions{eviction_signal="memory.available"} 1' in stage.metrics.render()


def test_nobody_else_goes_while_the_last_one_is_still_there(tmp_path):
    stage = Stage(tmp_path)
    stage.there = {MEMORY: Available(1, 8 << 30)}

    async def story():
        for _ in range(3):
            await stage.watch.look()
        assert len(stage.evicted) == 1
        await stage.clock.sleep(GONE_SECONDS + 1)
        await stage.watch.look()  # it did not go, but it is not told twice
        assert len(stage.evicted) == 1
        stage.over = True
        await stage.watch.look()  # whatever the runtime's last answer was
        assert len(stage.evicted) == 1

    virtual_time.run(story())


def test_images_go_before_pods(tmp_path):
    stage = Stage(tmp_path)
    stage.there = {NODEFS: Available(1, 100)}

    async def story():
        await stage.watch.look()
        assert list(await stage.runtime.images()) == []

    virtual_time.run(story())
    assert stage.evicted  # that did not help


def test_a_pod_that_fills_its_volume_goes(tmp_path):
    limited = {
        **POD,
        "spec": {**POD["spec"], "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "4Ki"}}]},
    }
    folder = tmp_path / "pods" / UID / "volumes" / "kubernetes.io~empty-dir" / "v"
    folder.mkdir(parents=True)
    (folder / "file").write_bytes(b"x" * 20_000)
    stage = Stage(tmp_path, limited)
    virtual_time.run(stage.watch.look())
    assert stage.evicted == [(UID, 0.0, "Evicted")]
    assert 'EmptyDir volume "v" exceeds the limit "4Ki"' in stage.said[0][1]
    assert stage.disruption == ""  # as upstream: it has only itself to blame


def test_a_real_machine_can_be_measured(tmp_path):
    there = measured(str(tmp_path), str(tmp_path / "not there yet"))
    for signal in (MEMORY, NODEFS, IMAGEFS, PIDS):
        assert 0 < there[signal].amount <= there[signal].capacity


class Remains:
    """A runtime that still has the ended containers of two pods, one of them over for good."""

    def __init__(self, over):
        self._over, self.removed = over, []

    async def pods(self):
        ended = ContainerState.EXITED
        stopped = replace(observed_pod(container(state=ended)), uid=self._over)
        down = tuple(replace(one, ready=False) for one in stopped.sandboxes)
        return [replace(stopped, sandboxes=down), observed_pod(container(state=ended))]

    async def images(self):
        return []

    async def remove_container(self, container_id):
        self.removed.append(container_id)

    async def layer_bytes(self, container_id):
        return 0


def test_dead_containers_of_pods_that_are_over_go_before_pods(tmp_path):
    over = {"metadata": {"name": "done", "uid": "over"}, "status": {"phase": "Succeeded"}}
    remains = Remains("over")
    stage = Stage(tmp_path, runtime=remains, others=[over])
    stage.there = {NODEFS: Available(1, 100)}
    virtual_time.run(stage.watch.look())
    assert remains.removed == [container().id]
