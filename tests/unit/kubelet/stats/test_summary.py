"""/stats/summary, with what pods have on the disk [N19]."""

from sampan.kubelet.contracts.runtime import Layer, RuntimeFailure
from sampan.kubelet.node.machine import Machine
from sampan.kubelet.settings import Capacity
from sampan.kubelet.stats.node_stats import NodeStats
from sampan.kubelet.stats.summary import StatsSummary
from sampan.kubelet.stats.volume_figures import VolumeStatsReader, no_csi_stats
from tests.support import virtual_time
from tests.support.manual_clock import ManualClock
from tests.support.worlds.observed_pods import UID, container, observed_pod

POD = {
    "metadata": {"name": "web", "namespace": "default", "uid": UID},
    "spec": {"volumes": [{"name": "cache", "emptyDir": {}}]},
}


class Layers:
    def __init__(self, layers=None):
        self._layers = layers

    async def layers(self):
        if self._layers is None:
            raise RuntimeFailure("not today")
        return self._layers


def summary_of(tmp_path, runtime, clock):
    stats = NodeStats(
        cgroups=None, pods=lambda: [POD], observed=lambda uid: observed_pod(container())
    )
    return StatsSummary(
        node_name="n1", stats=stats, runtime=runtime, machine=Machine(Capacity(2000, 1 << 30)),
        directories=(str(tmp_path / "kubelet"), str(tmp_path / "logs"), str(tmp_path)),
        volumes=VolumeStatsReader(None, str(tmp_path / "kubelet"), no_csi_stats, clock),
    )  # fmt: skip


def test_disks_are_told_of_containers_logs_volumes_and_the_whole_pod(tmp_path):
    volume = tmp_path / f"kubelet/pods/{UID}/volumes/kubernetes.io~empty-dir/cache"
    logs = tmp_path / f"logs/default_web_{UID}/main"
    for directory in (volume, logs):
        directory.mkdir(parents=True)
        (directory / "file").write_bytes(b"x" * 5000)
    runtime = Layers({container().id: Layer(10_000, 3)})
    whole = virtual_time.run(summary_of(tmp_path, runtime, ManualClock()).summary())
    [pod] = whole["pods"]
    [inside] = pod["containers"]
    assert inside["rootfs"]["usedBytes"] == 10_000
    assert inside["rootfs"]["inodesUsed"] == 3
    assert inside["logs"]["usedBytes"] == 8192
    assert inside["logs"]["capacityBytes"] > 0
    [cache] = pod["volume"]
    assert (cache["name"], cache["usedBytes"]) == ("cache", 8192)
    assert pod["ephemeral-storage"]["usedBytes"] == 10_000 + 2 * 8192
    node = whole["node"]
    assert node["runtime"]["imageFs"]["capacityBytes"] == node["fs"]["capacityBytes"]
    assert node["rlimit"]["maxpid"] > 0


def test_what_the_runtime_does_not_say_is_left_out(tmp_path):
    [pod] = virtual_time.run(summary_of(tmp_path, Layers(), ManualClock()).summary())["pods"]
    assert "rootfs" not in pod["containers"][0]
    assert "network" not in pod


def test_the_summary_has_rates_from_the_second_time_on(tmp_path):
    clock = ManualClock()
    one = summary_of(tmp_path, Layers({}), clock)

    async def story():
        first = await one.summary()
        assert "usageNanoCores" not in first["node"]["cpu"]
        assert first["pods"][0]["podRef"]["name"] == "web"
        await clock.advance(1.0)
        assert "usageNanoCores" in (await one.summary())["node"]["cpu"]

    virtual_time.run(story())
