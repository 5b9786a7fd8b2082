"""What a simulated node had when its process ended, read from the statuses of its pods.

Job: pod, with the status that the API shows → its sandbox and containers as they would have gone on
    without us: same ids, addresses, start times and restart counts. Pure.
Invariant: what the status does not show did not happen: such a pod is started as a new one.
Invariant: the status of a pod that was taken over is the one that it was taken from.
"""

import json
from collections.abc import Iterator

from sampan.api.objects import (
    Obj,
    annotations_of,
    is_deleted,
    labels_of,
    meta_of,
    name_of,
    namespace_of,
    seconds_of,
    spec_of,
    uid_of,
)
from sampan.api.rules.conditions import find
from sampan.api.rules.pods import is_host_network, is_mirror, is_static, is_terminal
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.container_spec.generate import container_annotations, pod_labels
from sampan.kubelet.contracts.runtime import ContainerState, ContainerStatus, Role, SandboxStatus
from sampan.kubelet.contracts.spec import (
    HASH_ANNOTATION,
    RESOURCES_ANNOTATION,
    container_hash,
    resources_of,
    with_roles,
)
from sampan.kubelet.simulated.parts import digits_of
from sampan.kubelet.simulated.scenario import Scenario
from sampan.kubelet.simulated.script import PREFIX

_ID_PREFIX = "simulated://"
_BEGUN = frozenset({  # one of these is in the status of whatever was begun
    "startTime", "containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"
})  # fmt: skip
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_NEEDS_CARE = ("initContainers", "ephemeralContainers", "volumes", "activeDeadlineSeconds")
_LISTS = {Role.NORMAL: "containerStatuses", Role.EPHEMERAL: "ephemeralContainerStatuses"}


@dataclass(frozen=True, slots=True)
class Remains:
    sandbox: SandboxStatus
    containers: tuple[ContainerStatus, ...]


def remains_of(pod: Obj, log_directory: str) -> Remains | None:
    """None: nothing of it was ever begun. A mirror's containers are those of its static pod."""
    status: Obj = pod.get("status") or {}
    if is_mirror(pod) or _BEGUN.isdisjoint(status):
        return None
    sandbox_id = digits_of(f"sandbox of {uid_of(pod)}")
    containers = tuple(
        found
        for role, container in with_roles(pod)
        for found in _instances(pod, role, container, sandbox_id, log_directory)
    )
    ready = _has_sandbox(status) and not is_terminal(pod)
    if not containers and not ready:
        return None
    host_network = is_host_network(pod)
    ips = () if host_network else tuple(item["ip"] for item in status.get("podIPs") or ())
    sandbox = SandboxStatus(
        id=sandbox_id,
        name=name_of(pod),
        namespace=namespace_of(pod),
        uid=uid_of(pod),
        attempt=0,
        ready=ready,
        created_at=_moment(status.get("startTime")),
        ips=ips if ready else (),
        host_network=host_network,
        labels=labels_of(pod) | pod_labels(pod),
    )
    return Remains(sandbox, containers)


def goes_on(pod: Obj) -> bool:
    """Is all that it wants there, with nothing to be timed, probed, mounted or told of it?"""
    spec, status = spec_of(pod), pod.get("status") or {}
    if is_deleted(pod) or is_static(pod) or is_mirror(pod) or status.get("phase") != "Running":
        return False
    if any(spec.get(field) for field in _NEEDS_CARE):
        return False
    if status.get("observedGeneration") != meta_of(pod).get("generation"):
        return False
    shown = {item.get("name"): item for item in status.get("containerStatuses") or ()}
    wanted = spec.get("containers") or ()
    return len(shown) == len(wanted) and all(
        _runs_as_asked(container, shown.get(container["name"]) or {}) for container in wanted
    )


def needs_no_agent(pod: Obj, scenario: Scenario) -> bool:
    """It goes on, and no script has anything else in mind for it."""
    notes = scenario.annotations(
        namespace_of(pod), name_of(pod), labels_of(pod), annotations_of(pod), uid_of(pod)
    )
    return not any(note.startswith(PREFIX) for note in notes) and goes_on(pod)


