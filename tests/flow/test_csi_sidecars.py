"""A CSI driver at a socket, with its sidecars, beside a control plane [H1]."""

import asyncio
import contextlib
import json
import shutil
import tempfile
from pathlib import Path

import pytest

from sampan.api.errors import NotFound
from sampan.api.resources import (
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    SECRETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    VOLUME_ATTRIBUTES_CLASSES,
)
from sampan.controllers.catalog import ControllerSettings, all_controllers
from sampan.controllers.controller import selected_controllers
from sampan.drivers.csi.installed_driver import InstalledDriver
from sampan.drivers.csi.settings import NAME, TOPOLOGY_KEY, DriverSettings
from sampan.drivers.sidecars.snapshot_kinds import CONTENTS, SNAPSHOTS
from tests.support.virtual_time import LoopClock
from tests.support.worlds.control_plane import ControlPlane

pytestmark = pytest.mark.slow

NODE, SPACE, MIB = "one", "default", 1 << 20
CONTROLLERS = [
    "persistentvolume-binder-controller", "persistentvolume-expander-controller",
    "pvc-protection", "pv-protection",
]  # fmt: skip
ROWS = {
    "PersistentVolumeClaim": PERSISTENT_VOLUME_CLAIMS,
    "VolumeSnapshot": SNAPSHOTS,
    "StorageClass": STORAGE_CLASSES,
    "VolumeAttributesClass": VOLUME_ATTRIBUTES_CLASSES,
    "VolumeAttachment": VOLUME_ATTACHMENTS,
    "Secret": SECRETS,
    "Node": NODES,
    "CSINode": CSI_NODES,
}


class World:
    """What a story is told with."""

    def __init__(self, plane, root):
        self.client, self.root, self.faults = plane.client, root, root / "faults.json"
        self.volumes = root / "volumes"

    async def make(self, *objects):
        for one in objects:
            row = ROWS[one["kind"]]
            await self.client.create(row, one, SPACE if row.namespaced else "")

    async def find(self, row, name):
        """Empty: it is not there."""
        with contextlib.suppress(NotFound):
            return await self.client.get(row, SPACE if row.namespaced else "", name)
        return {}

    async def until(self, row, name, condition):
        async with asyncio.timeout(30):
            while not condition(found := await self.find(row, name)):
                await asyncio.sleep(0.01)
        return found

    async def bound(self, name):
        claim = await self.until(
            PERSISTENT_VOLUME_CLAIMS, name,
            lambda found: (found.get("status") or {}).get("phase") == "Bound",
        )  # fmt: skip
        return await self.client.get(PERSISTENT_VOLUMES, "", claim["spec"]["volumeName"])

    async def change(self, name, **spec):
        await self.client.patch(
            PERSISTENT_VOLUME_CLAIMS, SPACE, name, {"spec": spec}, patch_type="merge"
        )

    async def told(self, reason):
        """The message of an event."""
        async with asyncio.timeout(30):
            while True:
                for event in (await self.client.list(EVENTS, SPACE)).items:
                    if event["reason"] == reason:
                        return event["message"]
                await asyncio.sleep(0.01)

    def fail(self, **faults):
        self.faults.write_text(json.dumps(faults))

    def data(self, volume):
        return self.volumes / "volumes" / volume["spec"]["csi"]["volumeHandle"] / "data"


def told(story, **settings):
    root = Path(tempfile.mkdtemp(prefix="sampan-csi-"))

    def controllers():
        chosen = ControllerSettings(root_ca="PEM", clock=LoopClock())
        return selected_controllers(all_controllers(chosen), CONTROLLERS)

    async def run():
        async with ControlPlane(controllers) as plane:
            world = World(plane, root)
            chosen = DriverSettings(NODE, str(world.volumes), faults=str(world.faults), **settings)
            driver = InstalledDriver(
                chosen, str(root / "csi.sock"), "", lambda: plane.client, LoopClock()
            )
            await world.make(node(), csi_node())
            await driver.start()
            try:
                await world.make(storage_class())
                await story(world)
            finally:
                await driver.stop()

    try:
        asyncio.run(run())
    finally:
        shutil.rmtree(root)


def node():
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": NODE, "labels": {TOPOLOGY_KEY: NODE}}}  # fmt: skip


def csi_node():
    return {
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": NODE},
        "spec": {"drivers": [{"name": NAME, "nodeID": NODE, "topologyKeys": [TOPOLOGY_KEY]}]},
    }  # fmt: skip


