"""Facts about pods that API server, scheduler, kubelet and controllers share.

Job: read a Pod: its containers, how it stands, what it refers to. Pure.
Invariant: nothing here changes a pod.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from sampan.api.objects import Obj, annotations_of, controller_of, spec_of
from sampan.api.rules import conditions

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
SOURCE_ANNOTATION = "kubernetes.io/config.source"
HASH_ANNOTATION = "kubernetes.io/config.hash"
TERMINAL_PHASES = ("Succeeded", "Failed")
SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
_NO_OBJ: Obj = {}


# Containers


def containers(pod: Obj) -> list[Obj]:
    found: list[Obj] = (pod.get("spec") or _NO_OBJ).get("containers") or []
    return found


def init_containers(pod: Obj) -> list[Obj]:
    found: list[Obj] = (pod.get("spec") or _NO_OBJ).get("initContainers") or []
    return found


def ephemeral_containers(pod: Obj) -> list[Obj]:
    found: list[Obj] = (pod.get("spec") or _NO_OBJ).get("ephemeralContainers") or []
    return found


def all_containers(pod: Obj) -> Iterator[Obj]:
    """Init, normal and ephemeral ones, in the order in which they may start."""
    yield from init_containers(pod)
    yield from containers(pod)
    yield from ephemeral_containers(pod)


def is_sidecar(container: Obj) -> bool:
    """Of an init container: it stays, and is restarted whatever the pod's policy."""
    return bool(container.get("restartPolicy") == "Always")


def restart_policy(pod: Obj) -> str:
    """Of the pod as a whole; a container may have its own."""
    return str(spec_of(pod).get("restartPolicy") or "Always")


def is_host_network(pod: Obj) -> bool:
    return bool(spec_of(pod).get("hostNetwork"))


def priority(pod: Obj) -> int:
    return int(spec_of(pod).get("priority") or 0)


# How it stands


def phase(pod: Obj) -> str:
    return str((pod.get("status") or _NO_OBJ).get("phase") or "")


def runs(pod: Obj) -> bool:
    return phase(pod) == "Running"


def running_by_controller(pods: Iterable[Obj]) -> Counter[str]:
    """How many run of each controller, by its uid, and are not about to end."""
    alive = (pod for pod in pods if runs(pod) and "deletionTimestamp" not in pod["metadata"])
    owners = map(controller_of, alive)
    return Counter(str(owner["uid"]) for owner in owners if owner is not None)


def replicas_of(pod: Obj, running: Counter[str]) -> int:
    """How many run of its controller; without one it is alone."""
    owner = controller_of(pod)
    return 1 if owner is None else max(1, running[str(owner["uid"])])


def is_terminal(pod: Obj) -> bool:
    """Over for good: no container will run again."""
    return (pod.get("status") or _NO_OBJ).get("phase") in TERMINAL_PHASES


def condition(pod: Obj, kind: str) -> Obj | None:
    return conditions.condition_of(pod, kind)


def is_ready(pod: Obj) -> bool:
    return conditions.is_true(pod, "Ready")


def node_name(pod: Obj) -> str:
    return str(spec_of(pod).get("nodeName") or "")


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
    spec = spec_of(pod)
    names = {secret.get("name") for secret in spec.get("imagePullSecrets") or ()}
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
    for volume in spec_of(pod).get("volumes") or ():
        names.add((volume.get("configMap") or _NO_OBJ).get("name"))
        names |= _projected_names(volume, "configMap")
    return frozenset(str(name) for name in names if name)


def claim_names(pod: Obj) -> frozenset[str]:
    """Persistent volume claims: named ones, and those made for the pod's ephemeral volumes."""
    names: set[str] = set()
    own = str((pod.get("metadata") or _NO_OBJ).get("name") or "")
    for volume in spec_of(pod).get("volumes") or ():
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
