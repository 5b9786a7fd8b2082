"""A small device plugin: as many devices of a resource as one likes, none of them real.

Job: register at a kubelet, and again after each of its restarts; list devices with their health and
    NUMA nodes; answer allocations with environment, device nodes and CDI names.
Owner: cmd/ runs one as a process of its own.
"""

import os
from collections.abc import AsyncIterator
from typing import Any

from sampan.core.clock import Clock
from sampan.core.file_events import FileEvents
from sampan.core.grpc.socket_server import SocketServer, Streaming, Unary
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.drivers.device_plugin.settings import DevicePluginSettings
from sampan.drivers.faults import Faults
from sampan.drivers.health_file import HealthFile
from sampan.plugins import device_plugin as protocol
from sampan.plugins.device_plugin import Options, messages

Message = Any
log = get_logger(__name__)

RETRY_SECONDS = 1.0
LOOK_SECONDS = 60.0


class DevicePlugin:
    def __init__(self, settings: DevicePluginSettings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._options = Options(settings.pre_start, settings.prefers_last)
        name = settings.resource.replace("/", "_")
        self._endpoint = f"sampan-{name}.sock"
        self._tasks = Tasks("device plugin")
        self._health_file = HealthFile(settings.health)
        self._server: SocketServer | None = None

    @property
    def ids(self) -> list[str]:
        return [f"device-{number}" for number in range(self._settings.count)]

    async def start(self) -> None:
        """Raises OSError."""
        os.makedirs(self._settings.directory, exist_ok=True)
        await self._serve()
        self._tasks.supervise("registration", self._keep_registered)
        self._tasks.supervise("health", self._health_file.watch)

    async def stop(self) -> None:
        await self._tasks.stop()
        if self._server is not None:
            await self._server.stop()

    def hurry(self) -> None:
        """It has nobody to wait for."""

    async def _serve(self) -> None:
        if self._server is not None:
            await self._server.stop()
        handlers: dict[str, Unary | Streaming] = {
            "GetDevicePluginOptions": Unary(messages.Empty, self._tell_options),
            "ListAndWatch": Streaming(messages.Empty, self._list),
            "GetPreferredAllocation": Unary(messages.PreferredAllocationRequest, self._prefer),
            "Allocate": Unary(messages.AllocateRequest, self._allocate),
            "PreStartContainer": Unary(messages.PreStartContainerRequest, self._pre_start),
        }
        path = f"{self._settings.directory}/{self._endpoint}"
        methods = Faults(self._settings.faults).among(protocol.plugin_methods(handlers))
        self._server = SocketServer(path, methods)
        await self._server.start()

    async def _keep_registered(self) -> None:
        """A kubelet that starts removes all sockets, and makes its own anew."""
        events = FileEvents()
        known: tuple[int, int] | None = None
        socket = f"{self._settings.directory}/{protocol.KUBELET_SOCKET}"
        try:
            while True:
                with events.watch(self._settings.directory) as changes:
                    found = _stamp(socket)
                    if found and found != known and await self._register(socket):
                        known = found
                    waits = LOOK_SECONDS if known == _stamp(socket) else RETRY_SECONDS
                    await changes.wait(waits)
        finally:
            events.close()

    async def _register(self, socket: str) -> bool:
        if not _stamp(f"{self._settings.directory}/{self._endpoint}"):
            await self._serve()
        try:
            await protocol.register(socket, self._endpoint, self._settings.resource, self._options)
        except GrpcFailure as failure:
            log.warning("device plugin was not registered", why=failure)
            return False
        log.info("device plugin is registered", resource=self._settings.resource)
        return True

    async def _tell_options(self, _request: Message) -> Message:
        return messages.DevicePluginOptions(
            pre_start_required=self._options.pre_start,
            get_preferred_allocation_available=self._options.prefers,
        )

    async def _list(self, _request: Message) -> AsyncIterator[Message]:
        while True:
            change = self._health_file.next_change()
            yield messages.ListAndWatchResponse(devices=self._devices())
            await change.wait()

    def _devices(self) -> list[Message]:
        health = self._health_file.read()
        made = []
        for number, device_id in enumerate(self.ids):
            device = messages.Device(ID=device_id, health=health.get(device_id, protocol.HEALTHY))
            if self._settings.numa_nodes:
                device.topology.nodes.add(ID=number % self._settings.numa_nodes)
            made.append(device)
        return made

    async def _prefer(self, request: Message) -> Message:
        answers = []
        for asked in request.container_requests:
            included = list(asked.must_include_deviceIDs)
            others = sorted(set(asked.available_deviceIDs) - set(included), reverse=True)
            wanted = (included + others)[: asked.allocation_size]
            answers.append(messages.ContainerPreferredAllocationResponse(deviceIDs=wanted))
        return messages.PreferredAllocationResponse(container_responses=answers)

    async def _allocate(self, request: Message) -> Message:
        return messages.AllocateResponse(
            container_responses=[
                self._answer(list(asked.devices_ids)) for asked in request.container_requests
            ]
        )

    def _answer(self, devices: list[str]) -> Message:
        variable = "".join(
            letter if letter.isalnum() else "_" for letter in self._settings.resource.upper()
        )
        answer = messages.ContainerAllocateResponse(
            envs={variable: ",".join(devices)},
            annotations={f"{self._settings.resource.replace('/', '.')}.devices": str(len(devices))},
        )
        short = self._settings.resource.rpartition("/")[2]
        for device in devices:
            if self._settings.cdi_kind:
                answer.cdi_devices.add(name=f"{self._settings.cdi_kind}={device}")
            else:
                answer.devices.add(
                    container_path=f"/dev/{short}-{device}",
                    host_path=self._settings.device,
                    permissions="mrw",
                )
        return answer

    async def _pre_start(self, _request: Message) -> Message:
        return messages.PreStartContainerResponse()


def _stamp(path: str) -> tuple[int, int] | None:
    """A file made anew differs, though the number of the old one is used again."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
