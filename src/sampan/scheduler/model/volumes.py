"""Claims, volumes and classes, as far as they bear on where a pod can run.

Job: fold the objects of storage into values; what was promised to a pod and is not stored yet.
Invariant: a volume that was promised to one claim is offered to no other.
Owner: the scheduler's loop; rules read it.
"""

from collections.abc import Iterator

from sampan.api import features
from sampan.api.objects import (
    Obj,
    annotations_of,
    controller_of,
    is_deleted,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    spec_of,
    uid_of,
)
from sampan.api.rules.node_selectors import Requirement, Requirements, Term, term_of
from sampan.api.rules.storage import (
    MIGRATED_PLUGINS,
    NO_PROVISIONER,
    SELECTED_NODE,
    class_name_of,
    waits_for_consumer,
)
from sampan.api.rules.volumes.in_tree_volumes import (
    IN_TREE,
    NotTranslated,
    source_of,
    translated_volume,
)
from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.model.pod_terms import Selector, selector_of, selects
from sampan.scheduler.model.requests import amounts

ONLY_ONE_POD = "ReadWriteOncePod"
ZONE_LABELS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)


@dataclass(frozen=True, slots=True)
class Claim:
    key: str
    uid: str
    storage_class: str
    modes: frozenset[str]
    volume_mode: str
    size: int
    selector: Selector
    volume: str  # the name of the bound one
    bound: bool  # by both sides
    lost: bool
    deleted: bool
    selected_node: str
    owner: str = ""  # uid of its controller
    attributes_class: str = ""


@dataclass(frozen=True, slots=True)
class Volume:
    name: str
    storage_class: str
    modes: frozenset[str]
    volume_mode: str
    size: int
    labels: tuple[tuple[str, str], ...]
    terms: tuple[Term, ...] | None  # of nodes from where it can be reached; None: from all
    claim: str  # key of the claim that it is for
    claim_uid: str
    available: bool
    csi: tuple[str, str] | None  # driver, handle
    attributes_class: str = ""
    plugin: str = ""  # of a disk that its node may mount by a CSI driver instead; then …
    driver_terms: tuple[Term, ...] | None = None  # … it is reached from here


