"""Facts about pods that API server, scheduler, kubelet and controllers share.

Job: read a Pod: its containers, what it asks for, how it stands, what it refers to. Pure.
Invariant: nothing here changes a pod.
"""

from collections.abc import Iterable, Iterator

from sampan.api import quantity
from sampan.api.objects import Obj, annotations_of
from sampan.api.quantity import ZERO, Quantity
from sampan.api.rules import conditions

Amounts = dict[str, Quantity]

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
SOURCE_ANNOTATION = "kubernetes.io/config.source"
HASH_ANNOTATION = "kubernetes.io/config.hash"
SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
# What the scheduler counts for a container that asks for nothing, so that such pods spread too.
UNSTATED_CPU = quantity.from_milli(100)
UNSTATED_MEMORY = quantity.from_value(200 * 1024 * 1024)
_NO_OBJ: Obj = {}


# Containers


def containers(pod: Obj) -> list[Obj]:
    found: list[Obj] = _spec(pod).get("containers") or []
    return found


def init_containers(pod: Obj) -> list[Obj]:
    found: list[Obj] = _spec(pod).get("initContainers") or []
    return found


def ephemeral_containers(pod: Obj) -> list[Obj]:
    found: list[Obj] = _spec(pod).get("ephemeralContainers") or []
    return found


def all_containers(pod: Obj) -> Iterator[Obj]:
    """Init, normal and ephemeral ones, in the order in which they may start."""
    yield from init_containers(pod)
    yield from containers(pod)
    yield from ephemeral_containers(pod)


def is_sidecar(container: Obj) -> bool:
    """Of an init container: it stays, and is restarted whatever the pod's policy."""
    return bool(container.get("restartPolicy") == "Always")


def restart_policy(pod: Obj, container: Obj, *, is_init: bool) -> str:
    """What happens when the container ends: its own word, else the pod's."""
    own = container.get("restartPolicy")
    if own:
        return str(own)
    of_pod = str(_spec(pod).get("restartPolicy") or "Always")
    # An init container that succeeded is done, whatever the policy of its pod.
    return "OnFailure" if is_init and of_pod == "Always" else of_pod


def host_ports(pod: Obj) -> frozenset[tuple[str, str, int]]:
    """(protocol, host IP, port) that the pod takes on its node, those of sidecars among them."""
    taken: set[tuple[str, str, int]] = set()
    sidecars = (one for one in init_containers(pod) if is_sidecar(one))
    for container in (*containers(pod), *sidecars):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                ip = str(port.get("hostIP") or "0.0.0.0")
                taken.add((str(port.get("protocol") or "TCP"), ip, int(port["hostPort"])))
    return frozenset(taken)


# What it asks for


def requests(pod: Obj) -> Amounts:
    """What the pod needs of a node: its containers or the pod as a whole, and the overhead."""
    spec = _spec(pod)
    total = container_requests(spec)
    total.update(_own(spec, "requests"))
    _add(total, _amounts(spec.get("overhead")))
    return total


def limits(pod: Obj) -> Amounts:
    """What the pod may use at most. The overhead raises a limit but makes none."""
    spec = _spec(pod)
    total = _aggregate(spec, "limits")
    total.update(_own(spec, "limits"))
    for name, amount in _amounts(spec.get("overhead")).items():
        if name in total:
            total[name] = total[name] + amount
    return total


def container_requests(spec: Obj) -> Amounts:
    """What the containers of a spec ask for together."""
    return _aggregate(spec, "requests")


def scored_requests(pod: Obj) -> tuple[int, int]:
    """(thousandths of a CPU, bytes) as the scheduler's scores count them."""
    spec = _spec(pod)
    cpu = _aggregate(spec, "requests", {"cpu": UNSTATED_CPU, "memory": UNSTATED_MEMORY})
    cpu.update(_own(spec, "requests"))
    _add(cpu, _amounts(spec.get("overhead")))
    return cpu.get("cpu", ZERO).milli(), cpu.get("memory", ZERO).value()


def quota_usage(pod: Obj) -> Amounts:
    """What a pod that is not over takes of its namespace's quota."""
    usage: Amounts = {"count/pods": quantity.from_value(1)}
    if is_terminal(pod):
        return usage
    usage["pods"] = quantity.from_value(1)
    for name, amount in requests(pod).items():
        usage[f"requests.{name}"] = amount
        if name in ("cpu", "memory", "ephemeral-storage") or name.startswith("hugepages-"):
            usage[name] = amount
    for name, amount in limits(pod).items():
        if name in ("cpu", "memory", "ephemeral-storage"):
            usage[f"limits.{name}"] = amount
    return usage


def qos_class(pod: Obj) -> str:
    """Guaranteed, Burstable or BestEffort: by what the spec says, not by what was recorded."""
    spec = _spec(pod)
    of_pod = spec.get("resources")
    if of_pod and (of_pod.get("requests") or of_pod.get("limits")):
        parts = [of_pod]
    else:
        parts = [
            container.get("resources") or _NO_OBJ
            for container in (*containers(pod), *init_containers(pod))
        ]
    asked: Amounts = {}
    capped: Amounts = {}
    guaranteed = True
    for part in parts:
        _add(asked, _counted_for_qos(part.get("requests")))
        own = _counted_for_qos(part.get("limits"))
        _add(capped, own)
        guaranteed = guaranteed and len(own) == 2
    if not asked and not capped:
        return "BestEffort"
    return "Guaranteed" if guaranteed and asked == capped else "Burstable"


def priority(pod: Obj) -> int:
    return int(_spec(pod).get("priority") or 0)


# How it stands


def phase(pod: Obj) -> str:
    return str((pod.get("status") or _NO_OBJ).get("phase") or "")


