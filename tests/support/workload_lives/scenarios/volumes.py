"""Claims and volumes: binding now and at first use, protection, reclaiming, classes, expansion."""

from typing import Any

from sampan.api.objects import Obj
from tests.support.workload_lives.manifests import made, pod
from tests.support.workload_lives.steps import (
    Life,
    Step,
    change,
    change_meta,
    change_spec,
    change_status,
    create,
    life,
    remove,
    wait,
)

_SHOWS = ("persistentvolumes", "volumeattachments", "volumeattributesclasses")
_CLASS = "{life}.sc"


def _class(name: str = _CLASS, **rest: Any) -> Obj:
    words: Obj = {"provisioner": "kubernetes.io/no-provisioner", **rest}
    return made("storage.k8s.io/v1", "StorageClass", name, None, **words)


def _lazy(**rest: Any) -> Obj:
    return _class(volumeBindingMode="WaitForFirstConsumer", **rest)


def _volume(number: int = 0, size: str = "1Gi", **spec: Any) -> Obj:
    words = {
        "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"],
        "storageClassName": _CLASS, "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": "/tmp/x"}, **spec,
    }  # fmt: skip
    return made("v1", "PersistentVolume", f"{{life}}.v{number}", words)


def _here(node: str) -> dict[str, Any]:
    """Of a local volume."""
    values = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]
    terms = [{"matchExpressions": values}]
    return {
        "hostPath": None, "local": {"path": "/tmp/x"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }  # fmt: skip


def _claim(name: str = "c", size: str = "1Gi", **spec: Any) -> Obj:
    words = {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}},
        "storageClassName": _CLASS, **spec,
    }  # fmt: skip
    return made("v1", "PersistentVolumeClaim", name, words)


def _user(name: str = "x", claim: str = "c", **words: Any) -> Obj:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    return pod(name, volumes=volumes, **words)


def _life(*steps: Step, alone: bool = False) -> Life:
    return life(*steps, shows=_SHOWS, alone=alone)


_BINDING = {
    "pv-bound": _life(create(_class(), _volume(), _claim()), wait(4)),
    "pv-comes-later": _life(create(_class(), _claim()), wait(2), create(_volume()), wait(20)),
    "pv-smallest-fits": _life(
        create(_class(), _volume(0, "5Gi"), _volume(1, "2Gi"), _volume(2, "3Gi")), wait(2),
        create(_claim(size="2Gi")), wait(4),
    ),
    "pv-too-small": _life(
        create(_class(), _volume(0, "1Gi"), _claim(size="2Gi"), _user()), wait(4)
    ),
    "pv-other-mode": _life(
        create(_class(), _volume(accessModes=["ReadOnlyMany"]), _claim()), wait(4)
    ),
    "pv-other-class": _life(create(_class(), _volume(storageClassName="other"), _claim()), wait(4)),
    "pv-block-mode": _life(
        create(_class(), _volume(0, volumeMode="Filesystem"), _volume(1, volumeMode="Block")),
        wait(2), create(_claim(volumeMode="Block")), wait(4),
    ),
    "pv-selected": _life(
        create(_class(), _volume(0), {**_volume(1), "metadata": {
            "name": "{life}.v1", "labels": {"tier": "fast"}}}),
        wait(2), create(_claim(selector={"matchLabels": {"tier": "fast"}})), wait(4),
    ),
    "pv-by-name": _life(
        create(_class(), _volume(0), _volume(1)), wait(2), create(_claim(volumeName="{life}.v1")),
        wait(4),
    ),
    "pv-by-name-taken": _life(
        create(_class(), _volume(0)), create(_claim("a")), wait(4),
        create(_claim("b", volumeName="{life}.v0")), wait(4),
    ),
    "pv-by-name-absent": _life(create(_class(), _claim(volumeName="{life}.none")), wait(4)),
    "pv-reserved": _life(
        create(_class(), _volume(0, claimRef={"namespace": "{ns}", "name": "b"})), wait(2),
        create(_claim("a")), wait(3), create(_claim("b")), wait(4),
    ),
    "pv-no-class": _life(
        create(_volume(storageClassName=""), _claim(storageClassName="")), wait(4)
    ),
    "pv-of-an-absent-class": _life(create(_claim(storageClassName="absent"), _user()), wait(4)),
    "pv-two-claims": _life(
        create(_class(), _volume(0), _claim("a"), _claim("b")), wait(4), create(_volume(1)),
        wait(20),
    ),
    "pv-used": _life(create(_class(), _volume(), _claim()), wait(3), create(_user()), wait(4)),
    "pv-claim-absent": _life(create(_user()), wait(3), create(_class(), _volume(), _claim()),
    wait(8)),
    "pv-attributes-class": _life(
        create(made("storage.k8s.io/v1", "VolumeAttributesClass", "{life}.fast", None,
                    driverName="x.example.com", parameters={"iops": "1"})),
        create(_class(), _volume(0), _volume(1, volumeAttributesClassName="{life}.fast",
               hostPath=None, csi={"driver": "x.example.com", "volumeHandle": "h"})),
        wait(2), create(_claim(volumeAttributesClassName="{life}.fast")), wait(5),
    ),
    "pv-attributes-class-protected": _life(
        create(made("storage.k8s.io/v1", "VolumeAttributesClass", "{life}.fast", None,
                    driverName="x.example.com", parameters={"iops": "1"})),
        create(_class(), _claim(volumeAttributesClassName="{life}.fast")), wait(3),
        remove("volumeattributesclasses", "{life}.fast"), wait(3),
        change_meta("persistentvolumeclaims", "c", finalizers=None),
        remove("persistentvolumeclaims", "c"), wait(4),
    ),
}  # fmt: skip

