"""The node's containers as containerd or CRI-O has them: the Runtime contract over CRI.

Job: each method of the contract as one CRI call or a few; events with the pod that they are about.
Invariant: nothing but RuntimeFailure (or cancellation) comes out.
Invariant: a call that makes or removes something is not left halfway: the runtime goes on with it
    whoever gave up, so its end is waited for, and the next look sees what came of it.
Invariant: a container whose end the runtime has announced is never shown as running again, though
    CRI itself may say so for some 30 ms.
Owner: the kubelet; one per node.
"""

import asyncio
import json
import math
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sampan.core.bounded import Recent
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.tasks import all_of, finish
from sampan.cri.client import (
    PULL_SECONDS,
    REQUEST_SECONDS,
    SANDBOX_SECONDS,
    CriClient,
    CriError,
    CriNotFound,
)
from sampan.cri.events import ContainerEvent, ContainerEventType, happenings
from sampan.cri.gen import runtime_pb2 as cri
from sampan.kubelet.container_spec.bandwidth import is_limited
from sampan.kubelet.contracts.local_streams import LocalStreams, StreamOptions
from sampan.kubelet.contracts.runtime import (
    HOST_PORTS_HANDLER,
    CommandTimedOut,
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
    SandboxSpec,
    SandboxStatus,
)
from sampan.kubelet.runtime import cri_messages as messages
from sampan.kubelet.runtime.cdi_devices import with_cdi_devices
from sampan.kubelet.runtime.container_process import (
    DEAF_SECONDS,
    is_there,
    prepare_host,
    signal_number,
    until_sigterm_is_heard,
)
from sampan.kubelet.runtime.cri_errors import Gone, failure_of, translate_errors, unspoken

# How many ids are remembered with their pod, and how many announced ends: a node has some
# hundreds of containers; what is forgotten only costs a look at everything.
_REMEMBERED = 8192
_CONNECT_POLL_SECONDS = 0.005
# SIGKILL, from outside or from the kernel's OOM killer: only CRI can say which.
_KILLED = 137
_ASK_AGAIN_SECONDS = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
_END_POLL_SECONDS = 0.01


