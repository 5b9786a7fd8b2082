"""Defaults of persistent volumes and claims, and of storage classes.

Job: fill in policies, modes and phases, as upstream does.
Invariant: without a word about it, a volume is a filesystem and is retained.
"""

from sampan.api import features
from sampan.api.defaults.fill import fill, part_of, round_amounts, spec_of
from sampan.api.defaults.volumes import default_volume_source
from sampan.api.objects import Obj


def default_persistent_volume(obj: Obj) -> None:
    spec = spec_of(obj)
    if not spec.get("persistentVolumeReclaimPolicy"):
        spec["persistentVolumeReclaimPolicy"] = "Retain"
    fill(spec, volumeMode="Filesystem")
    round_amounts(spec.get("capacity"))
    default_volume_source(spec)
    status = part_of(obj, "status")
    if not status.get("phase"):
        status["phase"] = "Pending"


def default_claim(obj: Obj) -> None:
    default_claim_spec(obj)


def default_claim_spec(claim: Obj) -> None:
    spec = spec_of(claim)
    fill(spec, volumeMode="Filesystem")
    resources = spec.get("resources") or {}
    round_amounts(resources.get("requests"), resources.get("limits"))
    status = part_of(claim, "status")
    if not status.get("phase"):
        status["phase"] = "Pending"


def default_storage_class(obj: Obj) -> None:
    fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def default_csi_driver(obj: Obj) -> None:
    spec = spec_of(obj)
    fill(
        spec,
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        requiresRepublish=False,
        seLinuxMount=False,
    )
    if features.enabled("VolumeLimitScaling"):
        fill(spec, preventPodSchedulingIfMissing=False)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]
