"""Local storage limits of a pod: ephemeral-storage and emptyDir sizeLimit. Pure.

Job: what its volumes, logs and writable layers take → why it has to go, in upstream's words.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field

from sampan.api.objects import Obj, spec_of
from sampan.api.quantity import value_of
from sampan.api.rules import pod_resources
from sampan.api.rules.pods import containers, init_containers, is_sidecar
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.eviction.eviction_rules import amount_text

_RESOURCE = "ephemeral-storage"


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """What one pod takes of the node's disk, in bytes (and files)."""

    volumes: Mapping[str, int] = field(default_factory=dict)  # emptyDirs, those in memory too
    containers: Mapping[str, int] = field(default_factory=dict)  # logs and writable layers
    inodes: int = 0

    def on_disk(self, pod: Obj) -> int:
        in_volumes = (size for name, size in self.volumes.items() if not is_in_memory(pod, name))
        return sum(in_volumes) + sum(self.containers.values())


@dataclass(frozen=True, slots=True)
class Excess:
    signal: str  # as upstream's metric has it
    message: str


def has_storage_limits(pod: Obj) -> bool:
    """Only such pods are measured."""
    volumes = spec_of(pod).get("volumes") or ()
    sized = any((volume.get("emptyDir") or {}).get("sizeLimit") for volume in volumes)
    return sized or _RESOURCE in pod_resources.limits(pod)


def storage_excess(pod: Obj, used: LocalStorage) -> Excess | None:
    """The first limit that the pod exceeds."""
    return next(_excesses(pod, used), None)


def _excesses(pod: Obj, used: LocalStorage) -> Iterator[Excess]:
    for volume in spec_of(pod).get("volumes") or ():
        limit, name = (volume.get("emptyDir") or {}).get("sizeLimit"), volume["name"]
        if limit and used.volumes.get(name, 0) > value_of(limit).value() > 0:
            text = f'Usage of EmptyDir volume "{name}" exceeds the limit "{limit}". '
            yield Excess("emptydirfs.limit", text)
    # As upstream: the sum of the limits that there are, though a container may have none.
    total = pod_resources.limits(pod).get(_RESOURCE)
    if total is not None and used.on_disk(pod) > total.value():
        said = "Pod ephemeral local storage usage exceeds the total limit of containers"
        yield Excess("ephemeralpodfs.limit", f"{said} {amount_text(total.value())}. ")
    for container in [*containers(pod), *filter(is_sidecar, init_containers(pod))]:
        limit = ((container.get("resources") or {}).get("limits") or {}).get(_RESOURCE)
        name = container["name"]
        if limit and used.containers.get(name, 0) > value_of(limit).value():
            text = f'Container {name} exceeded its local ephemeral storage limit "{limit}". '
            yield Excess("ephemeralcontainerfs.limit", text)


def is_in_memory(pod: Obj, name: str) -> bool:
    volumes = spec_of(pod).get("volumes") or ()
    found: Obj = next((volume for volume in volumes if volume["name"] == name), {})
    return (found.get("emptyDir") or {}).get("medium") == "Memory"
