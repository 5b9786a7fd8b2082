"""Which container a request means: asked of the runtime, not of a cached status.

Job: namespace/pod/container → container id, log file, whether it runs; pod → sandbox.
Invariant: the choice (`choose_for_logs`) is pure, and worded as the original words it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from sampan.api.objects import Obj, is_deleted, name_of, namespace_of, uid_of
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.contracts.runtime import (
    ContainerState,
    ContainerStatus,
    ObservedPod,
    Runtime,
)
from sampan.kubelet.contracts.spec import find_container, restarts_after_exit


class NotAvailable(Exception):
    """What was asked for is not there, or not yet. `status` is HTTP's."""

    def __init__(self, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class FoundContainer:
    id: str
    log_path: str
    running: bool


class PodLookup(Protocol):
    """What the node's HTTP server asks of the node agent."""

    def pods(self) -> list[Obj]:
        """Every pod that this node is told to run, as it knows it."""

    async def find_container(
        self, namespace: str, pod: str, container: str, previous: bool = False, uid: str = ""
    ) -> FoundContainer:
        """Raises NotAvailable."""

    async def sandbox_id(self, namespace: str, pod: str, uid: str = "") -> str:
        """Of the sandbox that is ready. Raises NotAvailable."""

    def probably(self, namespace: str, pod: str, container: str = "", uid: str = "") -> str:
        """The id of the running container (or, without one, of the ready sandbox) as it was last
        seen: right in nearly all cases, and free. Empty where it was not seen."""


class RuntimeLookup:
    """PodLookup over any list of pods and a runtime."""

    def __init__(
        self,
        pods: Callable[[], Iterable[Obj]],
        runtime: Runtime,
        last_seen: Callable[[str], ObservedPod | None] = lambda _: None,
    ) -> None:
        self._pods, self._runtime, self._last_seen = pods, runtime, last_seen

    def pods(self) -> list[Obj]:
        return list(self._pods())

    async def find_container(
        self, namespace: str, pod: str, container: str, previous: bool = False, uid: str = ""
    ) -> FoundContainer:
        wanted = self._pod(namespace, pod, uid)
        observed = await self._runtime.pod(uid_of(wanted))
        instances = [] if observed is None else observed.containers
        same = [instance for instance in instances if instance.name == container]
        chosen = choose_for_logs(wanted, container, same, previous)
        return FoundContainer(chosen.id, chosen.log_path, chosen.state is ContainerState.RUNNING)

    async def sandbox_id(self, namespace: str, pod: str, uid: str = "") -> str:
        wanted = self._pod(namespace, pod, uid)
        observed = await self._runtime.pod(uid_of(wanted))
        ready = (
            [] if observed is None else [sandbox for sandbox in observed.sandboxes if sandbox.ready]
        )
        if not ready:
            raise NotAvailable(f"failed to find sandbox of pod {pod}_{namespace}", status=500)
        return ready[0].id

    def probably(self, namespace: str, pod: str, container: str = "", uid: str = "") -> str:
        seen = self._last_seen(uid_of(self._pod(namespace, pod, uid)))
        if seen is None:
            return ""
        if not container:
            return next((sandbox.id for sandbox in seen.sandboxes if sandbox.ready), "")
        newest = next((item for item in seen.containers if item.name == container), None)
        return newest.id if newest and newest.state is ContainerState.RUNNING else ""

    def _pod(self, namespace: str, name: str, uid: str) -> Obj:
        found = [
            pod
            for pod in self._pods()
            if name_of(pod) == name
            and namespace_of(pod) == namespace
            and (not uid or uid_of(pod) == uid)
        ]
        if not found:
            raise NotAvailable(f'pod "{name}" does not exist', status=404)
        # A successor of the same name may be here already: it is the one that is meant.
        return min(found, key=is_deleted)


def choose_for_logs(
    pod: Obj, container: str, instances: Sequence[ContainerStatus], previous: bool
) -> ContainerStatus:
    """The instance whose log is meant; `instances` are of this container, newest first."""
    name = name_of(pod)
    found = find_container(pod, container)
    if found is None:
        raise NotAvailable(f'container "{container}" not found in pod "{name}"', status=404)
    started = [instance for instance in instances if instance.state is not ContainerState.CREATED]
    if previous:
        ended = _ended_before_the_current(pod, found[1], started)
        if not ended:
            raise NotAvailable(
                f'previous terminated container "{container}" in pod "{name}" not found'
            )
        return ended[0]
    if started:
        return started[0]
    raise NotAvailable(f'container "{container}" in pod "{name}" {_why_not(pod, container)}')


def _ended_before_the_current(
    pod: Obj, container: Obj, started: Sequence[ContainerStatus]
) -> list[ContainerStatus]:
    """An instance that ended and will be followed by another one is previous already."""
    if not started:
        return []
    newest = started[0]
    if newest.state is ContainerState.EXITED and restarts_after_exit(
        pod, container, newest.exit_code
    ):
        return [newest]
    return [item for item in started[1:] if item.state is ContainerState.EXITED]


def _why_not(pod: Obj, container: str) -> str:
    status = pod.get("status") or {}
    lists = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    for item in [item for name in lists for item in status.get(name) or ()]:
        if item.get("name") != container:
            continue
        if item.get("state", {}).get("terminated"):
            return "is terminated"
        reason = item.get("state", {}).get("waiting", {}).get("reason", "")
        special = {
            "ErrImagePull": "image can't be pulled",
            "ImagePullBackOff": "trying and failing to pull image",
        }
        return f"is waiting to start: {special.get(reason, reason or 'ContainerCreating')}"
    return "is waiting to start: ContainerCreating"
