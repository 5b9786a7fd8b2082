"""One volume of a pod that a CSI driver mounts, and what is known of the driver. Pure.

Job: read a PersistentVolume or an inline volume, and a CSIDriver object, into values; decide by
    them what upstream decides: attach, fsGroup, which tokens.
Invariant: a driver without a CSIDriver object has upstream's defaults.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import field

from sampan.api.objects import Obj, name_of, namespace_of, spec_of, uid_of
from sampan.api.rules.storage import unique_volume_name
from sampan.core.fast_dataclass import dataclass

PLUGIN = "kubernetes.io/csi"
READ_WRITE_ONCE, READ_WRITE_ONCE_POD = "ReadWriteOnce", "ReadWriteOncePod"
EPHEMERAL, PERSISTENT = "Ephemeral", "Persistent"
TOKENS_KEY = "csi.storage.k8s.io/serviceAccount.tokens"

SecretName = tuple[str, str]  # namespace, name


@dataclass(frozen=True, slots=True)
class CsiVolume:
    """What a driver is told of a volume, beside the pod's own part."""

    name: str  # the PersistentVolume's; of an inline volume its name in the pod
    driver: str
    handle: str
    mode: str = PERSISTENT
    block: bool = False
    fs_type: str = ""
    access_modes: tuple[str, ...] = ()
    read_only: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)
    mount_options: tuple[str, ...] = ()
    stage_secret: SecretName | None = None
    publish_secret: SecretName | None = None
    expand_secret: SecretName | None = None
    capacity: str = ""  # spec.capacity of the PersistentVolume …
    claimed: str = ""  # … and what its claim says that it has
    claim: SecretName | None = None
    migrated: bool = False  # a disk of an in-tree plugin, that the driver stands for

    @property
    def access_mode(self) -> str:
        """As upstream: the first of them counts."""
        return self.access_modes[0] if self.access_modes else READ_WRITE_ONCE

    @property
    def key(self) -> tuple[str, str]:
        return self.driver, self.handle

    @property
    def only_one_pod(self) -> bool:
        return self.access_modes == (READ_WRITE_ONCE_POD,)


@dataclass(frozen=True, slots=True)
class TokenRequest:
    audience: str
    seconds: int | None = None


@dataclass(frozen=True, slots=True)
class CsiDriver:
    """What a CSIDriver object says; there may be none."""

    exists: bool = False
    attach_required: bool = True
    pod_info: bool = False
    modes: tuple[str, ...] = (PERSISTENT,)
    fs_group_policy: str = "ReadWriteOnceWithFSType"
    tokens: tuple[TokenRequest, ...] = ()
    tokens_in_secrets: bool = False
    republishes: bool = False
    selinux_mount: bool = False
    allocatable_seconds: int = 0  # how often the driver is asked how many volumes it takes


def csi_driver(found: Obj | None) -> CsiDriver:
    """The only place that looks inside of a CSIDriver."""
    if found is None:
        return CsiDriver()
    spec = spec_of(found)
    return CsiDriver(
        exists=True,
        attach_required=spec.get("attachRequired") is not False,
        pod_info=bool(spec.get("podInfoOnMount")),
        modes=tuple(spec.get("volumeLifecycleModes") or ()),
        fs_group_policy=spec.get("fsGroupPolicy") or "",
        tokens=tuple(
            TokenRequest(item.get("audience") or "", item.get("expirationSeconds"))
            for item in spec.get("tokenRequests") or ()
        ),
        tokens_in_secrets=bool(spec.get("serviceAccountTokenInSecrets")),
        republishes=bool(spec.get("requiresRepublish")),
        selinux_mount=bool(spec.get("seLinuxMount")),
        allocatable_seconds=spec.get("nodeAllocatableUpdatePeriodSeconds") or 0,
    )


