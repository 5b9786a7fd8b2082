"""The local provisioner: volumes that are directories of a node, so that storage just works.

Job: make the class `standard` once; a volume for each claim of a class with our provisioner, on the
    node that the scheduler chose (or, without waiting for a pod, on one that is ready); delete
    volumes that are released.
Invariant: a volume is named after its claim's uid: it is made once, however often it is tried.
Invariant: directories are the node's own affair (kubelet/volumes/local_volumes.py): a volume with
    LOCAL_FINALIZER stays until its node has removed it, or the node itself is gone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from sampan.api.errors import AlreadyExists
from sampan.api.objects import (
    Obj,
    annotations_of,
    is_deleted,
    key_of,
    labels_of,
    meta_of,
    name_of,
    namespace_of,
    revision_of,
    uid_of,
)
from sampan.api.resources import (
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
)
from sampan.api.rules import nodes as node_facts
from sampan.api.rules.storage import (
    BIND_COMPLETED,
    DEFAULT_CLASS,
    LOCAL_FINALIZER,
    LOCAL_PROVISIONER,
    LOCAL_ROOT,
    PROVISIONED_BY,
    PROVISIONER,
    SELECTED_NODE,
    class_name_of,
    default_class,
    node_of_volume,
    waits_for_consumer,
)
from sampan.client.events import reference as reference_to
from sampan.controllers.actions import NOTHING, Action, Create, Plan, Record, deletion, merge_patch
from sampan.controllers.controller import Caches, Controller, View
from sampan.core.fast_dataclass import dataclass

STANDARD = "standard"
# Where a node that says nothing keeps its volumes: simulated ones keep nothing at all.
NOWHERE = "/var/lib/sampan/local-volumes"
HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Claim:
    key: str


@dataclass(frozen=True, slots=True)
class Volume:
    name: str


@dataclass(frozen=True, slots=True)
class StandardClass:
    """Key of the one class that we bring along."""


def local_provisioner() -> Controller:
    return Controller(
        name="local-provisioner",
        component=LOCAL_PROVISIONER,
        wakes={
            NAMESPACES: _began,
            PERSISTENT_VOLUME_CLAIMS: _claim_changed,
            PERSISTENT_VOLUMES: _volume_changed,
            STORAGE_CLASSES: _somewhere_changed,
            NODES: _node_changed,
        },
        planned=_plan_key,
        indices={PERSISTENT_VOLUME_CLAIMS: {"local": _waiting}},
        workers=1,
    )


def plan_class(classes: Mapping[str, Obj]) -> Plan:
    if STANDARD in classes:
        return NOTHING
    meta: Obj = {"name": STANDARD}
    if default_class(classes.values()) is None:
        meta["annotations"] = {DEFAULT_CLASS: "true"}
    standard = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": meta,
        "provisioner": LOCAL_PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    return Plan([Create(STORAGE_CLASSES, standard, settled=(AlreadyExists,))])


def plan_claim(
    claim: Obj, storage_class: Obj | None, nodes: Mapping[str, Obj], volumes: Mapping[str, Obj]
) -> Plan:
    if storage_class is None or not _is_ours(claim, storage_class):
        return NOTHING
    name = f"pvc-{uid_of(claim)}"
    if name in volumes:
        return NOTHING
    why = _refusal(claim)
    if why is not None:
        return _failure(claim, why)
    chosen = annotations_of(claim).get(SELECTED_NODE)
    if chosen is not None and chosen not in nodes:
        # The scheduler must choose again.
        patch = {"metadata": {"annotations": {SELECTED_NODE: None}}}
        return Plan([merge_patch(PERSISTENT_VOLUME_CLAIMS, claim, patch)])
    if chosen is None and waits_for_consumer(storage_class):
        return NOTHING
    node = nodes[chosen] if chosen is not None else _emptiest(nodes, volumes, storage_class)
    if node is None:
        return _failure(claim, "no node is ready to hold a volume")
    if not keeps_volumes(node):
        return _failure(claim, f"node {name_of(node)} keeps no volumes for us")
    about = reference_to(claim)
    begun = f'External provisioner is provisioning volume for claim "{key_of(claim)}"'
    made: list[Action] = [
        Record(about, "Normal", "Provisioning", begun),
        Create(PERSISTENT_VOLUMES, volume_for(claim, storage_class, node), (AlreadyExists,)),
        Record(about, "Normal", "ProvisioningSucceeded", f"Successfully provisioned volume {name}"),
    ]
    return Plan(made)


def plan_volume(volume: Obj, nodes: Mapping[str, Obj]) -> Plan:
    if annotations_of(volume).get(PROVISIONED_BY) != LOCAL_PROVISIONER:
        return NOTHING
    if not is_deleted(volume):
        released = (volume.get("status") or {}).get("phase") == "Released"
        policy = volume["spec"].get("persistentVolumeReclaimPolicy")
        due = released and policy == "Delete"
        return Plan([deletion(PERSISTENT_VOLUMES, volume)]) if due else NOTHING
    finalizers: list[str] = meta_of(volume).get("finalizers") or []
    if LOCAL_FINALIZER not in finalizers or node_of_volume(volume) in nodes:
        return NOTHING
    left = [finalizer for finalizer in finalizers if finalizer != LOCAL_FINALIZER]
    patch = {"metadata": {"finalizers": left or None}}
    return Plan([merge_patch(PERSISTENT_VOLUMES, volume, patch)])


def volume_for(claim: Obj, storage_class: Obj, node: Obj) -> Obj:
    name = f"pvc-{uid_of(claim)}"
    root = annotations_of(node).get(LOCAL_ROOT)
    meta: Obj = {"name": name, "annotations": {PROVISIONED_BY: LOCAL_PROVISIONER}}
    if root:
        meta["finalizers"] = [LOCAL_FINALIZER]
    only_here = {
        "matchFields": [
            {"key": "metadata.name", "operator": "In", "values": [name_of(node)]},
        ]
    }
    hostname = labels_of(node).get(HOSTNAME)
    if hostname:
        only_here = {
            "matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [hostname]}]
        }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": meta,
        "spec": {
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": claim["spec"]["accessModes"],
            "volumeMode": "Filesystem",
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
            "storageClassName": name_of(storage_class),
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": namespace_of(claim),
                "name": name_of(claim),
                "uid": uid_of(claim),
                "resourceVersion": str(revision_of(claim)),
            },
            "local": {"path": f"{root or NOWHERE}/{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [only_here]}},
        },
    }


def keeps_volumes(node: Obj) -> bool:
    """A real node says where; one that only pretends has no need of a place."""
    info = (node.get("status") or {}).get("nodeInfo") or {}
    runtime = str(info.get("containerRuntimeVersion") or "simulated")
    return LOCAL_ROOT in annotations_of(node) or runtime.startswith("simulated")


def _is_ours(claim: Obj, storage_class: Obj) -> bool:
    marks = annotations_of(claim)
    return (
        not is_deleted(claim)
        and not claim["spec"].get("volumeName")
        and BIND_COMPLETED not in marks
        and marks.get(PROVISIONER) == LOCAL_PROVISIONER
        and storage_class.get("provisioner") == LOCAL_PROVISIONER
    )


def _refusal(claim: Obj) -> str | None:
    spec = claim["spec"]
    if spec.get("selector"):
        return "claim.Spec.Selector is not supported"
    if spec.get("volumeMode") == "Block":
        return "block volumes are not supported"
    if spec.get("dataSource") or spec.get("dataSourceRef"):
        return "data sources are not supported"
    return None


def _failure(claim: Obj, why: str) -> Plan:
    words = f'failed to provision volume with StorageClass "{class_name_of(claim)}": {why}'
    return Plan([Record(reference_to(claim), "Warning", "ProvisioningFailed", words)])


def _emptiest(
    nodes: Mapping[str, Obj], volumes: Mapping[str, Obj], storage_class: Obj
) -> Obj | None:
    """A claim that does not wait for its pod gets a place before anybody knows the pod."""
    held = Counter(node_of_volume(volume) for volume in volumes.values())
    topologies = storage_class.get("allowedTopologies") or ()
    ready = [
        node
        for node in nodes.values()
        if node_facts.is_ready(node)
        and keeps_volumes(node)
        and not node_facts.is_unschedulable(node)
        and (not topologies or any(_is_within(node, topology) for topology in topologies))
    ]
    return min(ready, key=lambda node: (held[name_of(node)], name_of(node)), default=None)


def _is_within(node: Obj, topology: Obj) -> bool:
    return all(
        labels_of(node).get(expression.get("key", "")) in (expression.get("values") or ())
        for expression in topology.get("matchLabelExpressions") or ()
    )


async def _plan_key(view: View, key: Claim | Volume | StandardClass) -> Plan:
    classes = {name_of(class_): class_ for class_ in view.cache(STORAGE_CLASSES).all()}
    if isinstance(key, StandardClass):
        return plan_class(classes)
    nodes = {name_of(node): node for node in view.cache(NODES).all()}
    if isinstance(key, Volume):
        volume = view.cache(PERSISTENT_VOLUMES).get(key.name)
        return NOTHING if volume is None else plan_volume(volume, nodes)
    claim = view.cache(PERSISTENT_VOLUME_CLAIMS).get(key.key)
    if claim is None:
        return NOTHING
    volumes = {name_of(item): item for item in view.cache(PERSISTENT_VOLUMES).all()}
    return plan_claim(claim, classes.get(class_name_of(claim)), nodes, volumes)


def _began(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[StandardClass]:
    """kube-system is seen once, at each start: a class that a user deleted stays away till then."""
    first = old is None and new is not None and name_of(new) == "kube-system"
    return (StandardClass(),) if first else ()


def _waiting(claim: Obj) -> Iterable[str]:
    marks = annotations_of(claim)
    waits = marks.get(PROVISIONER) == LOCAL_PROVISIONER and BIND_COMPLETED not in marks
    return ("waiting",) if waits else ()


def _claim_changed(_caches: Caches, _old: Obj | None, new: Obj | None) -> Iterable[Claim]:
    return (Claim(key_of(new)),) if new is not None and list(_waiting(new)) else ()


def _volume_changed(_caches: Caches, _old: Obj | None, new: Obj | None) -> Iterable[Volume]:
    return (Volume(name_of(new)),) if new is not None else ()


def _somewhere_changed(caches: Caches, _old: Obj | None, _new: Obj | None) -> Iterable[Claim]:
    return [
        Claim(key_of(claim)) for claim in caches(PERSISTENT_VOLUME_CLAIMS).by("local", "waiting")
    ]


def _node_changed(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[Claim | Volume]:
    if old is not None and new is not None and _facts(old) == _facts(new):
        return
    yield from _somewhere_changed(caches, old, new)
    if new is None:
        for volume in caches(PERSISTENT_VOLUMES).all():
            yield Volume(name_of(volume))


def _facts(node: Obj) -> tuple[object, ...]:
    root = annotations_of(node).get(LOCAL_ROOT)
    return node_facts.is_ready(node), node_facts.is_unschedulable(node), labels_of(node), root
