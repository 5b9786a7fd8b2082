"""What the node reads out of a pod's spec: containers by kind, restart rules, grace, hash.

Job: small questions about a pod that plan, perform and status all ask. Pure.
"""

import zlib
from collections.abc import Mapping, Sequence

import orjson

from sampan.api import features
from sampan.api.objects import Obj, is_deleted, meta_of, spec_of
from sampan.api.rules.node_agent.restart_rules import RESTART, action_at, restarts_all_at
from sampan.api.rules.pods import containers, init_containers, is_sidecar, restart_policy
from sampan.client.by_identity import OF_ANY_SIZE, by_identity
from sampan.kubelet.contracts.runtime import ContainerState, ContainerStatus, ObservedPod, Role

HASH_ANNOTATION = "io.kubernetes.container.hash"
# With which cpu and memory a container was created.
RESOURCES_ANNOTATION = "sampan.dev/container.resources"
RESIZABLE = ("cpu", "memory")
DEFAULT_GRACE_SECONDS = 30.0
FEW = 16  # containers, among which one is found fastest by looking at each
LONG = 100  # containers and volumes: each look at such a pod takes its time


def with_roles(pod: Obj) -> list[tuple[Role, Obj]]:
    """In the order in which they may start."""
    spec = spec_of(pod)
    found = [(Role.NORMAL, container) for container in spec.get("containers") or ()]
    # Most pods have no others, and each step of a pod asks several times.
    if inits := spec.get("initContainers"):
        first = [(Role.SIDECAR if is_sidecar(item) else Role.INIT, item) for item in inits]
        found = first + found
    if ephemeral := spec.get("ephemeralContainers"):
        found += [(Role.EPHEMERAL, item) for item in ephemeral]
    return found


def is_long(pod: Obj) -> bool:
    """Whether its steps let others have the loop in between."""
    spec = spec_of(pod)
    lists = ("containers", "initContainers", "ephemeralContainers", "volumes")
    return sum(len(spec.get(name) or ()) for name in lists) > LONG


def find_container(pod: Obj, name: str) -> tuple[Role, Obj] | None:
    if len(spec_of(pod).get("containers") or ()) + len(init_containers(pod)) > FEW:
        return _by_name(spec_of(pod)).get(name)
    return next((found for found in with_roles(pod) if found[1].get("name") == name), None)


@by_identity(8, OF_ANY_SIZE)
def _by_name(spec: Obj) -> Mapping[str, tuple[Role, Obj]]:
    """A pod may have thousands of containers, and be asked for each of them."""
    return {found[1]["name"]: found for found in reversed(with_roles({"spec": spec}))}


def role_of(pod: Obj, name: str) -> Role:
    found = find_container(pod, name)
    return found[0] if found else Role.NORMAL


def field_path(pod: Obj, name: str) -> str:
    """How events name a container: `spec.containers{web}`."""
    found = find_container(pod, name)
    lists = {Role.NORMAL: "containers", Role.EPHEMERAL: "ephemeralContainers"}
    return f"spec.{lists.get(found[0], 'initContainers')}{{{name}}}" if found else ""


def container_hash(container: Obj) -> str:
    """Changes when the container must be replaced: as upstream since 1.31, name and image only."""
    told = orjson.dumps([container.get("name"), container.get("image")])
    return f"{zlib.crc32(told):08x}"


def is_made_of(instance: ContainerStatus, container: Obj) -> bool:
    """Was it made of what the spec says by now? Of one that says nothing it is assumed."""
    made_of = instance.annotations.get(HASH_ANNOTATION)
    return made_of is None or made_of == container_hash(container)


def resources_of(container: Obj) -> dict[str, dict[str, str]]:
    """The part of its resources that can change while it runs."""
    given = container.get("resources")
    if not given:
        return {}
    picked = {
        kind: {name: given[kind][name] for name in RESIZABLE if name in (given.get(kind) or {})}
        for kind in ("requests", "limits")
    }
    return {kind: amounts for kind, amounts in picked.items() if amounts}


