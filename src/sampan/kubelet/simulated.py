"""A container runtime that only pretends: same contract, no kernel, thousands in one process.

Job: sandboxes, containers, images and events in memory, with timing, exits, logs and failures
    scripted by the pod's annotations. Timers are the event loop's own; a container has no task.
Invariant: passes the same contract suite as containerd.
Owner: one per simulated node; it outlives a restart of that node's agent, as containers do.

Annotations, all under `simulated.sampan.dev/`. Those marked * may end in `.CONTAINER` to mean one
container only:
    sandbox-seconds      how long the sandbox takes (0)
    create-seconds *     how long creating a container takes (0)
    start-seconds *      how long starting it takes (0)
    exit-after-seconds * ends by itself this long after its start (never)
    exit-code *          with this code; `1,1,0` counts attempts, the last one stays (0)
    stop-seconds *       how long it takes to obey its stop signal; `never` waits for the kill (0)
    stop-exit-code *     its code when it obeys (0)
    log *                lines that it writes when it starts, as a real log file
    exec-exit-code *     the answer of every exec (0)
    exec-output *        what such an exec prints
    liveness-probe *     `ok`, `fail` or `error`; `fail,fail,ok` counts looks, the last one stays;
    readiness-probe *    (ok; an exec probe without a script of its own asks exec-exit-code)
    startup-probe *
    fail                 `STEP:TIMES:MESSAGE`, several with `;`: STEP (run_sandbox,
                         create_container, start_container, stop_container, update_container)
                         fails that many times;
                         no TIMES: always
Images: every reference can be pulled, except those whose tag is `missing` (the registry has none)
or `broken` (the pull fails). Pulling takes `pull_seconds`.
"""

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from zlib import crc32

from sampan.api.objects import micro_time_text
from sampan.core.clock import Clock
from sampan.core.records import dataclass
from sampan.kubelet.runtime import (
    ContainerSpec,
    ContainerState,
    ContainerStatus,
    Credentials,
    ExecResult,
    Image,
    ImageNotFound,
    Layer,
    LinuxResources,
    ObservedPod,
    RuntimeEvent,
    RuntimeFailure,
    RuntimeInfo,
    RuntimeUnavailable,
    SandboxSpec,
    SandboxStatus,
)
from sampan.kubelet.simulated_script import Script

EVENTS_BOUND = 10_000


@dataclass(slots=True)
class _Container:
    status: ContainerStatus
    script: Script
    log_file: Path | None
    exit_timer: asyncio.TimerHandle | None = None
    ended: list[asyncio.Future[None]] = field(default_factory=list)


@dataclass(slots=True)
class _Sandbox:
    status: SandboxStatus
    spec: SandboxSpec
    containers: dict[str, _Container] = field(default_factory=dict)


