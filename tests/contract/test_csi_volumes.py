"""The kubelet's side of CSI with a real driver behind a socket: what is called, what is left."""

import asyncio
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sampan.api.resources import (
    CSI_DRIVERS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    SECRETS,
    VOLUME_ATTACHMENTS,
)
from sampan.api.rules.storage import attachment_name
from sampan.core.backoff import Backoff
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.mounts import is_mounted, mounts_below, unmount_below
from sampan.drivers.csi.settings import NAME
from sampan.kubelet.contracts.volumes_hook import VolumeFailure
from sampan.kubelet.csi.csi_volume import CsiVolume, of_inline_volume
from tests.support.worlds.csi_node import NODE, CsiNode, make_pod, make_volume, short_root

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.getuid() != 0, reason="mounting needs root"),
]


@pytest.fixture
def world():
    root = short_root()
    yield CsiNode(root)
    unmount_below(str(root))
    shutil.rmtree(root)


def begun(work):
    return asyncio.get_running_loop().create_task(work)


def told(world, story, driver=None, **api):
    async def run():
        await world.begin(**api)
        async with world.agent() as plugins, world.driver(**(driver or {})) as socket:
            await story(plugins.csi, socket)

    asyncio.run(run())
    assert world.left() == []


def test_a_volume_is_staged_once_for_all_its_pods_and_unstaged_with_the_last(world):
    async def story(csi, socket):
        volume = await make_volume(socket, "v1")
        first, second = make_pod("u1"), make_pod("u2")
        at = (await csi.mount(first, volume)).host_path
        assert at == f"{world.kubelet_root}/pods/u1/volumes/kubernetes.io~csi/pv-v1/mount"
        await csi.mount(second, volume)
        (world.volumes_root / "volumes" / "v1" / "data" / "word").write_text("hello")
        assert Path(at, "word").read_text() == "hello"
        assert world.methods() == ["NodeStageVolume", "NodePublishVolume", "NodePublishVolume"]
        await csi.unmount_pod("u1")
        assert not os.path.exists(at)
        await csi.unmount_pod("u2")
        await world.until(lambda: world.methods()[-1] == "NodeUnstageVolume")
        assert world.methods()[3:] == [
            "NodeUnpublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume",
        ]  # fmt: skip
        await world.until(lambda: not world.left())

    told(world, story)


@pytest.mark.parametrize("kind", ["directory", "loop"])
def test_drivers_that_do_not_stage_publish_alone(world, kind):
    async def story(csi, socket):
        volume = await make_volume(socket, "v1", kind=kind)
        mounted = await csi.mount(make_pod("u1"), replace(volume, read_only=True))
        assert mounted.read_only
        assert is_mounted(mounted.host_path)
        assert world.last("NodePublishVolume").readonly
        assert world.last("NodePublishVolume").staging_target_path == ""
        with pytest.raises(OSError, match="Read-only"):
            Path(mounted.host_path, "word").write_text("hello")
        await csi.unmount_pod("u1")
        await world.until(lambda: not world.left())
        assert world.methods() == ["NodePublishVolume", "NodeUnpublishVolume"]

    told(world, story, driver={"stages": False})


def test_a_block_volume_is_a_device_that_can_be_read_and_written(world):
    async def story(csi, socket):
        volume = await make_volume(socket, "v1", block=True)
        mounted = await csi.mount(make_pod("u1"), volume)
        assert mounted.device == (
            f"{world.kubelet_root}/pods/u1/volumeDevices/kubernetes.io~csi/pv-v1"
        )
        with open(mounted.device, "r+b") as device:
            device.write(b"hello")
        image = world.volumes_root / "volumes" / "v1" / "disk.img"
        os.sync()
        assert image.read_bytes()[:5] == b"hello"
        assert world.last("NodeStageVolume").volume_capability.HasField("block")
        await csi.unmount_pod("u1")
        await world.until(lambda: not world.left())
        assert world.methods()[-1] == "NodeUnstageVolume"

    told(world, story)