def of_persistent_volume(volume: Obj, *, read_only: bool) -> CsiVolume:
    spec = spec_of(volume)
    source = spec["csi"]
    claim = spec.get("claimRef") or {}
    return CsiVolume(
        name=name_of(volume),
        driver=source.get("driver", ""),
        handle=source.get("volumeHandle", ""),
        block=spec.get("volumeMode") == "Block",
        fs_type=source.get("fsType") or "",
        access_modes=tuple(spec.get("accessModes") or ()),
        read_only=read_only,
        attributes=source.get("volumeAttributes") or {},
        mount_options=tuple(spec.get("mountOptions") or ()),
        stage_secret=_secret(source.get("nodeStageSecretRef")),
        publish_secret=_secret(source.get("nodePublishSecretRef")),
        expand_secret=_secret(source.get("nodeExpandSecretRef")),
        capacity=(spec.get("capacity") or {}).get("storage") or "",
        claim=(claim.get("namespace", ""), claim.get("name", "")) if claim else None,
    )


def of_inline_volume(volume: Obj, pod: Obj) -> CsiVolume:
    source, name = volume["csi"], volume.get("name", "")
    secret = source.get("nodePublishSecretRef")
    return CsiVolume(
        name=name,
        driver=source.get("driver", ""),
        handle=inline_handle(uid_of(pod), name),
        mode=EPHEMERAL,
        fs_type=source.get("fsType") or "",
        read_only=bool(source.get("readOnly")),
        attributes=source.get("volumeAttributes") or {},
        publish_secret=(namespace_of(pod), secret.get("name", "")) if secret else None,
    )


def _secret(reference: Obj | None) -> SecretName | None:
    return (reference.get("namespace", ""), reference.get("name", "")) if reference else None


def inline_handle(pod_uid: str, name: str) -> str:
    return f"csi-{hashlib.sha256(f'{pod_uid}{name}'.encode()).hexdigest()}"


def unique_name(volume: CsiVolume) -> str:
    """As a node's status lists it."""
    return unique_volume_name(volume.driver, volume.handle)


def why_unsupported(volume: CsiVolume, driver: CsiDriver) -> str:
    """Of its life cycle; empty where nothing is wrong."""
    if volume.mode in driver.modes:
        return ""
    why = f'volume mode "{volume.mode}" not supported by driver {volume.driver}'
    if not driver.exists:
        return f"{why} (no CSIDriver object)"
    listed = " ".join(f'"{mode}"' for mode in driver.modes)
    return f"{why} (only supports [{listed}])"


def node_gives_group(volume: CsiVolume, driver: CsiDriver, group: int | None) -> bool:
    """Does the kubelet change the group of the files itself, once the driver has mounted them?"""
    if group is None or driver.fs_group_policy == "None" or volume.read_only:
        return False
    if driver.fs_group_policy == "File":
        return True
    if not volume.fs_type:
        return False
    if volume.mode == EPHEMERAL:
        return True
    return bool({READ_WRITE_ONCE, READ_WRITE_ONCE_POD} & set(volume.access_modes))


def pod_attributes(pod: Obj, volume: CsiVolume) -> dict[str, str]:
    """For drivers that ask for it (podInfoOnMount)."""
    return {
        "csi.storage.k8s.io/pod.name": name_of(pod),
        "csi.storage.k8s.io/pod.namespace": namespace_of(pod),
        "csi.storage.k8s.io/pod.uid": uid_of(pod),
        "csi.storage.k8s.io/serviceAccount.name": spec_of(pod).get("serviceAccountName") or "",
        "csi.storage.k8s.io/ephemeral": "true" if volume.mode == EPHEMERAL else "false",
    }


def token_attribute(tokens: Sequence[tuple[str, Obj]]) -> dict[str, str]:
    """By audience, each with the end of its life."""
    written = {
        audience: {"token": status["token"], "expirationTimestamp": status["expirationTimestamp"]}
        for audience, status in sorted(tokens)
    }
    return {TOKENS_KEY: json.dumps(written, separators=(",", ":"))} if written else {}