def _runs_as_asked(container: Obj, shown: Obj) -> bool:
    if any(container.get(probe) for probe in _PROBES) or not shown.get("ready"):
        return False
    if "running" not in (shown.get("state") or {}) or not _id_of(shown):
        return False
    has = resources_of({"resources": shown.get("resources")})
    return shown.get("image") == container.get("image") and has == resources_of(container)


def _has_sandbox(status: Obj) -> bool:
    condition = find(status.get("conditions") or (), "PodReadyToStartContainers")
    return condition is not None and condition.get("status") == "True"


def _instances(
    pod: Obj, role: Role, container: Obj, sandbox_id: str, log_directory: str
) -> Iterator[ContainerStatus]:
    """What its status tells of: the newest one, and how the one before it ended."""
    listed = (pod.get("status") or {}).get(_LISTS.get(role, "initContainerStatuses")) or ()
    shown: Obj = next((item for item in listed if item.get("name") == container["name"]), {})
    attempt = int(shown.get("restartCount") or 0)
    state: Obj = shown.get("state") or {}
    runs, ended = state.get("running"), state.get("terminated")
    before = (shown.get("lastState") or {}).get("terminated")
    common = _Common(pod, container, sandbox_id, log_directory, shown)
    if runs is not None and _id_of(shown):
        yield common.instance(
            _id_of(shown),
            attempt,
            state=ContainerState.RUNNING,
            started_at=_moment(runs.get("startedAt")),
        )
    elif ended is not None and _id_of(ended):
        yield common.ended(ended, attempt)
    else:
        attempt += 1  # the next one has not begun: what ended is the one that was counted last
    if before is not None and _id_of(before) and attempt > 0:
        yield common.ended(before, attempt - 1)


@dataclass(frozen=True, slots=True)
class _Common:
    """What the instances of one container share."""

    pod: Obj
    container: Obj
    sandbox_id: str
    log_directory: str
    shown: Obj

    def ended(self, end: Obj, attempt: int) -> ContainerStatus:
        return self.instance(
            _id_of(end),
            attempt,
            state=ContainerState.EXITED,
            started_at=_moment(end.get("startedAt")),
            finished_at=_moment(end.get("finishedAt")),
            exit_code=int(end.get("exitCode") or 0),
            reason=end.get("reason") or "",
            message=end.get("message") or "",
        )

    def instance(
        self,
        container_id: str,
        attempt: int,
        *,
        state: ContainerState,
        started_at: float,
        **end: float | int | str,
    ) -> ContainerStatus:
        name, shown = self.container["name"], self.shown
        return ContainerStatus(
            id=container_id,
            sandbox_id=self.sandbox_id,
            name=name,
            attempt=attempt,
            state=state,
            image=shown.get("image") or "",
            image_id=shown.get("imageID") or "",
            created_at=started_at,
            started_at=started_at,
            log_path=f"{self.log_directory}/{name}/{attempt}.log",
            labels={**pod_labels(self.pod), "io.kubernetes.container.name": name},
            annotations=self._annotations(attempt),
            **end,  # type: ignore[arg-type]  # the fields of an end, each of its own type
        )

    def _annotations(self, attempt: int) -> dict[str, str]:
        """As it was made: with the image and the resources that it shows, not those that are asked
        for by now."""
        notes = container_annotations(self.pod, self.container, attempt)
        shown = self.shown
        if shown.get("image"):
            notes[HASH_ANNOTATION] = container_hash({**self.container, "image": shown["image"]})
        has = resources_of({"resources": shown.get("resources")})
        if has:
            notes[RESOURCES_ANNOTATION] = json.dumps(has)
        return notes


def _id_of(shown: Obj) -> str:
    """Empty where it is none of a simulated container."""
    told = str(shown.get("containerID") or "")
    return told.removeprefix(_ID_PREFIX) if told.startswith(_ID_PREFIX) else ""


def _moment(text: str | None) -> float:
    return seconds_of(text) if text else 0.0