def test_an_inline_volume_comes_and_goes_with_its_pod_and_knows_it(world):
    async def story(csi, socket):
        pod = make_pod("u1", securityContext={"fsGroup": 4321})
        source = {"driver": NAME, "volumeAttributes": {"size": "1Mi"}}
        volume = of_inline_volume({"name": "scratch", "csi": source}, pod)
        mounted = await csi.mount(pod, volume)
        asked = world.last("NodePublishVolume")
        assert dict(asked.volume_context) == {
            "size": "1Mi",
            "csi.storage.k8s.io/pod.name": "pod-u1",
            "csi.storage.k8s.io/pod.namespace": "shop",
            "csi.storage.k8s.io/pod.uid": "u1",
            "csi.storage.k8s.io/serviceAccount.name": "clerk",
            "csi.storage.k8s.io/ephemeral": "true",
        }
        assert os.stat(mounted.host_path).st_gid == 4321
        await csi.unmount_pod("u1")
        assert world.methods() == ["NodePublishVolume", "NodeUnpublishVolume"]
        assert os.listdir(world.volumes_root / "volumes") == []

    told(world, story, podInfoOnMount=True)


def test_an_inline_volume_needs_a_driver_that_says_it_can(world):
    async def story(csi, _socket):
        pod = make_pod("u1")
        volume = of_inline_volume({"name": "scratch", "csi": {"driver": NAME}}, pod)
        with pytest.raises(VolumeFailure) as failed:
            await csi.mount(pod, volume)
        assert str(failed.value) == (
            'MountVolume.SetUp failed for volume "scratch" : kubernetes.io/csi: mounter.SetupAt '
            'failed to check volume lifecycle mode: volume mode "Ephemeral" not supported by '
            f'driver {NAME} (only supports ["Persistent"])'
        )
        await csi.unmount_pod("u1")

    told(world, story, volumeLifecycleModes=["Persistent"])


def test_secrets_options_tokens_and_group_reach_the_driver(world):
    async def story(csi, socket):
        for name in ("stage", "publish"):
            secret = {"metadata": {"name": name}, "data": {"key": "dG9w"}}
            await world.api.create(SECRETS, secret, "vault")
        volume = replace(
            await make_volume(socket, "v1"),
            fs_type="ext4", mount_options=("noatime",), attributes={"a": "b"},
            stage_secret=("vault", "stage"), publish_secret=("vault", "publish"),
        )  # fmt: skip
        pod = make_pod("u1", securityContext={"fsGroup": 77})
        await csi.mount(pod, volume)
        staged, published = world.last("NodeStageVolume"), world.last("NodePublishVolume")
        for asked in (staged, published):
            assert asked.secrets["key"] == "top"
            assert asked.volume_context["a"] == "b"
            assert asked.volume_capability.mount.fs_type == "ext4"
            assert list(asked.volume_capability.mount.mount_flags) == ["noatime"]
            assert asked.volume_capability.mount.volume_mount_group == "77"
        assert "csi.storage.k8s.io/serviceAccount.tokens" not in published.volume_context
        tokens = published.secrets["csi.storage.k8s.io/serviceAccount.tokens"]
        assert tokens.startswith('{"bank":{"token":"')
        await csi.unmount_pod("u1")
        await world.until(lambda: not world.left())

    told(
        world, story, driver={"gives_group": True},
        tokenRequests=[{"audience": "bank"}], serviceAccountTokenInSecrets=True,
    )  # fmt: skip


def test_a_secret_that_is_not_there_is_named(world):
    async def story(csi, socket):
        volume = replace(await make_volume(socket, "v1"), stage_secret=("vault", "key"))
        with pytest.raises(VolumeFailure) as failed:
            await csi.mount(make_pod("u1"), volume)
        assert str(failed.value).startswith(
            'MountVolume.MountDevice failed for volume "pv-v1" : fetching NodeStageSecretRef '
            "vault/key failed: kubernetes.io/csi: failed to find the secret key in the namespace "
            "vault with error: "
        )
        await csi.unmount_pod("u1")
        await world.until(lambda: not world.left())

    told(world, story)


FAILED = {
    ("NodeStageVolume", "INTERNAL"): ("MountDevice", "Internal"),
    ("NodeStageVolume", "DEADLINE_EXCEEDED"): ("MountDevice", "DeadlineExceeded"),
    ("NodePublishVolume", "INTERNAL"): ("SetUp", "Internal"),
    ("NodePublishVolume", "ABORTED"): ("SetUp", "Aborted"),
}