_LAZY = {
    "wffc-waits": _life(create(_lazy(), _volume(), _claim()), wait(4)),
    "wffc-binds-with-its-pod": _life(
        create(_lazy(), _volume(), _claim()), wait(3), create(_user()), wait(5)
    ),
    "wffc-by-node": _life(
        create(_lazy(), _volume(0, **_here("n1")), _claim()), wait(3), create(_user()), wait(5),
        alone=True,
    ),
    "wffc-wrong-node": _life(
        create(_lazy(), _volume(0, **_here("n1")), _claim()), wait(3),
        create(_user(nodeSelector={"zone": "z2"})), wait(5), alone=True,
    ),
    "wffc-nothing-to-bind": _life(create(_lazy(), _claim(), _user()), wait(4), create(_volume()),
                                  wait(8)),
    "wffc-provisioned-by-another": _life(
        create(_lazy(provisioner="x.example.com"), _claim()), wait(3), create(_user()), wait(5)
    ),
    "wffc-topologies": _life(
        create(_lazy(provisioner="x.example.com", allowedTopologies=[{"matchLabelExpressions": [
            {"key": "zone", "values": ["z1"]}]}]), _claim()),
        wait(2), create(_user()), wait(4), alone=True,
    ),
    "wffc-pod-gone": _life(
        create(_lazy(provisioner="x.example.com"), _claim(), _user()), wait(4),
        remove("pods", "x"), wait(4),
    ),
    "wffc-shared": _life(
        create(_lazy(), _volume(0, **_here("n2")), _claim()), wait(2), create(_user("x")), wait(4),
        create(_user("y"), _user("z", nodeSelector={"zone": "z0"})), wait(4), alone=True,
    ),
}  # fmt: skip