def is_terminal(pod: Obj) -> bool:
    """Over for good: no container will run again."""
    return phase(pod) in ("Succeeded", "Failed")


def condition(pod: Obj, kind: str) -> Obj | None:
    return conditions.condition_of(pod, kind)


def is_ready(pod: Obj) -> bool:
    return conditions.is_true(pod, "Ready")


def node_name(pod: Obj) -> str:
    return str(_spec(pod).get("nodeName") or "")


def is_gated(pod: Obj) -> bool:
    return bool(_spec(pod).get("schedulingGates"))


# Static and mirror pods


def is_mirror(pod: Obj) -> bool:
    """The API's picture of a pod that a kubelet runs from a file."""
    return MIRROR_ANNOTATION in annotations_of(pod)


def is_static(pod: Obj) -> bool:
    """It came to its kubelet from a file or a URL, not from the API."""
    return annotations_of(pod).get(SOURCE_ANNOTATION, "api") != "api"


def is_critical(pod: Obj) -> bool:
    """The last to be evicted, and admitted by making room."""
    return is_static(pod) or is_mirror(pod) or priority(pod) >= SYSTEM_CRITICAL_PRIORITY


# What it refers to


def secret_names(pod: Obj) -> frozenset[str]:
    spec = _spec(pod)
    names = {one.get("name") for one in spec.get("imagePullSecrets") or ()}
    for container in all_containers(pod):
        names |= _env_names(container, "secretRef", "secretKeyRef")
    for volume in spec.get("volumes") or ():
        names.add((volume.get("secret") or _NO_OBJ).get("secretName"))
        names |= _projected_names(volume, "secret")
        for kind, field in _SECRETS_OF_VOLUMES:
            reference = (volume.get(kind) or _NO_OBJ).get(field) or _NO_OBJ
            names.add(reference if isinstance(reference, str) else reference.get("name"))
    return frozenset(str(name) for name in names if name)


def config_map_names(pod: Obj) -> frozenset[str]:
    names: set[str | None] = set()
    for container in all_containers(pod):
        names |= _env_names(container, "configMapRef", "configMapKeyRef")
    for volume in _spec(pod).get("volumes") or ():
        names.add((volume.get("configMap") or _NO_OBJ).get("name"))
        names |= _projected_names(volume, "configMap")
    return frozenset(str(name) for name in names if name)


def claim_names(pod: Obj) -> frozenset[str]:
    """Persistent volume claims: named ones, and those made for the pod's ephemeral volumes."""
    names: set[str] = set()
    own = str((pod.get("metadata") or _NO_OBJ).get("name") or "")
    for volume in _spec(pod).get("volumes") or ():
        claim = (volume.get("persistentVolumeClaim") or _NO_OBJ).get("claimName")
        if claim:
            names.add(str(claim))
        if volume.get("ephemeral") is not None:
            names.add(f"{own}-{volume.get('name')}")
    return frozenset(names)


_SECRETS_OF_VOLUMES = (
    ("csi", "nodePublishSecretRef"), ("iscsi", "secretRef"), ("rbd", "secretRef"),
    ("cephfs", "secretRef"), ("flexVolume", "secretRef"), ("scaleIO", "secretRef"),
    ("azureFile", "secretName"),
)  # fmt: skip


def _spec(pod: Obj) -> Obj:
    spec: Obj = pod.get("spec") or _NO_OBJ
    return spec


def _amounts(written: Obj | None) -> Amounts:
    return {name: quantity.value_of(text) for name, text in written.items()} if written else {}


def _own(spec: Obj, kind: str) -> Amounts:
    """Of the pod as a whole; it stands in place of what the containers say."""
    return _amounts((spec.get("resources") or _NO_OBJ).get(kind))


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        have = total.get(name)
        total[name] = amount if have is None else have + amount


def _raise_to(total: Amounts, least: Amounts) -> None:
    for name, amount in least.items():
        have = total.get(name)
        if have is None or have < amount:
            total[name] = amount


def _aggregate(spec: Obj, kind: str, unstated: Amounts | None = None) -> Amounts:
    """Normal containers and sidecars run together; before that, each init container runs beside
    the sidecars that were started before it. As resourcehelper.PodRequests."""

    def of(container: Obj) -> Amounts:
        own = _amounts((container.get("resources") or _NO_OBJ).get(kind))
        return own if unstated is None else {**unstated, **own}

    total: Amounts = {}
    for container in spec.get("containers") or ():
        _add(total, of(container))
    sidecars: Amounts = {}
    most: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = of(container)
        if is_sidecar(container):
            _add(total, own)
            _add(sidecars, own)
            _raise_to(most, sidecars)
        else:
            _add(own, sidecars)
            _raise_to(most, own)
    _raise_to(total, most)
    return total


def _counted_for_qos(written: Obj | None) -> Amounts:
    return {
        name: amount
        for name, amount in _amounts(written).items()
        if name in ("cpu", "memory") and amount.nanos > 0
    }


def _env_names(container: Obj, whole: str, one_key: str) -> set[str | None]:
    names = {
        (source.get(whole) or _NO_OBJ).get("name") for source in container.get("envFrom") or ()
    }
    sources: Iterable[Obj] = (
        variable.get("valueFrom") or _NO_OBJ for variable in container.get("env") or ()
    )
    return names | {(source.get(one_key) or _NO_OBJ).get("name") for source in sources}


def _projected_names(volume: Obj, kind: str) -> set[str | None]:
    projected = volume.get("projected") or _NO_OBJ
    return {(source.get(kind) or _NO_OBJ).get("name") for source in projected.get("sources") or ()}