@pytest.mark.parametrize(("method", "code"), sorted(FAILED))
def test_a_failed_call_is_told_and_repeated(world, method, code):
    async def story(csi, socket):
        volume, pod = await make_volume(socket, "v1"), make_pod("u1")
        world.faults[method] = [GrpcFailure("not now", code=code)]
        step, word = FAILED[method, code]
        with pytest.raises(VolumeFailure) as failed:
            await csi.mount(pod, volume)
        assert str(failed.value) == (
            f'MountVolume.{step} failed for volume "pv-v1" : rpc error: code = {word} desc = '
            "not now"
        )
        mounted = await csi.mount(pod, volume)
        assert is_mounted(mounted.host_path)
        await csi.unmount_pod("u1")
        await world.until(lambda: not world.left())
        assert world.methods().count("NodeUnstageVolume") == 1

    told(world, story)


@pytest.mark.parametrize(
    ("method", "code", "undone"),
    [
        ("NodeStageVolume", "INTERNAL", []),
        ("NodeStageVolume", "UNAVAILABLE", ["NodeUnstageVolume"]),
        ("NodePublishVolume", "INTERNAL", ["NodeUnstageVolume"]),
        ("NodePublishVolume", "UNAVAILABLE", ["NodeUnpublishVolume", "NodeUnstageVolume"]),
    ],
)
def test_what_a_call_may_have_done_is_undone_with_the_pod(world, method, code, undone):
    async def story(csi, socket):
        volume, pod = await make_volume(socket, "v1"), make_pod("u1")
        world.faults[method] = [GrpcFailure("not now", code=code)]
        with pytest.raises(VolumeFailure):
            await csi.mount(pod, volume)
        before = len(world.methods())
        await csi.unmount_pod("u1")
        await world.until(lambda: not world.left() and len(world.methods()) - before >= len(undone))
        assert world.methods()[before:] == undone

    told(world, story)


def test_an_unstage_that_fails_is_repeated_and_one_that_is_wanted_again_is_not_done(
    world, monkeypatch
):
    monkeypatch.setattr("sampan.kubelet.csi.csi_volumes.RETRY", Backoff(0.01, 0.02))

    async def story(csi, socket):
        volume = await make_volume(socket, "v1")
        await csi.mount(make_pod("u1"), volume)
        world.faults["NodeUnstageVolume"] = [GrpcFailure("busy", code="INTERNAL")] * 3
        await csi.unmount_pod("u1")
        await world.until(lambda: not world.left())
        assert world.methods().count("NodeUnstageVolume") == 4
        await csi.mount(make_pod("u2"), volume)
        world.faults["NodeUnstageVolume"] = [GrpcFailure("busy", code="INTERNAL")] * 1000
        await csi.unmount_pod("u2")
        await world.until(lambda: world.methods().count("NodeUnstageVolume") > 5)
        await csi.mount(make_pod("u3"), volume)
        world.faults.clear()
        count = world.methods().count("NodeUnstageVolume")
        await asyncio.sleep(0.1)
        assert world.methods().count("NodeUnstageVolume") == count
        await csi.unmount_pod("u3")
        await world.until(lambda: not world.left())

    told(world, story)


def test_without_its_driver_a_pod_is_told_and_woken_when_the_driver_comes(world):
    async def run():
        await world.begin()
        async with world.agent() as plugins:
            pod = make_pod("u1")
            volume = CsiVolume("pv-v1", NAME, "v1", access_modes=("ReadWriteOnce",))
            with pytest.raises(VolumeFailure) as failed:
                await plugins.csi.mount(pod, volume)
            assert str(failed.value) == (
                'MountVolume.MountDevice failed for volume "pv-v1" : kubernetes.io/csi: '
                f"attacher.MountDevice failed to create newCsiDriverClient: driver name {NAME} not "
                "found in the list of registered CSI drivers"
            )
            assert world.heard.woken == 0
            async with world.driver() as socket:
                assert world.heard.woken
                await make_volume(socket, "v1")
                await plugins.csi.mount(pod, volume)
            # It has gone before the pod.
            await world.until(lambda: not plugins.driver_names())
            with pytest.raises(VolumeFailure, match=r"Unmounter\.TearDownAt failed to get CSI"):
                await plugins.csi.unmount_pod("u1")
            async with world.driver():
                await plugins.csi.unmount_pod("u1")
                await world.until(lambda: not world.left())

    asyncio.run(run())