def storage_class(name="now", **parameters):
    return {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": NAME, "allowVolumeExpansion": True, "parameters": parameters,
    }  # fmt: skip


def claim(name, mebibytes=8, **spec):
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "now",
                 "resources": {"requests": {"storage": f"{mebibytes}Mi"}}, **spec},
    }  # fmt: skip


def snapshot(name, source, snapshot_class="csi"):
    return {
        "apiVersion": SNAPSHOTS.api_version, "kind": SNAPSHOTS.kind,
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {"volumeSnapshotClassName": snapshot_class,
                 "source": {"persistentVolumeClaimName": source}},
    }  # fmt: skip


def status_of(found):
    return found.get("status") or {}


def test_a_claim_has_a_volume_and_takes_it_along():
    async def story(world):
        await world.make(claim("data"))
        volume = await world.bound("data")
        assert volume["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == NAME
        terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert terms == [
            {"matchExpressions": [{"key": TOPOLOGY_KEY, "operator": "In", "values": [NODE]}]}
        ]
        assert world.data(volume).is_dir()
        text = f"Successfully provisioned volume {volume['metadata']['name']}"
        assert await world.told("ProvisioningSucceeded") == text
        await world.client.delete(PERSISTENT_VOLUME_CLAIMS, SPACE, "data")
        await world.until(PERSISTENT_VOLUMES, volume["metadata"]["name"], lambda found: not found)
        assert not world.data(volume).exists()

    told(story)


def test_copies_are_made_of_snapshots_and_of_claims():
    async def story(world):
        await world.make(snapshot("early", "data"))  # waits for its claim
        await world.make(claim("data"))
        volume = await world.bound("data")
        await world.until(SNAPSHOTS, "early", lambda found: status_of(found).get("readyToUse"))
        (world.data(volume) / "word").write_text("hello")
        await world.make(snapshot("kept", "data"))
        kept = await world.until(
            SNAPSHOTS, "kept", lambda found: status_of(found).get("readyToUse")
        )
        assert status_of(kept)["restoreSize"] == "8Mi"
        of_kept = {"apiGroup": SNAPSHOTS.group, "kind": "VolumeSnapshot", "name": "kept"}
        of_claim = {"kind": "PersistentVolumeClaim", "name": "data"}
        await world.make(claim("less", 4, dataSource=of_kept))
        assert "is less than the size" in await world.told("ProvisioningFailed")
        await world.make(
            claim("restored", dataSource=of_kept), claim("cloned", dataSource=of_claim)
        )
        for name in ("restored", "cloned"):
            assert (world.data(await world.bound(name)) / "word").read_text() == "hello"
        content = status_of(kept)["boundVolumeSnapshotContentName"]
        await world.client.delete(SNAPSHOTS, SPACE, "kept")
        for row, name in ((SNAPSHOTS, "kept"), (CONTENTS, content)):
            await world.until(row, name, lambda found: not found)
        of_other = {"apiGroup": "example.com", "kind": "Backup", "name": "b"}
        await world.make(claim("filled", dataSourceRef=of_other))
        async with asyncio.timeout(30):
            while "Assuming an external populator" not in str(
                (await world.client.list(EVENTS, SPACE)).items
            ):
                await asyncio.sleep(0.01)

    told(story)


def test_a_snapshot_of_no_class_says_so():
    async def story(world):
        await world.make(claim("data"))
        await world.bound("data")
        await world.make(snapshot("lost", "data", "nowhere"))
        found = await world.until(SNAPSHOTS, "lost", lambda found: "error" in status_of(found))
        assert status_of(found)["error"]["message"] == (
            "failed to get snapshot class with error volumesnapshotclass.snapshot.storage.k8s.io "
            '"nowhere" not found'
        )
        await world.client.delete(SNAPSHOTS, SPACE, "lost")
        await world.until(SNAPSHOTS, "lost", lambda found: not found)

    told(story)


def test_a_volume_grows_and_a_failure_is_told():
    async def story(world):
        await world.make(claim("data"))
        volume = (await world.bound("data"))["metadata"]["name"]
        world.fail(ControllerExpandVolume={"code": "UNAVAILABLE", "message": "busy"})
        await world.change("data", resources={"requests": {"storage": "16Mi"}})
        assert await world.told("VolumeResizeFailed") == (
            f'resize volume "{volume}" by resizer "{NAME}" failed: '
            "rpc error: code = Unavailable desc = busy"
        )
        world.fail()
        found = await world.until(
            PERSISTENT_VOLUMES, volume, lambda found: found["spec"]["capacity"]["storage"] == "16Mi"
        )
        assert found["spec"]["csi"]["driver"] == NAME
        after = await world.until(
            PERSISTENT_VOLUME_CLAIMS, "data",
            lambda found: status_of(found).get("allocatedResourceStatuses", {}).get("storage")
            != "ControllerResizeInProgress",
        )  # fmt: skip
        assert status_of(after)["allocatedResources"] == {"storage": "16Mi"}

    told(story)


def test_attributes_of_a_class_reach_the_driver():
    async def story(world):
        kind = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass",
                "driverName": NAME}  # fmt: skip
        await world.make(
            {**kind, "metadata": {"name": "gold"}, "parameters": {"tier": "gold"}},
            {**kind, "metadata": {"name": "odd"}, "parameters": {"colour": "red"}},
            claim("data"),
        )
        volume = (await world.bound("data"))["metadata"]["name"]
        await world.change("data", volumeAttributesClassName="gold")
        await world.until(
            PERSISTENT_VOLUME_CLAIMS, "data",
            lambda found: status_of(found).get("currentVolumeAttributesClassName") == "gold",
        )  # fmt: skip
        changed = await world.client.get(PERSISTENT_VOLUMES, "", volume)
        assert changed["spec"]["volumeAttributesClassName"] == "gold"
        await world.change("data", volumeAttributesClassName="odd")
        found = await world.until(
            PERSISTENT_VOLUME_CLAIMS, "data",
            lambda found: (status_of(found).get("modifyVolumeStatus") or {}).get("status")
            == "Infeasible",
        )  # fmt: skip
        assert status_of(found)["currentVolumeAttributesClassName"] == "gold"

    told(story)


