"""Figures of volumes: of directories, file systems and drivers."""

import asyncio

import pytest

from sampan.api import features
from sampan.api.errors import NotFound
from sampan.api.features import Release
from sampan.api.resources import PERSISTENT_VOLUME_CLAIMS
from sampan.core.metrics import Metrics
from sampan.kubelet.csi.driver_calls import Usage, VolumeStats
from sampan.kubelet.stats import volume_figures
from sampan.kubelet.stats.volume_figures import VolumeStatsReader
from tests.support import virtual_time
from tests.support.manual_clock import ManualClock

POD = {
    "metadata": {"uid": "u", "name": "p", "namespace": "shop"},
    "spec": {
        "volumes": [
            {"name": "cache", "emptyDir": {}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "one"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
            {"name": "inline", "csi": {"driver": "d"}},
            {"name": "host", "hostPath": {"path": "/"}},
            {"name": "lost", "persistentVolumeClaim": {"claimName": "none"}},
        ]
    },
}


class Api:
    def __init__(self, local):
        self.reads = 0
        self.volumes = {
            "pv-one": {"metadata": {"name": "pv-one"}, "spec": {"csi": {"driver": "d"}}},
            "pv-two": {"metadata": {"name": "pv-two"}, "spec": {"local": {"path": local}}},
        }

    async def get(self, resource, namespace, name):
        self.reads += 1
        if resource is PERSISTENT_VOLUME_CLAIMS:
            names = {"one": "pv-one", "p-scratch": "pv-two"}
            if name not in names:
                raise NotFound("not there")
            return {"metadata": {"name": name}, "spec": {"volumeName": names[name]}}
        return self.volumes[name]


class Driver:
    def __init__(self):
        self.asked = 0

    async def stats(self, uid):
        self.asked += 1
        found = VolumeStats(Usage(60, 100, 40), Usage(6, 10, 4))
        return {"pv-one": found, "inline": found}


def test_every_volume_is_measured_where_it_is(tmp_path):
    """[H1, N19]"""
    place = tmp_path / "pods/u/volumes/kubernetes.io~empty-dir/cache"
    place.mkdir(parents=True)
    (place / "file").write_bytes(b"x" * 5000)
    api, driver, clock = Api(str(tmp_path)), Driver(), ManualClock()
    reader = VolumeStatsReader(api, str(tmp_path), driver.stats, clock)
    found = {item.name: item for item in virtual_time.run(reader.of(POD))}
    assert set(found) == {"cache", "data", "scratch", "inline"}
    assert found["cache"].used == 8192
    assert found["data"].shown("shop", "now") == {
        "time": "now", "availableBytes": 60, "capacityBytes": 100, "usedBytes": 40,
        "inodesFree": 6, "inodes": 10, "inodesUsed": 4, "name": "data",
        "pvcRef": {"name": "one", "namespace": "shop"},
    }  # fmt: skip
    assert found["scratch"].claim == "p-scratch"
    assert found["scratch"].capacity > 0
    assert "pvcRef" not in found["inline"].shown("shop", "now")

    text = virtual_time.run(reader.metrics([POD]))
    labels = 'namespace="shop",persistentvolumeclaim="one"'
    assert f"kubelet_volume_stats_available_bytes{{{labels}}} 60" in text
    assert f"kubelet_volume_stats_inodes_used{{{labels}}} 4" in text
    assert "inline" not in text
    assert (driver.asked, api.reads) == (1, 5)  # what was asked a moment ago is known
    virtual_time.run(clock.advance(volume_figures.FRESH_SECONDS))
    virtual_time.run(reader.metrics([POD]))
    assert (driver.asked, api.reads) == (2, 6)


@pytest.mark.parametrize("is_on", [True, False])
def test_the_condition_of_a_volume_is_told_where_that_is_wanted(tmp_path, is_on):
    """[H1]"""
    sick = VolumeStats(Usage(60, 100, 40), None, abnormal=True, message="its disk is slow")
    told = []

    async def stats(_uid):
        return {"pv-one": sick, "inline": VolumeStats(Usage(1, 2, 1), None, abnormal=False)}

    async def story():
        api, clock = Api(str(tmp_path)), ManualClock()
        reader = VolumeStatsReader(
            api, str(tmp_path), stats, clock, lambda *event: told.append(event)
        )  # fmt: skip
        found = {item.name: item.shown("shop", "now") for item in await reader.of(POD)}
        return found, await reader.metrics([POD])

    with features.used(Release(gates={"CSIVolumeHealth": is_on})):
        found, text = virtual_time.run(story())
    labels = 'namespace="shop",persistentvolumeclaim="one"'
    assert (f"kubelet_volume_stats_health_status_abnormal{{{labels}}} 1" in text) is is_on
    assert 'health_status_abnormal{namespace="shop",persistentvolumeclaim="p-scratch"' not in text
    abnormal = [found[name].get("volumeHealthStats") for name in ("data", "inline", "scratch")]
    assert abnormal == ([{"abnormal": True}, {"abnormal": False}, None] if is_on else [None] * 3)
    message = (POD, "VolumeConditionAbnormal", "Volume data: its disk is slow")
    assert told == ([message] if is_on else [])


def test_pods_without_claims_cost_metrics_nothing(tmp_path):
    pod = {"metadata": {"uid": "v", "name": "q"}, "spec": {"volumes": [POD["spec"]["volumes"][0]]}}
    reader = VolumeStatsReader(None, str(tmp_path), None, ManualClock())
    assert virtual_time.run(reader.metrics([pod])) == ""


def test_a_driver_that_hangs_holds_nobody_up(tmp_path, monkeypatch):
    monkeypatch.setattr(volume_figures, "PATIENCE_SECONDS", 0.02)

    async def hangs(uid):
        await asyncio.sleep(10)

    reader = VolumeStatsReader(Api(str(tmp_path)), str(tmp_path), hangs, ManualClock())
    assert virtual_time.run(reader.of(POD)) == []
    assert Metrics().render().strip() == ""