def test_an_attachable_volume_waits_until_it_is_in_use_and_attached(world):
    async def story(csi, socket):
        volume = await make_volume(socket, "v1")
        mounting = begun(csi.mount(make_pod("u1"), volume))
        await world.until(lambda: csi.in_use())
        name = f"kubernetes.io/csi/{NAME}^v1"
        assert csi.in_use() == (name,)
        assert world.heard.poked
        await asyncio.sleep(0.02)
        assert world.methods() == []
        attached = {"volumesAttached": [{"name": name, "devicePath": ""}]}
        await status(attached)
        await asyncio.sleep(0.02)
        assert world.methods() == []  # the API does not show it as in use yet
        meta = {"name": attachment_name("v1", NAME, NODE)}
        made = {"metadata": meta, "status": {"attached": True, "attachmentMetadata": {"k": "v"}}}
        await world.api.create(VOLUME_ATTACHMENTS, made)
        await status({"volumesInUse": [name]})
        await mounting
        for method in ("NodeStageVolume", "NodePublishVolume"):
            assert dict(world.last(method).publish_context) == {"k": "v"}
        await csi.unmount_pod("u1")
        await world.until(lambda: csi.in_use() == ())

    async def status(part):
        await world.api.patch(NODES, "", NODE, {"status": part}, subresource="status")
        world.plugins.node_seen(world.node())

    told(world, story, attachRequired=True)


def test_an_attachment_that_failed_says_why(world):
    async def story(csi, socket):
        volume = await make_volume(socket, "v1")
        name = f"kubernetes.io/csi/{NAME}^v1"
        meta = {"name": attachment_name("v1", NAME, NODE)}
        error = {"attached": False, "attachError": {"message": "the disk is elsewhere"}}
        await world.api.create(VOLUME_ATTACHMENTS, {"metadata": meta, "status": error})
        status = {"volumesAttached": [{"name": name}], "volumesInUse": [name]}
        await world.api.patch(NODES, "", NODE, {"status": status}, subresource="status")
        with pytest.raises(VolumeFailure) as failed:
            await csi.mount(make_pod("u1"), volume)
        assert str(failed.value) == (
            'MountVolume.WaitForAttach failed for volume "pv-v1" : the disk is elsewhere'
        )
        await csi.unmount_pod("u1")
        await world.until(lambda: not world.left())

    told(world, story, attachRequired=True)


def test_nobody_attaches_it_in_time(world, monkeypatch):
    monkeypatch.setattr("sampan.kubelet.csi.attachments.WAIT_SECONDS", 0.05)

    async def story(csi, socket):
        volume = await make_volume(socket, "v1")
        with pytest.raises(VolumeFailure) as failed:
            await csi.mount(make_pod("u1"), volume)
        assert failed.value.reason == ""  # the attach-detach controller tells why
        assert str(failed.value) == (
            "Unable to attach or mount volumes: unmounted volumes=[pv-v1], unattached "
            "volumes=[pv-v1], failed to process volumes=[]: context deadline exceeded"
        )
        await csi.unmount_pod("u1")

    told(world, story, attachRequired=True)


def test_a_node_that_can_take_no_more_refuses_the_pod_and_says_how_many_it_takes(
    world, monkeypatch
):
    monkeypatch.setattr("sampan.kubelet.csi.attachments.WAIT_SECONDS", 0.05)

    async def story(csi, socket):
        volume = await make_volume(socket, "v1")
        meta = {"name": attachment_name("v1", NAME, NODE)}
        error = {"attached": False, "attachError": {"message": "full", "errorCode": 8}}
        await world.api.create(VOLUME_ATTACHMENTS, {"metadata": meta, "status": error})
        asked = [name for name, _ in world.calls].count("NodeGetInfo")
        with pytest.raises(VolumeFailure) as failed:
            await csi.mount(make_pod("u1"), volume)
        verdict = failed.value.verdict
        assert verdict.reason == "VolumeAttachmentLimitExceeded"
        assert verdict.message == (
            "Pod was rejected: Node has reached its volume attachment limit, rejecting pod. "
            "unmounted volumes=[pv-v1], unattached volumes=[pv-v1], failed to process volumes=[]: "
            "context deadline exceeded"
        )
        assert [name for name, _ in world.calls].count("NodeGetInfo") == asked + 1
        await csi.unmount_pod("u1")

    told(world, story, attachRequired=True, nodeAllocatableUpdatePeriodSeconds=3600)


