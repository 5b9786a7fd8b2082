import asyncio
import os
import random

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.api.objects import time_text
from sampan.api.resources import (
    CLUSTER_TRUST_BUNDLES,
    CONFIG_MAPS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_CERTIFICATE_REQUESTS,
    SERVICE_ACCOUNTS,
)
from sampan.api.served import spoken
from sampan.core.clock import SystemClock
from sampan.core.metrics import Metrics
from sampan.core.mounts import mounts_below
from sampan.kubelet.container_spec.generate import NodeFacts
from sampan.kubelet.context import NodeContext
from sampan.kubelet.contracts.runtime import Mount
from sampan.kubelet.contracts.volumes_hook import MountedVolume, SubPathFailure, VolumeFailure
from sampan.kubelet.settings import KubeletSettings
from sampan.kubelet.volumes.node_volumes import NodeVolumes
from sampan.kubelet.volumes.projected_certificates import ProjectedCertificates
from sampan.kubelet.volumes.storage_operations import StorageOperations
from sampan.kubelet.volumes.tracked_objects import TrackedObjects
from tests.support.certificate_story import bundle, certificate
from tests.support.worlds.small_api import SmallApi

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="mounting needs root")


class World:
    def __init__(self, root):
        self.clock = SystemClock()
        self.api = SmallApi(self.clock)
        self.root = root
        self.heard = []
        self.start()

    def start(self):
        """Also again: as a restarted agent."""
        self.tracked = TrackedObjects(self.api, clock=self.clock, rng=random.Random(1))
        self.events = []
        self.metrics = Metrics()
        context = NodeContext(
            KubeletSettings("node-1"), self.api, None, self.clock, self.metrics, random.Random(1)
        )
        self.tasks = context.tasks
        certificates = ProjectedCertificates(
            context, self.heard.append, lambda pod, *told: self.events.append(told)
        )
        self.volumes = NodeVolumes(
            client=self.api, objects=self.tracked, changed=self.heard.append,
            node=NodeFacts("node-1", str(self.root), ""), clock=self.clock, rng=random.Random(1),
            certificates=certificates, operations=StorageOperations(self.metrics, self.clock),
        )  # fmt: skip

    async def words(self, text):
        if self.api.find(CONFIG_MAPS, "shop", "words"):
            await self.api.patch(CONFIG_MAPS, "shop", "words", {"data": {"word": text}})
        else:
            made = {"metadata": {"name": "words"}, "data": {"word": text}}
            await self.api.create(CONFIG_MAPS, made, "shop")
        await asyncio.sleep(0.01)

    async def prepared(self, pod):
        objects = await self.volumes.objects(pod)
        await self.volumes.check(pod, objects)
        return await self.volumes.prepare(pod, objects)


def told(root, story):
    async def run():
        world = World(root)
        try:
            await story(world)
        finally:
            await world.volumes.remove_orphans(lambda uid: False)
            await world.tracked.stop()
            await world.tasks.stop()
        assert mounts_below(str(root)) == []
        assert os.listdir(root / "pods") == []

    asyncio.run(run())


def make_pod(*volumes, uid="u1", **meta):
    return {
        "metadata": {"name": "web", "namespace": "shop", "uid": uid, **meta},
        "spec": {"volumes": list(volumes)},
    }


