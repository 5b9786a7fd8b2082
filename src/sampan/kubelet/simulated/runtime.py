"""A container runtime that only pretends: same contract, no kernel, thousands in one process.

Job: the calls of the runtime's contract over a table of sandboxes and containers in memory
    (container_table.py), with timing, exits, logs and failures scripted by the pod's annotations or
    by a scenario.
Invariant: passes the same contract suite as containerd.
Owner: one per simulated node; it outlives a restart of that node's agent, as containers do.

The annotations are told of in script.py, scenarios in scenario.py, what a new process knows of the
containers of the last one in takeover.py.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path

from sampan.api.objects import (
    Obj,
    micro_time_text,
)
from sampan.core.clock import Clock
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
from sampan.kubelet.simulated.container_table import ContainerTable
from sampan.kubelet.simulated.images import SimulatedImages
from sampan.kubelet.simulated.parts import (
    Hearer,
    Listener,
    SimulatedContainer,
    SimulatedSandbox,
    shared_notes,
)
from sampan.kubelet.simulated.scenario import NOTHING, Scenario
from sampan.kubelet.simulated.script import Script
from sampan.kubelet.simulated.scripted_failures import ScriptedFailures


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
        self._clock, self._scenario, self._pull_seconds = clock, scenario, pull_seconds
        self._images = SimulatedImages(images)
        self.table = ContainerTable(clock, node_name, pod_subnets, self._images, scenario)
        self.table.tell = self._tell
        self._listeners: list[Listener | Hearer] = []
        self._failures = ScriptedFailures()
        self._down = ""
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
        self.table.end(container_id, exit_code, reason)

    def kill_sandbox(self, sandbox_id: str) -> None:
        """The sandbox dies, and all that is in it."""
        self.table.stop_sandbox(self.table.sandboxes[sandbox_id])

    def start_at_once(self, pod: Obj, log_root: str) -> bool:
        """A whole pod in one step, where nothing can hold it up; else nothing is done."""
        is_odd = self._down or self._pull_seconds
        return not is_odd and self.table.start_at_once(pod, log_root)

    def images_now(self) -> Sequence[Image]:
        return self._images.all()

    def listen(self, hear: Callable[[RuntimeEvent | None], None]) -> Callable[[], None]:
        """`hear` is called with each event, and with None when it goes down; until the function
        that this returns is called."""
        hearer = Hearer(hear)
        self._listeners.append(hearer)
        return partial(self._listeners.remove, hearer)

    # The contract.

    async def info(self) -> RuntimeInfo:
        self._called("info")
        features = RuntimeFeatures(image_volumes=True)  # what nobody sees costs nothing
        return RuntimeInfo("simulated", "1.0", True, True, features=features)

    async def pods(self) -> Sequence[ObservedPod]:
        self._called("pods")
        return [self.table.observed(uid) for uid in self.table.uids()]

    async def pod(self, uid: str) -> ObservedPod | None:
        self._called("pod")
        return self.table.observed(uid) if uid in self.table.uids() else None

    async def run_sandbox(self, spec: SandboxSpec) -> str:
        self._called("run_sandbox")
        notes = self._scenario.annotations(
            spec.namespace, spec.name, spec.labels, spec.annotations, spec.uid
        )
        script = Script(notes)
        self._fail_if_scripted("run_sandbox", spec.uid, script)
        await self._take(script.seconds("sandbox-seconds"))
        subnets = () if spec.security.host_network else self.table.addresses
        status = SandboxStatus(
            id=self.table.new_id("sandbox"),
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
        self.table.add_sandbox(status)
        return status.id

    async def stop_sandbox(self, sandbox_id: str) -> None:
        self._called("stop_sandbox")
        sandbox = self.table.sandboxes.get(sandbox_id)
        if sandbox is not None:
            self.table.stop_sandbox(sandbox)

    async def remove_sandbox(self, sandbox_id: str) -> None:
        self._called("remove_sandbox")
        sandbox = self.table.sandboxes.get(sandbox_id)
        if sandbox is None:
            return
        script = Script(sandbox.status.annotations)
        self._fail_if_scripted("remove_sandbox", sandbox.status.uid, script)
        self.table.stop_sandbox(sandbox)
        for container_id in list(sandbox.containers):
            await self.remove_container(container_id)
        self.table.remove_sandbox(sandbox)

    async def create_container(
        self, sandbox_id: str, container: ContainerSpec, sandbox: SandboxSpec
    ) -> str:
        self._called("create_container")
        inside = self.table.sandboxes.get(sandbox_id)
        if inside is None or not inside.status.ready:
            raise RuntimeFailure(f"sandbox {sandbox_id} is not running")
        script = Script(inside.status.annotations, container.name)
        self._fail_if_scripted("create_container", f"{sandbox.uid}/{container.name}", script)
        await self._take(script.seconds("create-seconds"))
        log_file = ""
        if sandbox.log_directory and container.log_path:
            log_file = f"{sandbox.log_directory}/{container.log_path}"
        image = self._images.find(container.user_image)
        status = ContainerStatus(
            id=self.table.new_id(container.name),
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
        self.table.add_container(inside, SimulatedContainer(status, script, container.role))
        return status.id

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
            self.table.end(container_id, 128, "StartError", str(error))
            raise
        await self._take(script.seconds("start-seconds"))
        if container_id not in self.table.containers or not sandbox.status.ready:
            raise RuntimeFailure(f"container {container_id} is gone")
        self._write_log(container)
        self.table.start(container_id)

    async def stop_container(self, container_id: str, grace_seconds: float) -> None:
        self._called("stop_container")
        entry = self.table.containers.get(container_id)
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
                code = script.stop_exit_code(container.role) if obeys else 137
                self.table.end(container_id, code)
        elif container.status.state is ContainerState.CREATED:
            self.table.end(container_id, 0)

    async def signal_container(self, container_id: str, signal: str, seconds: float) -> bool:
        """Any signal ends it, as its script obeys the usual one."""
        self._called("signal_container")
        entry = self.table.containers.get(container_id)
        if entry is None or entry[1].status.state is not ContainerState.RUNNING:
            return True
        container = entry[1]
        takes = container.script.stop_seconds()
        obeys = takes is not None and takes <= seconds
        if not await self._ends_within(container, takes if obeys else seconds) and obeys:
            code = container.script.stop_exit_code(container.role)
            self.table.end(container_id, code)
        return container.status.state is ContainerState.EXITED

    async def update_container(self, container_id: str, resources: LinuxResources) -> None:
        self._called("update_container")
        sandbox, container = self._found(container_id)
        about = f"{sandbox.status.uid}/{container.status.name}"
        self._fail_if_scripted("update_container", about, container.script)
        self.updated[container_id] = resources

    async def remove_container(self, container_id: str) -> None:
        self._called("remove_container")
        entry = self.table.containers.get(container_id)
        if entry is None:
            return
        self.table.end(container_id, 137)
        self.table.remove_container(container_id)
        self._remove_log(entry[1])

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

    @cached_property
    def local_streams(self) -> LocalStreams | None:
        from sampan.kubelet.simulated.streams import SimulatedStreams  # with the first question

        return SimulatedStreams(self.exec_sync, self._script_of)

    def _script_of(self, sandbox_id: str) -> Script:
        """Raises RuntimeFailure."""
        sandbox = self.table.sandboxes.get(sandbox_id)
        if sandbox is None:
            raise RuntimeFailure(f"no sandbox {sandbox_id}")
        return Script(sandbox.status.annotations)

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
        return {container_id: Layer() for container_id in self.table.containers}

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
        for _, container in self.table.containers.values():
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
        message = self._failures.next(step, about, script)
        if message is not None:
            raise RuntimeFailure(message)

    def _found(self, container_id: str) -> tuple[SimulatedSandbox, SimulatedContainer]:
        entry = self.table.containers.get(container_id)
        if entry is None:
            raise RuntimeFailure(f"container {container_id} not found")
        return entry

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
        for listener in self._listeners:
            listener.tell(event)


def _moment(seconds: float) -> str:
    return micro_time_text(seconds).replace("Z", "000Z")
