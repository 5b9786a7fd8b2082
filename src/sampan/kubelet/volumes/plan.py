"""What has to be there for the volumes of a pod: decided here, done by set_up.py. Pure.

Job: every volume of the spec → one frozen step, or a VolumeFailure that says what is missing.
Invariant: a type that the node cannot mount is refused by name, never left out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field

from sampan.api.objects import Obj, is_deleted, key_of, meta_of, namespace_of, spec_of, uid_of
from sampan.api.quantity import Format, QuantityError, from_value, value_of
from sampan.api.rules.pods import is_sidecar
from sampan.api.rules.volumes.in_tree_volumes import (
    IN_TREE,
    NotTranslated,
    source_of,
    translated_inline,
    translated_volume,
)
from sampan.client.by_identity import OF_ANY_SIZE, by_identity, by_identity_and
from sampan.core.fast_dataclass import dataclass, replace
from sampan.kubelet.container_spec.environment import Surroundings
from sampan.kubelet.contracts.paths import own_path
from sampan.kubelet.contracts.spec import with_roles
from sampan.kubelet.contracts.volumes_hook import Objects, VolumeFailure
from sampan.kubelet.csi.csi_volume import CsiVolume, of_inline_volume, of_persistent_volume
from sampan.kubelet.volumes.payload import API_DATA, Payload, Sources, group_of, payload_of
from sampan.kubelet.volumes.references import CLAIM, ephemeral_claim, kind_of, volumes_of

# As upstream's layout: pods/<uid>/volumes/<plugin>/<volume>.
PLUGINS = {
    "emptyDir": "kubernetes.io~empty-dir",
    "configMap": "kubernetes.io~configmap",
    "secret": "kubernetes.io~secret",
    "downwardAPI": "kubernetes.io~downward-api",
    "projected": "kubernetes.io~projected",
}


NFS_PLUGIN = "kubernetes.io~nfs"
HUGE_PAGES, _PAGES = "HugePages", "hugepages-"


@dataclass(frozen=True, slots=True)
class Directory:
    """An emptyDir."""

    name: str
    path: str
    in_memory: bool = False
    page_size: str = ""  # of huge pages, as 2Mi: its memory is made of them
    size_bytes: int = 0  # 0: no bound of its own
    group: int | None = None
    shared: bool = False  # mounts made below it must be seen on the other side


@dataclass(frozen=True, slots=True)
class Files:
    """A volume made from API objects."""

    name: str
    path: str
    in_memory: bool
    payload: Payload = field(repr=False)
    group: int | None = None


@dataclass(frozen=True, slots=True)
class HostPath:
    name: str
    path: str
    type: str = ""
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class LocalPath:
    """A local persistent volume: a directory of the node that was prepared for it."""

    name: str
    path: str
    read_only: bool = False
    group: int | None = None
    only_on_mismatch: bool = False  # fsGroupChangePolicy


@dataclass(frozen=True, slots=True)
class ImageContent:
    """The runtime mounts it: nothing is made for it here."""

    name: str


@dataclass(frozen=True, slots=True)
class BlockDevice:
    """A local persistent volume that is a device of the node."""

    name: str
    path: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Nfs:
    """A directory that another machine exports."""

    name: str
    path: str  # where it is mounted
    source: str  # server:path
    read_only: bool = False
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plugged:
    """A CSI driver mounts it."""

    name: str
    volume: CsiVolume


OwnStep = Directory | Files | HostPath | LocalPath | ImageContent | BlockDevice | Nfs
Step = OwnStep | Plugged


@dataclass(frozen=True, slots=True)
class Node:
    """What a volume may ask of its node."""

    root_dir: str
    memory_bytes: int
    around: Surroundings

    @property
    def pods_dir(self) -> str:
        return f"{self.root_dir}/pods"

    def own(self, path: str) -> str:
        return own_path(path, self.root_dir)


def plan_volumes(sources: Sources, bound: Mapping[str, Obj], node: Node) -> Iterator[Step]:
    """One after the other: there may be thousands. `bound`: volume name → the PersistentVolume
    behind its claim. Raises VolumeFailure."""
    for volume in volumes_of(sources.pod):
        try:
            yield _step(volume, sources, bound, node)
        except VolumeFailure as fault:
            if kind_of(volume) in ("persistentVolumeClaim", "ephemeral", *IN_TREE):
                raise
            raise set_up_failed(volume, str(fault)) from fault


def set_up_failed(volume: Obj, why: str) -> VolumeFailure:
    return VolumeFailure(f'MountVolume.SetUp failed for volume "{volume.get("name")}" : {why}')


def _step(volume: Obj, sources: Sources, bound: Mapping[str, Obj], node: Node) -> Step:
    name, kind = volume.get("name", ""), kind_of(volume)
    pod, objects = sources.pod, sources.objects
    if kind in API_DATA:
        payload = payload_of(volume, sources)
        # As upstream: what may be secret never touches a disk.
        return Files(
            name, _path(pod, name, kind, node), kind != "configMap", payload, group_of(pod)
        )
    match kind:
        case "emptyDir":
            return _empty_dir(name, volume.get(kind) or {}, pod, node)
        case "hostPath":
            source = volume[kind]
            return HostPath(name, node.own(source.get("path", "")), source.get("type") or "")
        case "csi":
            return Plugged(name, of_inline_volume(volume, pod))
        case "nfs":
            return _nfs(name, volume[kind], pod, node, bool(volume[kind].get("readOnly")), ())
        case "persistentVolumeClaim":
            return _claimed_volume(name, volume[kind], pod, objects, bound, node)
        case "ephemeral":
            claim = ephemeral_claim(pod, name)
            found = objects.get((CLAIM, claim))
            if found is not None and not _is_owner(pod, found):
                raise _not_its_own(pod, name, claim)
            return _claimed_volume(name, {"claimName": claim}, pod, objects, bound, node)
        case "image":
            return ImageContent(name)  # whether the runtime can is checked before
    if kind in IN_TREE:
        return Plugged(name, _own_disk(volume, pod))
    raise VolumeFailure(f"volumes of type {kind} are not supported by this node yet")


def _own_disk(volume: Obj, pod: Obj) -> CsiVolume:
    """Of an in-tree plugin: a CSI driver stands for it. Raises VolumeFailure."""
    name = volume.get("name", "")
    try:
        translated = translated_inline(volume, namespace_of(pod))
    except NotTranslated as error:
        raise _fault(name, str(error)) from error
    # As upstream: who may write, only the driver is told, when it attaches the volume.
    return replace(of_persistent_volume(translated, read_only=False), migrated=True)


def plugin_of(step: OwnStep) -> str:
    """Whose volume it is, for who counts them; those of data are in a directory of its name."""
    match step:
        case HostPath():
            return "kubernetes.io/host-path"
        case LocalPath() | BlockDevice():
            return "kubernetes.io/local-volume"
        case Nfs():
            return "kubernetes.io/nfs"
        case ImageContent():
            return "kubernetes.io/image"
        case _:
            _, _, place = step.path.rpartition("/volumes/")
            return place.partition("/")[0].replace("~", "/")


def _path(pod: Obj, name: str, kind: str, node: Node) -> str:
    return f"{node.pods_dir}/{uid_of(pod)}/volumes/{PLUGINS[kind]}/{name}"


def _empty_dir(name: str, source: Obj, pod: Obj, node: Node) -> Directory:
    medium = source.get("medium") or ""
    limit = value_of(source["sizeLimit"]).value() if source.get("sizeLimit") else 0
    page_size = ""
    if medium == HUGE_PAGES or medium.startswith(f"{HUGE_PAGES}-"):
        page_size = _page_size(medium, pod)
    elif medium not in ("", "Memory"):
        raise VolumeFailure(f'unknown storage medium "{medium}"')
    bounds = (
        [limit, memory_limit(spec_of(pod)), node.memory_bytes] if medium == "Memory" else [limit]
    )
    return Directory(
        name,
        _path(pod, name, "emptyDir", node),
        in_memory=medium == "Memory",
        page_size=page_size,
        size_bytes=min((bound for bound in bounds if bound > 0), default=0),
        group=group_of(pod),
        shared=name in _propagated(spec_of(pod)),
    )


def _page_size(medium: str, pod: Obj) -> str:
    """As upstream: of the pages that the pod asks for. Raises VolumeFailure."""
    try:
        asked = _asked_pages(spec_of(pod))
        if medium != HUGE_PAGES:
            asked &= {value_of(medium.removeprefix(f"{HUGE_PAGES}-")).value()}
    except QuantityError as error:
        raise VolumeFailure(str(error)) from error
    if medium == HUGE_PAGES and len(asked) > 1:
        raise VolumeFailure(
            f"medium: {medium} can't be used if container requests multiple huge page sizes"
        )
    for size in asked:
        return str(from_value(size, Format.BINARY_SI))
    raise VolumeFailure(
        f"medium {medium}: hugePages storage requested, but there is no resource request for huge "
        "pages"
    )


@by_identity(8, OF_ANY_SIZE)
def _asked_pages(spec: Obj) -> frozenset[int]:
    """Sizes of the huge pages that somebody in the pod requests. Raises QuantityError."""
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    every = [spec.get("resources") or {}, *(item.get("resources") or {} for item in containers)]
    return frozenset(
        value_of(name.removeprefix(_PAGES)).value()
        for resources in every
        for name in resources.get("requests") or ()
        if name.startswith(_PAGES)
    )


def _nfs(
    name: str, source: Obj, pod: Obj, node: Node, read_only: bool, options: tuple[str, ...]
) -> Nfs:
    server = source.get("server", "")
    where = f"[{server}]" if ":" in server and not server.startswith("[") else server
    place = f"{node.pods_dir}/{uid_of(pod)}/volumes/{NFS_PLUGIN}/{name}"
    return Nfs(name, place, f"{where}:{source.get('path', '')}", read_only, options)


@by_identity(8, OF_ANY_SIZE)
def _propagated(spec: Obj) -> frozenset[str]:
    """The volumes of which a container wants mounts to be passed on."""
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return frozenset(
        mount.get("name", "")
        for container in containers
        for mount in container.get("volumeMounts") or ()
        if (mount.get("mountPropagation") or "None") != "None"
    )


@by_identity(8, OF_ANY_SIZE)
def memory_limit(spec: Obj) -> int:
    """What all containers together may use; 0 where one of them has no limit."""
    own = _memory(spec.get("resources") or {})
    if own:
        return own
    inits = spec.get("initContainers") or []
    sidecars = [container for container in inits if is_sidecar(container)]
    running = [*(spec.get("containers") or ()), *sidecars]
    limits = [_memory(item.get("resources") or {}) for item in running]
    starting = [_memory(container.get("resources") or {}) for container in inits]
    return max([sum(limits), *starting]) if limits and all(limits) else 0


def _memory(resources: Obj) -> int:
    written = (resources.get("limits") or {}).get("memory")
    return value_of(written).value() if written else 0


# Claims.


def bound_volume_name(pod: Obj, volume: str, claim: str, objects: Objects) -> str:
    """The PersistentVolume that the claim got. Raises VolumeFailure."""
    found = objects.get((CLAIM, claim))
    if found is None:
        why = "failed to fetch PVC from API server: "
        raise _claim_fault(pod, volume, claim, f'{why}persistentvolumeclaims "{claim}" not found')
    if is_deleted(found):
        raise _claim_fault(pod, volume, claim, "PVC is being deleted")
    name: str = (found.get("spec") or {}).get("volumeName") or ""
    if not name or (found.get("status") or {}).get("phase") != "Bound":
        raise _claim_fault(pod, volume, claim, "PVC is not bound")
    return name


def _claim_fault(pod: Obj, volume: str, claim: str, why: str) -> VolumeFailure:
    return _fault(volume, f"error processing PVC {namespace_of(pod)}/{claim}: {why}")


def _not_its_own(pod: Obj, volume: str, claim: str) -> VolumeFailure:
    made_for = f"{namespace_of(pod)}/{claim} was not created for pod {key_of(pod)}"
    return _fault(volume, f"PVC {made_for} (pod is not owner)")


def _fault(volume: str, why: str) -> VolumeFailure:
    return VolumeFailure(
        f"Unable to attach or mount volumes: unmounted volumes=[{volume}], unattached volumes=[], "
        f"failed to process volumes=[{volume}]: {why}"
    )


def _is_owner(pod: Obj, claim: Obj) -> bool:
    owners = meta_of(claim).get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("uid") == uid_of(pod) for owner in owners)


def _claimed_volume(
    name: str, source: Obj, pod: Obj, objects: Objects, bound: Mapping[str, Obj], node: Node
) -> Step:
    claim = source.get("claimName", "")
    volume_name = bound_volume_name(pod, name, claim, objects)
    if name not in bound:
        return HostPath(name, "")  # a look ahead: what can be known about the claim is known
    volume = bound[name]
    spec = volume.get("spec") or {}
    holder = (spec.get("claimRef") or {}).get("uid")
    if holder != uid_of(objects[(CLAIM, claim)] or {}):
        why = f"PV {volume_name} is bound to another claim"
        raise _claim_fault(pod, name, claim, why)
    if why := _wrong_use(pod, name, is_block=spec.get("volumeMode") == "Block"):
        raise _claim_fault(pod, name, claim, why)
    step = _of_volume(name, source, pod, _translated(name, volume), node)
    if step is None:
        kind = next((key for key in spec if key in _OTHER_SOURCES), "unknown")
        mode = " of mode Block" if spec.get("volumeMode") == "Block" else ""
        why = f"PV {volume_name}: volumes of type {kind}{mode} are not supported by this node yet"
        raise _claim_fault(pod, name, claim, why)
    if isinstance(step, Plugged):
        held = ((objects[(CLAIM, claim)] or {}).get("status") or {}).get("capacity") or {}
        is_migrated = bool(source_of(spec))
        seen = replace(step.volume, claimed=held.get("storage") or "", migrated=is_migrated)
        return Plugged(name, seen)
    return step


def _translated(name: str, volume: Obj) -> Obj:
    try:
        return translated_volume(volume)
    except NotTranslated as error:
        raise _fault(name, str(error)) from error


def _of_volume(name: str, source: Obj, pod: Obj, volume: Obj, node: Node) -> Step | None:
    """None: the node does not know how."""
    spec = volume.get("spec") or {}
    is_block = spec.get("volumeMode") == "Block"
    read_only = bool(source.get("readOnly"))
    if spec.get("csi"):
        return Plugged(name, of_persistent_volume(volume, read_only=read_only))
    read_only = read_only or spec.get("accessModes") == ["ReadOnlyMany"]
    if spec.get("nfs") and not is_block:
        options = tuple(spec.get("mountOptions") or ())
        read_only = read_only or bool(spec["nfs"].get("readOnly"))
        return replace(
            _nfs(volume["metadata"]["name"], spec["nfs"], pod, node, read_only, options), name=name
        )
    if spec.get("local") and is_block:
        return BlockDevice(name, spec["local"].get("path", ""), read_only)
    if spec.get("hostPath") and not is_block:
        host = spec["hostPath"]
        return HostPath(name, node.own(host.get("path", "")), host.get("type") or "", read_only)
    if spec.get("local"):
        context = spec_of(pod).get("securityContext") or {}
        return LocalPath(
            name, spec["local"].get("path", ""), read_only,
            None if read_only else group_of(pod),
            context.get("fsGroupChangePolicy") == "OnRootMismatch",
        )  # fmt: skip
    return None


def _wrong_use(pod: Obj, name: str, *, is_block: bool) -> str:
    """As upstream: a device is no directory, and the other way."""
    if is_block and _is_named(pod, name, "volumeMounts"):
        return f"volume {name} has volumeMode Block, but is specified in volumeMounts"
    if not is_block and _is_named(pod, name, "volumeDevices"):
        return f"volume {name} has volumeMode Filesystem, but is specified in volumeDevices"
    return ""


def _is_named(pod: Obj, name: str, kind: str) -> bool:
    return name in _named(spec_of(pod), kind)


@by_identity_and(8, OF_ANY_SIZE)
def _named(spec: Obj, kind: str) -> frozenset[str]:
    return frozenset(
        item.get("name", "")
        for _, container in with_roles({"spec": spec})
        for item in container.get(kind) or ()
    )


_OTHER_SOURCES = frozenset(
    {
        "cephfs", "csi", "fc", "flexVolume", "flocker", "glusterfs", "iscsi", "nfs",
        "photonPersistentDisk", "quobyte", "rbd", "scaleIO", "storageos",
    }
)  # fmt: skip