def test_how_many_volumes_a_node_takes_is_asked_again_as_often_as_the_driver_wants(world):
    async def story(_csi, _socket):
        def asked():
            return [name for name, _ in world.calls].count("NodeGetInfo")

        await world.until(lambda: asked() > 2)
        gone = {"spec": {"nodeAllocatableUpdatePeriodSeconds": None}}
        await world.api.patch(CSI_DRIVERS, "", NAME, gone)
        await asyncio.sleep(0.1)
        before = asked()
        await asyncio.sleep(0.1)
        assert asked() == before

    told(world, story, nodeAllocatableUpdatePeriodSeconds=0.02)


def test_a_volume_of_one_pod_is_refused_to_another(world):
    async def story(csi, socket):
        volume = replace(await make_volume(socket, "v1"), access_modes=("ReadWriteOncePod",))
        await csi.mount(make_pod("u1"), volume)
        await csi.mount(make_pod("u1"), volume)  # again, as after a restart
        with pytest.raises(VolumeFailure) as failed:
            await csi.mount(make_pod("u2"), volume)
        assert str(failed.value) == (
            'MountVolume.SetUp failed for volume "pv-v1" : volume uses the ReadWriteOncePod '
            "access mode and is already in use by another pod"
        )
        await csi.unmount_pod("u2")
        await csi.unmount_pod("u1")
        await world.until(lambda: not world.left())

    told(world, story)


def test_the_next_agent_goes_on_with_what_it_finds(world):
    """One pod stays, one has gone meanwhile; a volume was staged for nobody."""

    async def run():
        await world.begin(podInfoOnMount=True)
        async with world.agent() as plugins, world.driver() as socket:
            kept, left = await make_volume(socket, "kept"), await make_volume(socket, "left")
            inline = of_inline_volume({"name": "i", "csi": {"driver": NAME}}, make_pod("u2"))
            at = (await plugins.csi.mount(make_pod("u1"), kept)).host_path
            await plugins.csi.mount(make_pod("u2"), kept)
            await plugins.csi.mount(make_pod("u2"), left)
            await plugins.csi.mount(make_pod("u2"), inline)
        world.calls.clear()
        async with world.agent() as plugins:
            assert plugins.csi.has("u1")
            assert plugins.csi.has("u2")
            async with world.driver():
                # What the kubelet does with pods that it does not know any more.
                await plugins.csi.unmount_pod("u2")
                plugins.csi.sweep()
                await world.until(lambda: "NodeUnstageVolume" in world.methods())
                assert world.last("NodeUnstageVolume").volume_id == "left"
                mounted = await plugins.csi.mount(make_pod("u1"), kept)
                assert mounted.host_path == at
                assert world.methods().count("NodeStageVolume") == 1  # to be sure
                mounts = [place for place in mounts_below(str(world.kubelet_root))
                          if "pods/u1" in place]  # fmt: skip
                assert mounts == [at]  # and not twice
                await plugins.csi.unmount_pod("u1")
                await world.until(lambda: not world.left())

    asyncio.run(run())


def test_whoever_is_cancelled_leaves_and_what_was_asked_for_comes_to_its_end(world):
    async def story(csi, socket):
        volume = await make_volume(socket, "v1", kind="loop")
        mounting = begun(csi.mount(make_pod("u1"), volume))
        await world.until(lambda: "NodeStageVolume" in world.methods())
        mounting.cancel()
        await asyncio.wait([mounting])
        await csi.unmount_pod("u1")
        await world.until(lambda: not world.left())
        order = [name for name in world.methods() if name != "NodeGetVolumeStats"]
        assert order == [
            "NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume",
        ]  # fmt: skip

    told(world, story)


