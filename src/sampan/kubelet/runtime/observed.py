"""The pod cache: what the runtime last reported of each pod.

Job: remember what was seen of each pod: what has changed since, and which event is news.
Owner: Pleg and PodSync look through it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.contracts.runtime import (
    ContainerState,
    ObservedPod,
    Runtime,
    RuntimeEvent,
)

# What a container goes through, in this order.
_ORDER = (ContainerState.CREATED, ContainerState.RUNNING, ContainerState.EXITED)


@dataclass(frozen=True, slots=True)
class Count:
    sandboxes: int
    containers: Mapping[str, int]  # by state


class Observations:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._fingerprints: dict[str, tuple[object, ...]] = {}
        self._listed = False
        self._at_first: dict[str, ObservedPod] = {}  # of these no step has looked at its pod yet
        self._latest: dict[str, ObservedPod] = {}  # what was seen last, for those who only look

    async def pod(self, uid: str) -> ObservedPod | None:
        """Fresh from the runtime."""
        found = await self._runtime.pod(uid)
        if found is None:
            self.forget(uid)
            return None
        # What a step has seen need not wake the pod once more at the next look.
        self._fingerprints[uid] = _fingerprint(found)
        self._latest[uid] = found
        self._at_first.pop(uid, None)
        return found

    def never_had(self, uid: str) -> bool:
        """Sure that the runtime had nothing of this pod when we last looked at everything."""
        return self._listed and uid not in self._fingerprints

    def last_seen(self, uid: str) -> ObservedPod | None:
        return self._latest.get(uid) or self._at_first.get(uid)

    def is_news(self, event: RuntimeEvent) -> bool:
        """Does it tell what no step has seen yet? A step that starts a container sees it run:
        the runtime's word of that need not wake the pod once more."""
        seen = self._latest.get(event.uid)
        if event.state is None or seen is None:
            return True
        states = [
            container.state for container in seen.containers if container.id == event.container_id
        ]
        states += [
            ContainerState.RUNNING if sandbox.ready else ContainerState.EXITED
            for sandbox in seen.sandboxes
            if sandbox.id == event.container_id
        ]
        return not any(_is_at_least(state, event.state) for state in states)

    async def changed(self) -> tuple[list[str], Sequence[ObservedPod]]:
        """Look at everything: the uids that are not as they were at the last look, and all."""
        found = await self._runtime.pods()
        fresh = {pod.uid: self._fingerprint_of(pod) for pod in found}
        before, self._fingerprints = self._fingerprints, fresh
        changed = [uid for uid, print_ in fresh.items() if before.get(uid) != print_]
        if not self._listed:
            # What is there at the first look was not changed by anybody: it is found.
            changed = [uid for uid in changed if uid in before]
            self._listed, self._at_first = True, {pod.uid: pod for pod in found}
        return changed + [uid for uid in before if uid not in fresh], found

    def _fingerprint_of(self, pod: ObservedPod) -> tuple[object, ...]:
        """A runtime may answer with the very value that it gave before."""
        if self.last_seen(pod.uid) is pod and pod.uid in self._fingerprints:
            return self._fingerprints[pod.uid]
        return _fingerprint(pod)

    def running(self) -> Iterator[tuple[tuple[str, str], str]]:
        """Containers: the pod's uid and the container's name, and its id."""
        for pod in [*self._at_first.values(), *self._latest.values()]:
            for container in pod.containers:
                if container.state is ContainerState.RUNNING:
                    yield (pod.uid, container.name), container.id

    def count(self) -> Count:
        """As of the last look at everything, and of what was seen of single pods since."""
        pods = [*self._at_first.values(), *self._latest.values()]
        states = Counter(str(container.state) for pod in pods for container in pod.containers)
        return Count(sum(any(sandbox.ready for sandbox in pod.sandboxes) for pod in pods), states)

    def forget(self, uid: str) -> None:
        self._latest.pop(uid, None)
        self._at_first.pop(uid, None)
        self._fingerprints.pop(uid, None)


def _is_at_least(state: ContainerState, than: ContainerState) -> bool:
    return state in _ORDER and than in _ORDER and _ORDER.index(state) >= _ORDER.index(than)


def _fingerprint(pod: ObservedPod) -> tuple[object, ...]:
    return (
        tuple((sandbox.id, sandbox.ready) for sandbox in pod.sandboxes),
        tuple((container.id, container.state) for container in pod.containers),
    )
