"""SELinux labels by mount option: is a volume mounted with `context=`, and with which? Pure.

Job: from a pod's seLinuxOptions, the volume's access modes and what its CSIDriver says to the
    label, as upstream decides it (SELinuxMountReadWriteOncePod, SELinuxMount, SELinuxChangePolicy).
Invariant: where the machine has no SELinux there is no label, and nothing is refused.
"""

from collections.abc import Iterator

from sampan.api import features
from sampan.api.objects import Obj, spec_of
from sampan.api.rules import pods as pod_facts
from sampan.kubelet.container_spec.security_context import effective
from sampan.kubelet.contracts.spec import with_roles
from sampan.kubelet.contracts.volumes_hook import VolumeFailure
from sampan.kubelet.csi.csi_volume import PERSISTENT, CsiDriver, CsiVolume

RECURSIVE = "Recursive"


def mount_label(pod: Obj, volume: CsiVolume, driver: CsiDriver, context: str) -> str:
    """Empty: the files are labelled one by one, or not at all. `context`: of files of containers,
    as the machine has it; empty: it has no SELinux. Raises VolumeFailure."""
    if not context or volume.block or not _may_have_label(volume):
        return ""
    labels = {file_label(options, context) for options in _options(pod, volume)} - {""}
    if len(labels) > 1:
        raise VolumeFailure(f"multiple SELinux labels found: {','.join(sorted(labels))}")
    if not labels or not driver.selinux_mount or _is_recursive(pod):
        return ""
    return labels.pop()


def mount_option(label: str) -> tuple[str, ...]:
    """In quotes: categories are parted by commas, and so are mount options."""
    return (f'context="{label}"',) if label else ()


def file_label(options: Obj, context: str) -> str:
    """As go-selinux makes it of a process's options: a file has their user and level."""
    if not any(options.get(field) for field in ("user", "role", "type", "level")):
        return ""
    user, role, kind, level = (*context.split(":", 3), "", "", "")[:4]
    return ":".join((options.get("user") or user, role, kind, options.get("level") or level))


def conflict(volume: CsiVolume, known: str, wanted: str) -> VolumeFailure:
    name = volume.name
    return VolumeFailure(f'conflicting SELinux labels of volume {name}: "{known}" and "{wanted}"')


def _may_have_label(volume: CsiVolume) -> bool:
    if not features.enabled("SELinuxMountReadWriteOncePod") or volume.mode != PERSISTENT:
        return False
    return volume.only_one_pod or features.enabled("SELinuxMount")


def _is_recursive(pod: Obj) -> bool:
    if not features.enabled("SELinuxChangePolicy"):
        return False
    context = spec_of(pod).get("securityContext") or {}
    return bool(context.get("seLinuxChangePolicy") == RECURSIVE)


def _options(pod: Obj, volume: CsiVolume) -> Iterator[Obj]:
    """Of the containers that mount it."""
    claim = volume.claim[1] if volume.claim is not None else ""
    names = {
        one["name"]
        for one in spec_of(pod).get("volumes") or ()
        if claim in pod_facts.claim_names({**pod, "spec": {"volumes": [one]}})
    }
    for _, container in with_roles(pod):
        mounted = {mount.get("name") for mount in container.get("volumeMounts") or ()}
        options = effective(pod, container).get("seLinuxOptions")
        if names & mounted and options:
            yield options