# Namespace and name of a pod, and the addresses that its sandbox has.
OnAddresses = Callable[[str, str, tuple[str, ...]], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class _End:
    exit_code: int
    at: float


class CriRuntime:
    local_streams: LocalStreams | None = None  # a URL leads to its own

    def __init__(self, socket_path: str, clock: Clock, *, one_network: bool = False) -> None:
        """`one_network`: it maps ports and limits bandwidth, so that no pod needs another one."""
        self._client = CriClient(socket_path)
        self._clock = clock
        self._name = ""
        self._cdi: bool | None = None  # whether it knows CDI; None: it was not asked yet
        self._may_have_ports_handler = not one_network
        self._on_addresses: OnAddresses | None = None
        self._uids: Recent[str, str] = Recent(_REMEMBERED)  # of containers and of sandboxes
        self._ends: Recent[str, _End] = Recent(_REMEMBERED)
        self._started: Recent[str, float] = Recent(_REMEMBERED)  # by this process

    def call_with_addresses(self, on_addresses: OnAddresses) -> None:
        """Awaited for each new sandbox, before any container of it can send a packet."""
        self._on_addresses = on_addresses

    async def connect(self, timeout: float) -> RuntimeInfo:
        """Returns when the runtime answers and is ready; RuntimeUnavailable after `timeout`."""
        deadline = self._clock.monotonic() + timeout
        while True:
            left = max(deadline - self._clock.monotonic(), 0.1)
            try:
                await self._client.wait_ready(left)
                info = await self.info()
                if info.ready or self._clock.monotonic() > deadline:
                    return info
            except CriError as error:
                # containerd opens its socket before its CRI part has found its containers again.
                if self._clock.monotonic() > deadline:
                    raise unspoken(error) from error
            except RuntimeFailure:
                if self._clock.monotonic() > deadline:
                    raise
            await self._clock.sleep(_CONNECT_POLL_SECONDS)

    async def _injects_cdi(self) -> bool:
        if self._cdi is None:
            with translate_errors():
                version, status = await all_of(
                    (
                        self._client.runtime("Version", cri.VersionRequest(version="v1")),
                        self._client.runtime("Status", cri.StatusRequest(verbose=True)),
                    )
                )
            self._cdi = messages.injects_cdi(version.runtime_name, version.runtime_version, status)
        return self._cdi

    async def info(self) -> RuntimeInfo:
        with translate_errors():
            version, status = await all_of(
                (
                    self._client.runtime("Version", cri.VersionRequest(version="v1")),
                    self._client.runtime("Status", cri.StatusRequest()),
                )
            )
        self._name = version.runtime_name
        return messages.runtime_info(version, status)

    async def cgroup_driver(self) -> str:
        """cgroupfs or systemd, as the runtime is set up; empty where it does not say."""
        try:
            answer = await self._client.runtime("RuntimeConfig", cri.RuntimeConfigRequest())
            if answer.HasField("linux"):
                driver = answer.linux.cgroup_driver
                return "systemd" if driver == cri.SYSTEMD else "cgroupfs"
        except CriError as error:
            if error.code != "UNIMPLEMENTED":
                raise failure_of(error) from error
        with translate_errors():
            status = await self._client.runtime("Status", cri.StatusRequest(verbose=True))
        return messages.configured_driver(status)

    async def pods(self) -> Sequence[ObservedPod]:
        with translate_errors():
            sandboxes, containers = await all_of(
                (
                    self._client.runtime("ListPodSandbox", cri.ListPodSandboxRequest()),
                    self._client.runtime("ListContainers", cri.ListContainersRequest()),
                )
            )
        return self._group(
            [messages.listed_sandbox(item) for item in sandboxes.items],
            [self._with_end(messages.listed_container(item)) for item in containers.containers],
        )

    async def pod(self, uid: str) -> ObservedPod | None:
        wanted = {messages.POD_UID: uid}
        with translate_errors():
            sandboxes, containers = await all_of(
                (
                    self._client.runtime(
                        "ListPodSandbox",
                        cri.ListPodSandboxRequest(
                            filter=cri.PodSandboxFilter(label_selector=wanted)
                        ),
                    ),
                    self._client.runtime(
                        "ListContainers",
                        cri.ListContainersRequest(
                            filter=cri.ContainerFilter(label_selector=wanted)
                        ),
                    ),
                )
            )
            looks: list[Coroutine[Any, Any, SandboxStatus | ContainerStatus | None]] = [
                *(self._sandbox(item) for item in sandboxes.items),
                *(self._container(item) for item in containers.containers),
            ]
            found = await all_of(looks)
        pods = self._group(
            [match_ for match_ in found if isinstance(match_, SandboxStatus)],
            [match_ for match_ in found if isinstance(match_, ContainerStatus)],
        )
        return pods[0] if pods else None

    async def run_sandbox(self, spec: SandboxSpec) -> str:
        special = is_limited(spec.annotations) or spec.port_mappings
        if special and not spec.runtime_handler and self._may_have_ports_handler:
            try:
                return await self._run_sandbox(spec, HOST_PORTS_HANDLER)
            except RuntimeFailure as error:
                if f'no runtime for "{HOST_PORTS_HANDLER}"' not in str(error):
                    raise
                self._may_have_ports_handler = False  # not a containerd of our own
        return await self._run_sandbox(spec, spec.runtime_handler)

    async def _run_sandbox(self, spec: SandboxSpec, handler: str) -> str:
        request = cri.RunPodSandboxRequest(
            config=messages.sandbox_config(spec), runtime_handler=handler
        )
        with translate_errors():
            call = self._client.runtime("RunPodSandbox", request, timeout=SANDBOX_SECONDS)
            answer = await finish(call)
        sandbox_id: str = answer.pod_sandbox_id
        self._uids[sandbox_id] = spec.uid
        if self._on_addresses is not None and not spec.security.host_network:
            request = cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox_id)
            with translate_errors():
                answer = await self._client.runtime("PodSandboxStatus", request)
            ips = messages.sandbox_status(answer.status).ips
            admitted = False
            try:
                await self._on_addresses(spec.namespace, spec.name, ips)
                admitted = True
            finally:
                if not admitted:  # a sandbox that is ready is one that containers start in
                    await self.stop_sandbox(sandbox_id)
        return sandbox_id

    async def stop_sandbox(self, sandbox_id: str) -> None:
        request = cri.StopPodSandboxRequest(pod_sandbox_id=sandbox_id)
        call = self._client.runtime("StopPodSandbox", request, timeout=SANDBOX_SECONDS)
        await self._done(finish(call))

    async def remove_sandbox(self, sandbox_id: str) -> None:
        request = cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox_id)
        call = self._client.runtime("RemovePodSandbox", request)
        await self._done(finish(call))

    async def create_container(
        self, sandbox_id: str, container: ContainerSpec, sandbox: SandboxSpec
    ) -> str:
        prepare_host(container, sandbox.log_directory)
        if container.cdi_devices and not await self._injects_cdi():
            container = await asyncio.to_thread(with_cdi_devices, container)
        request = cri.CreateContainerRequest(
            pod_sandbox_id=sandbox_id,
            config=messages.container_config(container),
            sandbox_config=messages.sandbox_config(sandbox),
        )
        with translate_errors():
            answer = await finish(self._client.runtime("CreateContainer", request))
        container_id: str = answer.container_id
        self._uids[container_id] = sandbox.uid
        return container_id

    async def start_container(self, container_id: str) -> None:
        with translate_errors():
            request = cri.StartContainerRequest(container_id=container_id)
            await finish(self._client.runtime("StartContainer", request))
        self._started[container_id] = self._clock.monotonic()

    async def stop_container(self, container_id: str, grace_seconds: float) -> None:
        if grace_seconds > 0:
            await self._until_it_hears(container_id)
        # CRI counts whole seconds, and 0 kills at once: a fraction of a second is still a grace.
        seconds = int(grace_seconds) + (grace_seconds > int(grace_seconds))
        request = cri.StopContainerRequest(container_id=container_id, timeout=seconds)
        deadline = seconds + REQUEST_SECONDS
        await self._done(self._client.runtime("StopContainer", request, timeout=deadline))

    async def signal_container(self, container_id: str, signal: str, seconds: float) -> bool:
        """CRI has no call for it that older runtimes heed: the kernel is asked instead."""
        await self._until_it_hears(container_id)
        deadline = self._clock.monotonic() + seconds
        pid = await self._pid(container_id)
        try:
            if pid:
                os.kill(pid, signal_number(signal))
        except ProcessLookupError:
            return True  # it ended meanwhile
        while pid and container_id not in self._ends and is_there(pid):
            if self._clock.monotonic() > deadline:
                return False
            await self._clock.sleep(_END_POLL_SECONDS)
        return True

    async def update_container(self, container_id: str, resources: LinuxResources) -> None:
        with translate_errors():
            request = cri.UpdateContainerResourcesRequest(
                container_id=container_id, linux=messages.resources(resources)
            )
            await self._client.runtime("UpdateContainerResources", request)

    async def remove_container(self, container_id: str) -> None:
        request = cri.RemoveContainerRequest(container_id=container_id)
        call = self._client.runtime("RemoveContainer", request)
        await self._done(finish(call))
        self._ends.pop(container_id, None)

    async def image(self, reference: str) -> Image | None:
        request = cri.ImageStatusRequest(image=cri.ImageSpec(image=reference))
        with translate_errors():
            answer = await self._client.image("ImageStatus", request)
        return messages.image(answer.image) if answer.HasField("image") else None

    async def images(self) -> Sequence[Image]:
        with translate_errors():
            answer = await self._client.image("ListImages", cri.ListImagesRequest())
        return [messages.image(image) for image in answer.images]

    async def pull_image(self, reference: str, credentials: Credentials | None) -> str:
        request = cri.PullImageRequest(
            image=cri.ImageSpec(image=reference),
            auth=messages.auth_config(credentials) if credentials else None,
        )
        try:
            with translate_errors():
                answer = await self._client.image("PullImage", request, timeout=PULL_SECONDS)
        except Gone as error:
            raise ImageNotFound(str(error)) from error
        image_id: str = answer.image_ref
        return image_id

    async def remove_image(self, reference: str) -> None:
        request = cri.RemoveImageRequest(image=cri.ImageSpec(image=reference))
        await self._done(self._client.image("RemoveImage", request))

    async def exec_sync(
        self, container_id: str, command: Sequence[str], timeout_seconds: float
    ) -> ExecResult:
        seconds = max(1, int(timeout_seconds + 0.999)) if timeout_seconds > 0 else 0
        request = cri.ExecSyncRequest(container_id=container_id, cmd=command, timeout=seconds)
        deadline = (seconds or REQUEST_SECONDS) + REQUEST_SECONDS
        try:
            answer = await self._client.runtime("ExecSync", request, timeout=deadline)
        except CriError as error:
            if error.code == "DEADLINE_EXCEEDED":
                text = f'command "{" ".join(command)}" timed out'
                raise CommandTimedOut(text) from error
            raise failure_of(error) from error
        return ExecResult(answer.exit_code, answer.stdout, answer.stderr)

    async def exec_url(self, container_id: str, streams: StreamOptions) -> str:
        request = cri.ExecRequest(
            container_id=container_id,
            cmd=streams.command,
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr and not streams.tty,
            tty=streams.tty,
        )
        return await self._url("Exec", request)

    async def attach_url(self, container_id: str, streams: StreamOptions) -> str:
        request = cri.AttachRequest(
            container_id=container_id,
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr and not streams.tty,
            tty=streams.tty,
        )
        return await self._url("Attach", request)

    async def port_forward_url(self, sandbox_id: str) -> str:
        return await self._url("PortForward", cri.PortForwardRequest(pod_sandbox_id=sandbox_id))

    async def reopen_log(self, container_id: str) -> None:
        with translate_errors():
            request = cri.ReopenContainerLogRequest(container_id=container_id)
            await self._client.runtime("ReopenContainerLog", request)

    async def layers(self) -> Mapping[str, Layer]:
        with translate_errors():
            answer = await self._client.runtime(
                "ListContainerStats", cri.ListContainerStatsRequest()
            )
        return {
            stat.attributes.id: Layer(
                stat.writable_layer.used_bytes.value, stat.writable_layer.inodes_used.value
            )
            for stat in answer.stats
        }

    async def checkpoint(self, container_id: str, path: str, seconds: float) -> None:
        request = cri.CheckpointContainerRequest(
            container_id=container_id, location=path, timeout=int(seconds)
        )
        deadline = (seconds or REQUEST_SECONDS) + REQUEST_SECONDS
        with translate_errors():
            await self._client.runtime("CheckpointContainer", request, timeout=deadline)

    async def layer_bytes(self, container_id: str) -> int:
        with translate_errors():
            request = cri.ContainerStatsRequest(container_id=container_id)
            answer = await self._client.runtime("ContainerStats", request)
        return int(answer.stats.writable_layer.used_bytes.value)

    async def events(self) -> AsyncIterator[RuntimeEvent]:
        """Ends with RuntimeUnavailable when the connection is lost."""
        with translate_errors():
            if not self._name:
                await self.info()
            async for happened in happenings(self._client, self._name):
                event = self._event(happened)
                if event is not None:
                    yield event

    async def close(self) -> None:
        await self._client.close()

    # ---- helpers

    async def _until_it_hears(self, container_id: str) -> None:
        since_start = self._clock.monotonic() - self._started.get(container_id, -math.inf)
        if since_start < DEAF_SECONDS:
            pid = await self._pid(container_id)
            await until_sigterm_is_heard(lambda: pid, since_start, self._clock)

    async def _pid(self, container_id: str) -> int:
        """Of the first process, while it runs; 0 where the runtime does not say."""
        request = cri.ContainerStatusRequest(container_id=container_id, verbose=True)
        try:
            answer = await self._client.runtime("ContainerStatus", request)
            if answer.status.state != cri.CONTAINER_RUNNING:
                return 0
            return int(json.loads(answer.info.get("info") or "{}").get("pid") or 0)
        except (CriError, ValueError):
            return 0  # the next call will say what is wrong

    def _event(self, happened: ContainerEvent) -> RuntimeEvent | None:
        """None for what only this node agent causes, by calls that it is waiting for anyway."""
        uid = happened.pod_uid or self._uids.get(happened.container_id, "")
        if happened.what is ContainerEventType.EXITED and happened.exit_code is not None:
            self._ends[happened.container_id] = _End(happened.exit_code, happened.at)
            return RuntimeEvent(uid, happened.container_id, happened.exit_code, happened.at)
        if happened.what in (ContainerEventType.CREATED, ContainerEventType.DELETED):
            return None
        if happened.what is ContainerEventType.STARTED and not uid:
            return None  # a sandbox whose RunPodSandbox has not returned yet
        return RuntimeEvent(uid, happened.container_id)

    def _with_end(self, status: ContainerStatus) -> ContainerStatus:
        end = self._ends.get(status.id)
        if end is None or status.state is not ContainerState.RUNNING:
            return status
        return replace(
            status,
            state=ContainerState.EXITED,
            exit_code=end.exit_code,
            finished_at=end.at,
            reason="Completed" if end.exit_code == 0 else "Error",
            settled=False,
        )

    async def _sandbox(self, item: Any) -> SandboxStatus | None:
        request = cri.PodSandboxStatusRequest(pod_sandbox_id=item.id)
        try:
            answer = await self._client.runtime("PodSandboxStatus", request)
        except CriNotFound:
            return None  # removed since it was listed
        return messages.sandbox_status(answer.status)

    async def _container(self, item: Any) -> ContainerStatus | None:
        request = cri.ContainerStatusRequest(container_id=item.id)
        try:
            answer = await self._client.runtime("ContainerStatus", request)
            end = self._ends.get(item.id)
            if end is not None and end.exit_code == _KILLED:
                for seconds in _ASK_AGAIN_SECONDS:
                    if answer.status.state != cri.CONTAINER_RUNNING:
                        break
                    await self._clock.sleep(seconds)
                    answer = await self._client.runtime("ContainerStatus", request)
        except CriNotFound:
            return None
        return self._with_end(messages.container_status(answer.status, item.pod_sandbox_id))

    def _group(
        self, sandboxes: Sequence[SandboxStatus], containers: Sequence[ContainerStatus]
    ) -> list[ObservedPod]:
        """Newest first, and only what carries a pod's uid: the socket may be shared."""
        pods: dict[str, ObservedPod] = {}
        for sandbox in sorted(sandboxes, key=_newest_first):
            self._uids[sandbox.id] = sandbox.uid
            known = pods.get(sandbox.uid) or ObservedPod(
                sandbox.uid, sandbox.name, sandbox.namespace
            )
            pods[sandbox.uid] = replace(known, sandboxes=(*known.sandboxes, sandbox))
        for container in sorted(containers, key=_newest_first):
            uid = container.labels.get(messages.POD_UID, "")
            if not uid:
                continue
            self._uids[container.id] = uid
            known = pods.get(uid) or ObservedPod(
                uid,
                container.labels.get("io.kubernetes.pod.name", ""),
                container.labels.get("io.kubernetes.pod.namespace", ""),
            )
            pods[uid] = replace(known, containers=(*known.containers, container))
        return list(pods.values())

    async def _done(self, call: Coroutine[Any, Any, Any]) -> None:
        """What is already gone counts as done."""
        try:
            with translate_errors():
                await call
        except Gone:
            pass

    async def _url(self, method: str, request: Any) -> str:
        with translate_errors():
            answer = await self._client.runtime(method, request)
        url: str = answer.url
        return url


def _newest_first(one: SandboxStatus | ContainerStatus) -> tuple[int, float]:
    """By attempt: clocks are set back now and then."""
    return -one.attempt, -one.created_at
