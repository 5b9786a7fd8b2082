"""Builders for what a runtime shows of a pod, for tests of plan and status."""

from sampan.kubelet.contracts.runtime import (
    ContainerState,
    ContainerStatus,
    ObservedPod,
    SandboxStatus,
)
from sampan.kubelet.contracts.spec import HASH_ANNOTATION, container_hash

NOW = 1_700_000_000.0
UID = "00000000-0000-0000-0000-000000000001"


def sandbox(
    *, attempt: int = 0, ready: bool = True, ip: str = "10.244.0.2", host_network: bool = False
) -> SandboxStatus:
    return SandboxStatus(
        id=f"sandbox-{attempt}",
        name="web",
        namespace="default",
        uid=UID,
        attempt=attempt,
        ready=ready,
        created_at=NOW - 100 + attempt,
        ips=(ip,) if ip and not host_network else (),
        host_network=host_network,
    )


def container(
    name: str = "main",
    *,
    attempt: int = 0,
    state: ContainerState = ContainerState.RUNNING,
    exit_code: int = 0,
    ran_seconds: float = 1.0,
    ended_ago: float = 0.0,
    streak: int | None = None,
    in_sandbox: int = 0,
    image: str = "app:1",
    reason: str = "",
) -> ContainerStatus:
    ended = state is ContainerState.EXITED
    finished_at = NOW - ended_ago if ended else 0.0
    notes = {HASH_ANNOTATION: container_hash({"name": name, "image": image})}
    if streak is not None:
        notes["sampan.dev/restart-streak"] = str(streak)
    return ContainerStatus(
        id=f"{name}-{attempt}",
        sandbox_id=f"sandbox-{in_sandbox}",
        name=name,
        attempt=attempt,
        state=state,
        image=image,
        image_id=f"{image}@sha256:1",
        created_at=NOW - 90 + attempt,
        started_at=(finished_at or NOW) - ran_seconds if state.value != "created" else 0.0,
        finished_at=finished_at,
        exit_code=exit_code,
        reason=reason,
        annotations=notes,
    )


def exited_container(name: str = "main", exit_code: int = 0, **words: object) -> ContainerStatus:
    return container(name, state=ContainerState.EXITED, exit_code=exit_code, **words)  # type: ignore[arg-type]  # passed on as they are


def observed_pod(
    *containers: ContainerStatus, sandboxes: tuple[SandboxStatus, ...] | None = None
) -> ObservedPod:
    """Newest first, as the contract says; the caller gives them in that order."""
    boxes = (sandbox(),) if sandboxes is None else sandboxes
    return ObservedPod(UID, "web", "default", boxes, containers)
