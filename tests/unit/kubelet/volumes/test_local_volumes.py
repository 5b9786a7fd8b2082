import asyncio
import os

import pytest

from sampan.api.resources import NODES, PERSISTENT_VOLUMES
from sampan.controllers.storage.volume_protection import volume_protection_controller
from sampan.core.clock import SystemClock
from sampan.core.tasks import Tasks
from sampan.kubelet.volumes.local_volumes import LocalVolumes, step_for
from tests.support.worlds.control_plane import ControlPlane


def volume(
    name="pvc-1", path="/provisioned/pvc-1", policy="Delete", deleted=False, phase="Released"
):
    meta = {
        "name": name,
        "annotations": {"pv.kubernetes.io/provisioned-by": "sampan.io/local"},
        "finalizers": ["sampan.io/local-volume"],
    }
    if deleted:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"local": {"path": path}, "persistentVolumeReclaimPolicy": policy}
    return {"metadata": meta, "spec": spec, "status": {"phase": phase}}


def test_a_volume_lives_and_goes():
    assert step_for(volume(), "/provisioned") == "make"
    assert step_for(volume(deleted=True), "/provisioned") == "remove"
    assert step_for(volume(deleted=True, policy="Retain"), "/provisioned") == "let go"
    assert step_for(volume(deleted=True, phase="Bound"), "/provisioned") is None


@pytest.mark.parametrize(
    "path",
    ["/etc", *(f"/provisioned{rest}" for rest in ("", "/", "/other", "/../etc", "/pvc-1/.."))],
)
def test_no_path_but_the_volumes_own_is_ever_touched(path):
    assert step_for(volume(path=path), "/provisioned") is None
    assert step_for(volume(path=path, deleted=True), "/provisioned") is None


def test_a_name_is_never_a_way_out():
    assert step_for(volume(name="..", path="/provisioned/..", deleted=True), "/provisioned") is None


def full_volume(root, name):
    made = volume(name, f"{root}/{name}")
    term = {"matchExpressions": [{"key": "h", "operator": "In", "values": ["n"]}]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        **made["spec"],
    }
    return {**made, "apiVersion": "v1", "kind": "PersistentVolume", "spec": spec}


async def until(question):
    async with asyncio.timeout(30):
        while not await question():
            await asyncio.sleep(0.01)


def test_directories_are_made_and_removed_with_all_that_is_in_them(tmp_path):
    root, outside = str(tmp_path / "volumes"), tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")

    async def story():
        # The finalizer that protects volumes goes by the controller that it belongs to.
        async with ControlPlane(lambda: [volume_protection_controller()]) as plane:
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
            await plane.client.create(NODES, node)
            await plane.client.create(PERSISTENT_VOLUMES, full_volume(root, "pvc-1"))
            tasks = Tasks("test")
            volumes = LocalVolumes(
                client=plane.client, node_client=plane.client, node_name="n", root=root,
                clock=SystemClock(),
            )  # fmt: skip
            tasks.start("volumes", volumes.run())

            async def is_made():
                return os.path.isdir(f"{root}/pvc-1")

            async def is_gone():
                return not (await plane.client.list(PERSISTENT_VOLUMES)).items

            await until(is_made)

            async def is_told():
                found = await plane.client.get(NODES, "", "n")
                notes = found["metadata"].get("annotations") or {}
                return notes.get("sampan.io/local-volumes") == root

            await until(is_told)
            await plane.client.delete(NODES, "", "n")
            await plane.client.create(NODES, node)  # registered anew: it has to be told again
            await until(is_told)
            os.symlink(outside, f"{root}/pvc-1/way-out")
            await plane.client.delete(PERSISTENT_VOLUMES, "", "pvc-1")
            await until(is_gone)
            assert os.listdir(root) == []
            assert (outside / "precious").read_text() == "x"
            await tasks.stop()

    asyncio.run(story())
