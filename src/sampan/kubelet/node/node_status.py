"""The Node object, from what the node agent knows.

Job: (settings, machine, runtime, images, now) → Node; and what an existing Node still lacks. Pure.
Invariant: a condition's transition time changes only when its status does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field

from sampan.api import features as gates
from sampan.api.objects import Obj, labels_of, meta_of, time_text
from sampan.api.quantity import canonical, from_milli
from sampan.api.rules.conditions import is_true, transition_time
from sampan.api.rules.node_agent.declared_features import declared
from sampan.api.rules.nodes import is_extended_resource
from sampan.client.by_identity import by_identity
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.contracts.runtime import HandlerFeatures, Image, RuntimeFeatures
from sampan.kubelet.node.machine import Machine
from sampan.kubelet.runtime.pleg import RuntimeHealth
from sampan.kubelet.settings import KubeletSettings

ATTACH_ANNOTATION = "volumes.kubernetes.io/controller-managed-attach-detach"


@dataclass(frozen=True, slots=True)
class NodeKnowledge:
    settings: KubeletSettings
    machine: Machine
    health: RuntimeHealth
    images: Sequence[Image]
    now: float
    pressures: frozenset[str] = frozenset()
    shutting_down: bool = False
    volumes_in_use: tuple[str, ...] = ()
    # Resources of device plugins: how many there are, and how many are healthy.
    devices: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def node_object(told: NodeKnowledge) -> Obj:
    """The node as it registers itself."""
    settings = told.settings
    node: Obj = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": settings.node_name,
            "labels": {**default_labels(settings, told.machine), **settings.labels},
            "annotations": {ATTACH_ANNOTATION: "true"},
        },
        "spec": {},
        "status": node_status(told, {}),
    }
    if settings.taints:
        node["spec"]["taints"] = [dict(taint) for taint in settings.taints]
    if settings.provider_id:
        node["spec"]["providerID"] = settings.provider_id
    return node


def default_labels(settings: KubeletSettings, machine: Machine) -> dict[str, str]:
    return {
        "kubernetes.io/hostname": settings.hostname or settings.node_name,
        "kubernetes.io/os": machine.os_name,
        "kubernetes.io/arch": machine.architecture,
        "beta.kubernetes.io/os": machine.os_name,
        "beta.kubernetes.io/arch": machine.architecture,
    }


def reconciled_metadata(existing: Obj, wanted: Obj) -> Obj | None:
    """The merge patch that a node which registered before needs; None: nothing."""
    labels = {
        key: value
        for key, value in labels_of(wanted).items()
        if labels_of(existing).get(key) != value
    }
    notes = {
        key: value
        for key, value in (meta_of(wanted).get("annotations") or {}).items()
        if (meta_of(existing).get("annotations") or {}).get(key) != value
    }
    metadata = {key: value for key, value in (("labels", labels), ("annotations", notes)) if value}
    return {"metadata": metadata} if metadata else None


def node_status(told: NodeKnowledge, old: Obj) -> Obj:
    capacity, allocatable = _room(told.machine)
    theirs = _extended_resources(old.get("capacity") or {})
    status: Obj = {
        "addresses": _addresses(told.settings),
        "capacity": {**theirs, **capacity, **_counts(told, 0)},
        # As upstream: nothing of what others advertise is reserved for the node itself.
        "allocatable": {**theirs, **allocatable, **_counts(told, 1)},
        "conditions": _conditions(told, old.get("conditions") or []),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": told.settings.port}},
        "nodeInfo": _node_info(told),
    }
    images = images_status(told.images, told.settings.images_in_status)
    if images:
        status["images"] = images
    if told.health.answered:
        status |= _features(told.health.features)
    if gates.enabled("NodeDeclaredFeatures") and (names := declared()):
        status["declaredFeatures"] = list(names)
    if told.volumes_in_use or old.get("volumesInUse"):
        status["volumesInUse"] = list(told.volumes_in_use)
    if old.get("volumesAttached"):
        status["volumesAttached"] = old["volumesAttached"]  # the attach-detach controller's word
    return status


def _counts(told: NodeKnowledge, which: int) -> dict[str, str]:
    return {name: str(counts[which]) for name, counts in told.devices.items()}


def _extended_resources(capacity: Mapping[str, str]) -> dict[str, str]:
    """What somebody else advertised for this node."""
    return {name: amount for name, amount in capacity.items() if is_extended_resource(name)}


def _features(features: RuntimeFeatures) -> Obj:
    """What the runtime's handlers can; one that says nothing has only the default one."""
    handlers = features.handlers or {"": HandlerFeatures()}
    return {
        "features": {"supplementalGroupsPolicy": features.supplemental_groups_policy},
        "runtimeHandlers": [
            {
                "name": name,
                "features": {
                    "recursiveReadOnlyMounts": able.recursive_read_only,
                    "userNamespaces": able.user_namespaces,
                },
            }
            for name, able in sorted(handlers.items())
        ],
    }


def is_ready(status: Obj) -> bool:
    return is_true({"status": status}, "Ready")