_ENDS = {
    "pvc-protected": _life(
        create(_class(), _volume(), _claim()), wait(3), create(_user(stop="2:0")), wait(3),
        remove("persistentvolumeclaims", "c"), wait(2), remove("pods", "x"), wait(6),
    ),
    "pvc-protected-new-user": _life(
        create(_class(), _volume(), _claim()), wait(3), create(_user()), wait(3),
        remove("persistentvolumeclaims", "c"), wait(1), create(_user("y")), wait(4),
    ),
    "pvc-protected-from-a-pending-pod": _life(
        create(_class(), _volume(), _claim()), wait(3),
        create(_user(nodeSelector={"zone": "none"})), wait(2),
        remove("persistentvolumeclaims", "c"), wait(4),
    ),
    "pvc-finished-pod-holds-nothing": _life(
        create(_class(), _volume(), _claim()), wait(3),
        create(_user(life="ok:1", restartPolicy="Never")), wait(4),
        remove("persistentvolumeclaims", "c"), wait(4),
    ),
    "pv-protected": _life(
        create(_class(), _volume(), _claim()), wait(4), remove("persistentvolumes", "{life}.v0"),
        wait(3), remove("persistentvolumeclaims", "c"), wait(4),
    ),
    "pv-released": _life(
        create(_class(), _volume(), _claim()), wait(4), remove("persistentvolumeclaims", "c"),
        wait(4), create(_claim("again")), wait(4),
    ),
    "pv-released-and-freed": _life(
        create(_class(), _volume(), _claim()), wait(4), remove("persistentvolumeclaims", "c"),
        wait(4), change_spec("persistentvolumes", "{life}.v0", claimRef=None), wait(3),
        create(_claim("again")), wait(5),
    ),
    "pv-reclaim-delete-csi": _life(
        create(_class(), _volume(persistentVolumeReclaimPolicy="Delete", hostPath=None,
               csi={"driver": "x.example.com", "volumeHandle": "h"}), _claim()),
        wait(4), remove("persistentvolumeclaims", "c"), wait(5),
    ),
    "pv-reclaim-delete-local": _life(
        create(_lazy(), _volume(0, persistentVolumeReclaimPolicy="Delete", **_here("n1")),
               _claim(volumeName="{life}.v0")),
        wait(4), remove("persistentvolumeclaims", "c"), wait(5),
    ),
    "pv-lost": _life(
        create(_class(), _volume(), _claim()), wait(4),
        change_meta("persistentvolumes", "{life}.v0", finalizers=None),
        remove("persistentvolumes", "{life}.v0"), wait(4),
    ),
    "pv-policy-changed": _life(
        create(_class(), _volume(persistentVolumeReclaimPolicy="Delete", hostPath=None,
               csi={"driver": "x.example.com", "volumeHandle": "h"}), _claim()),
        wait(4), change_spec("persistentvolumes", "{life}.v0",
                             persistentVolumeReclaimPolicy="Retain"),
        wait(1), remove("persistentvolumeclaims", "c"), wait(4),
    ),
    "pv-rwop": _life(
        create(_class(), _volume(accessModes=["ReadWriteOncePod"]),
               _claim(accessModes=["ReadWriteOncePod"])),
        wait(3), create(_user("x")), wait(3), create(_user("y")), wait(4), remove("pods", "x"),
        wait(6),
    ),
    "pvc-resized": _life(
        create(_class(allowVolumeExpansion=True, provisioner="x.example.com"),
               _volume(hostPath=None, csi={"driver": "x.example.com", "volumeHandle": "h"}),
               _claim()),
        wait(4), change_spec("persistentvolumeclaims", "c", resources={
            "requests": {"storage": "2Gi"}}),
        wait(4),
    ),
    "pvc-resized-host-path": _life(
        create(_class(allowVolumeExpansion=True), _volume(), _claim()), wait(4),
        change_spec("persistentvolumeclaims", "c", resources={"requests": {"storage": "2Gi"}}),
        wait(4),
        change_spec("persistentvolumeclaims", "c", resources={"requests": {"storage": "1Gi"}}),
        change_spec("persistentvolumeclaims", "c", resources={"requests": {"storage": "1500Mi"}}),
        wait(3),
    ),
    "pvc-not-resizable": _life(
        create(_class(), _volume(), _claim()), wait(4),
        change_spec("persistentvolumeclaims", "c", resources={"requests": {"storage": "2Gi"}}),
        wait(2),
    ),
    "pvc-default-class": _life(
        create(_class("{life}.sc", allowVolumeExpansion=False)),
        change_meta("storageclasses", "{life}.sc", annotations={
            "storageclass.kubernetes.io/is-default-class": "true"}),
        wait(1), create(_claim(storageClassName=None)), wait(3), alone=True,
    ),
    "pvc-default-class-later": _life(
        create(_claim(storageClassName=None)), wait(2),
        create({**_class("{life}.sc"), "metadata": {"name": "{life}.sc", "annotations": {
            "storageclass.kubernetes.io/is-default-class": "true"}}}),
        wait(20), alone=True,
    ),
    "ephemeral-claim": _life(
        create(_lazy(), _volume(),
               pod("x", volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {
                   "metadata": {"labels": {"l": "m"}}, "spec": _claim()["spec"]}}}])),
        wait(6), remove("pods", "x"), wait(5),
    ),
    "ephemeral-claim-of-another": _life(
        create(_class(), _volume(), _claim("x-v")), wait(3),
        create(pod("x", volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {
            "spec": _claim()["spec"]}}}])),
        wait(5),
    ),
    "pv-written-by-hand": _life(
        create(_class(), _volume(), _claim()), wait(4),
        change_status("persistentvolumes", "{life}.v0", phase="Available"), wait(4),
    ),
    "pvc-annotated": _life(
        create(_class(), _volume(), _claim()), wait(4),
        change("persistentvolumeclaims", "c", metadata={"annotations": {"x": "y"}}), wait(2),
    ),
}  # fmt: skip

LIVES: dict[str, Life] = {**_BINDING, **_LAZY, **_ENDS}