async def claimed(world, volume, *, size="64Mi", held="32Mi", **status):
    """A PersistentVolume that has grown, and its claim."""
    spec = {"capacity": {"storage": size}, "csi": {}}
    await world.api.create(PERSISTENT_VOLUMES, {"metadata": {"name": volume.name}, "spec": spec})
    requests = {"resources": {"requests": {"storage": size}}, "accessModes": ["ReadWriteOnce"]}
    claim = {
        "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": requests,
        "status": {"capacity": {"storage": held}, **status},
    }  # fmt: skip
    await world.api.create(PERSISTENT_VOLUME_CLAIMS, claim, "shop")
    return replace(volume, claim=("shop", "data"), capacity=size, claimed=held)


PENDING = {
    "allocatedResources": {"storage": "64Mi"},
    "allocatedResourceStatuses": {"storage": "NodeResizePending"},
}


@pytest.mark.parametrize("status", [{}, PENDING], ids=["older resizer", "resizer of today"])
def test_a_volume_that_has_grown_grows_on_the_node_when_it_is_mounted(world, status):
    async def story(csi, socket):
        made = await make_volume(socket, "v1")
        volume = await claimed(world, made, **status)
        await csi.mount(make_pod("u1", nodeName=NODE), volume)
        asked = world.last("NodeExpandVolume")
        assert asked.capacity_range.required_bytes == 64 << 20
        assert asked.staging_target_path.endswith("/globalmount")
        assert asked.volume_path.endswith("/pods/u1/volumes/kubernetes.io~csi/pv-v1/mount")
        claim = world.api.find(PERSISTENT_VOLUME_CLAIMS, "shop", "data")
        assert claim["status"]["capacity"] == {"storage": "64Mi"}
        assert not claim["status"].get("allocatedResourceStatuses")
        told_of = [(about["kind"], reason, text) for about, _, reason, text in world.heard.events]
        text = f'MountVolume.NodeExpandVolume succeeded for volume "pv-v1" {NODE}'
        assert told_of == [
            ("Pod", "FileSystemResizeSuccessful", text),
            ("PersistentVolumeClaim", "FileSystemResizeSuccessful", text),
        ]
        await csi.unmount_pod("u1")
        await world.until(lambda: not world.left())

    told(world, story)


def test_a_volume_grows_while_it_is_in_use(world, monkeypatch):
    monkeypatch.setattr("sampan.kubelet.csi.csi_volumes.LOOK_SECONDS", 0.0)

    async def story(csi, socket):
        made = await make_volume(socket, "v1")
        volume = await claimed(world, made, size="32Mi")
        pod = make_pod("u1")
        await csi.mount(pod, volume)
        await csi.refresh(pod)
        assert "NodeExpandVolume" not in world.methods()
        grown = {"spec": {"capacity": {"storage": "64Mi"}}}
        await world.api.patch(PERSISTENT_VOLUMES, "", "pv-v1", grown)
        world.faults["NodeExpandVolume"] = [GrpcFailure("not now", code="INTERNAL")]
        with pytest.raises(VolumeFailure) as failed:
            await csi.refresh(pod)
        assert failed.value.reason == "VolumeResizeFailed"
        assert str(failed.value) == (
            'NodeExpandVolume.NodeExpandVolume failed for volume "pv-v1" : Expander.NodeExpand '
            "failed to expand the volume : rpc error: code = Internal desc = not now"
        )
        world.faults["NodeExpandVolume"] = [GrpcFailure("in use", code="FAILED_PRECONDITION")]
        await csi.refresh(pod)
        await csi.refresh(pod)
        assert world.methods().count("NodeExpandVolume") == 2  # not before the next mount
        await csi.unmount_pod("u1")
        await csi.mount(pod, volume)
        await csi.refresh(pod)
        assert world.methods().count("NodeExpandVolume") == 3
        await csi.unmount_pod("u1")
        await world.until(lambda: not world.left())

    told(world, story)