def pod_level_resources(pod: Obj) -> dict[str, dict[str, str]]:
    """Likewise, of the pod as a whole."""
    if not features.enabled("InPlacePodLevelResourcesVerticalScaling"):
        return {}
    return resources_of(spec_of(pod))


def resizable(pod: Obj) -> list[Obj]:
    """Containers whose resources can change while they run."""
    inits = init_containers(pod)
    if not features.enabled("InPlacePodVerticalScalingInitContainers"):
        inits = [container for container in inits if is_sidecar(container)]
    return [*containers(pod), *inits]


def latest(observed: ObservedPod | None, name: str) -> ContainerStatus | None:
    """The newest container of that name; the lists of an ObservedPod are newest first."""
    found = instances(observed, name)
    return found[0] if found else None


def instances(observed: ObservedPod | None, name: str) -> Sequence[ContainerStatus]:
    """All containers of that name, newest first."""
    if observed is None:
        return ()
    if len(observed.containers) > FEW:
        return _instances(observed.containers).get(name, ())
    return [container for container in observed.containers if container.name == name]


@by_identity(8, OF_ANY_SIZE)
def _instances(among: tuple[ContainerStatus, ...]) -> Mapping[str, Sequence[ContainerStatus]]:
    found: dict[str, list[ContainerStatus]] = {}
    for container in among:
        found.setdefault(container.name, []).append(container)
    return found


def status_named(statuses: Sequence[Obj] | None, name: str) -> Obj:
    """Of the container statuses of a pod's status; empty: there is none."""
    if statuses is None or len(statuses) <= FEW:
        return next((item for item in statuses or () if item.get("name") == name), {})
    return _statuses(statuses).get(name, {})


@by_identity(8, OF_ANY_SIZE)
def _statuses(among: Sequence[Obj]) -> Mapping[str, Obj]:
    return {item.get("name", ""): item for item in reversed(among)}


def latest_ended(observed: ObservedPod | None, name: str) -> ContainerStatus | None:
    if observed is None:
        return None
    return next(
        (
            container
            for container in observed.containers
            if container.name == name and container.state is ContainerState.EXITED
        ),
        None,
    )


def should_restart(pod: Obj, container: Obj, last: ContainerStatus | None) -> bool:
    """Is a container, whose newest instance is `last`, to be started (again)? What makes an init
    container or a sidecar different is the caller's to know."""
    if is_deleted(pod):
        return False
    if last is None or last.state in (ContainerState.UNKNOWN, ContainerState.CREATED):
        return True
    if last.state is ContainerState.RUNNING:
        return False
    return restarts_after_exit(pod, container, last.exit_code)


def restarts_after_exit(pod: Obj, container: Obj, exit_code: int) -> bool:
    if action_at(container, exit_code) == RESTART or restarts_all_at(container, exit_code):
        return True
    policy = restart_policy_of(pod, container)
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def restarts_after_kill(pod: Obj, container: Obj) -> bool:
    """Of one that a probe ends: it has no exit code yet that a rule could name."""
    return restart_policy_of(pod, container) != "Never"


def restart_policy_of(pod: Obj, container: Obj) -> str:
    """A container's own goes before the pod's."""
    return container.get("restartPolicy") or restart_policy(pod)


def is_recursive_read_only(mount: Obj, *, possible: bool) -> bool:
    """Of a volume mount: is what is mounted below it read-only, too? `possible`: by the runtime."""
    wanted = mount.get("recursiveReadOnly") or "Disabled"
    return wanted != "Disabled" and bool(mount.get("readOnly")) and possible


def grace_seconds_of(pod: Obj) -> float:
    """What deletion asked for, else what the spec says."""
    asked = meta_of(pod).get("deletionGracePeriodSeconds")
    if asked is None:
        asked = spec_of(pod).get("terminationGracePeriodSeconds")
    if asked is None:
        return DEFAULT_GRACE_SECONDS
    return 1.0 if asked < 0 else float(asked)  # as upstream: negative means one second
