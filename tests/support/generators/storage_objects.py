"""Volumes, claims and classes for the scheduler's tests.

Job: short ways to write them, and a snapshot of a cluster that has them.
"""

from collections.abc import Iterable, Sequence

from sampan.api.objects import Obj
from sampan.scheduler.cache.snapshot import Snapshot
from tests.support.generators.random_clusters import cache_of

ZONE = "topology.kubernetes.io/zone"


def node(number: int, zone: str) -> Obj:
    labels = {ZONE: zone} if zone else {}
    amounts = {"cpu": "4", "memory": "4Gi", "pods": "10"}
    meta = {"name": f"n{number}", "labels": labels}
    return {"metadata": meta, "spec": {}, "status": {"allocatable": amounts}}


def volume(
    name: str,
    size: int,
    zones: Sequence[str] | None = None,
    storage: str = "fast",
    modes: Sequence[str] = ("ReadWriteOnce",),
    claim: str = "",
    csi: str = "",
) -> Obj:
    spec: Obj = {"capacity": {"storage": f"{size}Gi"}, "accessModes": list(modes)}
    spec["storageClassName"] = storage
    if zones is not None:
        within = [{"key": ZONE, "operator": "In", "values": list(zones)}]
        terms = [{"matchExpressions": within}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    if claim:
        spec["claimRef"] = {"namespace": "default", "name": claim}
    if csi:
        spec["csi"] = {"driver": csi, "volumeHandle": name}
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}


def claim(
    name: str,
    size: int = 1,
    storage: str = "fast",
    bound: str = "",
    modes: Sequence[str] = ("ReadWriteOnce",),
    **meta: object,
) -> Obj:
    spec: Obj = {"resources": {"requests": {"storage": f"{size}Gi"}}, "accessModes": list(modes)}
    spec |= {"storageClassName": storage, "volumeName": bound}
    phase = "Bound" if bound else "Pending"
    named = {"name": name, "namespace": "default", "uid": name, **meta}
    return {"metadata": named, "spec": spec, "status": {"phase": phase}}


def storage_class(
    name: str = "fast",
    provisioner: str = "kubernetes.io/no-provisioner",
    zones: Sequence[str] | None = None,
    wait: bool = True,
) -> Obj:
    made: Obj = {"metadata": {"name": name}, "provisioner": provisioner}
    made["volumeBindingMode"] = "WaitForFirstConsumer" if wait else "Immediate"
    if zones is not None:
        within = [{"key": ZONE, "values": list(zones)}]
        made["allowedTopologies"] = [{"matchLabelExpressions": within}]
    return made


def pod(*claims: str, name: str = "p") -> Obj:
    volumes = [{"name": item, "persistentVolumeClaim": {"claimName": item}} for item in claims]
    meta = {"name": name, "namespace": "default", "uid": name}
    return {"metadata": meta, "spec": {"containers": [{"name": "c"}], "volumes": volumes}}


def world(
    nodes: Iterable[Obj],
    volumes: Iterable[Obj] = (),
    claims: Iterable[Obj] = (),
    classes: Iterable[Obj] = (),
    placed: dict[str, list[Obj]] | None = None,
) -> Snapshot:
    cache = cache_of(nodes, placed or {})
    known = cache.columns.volumes
    for item in volumes:
        known.put_volume(item["metadata"]["name"], item)
    for item in claims:
        known.put_claim(f"default/{item['metadata']['name']}", item)
    for class_ in classes:
        known.put_class(class_["metadata"]["name"], class_)
    return cache.snapshot()
