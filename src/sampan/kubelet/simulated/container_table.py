"""The sandboxes and containers of a simulated node, as they are now.

Job: put, end and show them; begin a whole pod in one step; take over those of an earlier process.
    Timers are the event loop's own; a container has no task.
Invariant: whoever asks for a pod sees the state of this moment; what changes is told once.
Owner: SimulatedRuntime, which fulfils the runtime's contract with it.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from sampan.api.objects import (
    Obj,
    annotations_of,
    labels_of,
    name_of,
    namespace_of,
    revision_of,
    uid_of,
)
from sampan.api.rules.pods import containers
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import replace
from sampan.kubelet.contracts.runtime import (
    ContainerState,
    ObservedPod,
    RuntimeEvent,
    RuntimeFailure,
    SandboxStatus,
)
from sampan.kubelet.contracts.spec import role_of
from sampan.kubelet.images.reference import InvalidReference, with_default_tag
from sampan.kubelet.simulated.images import SimulatedImages
from sampan.kubelet.simulated.parts import (
    Addresses,
    SimulatedContainer,
    SimulatedSandbox,
    digits_of,
    shared_notes,
)
from sampan.kubelet.simulated.prompt_start import Ids, container_of, needs_nothing, sandbox_of
from sampan.kubelet.simulated.scenario import Scenario
from sampan.kubelet.simulated.script import Script
from sampan.kubelet.simulated.takeover import Remains, goes_on, remains_of

EmitEvent = Callable[[RuntimeEvent], None]


class ContainerTable:
    def __init__(
        self,
        clock: Clock,
        node_name: str,
        pod_subnets: Sequence[str],
        images: SimulatedImages,
        scenario: Scenario,
    ) -> None:
        self._clock, self._node_name, self._scenario = clock, node_name, scenario
        self.images = images
        self.addresses = [Addresses(subnet) for subnet in pod_subnets]
        self.sandboxes: dict[str, SimulatedSandbox] = {}
        self.containers: dict[str, tuple[SimulatedSandbox, SimulatedContainer]] = {}
        self.tell: EmitEvent = lambda event: None
        self._by_uid: dict[str, dict[str, SimulatedSandbox]] = {}
        self._made = 0
        self._seen: dict[str, ObservedPod] = {}  # by uid; dropped with every change
        self._steady: dict[str, int] = {}  # by uid: taken over at this revision, as they stay

    # What is there.

    def uids(self) -> Iterable[str]:
        """Of the pods that have a sandbox."""
        return self._by_uid.keys()

    def observed(self, uid: str) -> ObservedPod:
        """Made once for what does not change: whoever looks at everything does so now and then."""
        found = self._seen.get(uid)
        if found is None:
            found = self._seen[uid] = self._look_at(uid)
        return found

    def _look_at(self, uid: str) -> ObservedPod:
        sandboxes = sorted(self._by_uid[uid].values(), key=lambda item: -item.status.attempt)
        first = sandboxes[0].status
        containers = [
            container.status for inside in sandboxes for container in inside.containers.values()
        ]
        # Newest first: by attempt, for clocks are set back now and then.
        containers.sort(key=lambda item: (-item.attempt, -item.created_at))
        return ObservedPod(
            uid,
            first.name,
            first.namespace,
            tuple(sandbox.status for sandbox in sandboxes),
            tuple(containers),
        )

    # What changes.

    def add_sandbox(self, status: SandboxStatus) -> None:
        self._put_sandbox(status)
        self._changed(RuntimeEvent(status.uid, status.id, state=ContainerState.RUNNING))

    def remove_sandbox(self, sandbox: SimulatedSandbox) -> None:
        """Its containers are gone."""
        sandbox_id, uid = sandbox.status.id, sandbox.status.uid
        del self.sandboxes[sandbox_id]
        del self._by_uid[uid][sandbox_id]
        self._seen.pop(uid, None)
        if not self._by_uid[uid]:
            del self._by_uid[uid]

    def add_container(self, sandbox: SimulatedSandbox, container: SimulatedContainer) -> None:
        self._put_container(sandbox, container)
        status = container.status
        self._changed(RuntimeEvent(sandbox.status.uid, status.id, state=status.state))

    def start(self, container_id: str) -> None:
        sandbox, container = self.containers[container_id]
        container.status = replace(
            container.status, state=ContainerState.RUNNING, started_at=self._clock.now()
        )
        self._end_in_time(container)
        self._changed(RuntimeEvent(sandbox.status.uid, container_id, state=container.status.state))

    def remove_container(self, container_id: str) -> None:
        sandbox, _ = self.containers.pop(container_id)
        del sandbox.containers[container_id]
        self._seen.pop(sandbox.status.uid, None)

    def stop_sandbox(self, sandbox: SimulatedSandbox) -> None:
        for container_id, container in sandbox.containers.items():
            if container.status.state is not ContainerState.EXITED:
                self.end(container_id, 137)
        if sandbox.status.ready:
            for addresses in self.addresses:
                addresses.give_back(tuple(sandbox.status.ips))
            sandbox.status = replace(sandbox.status, ready=False)
            status = sandbox.status
            self._changed(RuntimeEvent(status.uid, status.id, state=ContainerState.EXITED))

    def end(self, container_id: str, exit_code: int, reason: str = "", message: str = "") -> None:
        """Nothing to do where it has ended, or is gone."""
        entry = self.containers.get(container_id)
        if entry is None:
            return
        sandbox, container = entry
        if container.exit_timer is not None:
            container.exit_timer.cancel()
            container.exit_timer = None
        if container.status.state is ContainerState.EXITED:
            return
        now = self._clock.now()
        container.status = replace(
            container.status,
            state=ContainerState.EXITED,
            finished_at=now,
            exit_code=exit_code,
            reason=reason or ("Completed" if exit_code == 0 else "Error"),
            message=message,
        )
        for waiter in container.ended:
            if not waiter.done():
                waiter.set_result(None)
        uid = sandbox.status.uid
        self._steady.pop(uid, None)
        self._changed(RuntimeEvent(uid, container_id, exit_code, now, state=ContainerState.EXITED))

    def _end_in_time(self, container: SimulatedContainer) -> None:
        """It runs, and ends by itself where its script says so."""
        status, seconds = container.status, container.script.exit_after_seconds(container.role)
        if seconds is None:
            return
        left = status.started_at + seconds - self._clock.now()
        container.exit_timer = asyncio.get_running_loop().call_later(
            min(max(0.0, left), seconds),  # a clock that was set back prolongs no life
            self.end,
            status.id,
            container.script.exit_code(status.attempt),
        )

    # Whole pods.

    def take_over(self, pods: Iterable[Obj], log_root: str) -> None:
        """The containers that the statuses of these pods tell of: they have gone on without us."""
        for pod in pods:
            full_name = f"{namespace_of(pod)}_{name_of(pod)}_{uid_of(pod)}"
            remains = remains_of(pod, f"{log_root}/{full_name}")
            if remains is None:
                continue
            sandbox = self._resume(pod, remains)
            timed = any(container.exit_timer for container in sandbox.containers.values())
            if goes_on(pod) and not timed:
                self._steady[uid_of(pod)] = revision_of(pod)

    def goes_on(self, pod: Obj) -> bool:
        """Asked once of each pod: it was taken over, and nothing has happened to it since."""
        return self._steady.pop(uid_of(pod), None) == revision_of(pod)

    def _resume(self, pod: Obj, remains: Remains) -> SimulatedSandbox:
        status = remains.sandbox
        notes = self._scenario.annotations(
            status.namespace, status.name, status.labels, annotations_of(pod), status.uid
        )
        sandbox = self._put_sandbox(replace(status, annotations=notes))
        for addresses in self.addresses:
            addresses.reserve(status.ips)
        for found in remains.containers:
            told = replace(found, annotations=shared_notes(found.annotations))
            script = Script(notes, found.name)
            container = SimulatedContainer(told, script, role_of(pod, found.name))
            self._put_container(sandbox, container)
            if found.image and self.images.find(found.image) is None:
                self.images.keep(found.image)
            if found.state is ContainerState.RUNNING:
                self._end_in_time(container)
        return sandbox

    def start_at_once(self, pod: Obj, log_root: str) -> bool:
        """A whole pod in one step, where nothing can hold it up; else nothing is done. Nobody is
        told: whoever asks sees it run before anything else can happen to it."""
        uid = uid_of(pod)
        notes = self._scenario.annotations(
            namespace_of(pod), name_of(pod), labels_of(pod), annotations_of(pod), uid
        )
        if uid in self._by_uid or not needs_nothing(pod, notes):
            return False
        wanted = containers(pod)
        images = [self._image_id(container) for container in wanted]
        if not all(images):
            return False
        try:
            ips = tuple(addresses.take() for addresses in self.addresses)
        except RuntimeFailure:
            return False  # it will be told of by the step that fails at it
        status = sandbox_of(pod, self.new_id("sandbox"), ips, self._clock.now(), notes)
        sandbox = self._put_sandbox(status)
        for container, image_id in zip(wanted, images, strict=True):
            ids = Ids(self.new_id(container["name"]), image_id)
            told = container_of(pod, container, ids, status, log_root)
            self._put_container(sandbox, SimulatedContainer(told, Script(notes, told.name)))
        return True

    def _image_id(self, container: Obj) -> str:
        """As a container shows it, pulled where it is not here; empty where that would fail."""
        name = container.get("image") or ""
        found = self.images.find(name)
        if found is not None:
            return found.digests[0]
        try:
            full = with_default_tag(name)
            found = self.images.find(full)
            if found is None and container.get("imagePullPolicy") != "Never":
                found = self.images.pull(full)
        except (InvalidReference, RuntimeFailure):
            return ""  # it will be told of by the step that fails at it
        if found is None:
            return ""
        return found.digests[0] if name == full else found.id

    def _put_sandbox(self, status: SandboxStatus) -> SimulatedSandbox:
        sandbox = self.sandboxes[status.id] = SimulatedSandbox(status)
        self._by_uid.setdefault(status.uid, {})[status.id] = sandbox
        return sandbox

    def _put_container(self, sandbox: SimulatedSandbox, container: SimulatedContainer) -> None:
        sandbox.containers[container.status.id] = container
        self.containers[container.status.id] = (sandbox, container)

    def _changed(self, event: RuntimeEvent) -> None:
        self._seen.pop(event.uid, None)
        self.tell(event)

    def new_id(self, about: str) -> str:
        while True:
            self._made += 1
            found = digits_of(f"{self._node_name}/{about}/{self._made}")
            if found not in self.containers and found not in self.sandboxes:
                return found  # what was taken over has ids of an earlier count