class SimulatedRuntime:
    def __init__(
        self,
        *,
        clock: Clock,
        node_name: str = "simulated",
        pod_subnet: str = "10.244.0.0/16",
        images: Iterable[str] = (),
        pull_seconds: float = 0.0,
    ) -> None:
        self._clock = clock
        self._node_name, self._pull_seconds = node_name, pull_seconds
        self._subnet = ipaddress.ip_network(pod_subnet)
        self._next_ip = 1
        self._ips: set[str] = set()
        self._sandboxes: dict[str, _Sandbox] = {}
        self._by_uid: dict[str, dict[str, _Sandbox]] = {}
        self._containers: dict[str, tuple[_Sandbox, _Container]] = {}
        self._images: dict[str, Image] = {}
        self._listeners: set[asyncio.Queue[RuntimeEvent | None]] = set()
        self._failed: dict[tuple[str, str], int] = {}
        self._made = 0
        self._down = ""
        self.updated: dict[str, LinuxResources] = {}  # containers that were resized: for tests
        self.calls: dict[str, int] = {}  # how often each call was made: for tests and metrics
        for reference in images:
            self._keep_image(reference)

    # What a test does to it.

    def go_down(self, why: str = "connection refused") -> None:
        """Every call fails and event streams break, until `come_back`; containers go on."""
        self._down = why
        for listener in self._listeners:
            listener.put_nowait(None)

    def come_back(self) -> None:
        self._down = ""

    def crash(self, container_id: str, exit_code: int = 1, reason: str = "") -> None:
        """The container ends now, of its own."""
        _, container = self._containers[container_id]
        self._end(container_id, container, exit_code, reason)

    def kill_sandbox(self, sandbox_id: str) -> None:
        """The sandbox dies, and all that is in it."""
        self._stop_sandbox(self._sandboxes[sandbox_id])

    # The contract.

    async def info(self) -> RuntimeInfo:
        self._called("info")
        return RuntimeInfo("simulated", "1.0", ready=True, network_ready=True)

    async def pods(self) -> Sequence[ObservedPod]:
        self._called("pods")
        return [self._observed(uid) for uid in self._by_uid]

    async def pod(self, uid: str) -> ObservedPod | None:
        self._called("pod")
        return self._observed(uid) if uid in self._by_uid else None

    async def run_sandbox(self, spec: SandboxSpec) -> str:
        self._called("run_sandbox")
        script = Script(spec.annotations)
        self._fail_if_scripted("run_sandbox", spec.uid, script)
        await self._take(script.seconds("sandbox-seconds"))
        sandbox_id = self._new_id("sandbox")
        status = SandboxStatus(
            id=sandbox_id,
            name=spec.name,
            namespace=spec.namespace,
            uid=spec.uid,
            attempt=spec.attempt,
            ready=True,
            created_at=self._clock.now(),
            ips=() if spec.security.host_network else (self._new_ip(),),
            host_network=spec.security.host_network,
            labels=spec.labels,
            annotations=spec.annotations,
        )
        sandbox = self._sandboxes[sandbox_id] = _Sandbox(status, spec)
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
        self._stop_sandbox(sandbox)
        for container_id in list(sandbox.containers):
            await self.remove_container(container_id)
        del self._sandboxes[sandbox_id]
        mine = self._by_uid[sandbox.status.uid]
        del mine[sandbox_id]
        if not mine:
            del self._by_uid[sandbox.status.uid]

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
        log_file = (
            Path(sandbox.log_directory, container.log_path)
            if sandbox.log_directory and container.log_path
            else None
        )
        image = self._images.get(container.user_image)
        status = ContainerStatus(
            id=container_id,
            sandbox_id=sandbox_id,
            name=container.name,
            attempt=container.attempt,
            state=ContainerState.CREATED,
            image=container.user_image or container.image,
            image_id=image.digests[0] if image else container.image,
            created_at=self._clock.now(),
            log_path=str(log_file or ""),
            labels=container.labels,
            annotations=container.annotations,
        )
        made = inside.containers[container_id] = _Container(status, script, log_file)
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
        seconds = script.number("exit-after-seconds")
        if seconds is not None:
            code = script.exit_code(container.status.attempt)
            container.exit_timer = asyncio.get_running_loop().call_later(
                seconds, self._end, container_id, container, code
            )
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
        if container.log_file is not None and container.script.text("log"):
            container.log_file.unlink(missing_ok=True)

    async def image(self, reference: str) -> Image | None:
        self._called("image")
        return self._images.get(reference) or next(
            (one for one in self._images.values() if one.id == reference), None
        )

    async def images(self) -> Sequence[Image]:
        self._called("images")
        return list(self._images.values())

    async def pull_image(self, reference: str, credentials: Credentials | None) -> str:
        self._called("pull_image")
        await self._take(self._pull_seconds)
        tag = reference.rpartition(":")[2]
        if tag == "missing":
            raise ImageNotFound(f'failed to resolve reference "{reference}": not found')
        if tag == "broken":
            raise RuntimeFailure(f'failed to pull and unpack image "{reference}"')
        return self._keep_image(reference).id

    async def remove_image(self, reference: str) -> None:
        self._called("remove_image")
        for name in [name for name, one in self._images.items() if reference in (name, one.id)]:
            del self._images[name]

    async def exec_sync(
        self, container_id: str, command: Sequence[str], timeout_seconds: float
    ) -> ExecResult:
        self._called("exec_sync")
        _, container = self._found(container_id)
        if container.status.state is not ContainerState.RUNNING:
            raise RuntimeFailure(f"container {container_id} is not running")
        code = int(container.script.number("exec-exit-code") or 0)
        return ExecResult(code, container.script.text("exec-output").encode(), b"")

    async def exec_url(
        self,
        container_id: str,
        command: Sequence[str],
        *,
        stdin: bool,
        stdout: bool,
        stderr: bool,
        tty: bool,
    ) -> str:
        raise RuntimeFailure("a simulated container cannot be entered")

    async def attach_url(
        self, container_id: str, *, stdin: bool, stdout: bool, stderr: bool, tty: bool
    ) -> str:
        raise RuntimeFailure("a simulated container cannot be attached to")

    async def port_forward_url(self, sandbox_id: str) -> str:
        raise RuntimeFailure("a simulated pod has no ports")

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
        queue: asyncio.Queue[RuntimeEvent | None] = asyncio.Queue(EVENTS_BOUND)
        self._listeners.add(queue)
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            self._listeners.discard(queue)
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

    def _found(self, container_id: str) -> tuple[_Sandbox, _Container]:
        entry = self._containers.get(container_id)
        if entry is None:
            raise RuntimeFailure(f"container {container_id} not found")
        return entry

    def _new_id(self, about: str) -> str:
        self._made += 1
        # As long as a real one, and the same in every run of a test.
        seed = f"{self._node_name}/{about}/{self._made}"
        return "".join(f"{crc32(f'{seed}{part}'.encode()):08x}" for part in range(8))

    def _new_ip(self) -> str:
        for _ in range(self._subnet.num_addresses):
            self._next_ip = self._next_ip % (self._subnet.num_addresses - 2) + 1
            ip = str(self._subnet[self._next_ip])
            if ip not in self._ips:
                self._ips.add(ip)
                return ip
        raise RuntimeFailure(f"no free address in {self._subnet}")

    def _keep_image(self, reference: str) -> Image:
        digest = "".join(f"{crc32(f'{reference}{part}'.encode()):08x}" for part in range(8))
        name = reference.rpartition("@")[0] or reference
        repository = name.rpartition(":")[0] if ":" in name.rpartition("/")[2] else name
        image = Image(
            id=f"sha256:{digest}",
            tags=(reference,),
            digests=(f"{repository}@sha256:{digest}",),
            size_bytes=1_000_000,
        )
        self._images[reference] = image
        return image

    def _observed(self, uid: str) -> ObservedPod:
        sandboxes = sorted(self._by_uid[uid].values(), key=lambda one: -one.status.attempt)
        first = sandboxes[0].status
        containers = [one.status for inside in sandboxes for one in inside.containers.values()]
        # Newest first: by attempt, for clocks are set back now and then.
        containers.sort(key=lambda one: (-one.attempt, -one.created_at))
        return ObservedPod(
            uid,
            first.name,
            first.namespace,
            tuple(one.status for one in sandboxes),
            tuple(containers),
        )

    def _stop_sandbox(self, sandbox: _Sandbox) -> None:
        for container_id, container in sandbox.containers.items():
            if container.status.state is not ContainerState.EXITED:
                self._end(container_id, container, 137)
        if sandbox.status.ready:
            self._ips.difference_update(sandbox.status.ips)
            sandbox.status = replace(sandbox.status, ready=False)
            status = sandbox.status
            self._tell(RuntimeEvent(status.uid, status.id, state=ContainerState.EXITED))

    def _end(
        self,
        container_id: str,
        container: _Container,
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
            self._tell(RuntimeEvent(uid, container_id, exit_code, now, state=ContainerState.EXITED))

    async def _ends_within(self, container: _Container, seconds: float | None) -> bool:
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

    def _write_log(self, container: _Container) -> None:
        text = container.script.text("log")
        if not text or container.log_file is None:
            return
        container.log_file.parent.mkdir(parents=True, exist_ok=True)
        with container.log_file.open("a") as file:
            for line in text.splitlines():
                file.write(f"{_moment(self._clock.now())} stdout F {line}\n")

    def _tell(self, event: RuntimeEvent) -> None:
        for listener in self._listeners:
            if listener.full():
                # Whoever does not read in time is cut, and looks at everything afterwards.
                listener.get_nowait()
                listener.put_nowait(None)
            else:
                listener.put_nowait(event)


def _moment(seconds: float) -> str:
    return micro_time_text(seconds).replace("Z", "000Z")
