"""A container runtime that only pretends: same contract, no kernel, thousands in one process.

Job: sandboxes, containers, images and events in memory, with timing, exits, logs and failures
    scripted by the pod's annotations or by a scenario. Timers are the event loop's own; a
    container has no task.
Invariant: passes the same contract suite as containerd.
Owner: one per simulated node; it outlives a restart of that node's agent, as containers do.

The annotations are told of in script.py, scenarios in scenario.py, what a new process knows of the
containers of the last one in takeover.py.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path

from sampan.api.objects import (
    Obj,
    annotations_of,
    labels_of,
    micro_time_text,
    name_of,
    namespace_of,
    revision_of,
    uid_of,
)
from sampan.api.rules.pods import containers
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import replace
from sampan.kubelet.contracts.local_streams import LocalStreams, StreamOptions
from sampan.kubelet.contracts.runtime import (
    ContainerSpec,
    ContainerState,
    ContainerStatus,
    Credentials,
    ExecResult,
    Image,
    Layer,
    LinuxResources,
    ObservedPod,
    RuntimeEvent,
    RuntimeFailure,
    RuntimeFeatures,
    RuntimeInfo,
    RuntimeUnavailable,
    SandboxSpec,
    SandboxStatus,
)
from sampan.kubelet.contracts.spec import role_of
from sampan.kubelet.images.reference import InvalidReference, with_default_tag
from sampan.kubelet.simulated.images import SimulatedImages
from sampan.kubelet.simulated.parts import (
    Addresses,
    Listener,
    SimulatedContainer,
    SimulatedSandbox,
    digits_of,
    shared_notes,
)
from sampan.kubelet.simulated.prompt_start import Ids, PromptContainers, needs_nothing, sandbox_of
from sampan.kubelet.simulated.scenario import NOTHING, Scenario
from sampan.kubelet.simulated.script import Script
from sampan.kubelet.simulated.takeover import Remains, goes_on, remains_of


class SimulatedRuntime:
    def __init__(
        self,
        *,
        clock: Clock,
        node_name: str = "simulated",
        pod_subnets: Sequence[str] = ("10.244.0.0/16",),
        images: Iterable[str] = (),
        pull_seconds: float = 0.0,
        scenario: Scenario = NOTHING,
    ) -> None:
        self._clock, self._scenario = clock, scenario
        self._node_name, self._pull_seconds = node_name, pull_seconds
        self._addresses = [Addresses(subnet) for subnet in pod_subnets]
        self._sandboxes: dict[str, SimulatedSandbox] = {}
        self._by_uid: dict[str, dict[str, SimulatedSandbox]] = {}
        self._containers: dict[str, tuple[SimulatedSandbox, SimulatedContainer]] = {}
        self._images = SimulatedImages(images)
        self._prompt = PromptContainers()
        self._listeners: list[Listener] = []
        self._failed: dict[tuple[str, str], int] = {}
        self._made = 0
        self._down = ""
        self._seen: dict[str, ObservedPod] = {}  # by uid; dropped with every change
        self._steady: dict[str, int] = {}  # by uid: taken over at this revision, as they stay
        self.updated: dict[str, LinuxResources] = {}  # containers that were resized: for tests
        self.calls: dict[str, int] = {}  # how often each call was made: for tests and metrics

    # What a test does to it.

    def go_down(self, why: str = "connection refused") -> None:
        """Every call fails and event streams break, until `come_back`; containers go on."""
        self._down = why
        for listener in self._listeners:
            listener.tell(None)

    def come_back(self) -> None:
        self._down = ""

    def crash(self, container_id: str, exit_code: int = 1, reason: str = "") -> None:
        """The container ends now, of its own."""
        _, container = self._containers[container_id]
        self._end(container_id, container, exit_code, reason)

    def kill_sandbox(self, sandbox_id: str) -> None:
        """The sandbox dies, and all that is in it."""
        self._stop_sandbox(self._sandboxes[sandbox_id])

    # What its process does before the node's agent starts.

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
        sandbox = SimulatedSandbox(replace(status, annotations=notes))
        self._sandboxes[status.id] = sandbox
        self._by_uid.setdefault(status.uid, {})[status.id] = sandbox
        for addresses in self._addresses:
            addresses.reserve(status.ips)
        for found in remains.containers:
            told = replace(found, annotations=shared_notes(found.annotations))
            script = Script(notes, found.name)
            container = SimulatedContainer(told, script, role_of(pod, found.name))
            sandbox.containers[found.id] = container
            self._containers[found.id] = (sandbox, container)
            if found.image and self._images.find(found.image) is None:
                self._images.keep(found.image)
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
        is_odd = self._down or self._pull_seconds or uid in self._by_uid
        if is_odd or not needs_nothing(pod, notes):
            return False
        wanted = containers(pod)
        images = [self._image_id(container) for container in wanted]
        if not all(images):
            return False
        try:
            ips = tuple(addresses.take() for addresses in self._addresses)
        except RuntimeFailure:
            return False  # it will be told of by the step that fails at it
        status = sandbox_of(pod, self._new_id("sandbox"), ips, self._clock.now(), notes)
        sandbox = self._sandboxes[status.id] = SimulatedSandbox(status)
        self._by_uid[uid] = {status.id: sandbox}
        for container, image_id in zip(wanted, images, strict=True):
            ids = Ids(self._new_id(container["name"]), image_id)
            told = self._prompt.container_of(pod, container, ids, status, log_root)
            begun = SimulatedContainer(told, Script(notes, told.name))
            sandbox.containers[told.id] = begun
            self._containers[told.id] = (sandbox, begun)
        return True

    def _image_id(self, container: Obj) -> str:
        """As a container shows it, pulled where it is not here; empty where that would fail."""
        name = container.get("image") or ""
        found = self._images.find(name)
        if found is not None:
            return found.digests[0]
        try:
            full = with_default_tag(name)
            found = self._images.find(full)
            if found is None and container.get("imagePullPolicy") != "Never":
                found = self._images.pull(full)
        except (InvalidReference, RuntimeFailure):
            return ""  # it will be told of by the step that fails at it
        if found is None:
            return ""
        return found.digests[0] if name == full else found.id

    # The contract.

    async def info(self) -> RuntimeInfo:
        self._called("info")
        features = RuntimeFeatures(image_volumes=True)  # what nobody sees costs nothing
        return RuntimeInfo("simulated", "1.0", True, True, features=features)

    async def pods(self) -> Sequence[ObservedPod]:
        self._called("pods")
        return [self._observed(uid) for uid in self._by_uid]

    async def pod(self, uid: str) -> ObservedPod | None:
        self._called("pod")
        return self._observed(uid) if uid in self._by_uid else None

    async def run_sandbox(self, spec: SandboxSpec) -> str:
        self._called("run_sandbox")
        notes = self._scenario.annotations(
            spec.namespace, spec.name, spec.labels, spec.annotations, spec.uid
        )
        script = Script(notes)
        self._fail_if_scripted("run_sandbox", spec.uid, script)
        await self._take(script.seconds("sandbox-seconds"))
        sandbox_id = self._new_id("sandbox")
        subnets = () if spec.security.host_network else self._addresses
        status = SandboxStatus(
            id=sandbox_id,
            name=spec.name,
            namespace=spec.namespace,
            uid=spec.uid,
            attempt=spec.attempt,
            ready=True,
            created_at=self._clock.now(),
            ips=tuple(addresses.take() for addresses in subnets),
            host_network=spec.security.host_network,
            labels=spec.labels,
            annotations=notes,
        )
        sandbox = self._sandboxes[sandbox_id] = SimulatedSandbox(status)
        self._by_uid.setdefault(spec.uid, {})[sandbox_id] = sandbox
        self._tell(RuntimeEvent(spec.uid, sandbox_id, state=ContainerState.RUNNING))
        return sandbox_id

    async def stop_sandbox(self, sandbox_id: str) -> None:
        self._called("stop_sandbox")
        sandbox = self._sandboxes.get(sandbox_id)
        if sandbox is not None:
            self._stop_sandbox(sandbox)

    async def remove_sandbox(self, sandbox_id: str) -> None:
        self._called("remove_sandbox")
        sandbox = self._sandboxes.get(sandbox_id)
        if sandbox is None:
            return
        uid = sandbox.status.uid
        self._fail_if_scripted("remove_sandbox", uid, Script(sandbox.status.annotations))
        self._stop_sandbox(sandbox)
        for container_id in list(sandbox.containers):
            await self.remove_container(container_id)
        del self._sandboxes[sandbox_id]
        del self._by_uid[uid][sandbox_id]
        self._seen.pop(uid, None)
        if not self._by_uid[uid]:
            del self._by_uid[uid]

    async def create_container(
        self, sandbox_id: str, container: ContainerSpec, sandbox: SandboxSpec
    ) -> str:
        self._called("create_container")
        inside = self._sandboxes.get(sandbox_id)
        if inside is None or not inside.status.ready:
            raise RuntimeFailure(f"sandbox {sandbox_id} is not running")
        script = Script(inside.status.annotations, container.name)
        self._fail_if_scripted("create_container", f"{sandbox.uid}/{container.name}", script)
        await self._take(script.seconds("create-seconds"))
        container_id = self._new_id(container.name)
        log_file = ""
        if sandbox.log_directory and container.log_path:
            log_file = f"{sandbox.log_directory}/{container.log_path}"
        image = self._images.find(container.user_image)
        status = ContainerStatus(
            id=container_id,
            sandbox_id=sandbox_id,
            name=container.name,
            attempt=container.attempt,
            state=ContainerState.CREATED,
            image=container.user_image or container.image,
            image_id=image.digests[0] if image else container.image,
            created_at=self._clock.now(),
            log_path=log_file,
            labels=container.labels,
            annotations=shared_notes(container.annotations),
        )
        made = inside.containers[container_id] = SimulatedContainer(status, script, container.role)
        self._containers[container_id] = (inside, made)
        self._tell(RuntimeEvent(inside.status.uid, container_id, state=status.state))
        return container_id

    async def start_container(self, container_id: str) -> None:
        self._called("start_container")
        sandbox, container = self._found(container_id)
        if container.status.state is not ContainerState.CREATED:
            raise RuntimeFailure(f"container {container_id} is {container.status.state}")
        script = container.script
        try:
            self._fail_if_scripted(
                "start_container", f"{sandbox.status.uid}/{container.status.name}", script
            )
        except RuntimeFailure as error:
            self._end(container_id, container, 128, "StartError", str(error))
            raise
        await self._take(script.seconds("start-seconds"))
        if container_id not in self._containers or not sandbox.status.ready:
            raise RuntimeFailure(f"container {container_id} is gone")
        container.status = replace(
            container.status, state=ContainerState.RUNNING, started_at=self._clock.now()
        )
        self._write_log(container)
        self._end_in_time(container)
        self._tell(RuntimeEvent(sandbox.status.uid, container_id, state=container.status.state))

    async def stop_container(self, container_id: str, grace_seconds: float) -> None:
        self._called("stop_container")
        entry = self._containers.get(container_id)
        if entry is None:
            return
        sandbox, container = entry
        script = container.script
        self._fail_if_scripted(
            "stop_container", f"{sandbox.status.uid}/{container.status.name}", script
        )
        if container.status.state is ContainerState.RUNNING:
            seconds = script.stop_seconds()
            obeys = seconds is not None and seconds <= grace_seconds
            if not await self._ends_within(container, seconds if obeys else grace_seconds):
                code = int(script.number("stop-exit-code") or 0) if obeys else 137
                self._end(container_id, container, code)
        elif container.status.state is ContainerState.CREATED:
            self._end(container_id, container, 0)

    async def signal_container(self, container_id: str, signal: str, seconds: float) -> bool:
        """Any signal ends it, as its script obeys the usual one."""
        self._called("signal_container")
        entry = self._containers.get(container_id)
        if entry is None or entry[1].status.state is not ContainerState.RUNNING:
            return True
        container = entry[1]
        takes = container.script.stop_seconds()
        obeys = takes is not None and takes <= seconds
        if not await self._ends_within(container, takes if obeys else seconds) and obeys:
            code = int(container.script.number("stop-exit-code") or 0)
            self._end(container_id, container, code)
        return container.status.state is ContainerState.EXITED

    async def update_container(self, container_id: str, resources: LinuxResources) -> None:
        self._called("update_container")
        sandbox, container = self._found(container_id)
        about = f"{sandbox.status.uid}/{container.status.name}"
        self._fail_if_scripted("update_container", about, container.script)
        self.updated[container_id] = resources

    async def remove_container(self, container_id: str) -> None:
        self._called("remove_container")
        entry = self._containers.get(container_id)
        if entry is None:
            return
        sandbox, container = entry
        self._end(container_id, container, 137)
        del self._containers[container_id]
        del sandbox.containers[container_id]
        self._seen.pop(sandbox.status.uid, None)
        self._remove_log(container)

    async def image(self, reference: str) -> Image | None:
        self._called("image")
        return self._images.find(reference)

    async def images(self) -> Sequence[Image]:
        self._called("images")
        return self._images.all()

    async def pull_image(self, reference: str, credentials: Credentials | None) -> str:
        self._called("pull_image")
        await self._take(self._pull_seconds)
        return self._images.pull(reference).id

    async def remove_image(self, reference: str) -> None:
        self._called("remove_image")
        self._images.remove(reference)

    async def exec_sync(
        self, container_id: str, command: Sequence[str], timeout_seconds: float
    ) -> ExecResult:
        self._called("exec_sync")
        _, container = self._found(container_id)
        if container.status.state is not ContainerState.RUNNING:
            raise RuntimeFailure(f"container {container_id} is not running")
        code = int(container.script.number("exec-exit-code") or 0)
        return ExecResult(code, container.script.text("exec-output").encode(), b"")

    @functools.cached_property
    def local_streams(self) -> LocalStreams | None:
        from sampan.kubelet.simulated.streams import SimulatedStreams  # with the first question

        return SimulatedStreams(self.exec_sync)

    async def exec_url(self, container_id: str, streams: StreamOptions) -> str:
        raise RuntimeFailure("it has no streaming server")

    async def attach_url(self, container_id: str, streams: StreamOptions) -> str:
        raise RuntimeFailure("it has no streaming server")

    async def port_forward_url(self, sandbox_id: str) -> str:
        raise RuntimeFailure("it has no streaming server")

    async def reopen_log(self, container_id: str) -> None:
        self._called("reopen_log")
        self._found(container_id)

    async def layers(self) -> Mapping[str, Layer]:
        self._called("layers")
        return {container_id: Layer() for container_id in self._containers}

    async def checkpoint(self, container_id: str, path: str, seconds: float) -> None:
        self._called("checkpoint")
        raise RuntimeFailure("a simulated container has no state that could be written")

    async def layer_bytes(self, container_id: str) -> int:
        self._called("layer_bytes")
        self._found(container_id)
        return 0

    async def events(self) -> AsyncIterator[RuntimeEvent]:
        self._called("events")
        listener = Listener()
        self._listeners.append(listener)
        try:
            while (event := await listener.next()) is not None:
                yield event
        finally:
            self._listeners.remove(listener)
        raise RuntimeUnavailable(self._down or "the event stream ended")

    async def close(self) -> None:
        for _, container in self._containers.values():
            if container.exit_timer is not None:
                container.exit_timer.cancel()

    # How it pretends.

    def _called(self, name: str) -> None:
        self.calls[name] = self.calls.get(name, 0) + 1
        if self._down:
            raise RuntimeUnavailable(self._down)

    async def _take(self, seconds: float) -> None:
        if seconds > 0:
            await self._clock.sleep(seconds)
            if self._down:
                raise RuntimeUnavailable(self._down)

    def _fail_if_scripted(self, step: str, about: str, script: Script) -> None:
        failure = script.failure(step)
        if failure is None:
            return
        times, message = failure
        count = self._failed.get((step, about), 0)
        if times is None or count < times:
            self._failed[(step, about)] = count + 1
            raise RuntimeFailure(message)

    def _found(self, container_id: str) -> tuple[SimulatedSandbox, SimulatedContainer]:
        entry = self._containers.get(container_id)
        if entry is None:
            raise RuntimeFailure(f"container {container_id} not found")
        return entry

    def _new_id(self, about: str) -> str:
        while True:
            self._made += 1
            found = digits_of(f"{self._node_name}/{about}/{self._made}")
            if found not in self._containers and found not in self._sandboxes:
                return found  # what was taken over has ids of an earlier count

    def _observed(self, uid: str) -> ObservedPod:
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

    def _stop_sandbox(self, sandbox: SimulatedSandbox) -> None:
        for container_id, container in sandbox.containers.items():
            if container.status.state is not ContainerState.EXITED:
                self._end(container_id, container, 137)
        if sandbox.status.ready:
            for addresses in self._addresses:
                addresses.give_back(tuple(sandbox.status.ips))
            sandbox.status = replace(sandbox.status, ready=False)
            status = sandbox.status
            self._tell(RuntimeEvent(status.uid, status.id, state=ContainerState.EXITED))

    def _end(
        self,
        container_id: str,
        container: SimulatedContainer,
        exit_code: int,
        reason: str = "",
        message: str = "",
    ) -> None:
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
        entry = self._containers.get(container_id)
        if entry is not None:
            uid = entry[0].status.uid
            self._steady.pop(uid, None)
            self._tell(RuntimeEvent(uid, container_id, exit_code, now, state=ContainerState.EXITED))

    def _end_in_time(self, container: SimulatedContainer) -> None:
        """It runs, and ends by itself where its script says so."""
        status, seconds = container.status, container.script.exit_after_seconds(container.role)
        if seconds is None:
            return
        left = status.started_at + seconds - self._clock.now()
        container.exit_timer = asyncio.get_running_loop().call_later(
            min(max(0.0, left), seconds),  # a clock that was set back prolongs no life
            self._end,
            status.id,
            container,
            container.script.exit_code(status.attempt),
        )

    async def _ends_within(self, container: SimulatedContainer, seconds: float | None) -> bool:
        """Wait for the container to end by itself."""
        if not seconds:
            return False
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        container.ended.append(waiter)
        try:
            await asyncio.wait_for(waiter, seconds)
        except TimeoutError:
            return False
        finally:
            container.ended.remove(waiter)
        return True

    def _write_log(self, container: SimulatedContainer) -> None:
        text = container.script.text("log")
        if not text or not container.status.log_path:
            return
        path = Path(container.status.log_path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            for line in text.splitlines():
                file.write(f"{_moment(self._clock.now())} stdout F {line}\n")

    def _remove_log(self, container: SimulatedContainer) -> None:
        if container.status.log_path and container.script.text("log"):
            Path(container.status.log_path).unlink(missing_ok=True)

    def _tell(self, event: RuntimeEvent) -> None:
        self._seen.pop(event.uid, None)
        for listener in self._listeners:
            listener.tell(event)


def _moment(seconds: float) -> str:
    return micro_time_text(seconds).replace("Z", "000Z")