@dataclass(frozen=True, slots=True)
class StorageClass:
    name: str
    waits: bool  # for its first consumer
    provisions: bool
    topologies: tuple[Term, ...]  # where it can provision; none: anywhere
    provisioner: str = ""
    driver: str = ""  # of the volumes that it will make; empty: they do not count


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a driver reports of the storage that some nodes can reach."""

    storage_class: str
    nodes: Selector  # None: none can
    most: int  # bytes that a volume may have now
    whole: int = 0  # all bytes that are left, where they are told


class Volumes:
    def __init__(self) -> None:
        self.claims: dict[str, Claim] = {}
        self.volumes: dict[str, Volume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.limits: dict[str, dict[str, int]] = {}  # node → driver → volumes
        self.installed: dict[str, frozenset[str]] = {}  # node → drivers
        self.migrated: dict[str, frozenset[str]] = {}  # node → plugins that drivers stand for
        self.tracking: set[str] = set()  # drivers that report their capacity
        self.needed: set[str] = set()  # drivers without which a pod goes to no node
        self.capacities: dict[str, Capacity] = {}
        self._promised: dict[str, str] = {}  # volume → claim, decided here
        # Node → attachment → driver and volume.
        self._attached: dict[str, dict[str, tuple[str, str]]] = {}
        self._attached_at: dict[str, str] = {}  # attachment → node

    def put_claim(self, key: str, written: Obj | None) -> None:
        if written is None:
            self.claims.pop(key, None)
        else:
            self.claims[key] = claim_of(written)

    def put_volume(self, name: str, written: Obj | None) -> None:
        if written is None:
            self.volumes.pop(name, None)
            return
        volume = self.volumes[name] = volume_of(written)
        if volume.claim:
            self._promised.pop(name, None)  # the API's word replaces ours

    def put_class(self, name: str, written: Obj | None) -> None:
        if written is None:
            self.classes.pop(name, None)
        else:
            self.classes[name] = class_of(written)

    def put_limits(self, node: str, written: Obj | None) -> None:
        if written is None:
            self.limits.pop(node, None)
            self.installed.pop(node, None)
            self.migrated.pop(node, None)
            return
        plugins = annotations_of(written).get(MIGRATED_PLUGINS) or ""
        self.migrated[node] = frozenset(plugins.split(","))
        drivers = (written.get("spec") or {}).get("drivers") or ()
        self.installed[node] = frozenset(driver["name"] for driver in drivers)
        self.limits[node] = {
            driver["name"]: int(driver["allocatable"]["count"])
            for driver in drivers
            if (driver.get("allocatable") or {}).get("count") is not None
        }

    def put_attachment(self, name: str, written: Obj | None) -> None:
        node = self._attached_at.pop(name, "")
        self._attached.get(node, {}).pop(name, None)
        if node in self._attached and not self._attached[node]:
            del self._attached[node]
        if written is None:
            return
        spec = written.get("spec") or {}
        driver = spec.get("attacher") or ""
        volume = (spec.get("source") or {}).get("persistentVolumeName") or ""
        if driver and volume:
            node = self._attached_at[name] = spec.get("nodeName") or ""
            self._attached.setdefault(node, {})[name] = (driver, volume)

    def attached_to(self, node: str) -> Iterator[tuple[str, str]]:
        """Drivers and handles."""
        for driver, name in self._attached.get(node, {}).values():
            volume = self.volumes.get(name)
            # As upstream: what is attached of in-tree disks is not looked for.
            if volume is not None and volume.csi is not None and not volume.plugin:
                yield driver, volume.csi[1]

    def put_driver(self, name: str, written: Obj | None) -> None:
        self.tracking.discard(name)
        self.needed.discard(name)
        spec = (written or {}).get("spec") or {}
        if spec.get("storageCapacity"):
            self.tracking.add(name)
        if spec.get("preventPodSchedulingIfMissing") and features.enabled("VolumeLimitScaling"):
            self.needed.add(name)

    def put_capacity(self, key: str, written: Obj | None) -> None:
        if written is None:
            self.capacities.pop(key, None)
        else:
            self.capacities[key] = capacity_of(written)

    def promise(self, volume: str, claim: str) -> None:
        self._promised[volume] = claim

    def take_back(self, volume: str) -> None:
        self._promised.pop(volume, None)

    def is_bound(self, claim: Claim) -> bool:
        return claim.bound and bool(claim.volume)

    def offered_to(self, claim: Claim) -> list[Volume]:
        """Free volumes that suit, the smallest first; one that names the claim before all."""
        found = [volume for volume in self.volumes.values() if self._suits(volume, claim)]
        found.sort(key=lambda item: (item.claim != claim.key, item.size, item.name))
        return found

    def csi_of(self, claim_keys: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        """The drivers and handles behind claims; a claim that is not bound yet counts by itself."""
        for key in claim_keys:
            claim = self.claims.get(key)
            if claim is None:
                continue
            volume = self.volumes.get(claim.volume)
            if volume is not None:
                if volume.csi is not None:
                    yield volume.csi
                continue
            wanted = self.classes.get(claim.storage_class)
            if wanted is not None and wanted.driver:
                # As upstream: it will be, or has been, one of its class's driver.
                yield (wanted.driver, f"for the claim {key}")

    def _suits(self, volume: Volume, claim: Claim) -> bool:
        promised = self._promised.get(volume.name)
        if promised is not None and promised != claim.key:
            return False
        if volume.claim:
            if volume.claim != claim.key or volume.claim_uid not in ("", claim.uid):
                return False
        elif not volume.available or not (
            claim.selector is None or selects(claim.selector, dict(volume.labels))
        ):
            return False
        return (
            volume.size >= claim.size
            and volume.storage_class == claim.storage_class
            and volume.attributes_class == claim.attributes_class
            and volume.volume_mode == claim.volume_mode
            and claim.modes <= volume.modes
        )


def claim_of(written: Obj) -> Claim:
    spec, status = written.get("spec") or {}, written.get("status") or {}
    phase = status.get("phase") or "Pending"
    return Claim(
        key=key_of(written),
        uid=uid_of(written),
        storage_class=class_name_of(written),
        modes=frozenset(spec.get("accessModes") or ()),
        volume_mode=spec.get("volumeMode") or "Filesystem",
        size=_size((spec.get("resources") or {}).get("requests")),
        selector=selector_of(spec.get("selector")),
        volume=spec.get("volumeName") or "",
        bound=phase == "Bound",
        lost=phase == "Lost",
        deleted=is_deleted(written),
        selected_node=annotations_of(written).get(SELECTED_NODE) or "",
        owner=(controller_of(written) or {}).get("uid") or "",
        attributes_class=spec.get("volumeAttributesClassName") or "",
    )


def volume_of(written: Obj) -> Volume:
    spec = written.get("spec") or {}
    reference = spec.get("claimRef") or {}
    moved, plugin = _migrated(written)
    csi = spec_of(moved).get("csi")
    return Volume(
        name=name_of(written),
        storage_class=class_name_of(written),
        modes=frozenset(spec.get("accessModes") or ()),
        volume_mode=spec.get("volumeMode") or "Filesystem",
        size=_size(spec.get("capacity")),
        labels=tuple(sorted(labels_of(written).items())),
        terms=_node_terms(spec),
        claim=f"{reference.get('namespace')}/{reference.get('name')}" if reference else "",
        claim_uid=reference.get("uid") or "",
        available=(written.get("status") or {}).get("phase") in ("Available", None)
        and not is_deleted(written),
        csi=(csi.get("driver") or "", csi.get("volumeHandle") or "") if csi else None,
        attributes_class=spec.get("volumeAttributesClassName") or "",
        plugin=plugin,
        driver_terms=_node_terms(spec_of(moved)) if plugin else None,
    )


def _migrated(written: Obj) -> tuple[Obj, str]:
    """As upstream: azureFile and vsphereVolume are left as they are. One that cannot be translated
    is refused by its node."""
    source = source_of(spec_of(written))
    if not source or not IN_TREE[source].is_scheduled:
        return written, ""
    try:
        return translated_volume(written), IN_TREE[source].plugin
    except NotTranslated:
        return written, ""


def _node_terms(spec: Obj) -> tuple[Term, ...] | None:
    """None: it can be used from every node."""
    required = (spec.get("nodeAffinity") or {}).get("required")
    if not required:
        return None
    return tuple(term_of(term) for term in required.get("nodeSelectorTerms") or ())


def class_of(written: Obj) -> StorageClass:
    return StorageClass(
        name_of(written),
        waits_for_consumer(written),
        written.get("provisioner") not in (None, "", NO_PROVISIONER),
        tuple(
            Term(
                Requirements(
                    Requirement(expression["key"], "In", tuple(expression.get("values") or ()))
                    for expression in topology.get("matchLabelExpressions") or ()
                ),
                Requirements(),
            )
            for topology in written.get("allowedTopologies") or ()
        ),
        written.get("provisioner") or "",
        _driver_of(written.get("provisioner") or ""),
    )


def _driver_of(provisioner: str) -> str:
    plugin = next((each for each in IN_TREE.values() if each.plugin == provisioner), None)
    if plugin is None:
        return provisioner
    return plugin.driver if plugin.is_scheduled else ""


def capacity_of(written: Obj) -> Capacity:
    sizes = amounts({key: written.get(key) for key in ("capacity", "maximumVolumeSize")})
    return Capacity(
        written.get("storageClassName") or "",
        selector_of(written.get("nodeTopology")),
        sizes.get("maximumVolumeSize", sizes.get("capacity", -1)),
        sizes.get("capacity", 0),
    )


def claims_of(pod: Obj) -> tuple[str, ...]:
    """The keys of the claims that a pod mounts, its own ephemeral ones among them."""
    namespace = namespace_of(pod)
    found = []
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            found.append(f"{namespace}/{claim.get('claimName')}")
        elif volume.get("ephemeral") is not None:
            found.append(f"{namespace}/{name_of(pod)}-{volume.get('name')}")
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class OwnClaim:
    """Of a generic ephemeral volume: it is the pod's only if it was made for it."""

    key: str
    pod: str  # its key
    uid: str


def own_claims_of(pod: Obj) -> tuple[OwnClaim, ...]:
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return tuple(
        OwnClaim(f"{key_of(pod)}-{volume.get('name')}", key_of(pod), uid_of(pod))
        for volume in volumes
        if volume.get("ephemeral") is not None
    )


def _size(written: Obj | None) -> int:
    return amounts(written).get("storage", 0)