def test_a_size_that_cannot_be_is_said_to_the_claim(world):
    async def story(csi, socket):
        volume = await claimed(world, await make_volume(socket, "v1"), **PENDING)
        world.faults["NodeExpandVolume"] = [GrpcFailure("too large", code="OUT_OF_RANGE")]
        with pytest.raises(VolumeFailure) as failed:
            await csi.mount(make_pod("u1"), volume)
        assert str(failed.value) == (
            'MountVolume.Setup failed while expanding volume for volume "pv-v1" : '
            "Expander.NodeExpand failed to expand the volume rpc error: code = OutOfRange desc = "
            "too large"
        )
        status = world.api.find(PERSISTENT_VOLUME_CLAIMS, "shop", "data")["status"]
        assert status["allocatedResourceStatuses"] == {"storage": "NodeResizeInfeasible"}
        assert [one["type"] for one in status["conditions"]] == ["NodeResizeError"]
        await csi.mount(make_pod("u1"), volume)  # the resizer's turn: the pod runs meanwhile
        await csi.unmount_pod("u1")
        await world.until(lambda: not world.left())

    told(world, story)


def test_a_driver_that_wants_it_is_asked_again_and_again(world, monkeypatch):
    monkeypatch.setattr("sampan.kubelet.csi.csi_volumes.LOOK_SECONDS", 0.0)

    async def story(csi, socket):
        volume, pod = await make_volume(socket, "v1"), make_pod("u1")
        mounted = await csi.mount(pod, volume)
        await csi.refresh(pod)
        assert world.methods().count("NodePublishVolume") == 2
        world.faults["NodePublishVolume"] = [GrpcFailure("not now", code="INTERNAL")]
        with pytest.raises(VolumeFailure, match=r"MountVolume\.SetUp failed"):
            await csi.refresh(pod)
        assert is_mounted(mounted.host_path)  # what the pod has stays
        await csi.unmount_pod("u1")
        await world.until(lambda: not world.left())

    told(world, story, requiresRepublish=True)


def test_a_driver_says_how_full_a_volume_is(world):
    async def story(csi, socket):
        volume, block = await make_volume(socket, "v1"), await make_volume(socket, "b", block=True)
        await csi.mount(make_pod("u1"), volume)
        await csi.mount(make_pod("u1"), block)
        found = await csi.stats("u1")
        assert found["pv-v1"].bytes.total > found["pv-v1"].bytes.available > 0
        assert found["pv-v1"].inodes.total > 0
        assert found["pv-v1"].abnormal is False
        assert found["pv-b"].bytes.total == 32 << 20
        world.faults["NodeGetVolumeStats"] = [GrpcFailure("no", code="INTERNAL")]
        assert set(await csi.stats("u1")) in ({"pv-v1"}, {"pv-b"})
        await csi.unmount_pod("u1")
        await world.until(lambda: not world.left())

    told(world, story)


def test_a_label_of_selinux_reaches_the_driver_and_is_found_again(world):
    """The machine has none: what it would have is made up, and the driver notes the calls."""
    options = {"seLinuxOptions": {"level": "s0:c1,c2"}}
    label = "system_u:object_r:container_file_t:s0:c1,c2"

    def pod(uid, **context):
        mounted = [{"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}]
        return make_pod(uid, containers=mounted, volumes=volumes, securityContext=context)

    async def story(csi, socket):
        volume = replace(
            await make_volume(socket, "v1"),
            access_modes=("ReadWriteOncePod",), claim=("shop", "claim"),
            capacity="1Gi", claimed="1Gi",
        )  # fmt: skip
        mounted = await csi.mount(pod("u1", **options), volume)
        assert not mounted.relabel
        for method in ("NodeStageVolume", "NodePublishVolume"):
            flags = list(world.last(method).volume_capability.mount.mount_flags)
            assert flags == [f'context="{label}"'], method
        [note] = (world.kubelet_root / "plugins").rglob("vol_data.json")
        assert json.loads(note.read_text())["seLinuxMountContext"] == label
        await csi.unmount_pod("u1")
        # Another pod with another label: it is staged anew.
        await csi.mount(pod("u2"), volume)
        assert list(world.last("NodeStageVolume").volume_capability.mount.mount_flags) == []
        await csi.unmount_pod("u2")
        await world.until(lambda: not world.left())

    world.machine = replace(world.machine, selinux_context="system_u:object_r:container_file_t:s0")
    told(world, story, seLinuxMount=True)