WORDS = {"name": "c", "configMap": {"name": "words"}}
TOKEN = {
    "name": "t",
    "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]},
}
LABELS = {"name": "d", "downwardAPI": {"items": [
    {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}  # fmt: skip


def test_a_host_path_of_another_type_is_told_before_anything_is_pulled(tmp_path):
    async def story(world):
        (tmp_path / "pods").mkdir()
        path = {"path": str(tmp_path), "type": "File"}
        pod = make_pod({"name": "h", "hostPath": path})
        with pytest.raises(VolumeFailure, match=r"hostPath type check failed: .* is not a file"):
            await world.volumes.check(pod, await world.volumes.objects(pod))

    told(tmp_path, story)


def test_changes_are_written_when_a_pod_is_refreshed_and_only_then(tmp_path):
    """[N15] live updates; an unchanged pod costs nothing"""

    async def story(world):
        await world.words("one")
        pod = make_pod(WORDS, TOKEN, LABELS, labels={"a": "b"})
        places = await world.prepared(pod)
        word = f"{places['c'].host_path}/word"
        link = os.readlink(f"{places['c'].host_path}/..data")
        world.api.calls.clear()
        await world.volumes.refresh(pod)
        assert world.api.calls == []
        assert os.readlink(f"{places['c'].host_path}/..data") == link
        await world.words("two")
        assert world.heard == ["u1"]
        await world.volumes.refresh(pod)
        with open(word) as opened:
            assert opened.read() == "two"
        changed = make_pod(WORDS, TOKEN, LABELS, labels={"a": "c"})
        await world.volumes.refresh(changed)
        with open(f"{places['d'].host_path}/labels") as opened:
            assert opened.read() == 'a="c"'

    told(tmp_path, story)


def test_trust_anchors_and_credentials_are_files_that_follow(tmp_path):
    """[N15]"""
    bundles, requests = spoken(CLUSTER_TRUST_BUNDLES), spoken(POD_CERTIFICATE_REQUESTS)
    source = {"clusterTrustBundle": {"name": "roots", "path": "roots.pem"}}
    own = {"podCertificate": {"signerName": "a.com/b", "keyType": "ED25519", "keyPath": "key.pem",
                              "certificateChainPath": "chain.pem",
                              "credentialBundlePath": "all.pem"}}  # fmt: skip
    pod = make_pod({"name": "v", "projected": {"sources": [source, own], "defaultMode": 0o600}})

    async def story(world):
        await world.api.create(NODES, {"metadata": {"name": "node-1"}})
        await world.api.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, "shop")
        one, two = certificate(ca=True), certificate(ca=True, name="y")
        await world.api.create(bundles, bundle("roots", "v1", one))
        with pytest.raises(VolumeFailure, match="credential bundle is not issued yet"):
            await world.prepared(pod)
        [request] = world.api.objects(requests)
        assert request["spec"]["podUID"] == "u1"
        chain = certificate(now=world.clock.now())
        await world.api.patch(requests, "shop", request["metadata"]["name"], issued(chain, world))
        async with asyncio.timeout(10):
            while not world.heard:
                await asyncio.sleep(0.01)
        place = (await world.prepared(pod))["v"].host_path
        assert read(place, "roots.pem") == one
        assert read(place, "chain.pem") == chain
        assert "PRIVATE KEY" in read(place, "key.pem")
        assert read(place, "all.pem") == read(place, "key.pem") + chain
        world.api.calls.clear()
        await world.volumes.refresh(pod)
        assert world.api.calls == []  # an unchanged pod costs nothing
        world.heard.clear()
        await world.api.patch(bundles, "", "roots", {"spec": {"trustBundle": one + two + one}})
        async with asyncio.timeout(10):
            while not world.heard:
                await asyncio.sleep(0.01)
        await world.volumes.refresh(pod)
        assert sorted(read(place, "roots.pem")) == sorted(one + two)

    def issued(chain, world):
        now = world.clock.now()
        times = {"beginRefreshAt": time_text(now + 3600), "notAfter": time_text(now + 7200)}
        conditions = [{"type": "Issued", "status": "True"}]
        return {"status": {"conditions": conditions, "certificateChain": chain, **times}}

    def read(place, name):
        with open(f"{place}/{name}") as opened:
            return opened.read()

    gates = {"ClusterTrustBundleProjection": True, "ClusterTrustBundle": True}
    with features.used(Release(gates={**gates, "PodCertificateRequest": True})):
        told(tmp_path, story)


LIMIT = {"name": "d", "downwardAPI": {"items": [{"path": "limit", "resourceFieldRef": {
    "containerName": "main", "resource": "limits.memory"}}]}}  # fmt: skip


def test_a_resized_container_is_shown_what_it_has(tmp_path):
    """[N6] [N15]"""

    def limited(memory):
        pod = make_pod(LIMIT)
        resources = {"limits": {"memory": memory}}
        pod["spec"]["containers"] = [{"name": "main", "resources": resources}]
        return pod

    async def story(world):
        places = await world.prepared(limited("32Mi"))
        await world.volumes.refresh(limited("64Mi"))
        with open(f"{places['d'].host_path}/limit") as opened:
            assert opened.read() == str(64 << 20)

    told(tmp_path, story)


def test_a_running_pod_keeps_what_it_has_when_an_object_goes(tmp_path):
    """[N15] as upstream: said in an event, but nothing is taken away and no restart is held up"""

    async def story(world):
        await world.words("one")
        pod = make_pod(WORDS)
        places = await world.prepared(pod)
        await world.api.delete(CONFIG_MAPS, "shop", "words")
        await asyncio.sleep(0.01)
        with pytest.raises(VolumeFailure, match='configmap "words" not found'):
            await world.volumes.refresh(pod)
        assert await world.prepared(pod) == places
        assert os.path.exists(f"{places['c'].host_path}/word")
        assert world.volumes.next_refresh("u1") is not None

    told(tmp_path, story)


def test_a_restarted_agent_finds_what_is_mounted(tmp_path):
    """[N15, N21]"""

    async def story(world):
        memory = {"name": "m", "emptyDir": {"medium": "Memory"}}
        pod = make_pod(memory, TOKEN)
        places = await world.prepared(pod)
        with open(f"{places['m'].host_path}/file", "w") as opened:
            opened.write("kept")
        before = mounts_below(str(tmp_path))
        await world.tracked.stop()
        world.start()
        await world.volumes.refresh(pod)
        assert await world.prepared(pod) == places
        assert mounts_below(str(tmp_path)) == before
        assert os.path.exists(f"{places['m'].host_path}/file")
        await world.volumes.remove_orphans(lambda uid: uid == "u1")
        assert mounts_below(str(tmp_path)) == before
        await world.volumes.clean_up("u1")
        await world.volumes.clean_up("u1")
        assert mounts_below(str(tmp_path)) == []
        assert len(world.tracked) == 0

    told(tmp_path, story)


def test_a_claim_is_followed_to_its_volume(tmp_path):
    """[N15] PV/PVC of hostPath and local type"""

    async def story(world):
        pod = make_pod({"name": "v", "persistentVolumeClaim": {"claimName": "data"}})
        with pytest.raises(VolumeFailure, match='persistentvolumeclaims "data" not found'):
            await world.prepared(pod)
        claim = {"metadata": {"name": "data", "uid": "claim"}, "spec": {"volumeName": "disk"},
                 "status": {"phase": "Bound"}}  # fmt: skip
        await world.api.create(PERSISTENT_VOLUME_CLAIMS, claim, "shop")
        with pytest.raises(VolumeFailure, match='failed to fetch PV "disk" from API server'):
            await world.prepared(pod)
        (tmp_path / "disk").mkdir()
        spec = {"claimRef": {"uid": "claim"}, "local": {"path": str(tmp_path / "disk")}}
        await world.api.create(PERSISTENT_VOLUMES, {"metadata": {"name": "disk"}, "spec": spec})
        assert await world.prepared(pod) == {
            "v": MountedVolume(str(tmp_path / "disk"), relabel=True)
        }
        world.api.calls.clear()
        await world.volumes.refresh(pod)
        assert world.api.calls == []
        os.makedirs(tmp_path / "pods", exist_ok=True)

    told(tmp_path, story)


def test_a_pod_with_a_claim_is_brought_up_to_date_like_any_other(tmp_path):
    async def story(world):
        claim = {"metadata": {"name": "data", "uid": "claim"}, "spec": {"volumeName": "disk"},
                 "status": {"phase": "Bound"}}  # fmt: skip
        await world.api.create(PERSISTENT_VOLUME_CLAIMS, claim, "shop")
        (tmp_path / "disk").mkdir()
        spec = {"claimRef": {"uid": "claim"}, "local": {"path": str(tmp_path / "disk")}}
        await world.api.create(PERSISTENT_VOLUMES, {"metadata": {"name": "disk"}, "spec": spec})
        await world.words("old")
        claimed = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
        pod = make_pod(claimed, WORDS)
        made = await world.prepared(pod)
        await world.words("new")
        await world.volumes.refresh(pod)
        with open(f"{made['c'].host_path}/word") as word:
            assert word.read() == "new"
        assert await world.prepared(pod) == made

    told(tmp_path, story)


def test_a_sub_path_is_bound_or_refused_without_saying_what_the_node_looks_like(tmp_path):
    """[N15] bad input: a link out of the volume"""

    async def story(world):
        pod = make_pod({"name": "e", "emptyDir": {}})
        (place,) = (await world.prepared(pod)).values()
        os.symlink("/etc", f"{place.host_path}/out")
        good = Mount("/x", place.host_path, volume="e", sub_path="in/side")
        plain = Mount("/y", place.host_path, volume="e")
        found, same = await world.volumes.resolve(pod, "c", [good, plain])
        assert same is plain
        assert found.sub_path == ""
        assert found.host_path == f"{tmp_path}/pods/u1/volume-subpaths/e/c/0"
        bad = Mount("/x", place.host_path, volume="e", sub_path="out")
        with pytest.raises(SubPathFailure) as caught:
            await world.volumes.resolve(pod, "c", [bad])
        words = 'failed to prepare subPath for volumeMount "e" of container "c"'
        assert str(caught.value) == words

    told(tmp_path, story)


def test_a_step_that_was_cancelled_is_waited_for_before_the_next_one(tmp_path):
    """[N7] nothing is set up behind the back of a clean-up"""

    async def story(world):
        pod = make_pod(TOKEN, {"name": "m", "emptyDir": {"medium": "Memory"}})
        objects = await world.volumes.objects(pod)
        for pause in (0.0, 0.0002, 0.001):
            step = asyncio.get_running_loop().create_task(world.volumes.prepare(pod, objects))
            await asyncio.sleep(pause)
            step.cancel()
            await asyncio.wait([step])
            await world.volumes.clean_up("u1")
            assert mounts_below(str(tmp_path)) == []

    told(tmp_path, story)


def test_what_was_set_up_is_counted_by_plugin_and_outcome(tmp_path):
    """[N15] storage_operation_duration_seconds"""
    volumes = [{"name": "e", "emptyDir": {}}, {"name": "p", "projected": {"sources": []}}]
    pod = {"metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
           "spec": {"volumes": volumes, "containers": []}}  # fmt: skip
    place = tmp_path / "pods" / "u1" / "volumes"
    place.mkdir(parents=True)
    (place / "kubernetes.io~projected").write_text("in the way")

    async def story(world):
        with pytest.raises((VolumeFailure, OSError)):
            await world.prepared(pod)
        counted = {
            line.partition("{")[2].partition("}")[0]
            for line in world.metrics.render().splitlines()
            if line.startswith("storage_operation_duration_seconds_count")
        }
        assert counted == {
            'volume_plugin="kubernetes.io/empty-dir",operation_name="volume_mount",'
            'status="success",migrated="false"',
            'volume_plugin="kubernetes.io/projected",operation_name="volume_mount",'
            'status="fail-unknown",migrated="false"',
        }

    told(tmp_path, story)