def test_what_is_left_is_told_to_the_scheduler():
    async def story(world):
        async with asyncio.timeout(30):
            while not (
                listed := await world.client.list(CSI_STORAGE_CAPACITIES, "kube-system")
            ).items:
                await asyncio.sleep(0.01)
        found = {item["storageClassName"]: item for item in listed.items}
        assert found["csi"]["capacity"] == "64Mi"
        assert found["csi"]["nodeTopology"] == {"matchLabels": {TOPOLOGY_KEY: NODE}}
        assert "now" not in found  # nobody chooses a node by it

    told(story, capacity_bytes=64 * MIB)


def test_a_volume_goes_after_its_attachment():
    async def story(world):
        await world.make(claim("data"))
        volume = (await world.bound("data"))["metadata"]["name"]
        attachment = {
            "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
            "metadata": {"name": "a"},
            "spec": {"attacher": NAME, "nodeName": NODE,
                     "source": {"persistentVolumeName": volume}},
        }  # fmt: skip
        await world.make(attachment)
        await world.until(VOLUME_ATTACHMENTS, "a", lambda found: status_of(found).get("attached"))
        await world.client.delete(PERSISTENT_VOLUME_CLAIMS, SPACE, "data")
        world.fail(ControllerUnpublishVolume={"code": "INTERNAL", "message": "stuck"})
        await world.client.delete(VOLUME_ATTACHMENTS, "", "a")
        found = await world.until(
            VOLUME_ATTACHMENTS, "a", lambda found: "detachError" in status_of(found)
        )
        assert status_of(found)["detachError"]["message"] == (
            "rpc error: code = Internal desc = stuck"
        )
        assert await world.find(PERSISTENT_VOLUMES, volume)
        world.fail()
        await world.until(VOLUME_ATTACHMENTS, "a", lambda found: not found)
        await world.until(PERSISTENT_VOLUMES, volume, lambda found: not found)

    told(story, attaches=True)


def test_a_secret_that_is_not_there_is_named():
    async def story(world):
        prefix = "csi.storage.k8s.io/provisioner-secret-"
        names = {f"{prefix}name": "${pvc.name}-key", f"{prefix}namespace": "${pvc.namespace}"}
        await world.make(storage_class("secret", **names), claim("data", storageClassName="secret"))
        assert await world.told("ProvisioningFailed") == (
            'failed to provision volume with StorageClass "secret": secrets "data-key" not found'
        )
        secret = {"apiVersion": "v1", "kind": "Secret", "data": {"key": "aGk="},
                  "metadata": {"name": "data-key", "namespace": SPACE}}  # fmt: skip
        await world.make(secret)
        volume = await world.bound("data")
        notes = volume["metadata"]["annotations"]
        assert notes["volume.kubernetes.io/provisioner-deletion-secret-name"] == "data-key"

    told(story)