def differs(known: Obj, wanted: Obj) -> bool:
    """Is there anything new beside the heartbeat times?"""
    return any(
        _timeless(known.get(key)) != _timeless(wanted.get(key))
        if key == "conditions"
        else (known.get(key) or None) != (wanted.get(key) or None)
        for key in known.keys() | wanted.keys()
    )


def _timeless(conditions: Sequence[Obj] | None) -> list[Obj]:
    return [
        {key: value for key, value in each.items() if key != "lastHeartbeatTime"}
        for each in conditions or ()
    ]


def allocatable_of(machine: Machine) -> dict[str, str]:
    return _room(machine)[1]


@by_identity(64)
def _room(machine: Machine) -> tuple[dict[str, str], dict[str, str]]:
    """Capacity and allocatable: thousands of simulated nodes have the same machine."""
    has = machine.capacity
    capacity = {
        "cpu": str(from_milli(has.cpu_milli)),
        "ephemeral-storage": _kibibytes(has.ephemeral_bytes),
        **{
            f"hugepages-{size}": _kibibytes(count) if count else "0"
            for size, count in machine.hugepages.items()
        },
        "memory": _kibibytes(has.memory_bytes),
        "pods": str(has.pods),
        **has.extended,
    }
    allocatable = {
        **capacity,
        # As upstream: what is reserved may be more than there is, but nothing is less than nothing.
        "cpu": str(from_milli(max(0, has.cpu_milli - has.reserved_cpu_milli))),
        "ephemeral-storage": _kibibytes(max(0, has.ephemeral_bytes - has.reserved_ephemeral_bytes)),
        # What is set aside for huge pages is nothing that ordinary ones could use.
        "memory": _kibibytes(
            max(0, has.memory_bytes - has.reserved_memory_bytes - sum(machine.hugepages.values()))
        ),
    }
    return capacity, allocatable


def _kibibytes(count: int) -> str:
    """As the API stores it: a text that it would rewrite looks like a change for ever."""
    return canonical(f"{count // 1024}Ki")


def _addresses(settings: KubeletSettings) -> list[Obj]:
    addresses = [{"type": "InternalIP", "address": ip} for ip in settings.node_ips]
    return [*addresses, {"type": "Hostname", "address": settings.hostname or settings.node_name}]


def _node_info(told: NodeKnowledge) -> Obj:
    machine, health = told.machine, told.health
    version = f"{health.runtime_name}://{health.version}" if health.answered else ""
    info: Obj = {
        "machineID": machine.machine_id,
        "systemUUID": machine.system_uuid,
        "bootID": machine.boot_id,
        "kernelVersion": machine.kernel_version,
        "osImage": machine.os_image,
        "containerRuntimeVersion": version,
        "kubeletVersion": told.settings.version,
        "kubeProxyVersion": "",
        "operatingSystem": machine.os_name,
        "architecture": machine.architecture,
    }
    if machine.swap_bytes:
        info["swap"] = {"capacity": machine.swap_bytes}  # none is said by saying nothing
    return info


def images_status(images: Sequence[Image], most: int) -> list[Obj]:
    largest = sorted(images, key=lambda image: -image.size_bytes)
    return [
        {"names": [*image.digests, *image.tags][:5], "sizeBytes": image.size_bytes}
        for image in largest[:most]
        if image.digests or image.tags
    ]


# condition → (reason and message while it holds), (while it does not)
_PRESSURES = {
    "MemoryPressure": (
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ),
    "DiskPressure": (
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ),
    "PIDPressure": (
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ),
}


def _pressure(name: str, holds: bool) -> Obj:
    under, free = _PRESSURES[name]
    return _condition(name, holds, *(under if holds else free))


def _conditions(told: NodeKnowledge, old: list[Obj]) -> list[Obj]:
    before = {item["type"]: item for item in old}
    made = [
        *(_pressure(name, name in told.pressures) for name in _PRESSURES),
        _ready(told.health, told.shutting_down),
    ]
    result = []
    for condition in made:
        since = transition_time(before.get(condition["type"]), condition["status"], told.now)
        times = {"lastHeartbeatTime": time_text(told.now), "lastTransitionTime": since}
        result.append({**condition, **times})
    names = {item["type"] for item in made}
    return [item for item in old if item["type"] not in names] + result


def _condition(name: str, holds: bool, reason: str, message: str) -> Obj:
    status = "True" if holds else "False"
    return {"type": name, "status": status, "reason": reason, "message": message}


def _ready(health: RuntimeHealth, shutting_down: bool) -> Obj:
    if shutting_down:
        return _condition("Ready", False, "KubeletNotReady", "node is shutting down")
    if health.ready and health.network_ready:
        return _condition("Ready", True, "KubeletReady", "kubelet is posting ready status")
    if health.ready:
        why = f"container runtime network not ready: NetworkReady=false reason:{health.message}"
    elif health.answered:
        why = f"container runtime is down: {health.message}"
    else:
        why = health.message
    return _condition("Ready", False, "KubeletNotReady", why)
