"""Questions to a cluster, answered beside it: why is this pod pending, where would these pods go?

Job: the objects of a cluster → the scheduler's own cache; decisions on it that nobody carries out.
Invariant: nothing is written to the cluster.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from sampan.api.errors import Forbidden, NotFound
from sampan.api.objects import Obj, copy_of, key_of, labels_of, name_of, uid_of
from sampan.api.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    DEVICE_CLASSES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Resource,
)
from sampan.api.rules.pods import is_terminal, node_name
from sampan.client.contract import Client
from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.cache.cache_state import CacheState
from sampan.scheduler.decision.batch import Batches
from sampan.scheduler.decision.decide import Chosen, Decision
from sampan.scheduler.decision.decision_records import best_of, refusing
from sampan.scheduler.model.assigned_pod import assigned_pod_of, once_assigned
from sampan.scheduler.model.node_info import node_info_of
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.profile import DEFAULT_PROFILE, Profile
from sampan.scheduler.why.changes import Change, changes
from sampan.scheduler.why.explain import message

NEEDED: tuple[Resource, ...] = (
    NAMESPACES, NODES, PODS, PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES,
    CSI_NODES, CSI_DRIVERS, CSI_STORAGE_CAPACITIES, VOLUME_ATTACHMENTS, SERVICES,
    REPLICATION_CONTROLLERS, REPLICA_SETS, STATEFUL_SETS, DEVICE_CLASSES, RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)  # fmt: skip

MOST_COPIES = 10_000  # of one template


@dataclass(frozen=True, slots=True)
class Explained:
    decision: Decision
    message: str  # upstream's, where the pod is refused
    refused: Mapping[str, tuple[str, ...]]  # rule → nodes
    best: tuple[tuple[str, int, Mapping[str, int]], ...]  # node, points, by rule
    changes: list[Change]


@dataclass(frozen=True, slots=True)
class Placed:
    pod: Obj
    decision: Decision
    message: str


async def fetch_objects(client: Client) -> list[Obj]:
    """Everything of a live cluster that bears on scheduling."""
    found: list[Obj] = []
    for resource in NEEDED:
        try:
            listed = (await client.list(resource)).items
        except (NotFound, Forbidden):
            if resource in (NODES, PODS):
                raise
            continue  # an older cluster has no such kind, or the user may not see it
        found += [{"kind": resource.kind, **item} for item in listed]
    return found


def cache_of(objects: Iterable[Obj], *, without: str = "") -> CacheState:
    """`without`: the uid of a pod that is not to count."""
    cache = CacheState()
    put = _takers(cache, without)
    for item in objects:
        take = put.get(item.get("kind") or "")
        if take is not None:
            take(item)
    return cache


def _takers(cache: CacheState, without: str) -> dict[str, Callable[[Obj], object]]:
    """Kind → what takes an object of it."""
    volumes, workloads = cache.columns.volumes, cache.columns.workloads
    allocation = cache.columns.devices

    def put_pod(pod: Obj) -> None:
        uid = uid_of(pod) or key_of(pod)
        if node_name(pod) and not is_terminal(pod) and uid != without:
            cache.put_pod(uid, node_name(pod), assigned_pod_of(pod))

    def put_controller(one: Obj) -> None:
        workloads.put_controller(one["kind"], key_of(one), one)

    by_name: dict[str, Callable[[str, Obj], object]] = {
        "PersistentVolume": volumes.put_volume,
        "StorageClass": volumes.put_class,
        "CSINode": volumes.put_limits,
        "VolumeAttachment": volumes.put_attachment,
        "CSIDriver": volumes.put_driver,
        "DeviceClass": allocation.devices.put_class,
        "ResourceSlice": allocation.put_slice,
    }
    by_key: dict[str, Callable[[str, Obj], object]] = {
        "PersistentVolumeClaim": volumes.put_claim,
        "CSIStorageCapacity": volumes.put_capacity,
        "ResourceClaim": allocation.devices.put_claim,
        "Service": workloads.put_service,
    }
    return {
        "Namespace": lambda item: cache.put_namespace(name_of(item), labels_of(item)),
        "Node": lambda item: cache.put_node(node_info_of(item)),
        "Pod": put_pod,
        **{kind: partial(_with_name, put, name_of) for kind, put in by_name.items()},
        **{kind: partial(_with_name, put, key_of) for kind, put in by_key.items()},
        **dict.fromkeys(("ReplicationController", "ReplicaSet", "StatefulSet"), put_controller),
    }


def _with_name(put: Callable[[str, Obj], object], name: Callable[[Obj], str], one: Obj) -> None:
    put(name(one), one)


def explain(pod: Obj, objects: Iterable[Obj], profile: Profile = DEFAULT_PROFILE) -> Explained:
    """Of a pod that waits, or, were it to be placed anew, of one that has a node."""
    cache = cache_of(objects, without=uid_of(pod) or key_of(pod))
    unplaced = {**pod, "spec": {**pod["spec"], "nodeName": ""}}
    row, nodes = pod_info_of(unplaced), cache.snapshot()
    decision = Batches(cache.columns, profile).decide(row.shape, random.Random(0))
    refused = not isinstance(decision, Chosen)
    return Explained(
        decision,
        message(decision) if not isinstance(decision, Chosen) else "",
        refusing(row, nodes, profile),
        best_of(row, nodes, profile),
        changes(row.shape, nodes, profile) if refused else [],
    )


def dry_run(
    pods: Iterable[Obj],
    objects: Iterable[Obj],
    rng: random.Random,
    profile: Profile = DEFAULT_PROFILE,
) -> list[Placed]:
    """One after the other, the most important first, each counted for the next."""
    cache = cache_of(objects)
    batches = Batches(cache.columns, profile)
    rows = [(pod, pod_info_of(pod)) for pod in pods]
    rows.sort(key=lambda item: -item[1].priority)
    found = []
    for number, (pod, row) in enumerate(rows):
        decision = batches.decide(row.shape, rng)
        if isinstance(decision, Chosen):
            cache.assume(f"dry-run-{number}", decision.node, once_assigned(row))
            found.append(Placed(pod, decision, ""))
        else:
            found.append(Placed(pod, decision, message(decision)))
    return found


class TooManyPods(ValueError):
    """A manifest asks for more than can be looked at."""


def pods_in(objects: Iterable[Obj], namespace: str) -> list[Obj]:
    """The pods that manifests would make: pods, and those of templates, as many as asked for.
    Raises TooManyPods."""
    found: list[Obj] = []
    for item in objects:
        if item.get("kind") == "List":
            found += pods_in(item.get("items") or (), namespace)
        elif item.get("kind") == "Pod":
            made = copy_of(item)
            made.setdefault("metadata", {}).setdefault("namespace", namespace)
            found.append(made)
        elif (template := (item.get("spec") or {}).get("template")) is not None:
            found += _copies(item, template, namespace)
    return found


def _copies(owner: Obj, template: Obj, namespace: str) -> list[Obj]:
    spec, made = owner["spec"], []
    count = spec.get("parallelism" if owner.get("kind") == "Job" else "replicas")
    copies = 1 if count is None else int(count)
    if copies > MOST_COPIES:
        said = f"{name_of(owner)} asks for {copies} pods, and a dry run takes {MOST_COPIES}"
        raise TooManyPods(said)
    for number in range(min(copies, MOST_COPIES)):
        pod = copy_of(template)
        meta = pod.setdefault("metadata", {})
        meta["name"] = f"{name_of(owner)}-{number}"
        meta["namespace"] = (owner.get("metadata") or {}).get("namespace") or namespace
        made.append({"apiVersion": "v1", "kind": "Pod", **pod})
    return made
