"""Device plugins, v1beta1: a plugin's socket, and the kubelet's registration.

Job: carry the protocol's messages, with its deadlines; what both sides are called by.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any

from sampan.core.fast_dataclass import dataclass
from sampan.core.grpc.socket_client import SocketClient
from sampan.core.grpc.socket_server import Methods, Streaming, Unary
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.plugins.gen import sampan_device_plugin_pb2 as messages

Message = Any
VERSION = "v1beta1"
PLUGIN, REGISTRATION = "/v1beta1.DevicePlugin", "/v1beta1.Registration"
KUBELET_SOCKET = "kubelet.sock"
HEALTHY = "Healthy"
# As upstream: what a plugin may take for an answer.
DIAL_SECONDS, ALLOCATE_SECONDS, PRE_START_SECONDS = 10.0, 60.0, 30.0
REGISTER_SECONDS = 30.0  # of a plugin of our own: the kubelet calls back before it answers
__all__ = ["DevicePluginClient", "Options", "messages", "plugin_methods", "register"]


@dataclass(frozen=True, slots=True)
class Options:
    pre_start: bool = False
    prefers: bool = False  # it is asked which devices it would rather give


class DevicePluginClient:
    def __init__(self, path: str) -> None:
        self._socket = SocketClient(path)

    async def options(self) -> Options:
        """Raises GrpcFailure, as the others do."""
        answer = await self._call(
            "GetDevicePluginOptions", messages.Empty(), messages.DevicePluginOptions, DIAL_SECONDS,
            waits=True,
        )  # fmt: skip
        return Options(answer.pre_start_required, answer.get_preferred_allocation_available)

    def watch(self) -> AsyncIterator[Message]:
        """ListAndWatchResponses, for as long as the plugin lives."""
        path = f"{PLUGIN}/ListAndWatch"
        return self._socket.stream(path, messages.Empty(), messages.ListAndWatchResponse)

    async def preferred(
        self, available: Iterable[str], included: Iterable[str], size: int
    ) -> list[str]:
        wanted = messages.ContainerPreferredAllocationRequest(
            available_deviceIDs=list(available),
            must_include_deviceIDs=list(included),
            allocation_size=size,
        )
        request = messages.PreferredAllocationRequest(container_requests=[wanted])
        kind = messages.PreferredAllocationResponse
        answer = await self._call("GetPreferredAllocation", request, kind, ALLOCATE_SECONDS)
        return list(answer.container_responses[0].deviceIDs) if answer.container_responses else []

    async def allocate(self, devices: Sequence[str]) -> bytes:
        """One container's answer, as it is on the wire. Raises ValueError where there is none."""
        wanted = messages.ContainerAllocateRequest(devices_ids=list(devices))
        request = messages.AllocateRequest(container_requests=[wanted])
        answer = await self._call("Allocate", request, messages.AllocateResponse, ALLOCATE_SECONDS)
        if not answer.container_responses:
            raise ValueError(f"no containers return in allocation response {answer}")
        found: bytes = answer.container_responses[0].SerializeToString()
        return found

    async def pre_start(self, devices: Sequence[str]) -> None:
        request = messages.PreStartContainerRequest(devices_ids=list(devices))
        kind = messages.PreStartContainerResponse
        await self._call("PreStartContainer", request, kind, PRE_START_SECONDS)

    async def close(self) -> None:
        await self._socket.close()

    async def _call(
        self, method: str, request: Message, answer: Message, seconds: float, *, waits: bool = False
    ) -> Message:
        path = f"{PLUGIN}/{method}"
        return await self._socket.call(path, request, answer, seconds=seconds, waits=waits)


@dataclass(frozen=True, slots=True)
class Registered:
    """What a plugin registers: a resource, behind a socket in the same directory."""

    resource: str
    endpoint: str
    version: str


def registration_methods(registers: Callable[[Registered], Awaitable[None]]) -> Methods:
    """The kubelet's side. `registers` raises GrpcFailure to refuse."""

    async def register(request: Message) -> Message:
        await registers(Registered(request.resource_name, request.endpoint, request.version))
        return messages.Empty()

    return {f"{REGISTRATION}/Register": Unary(messages.RegisterRequest, register)}


async def register(kubelet_socket: str, endpoint: str, resource: str, options: Options) -> None:
    """A plugin's side. Raises GrpcFailure."""
    client = SocketClient(kubelet_socket)
    request = messages.RegisterRequest(
        version=VERSION,
        endpoint=endpoint,
        resource_name=resource,
        options=messages.DevicePluginOptions(
            pre_start_required=options.pre_start,
            get_preferred_allocation_available=options.prefers,
        ),
    )
    try:
        await client.call(
            f"{REGISTRATION}/Register", request, messages.Empty, seconds=REGISTER_SECONDS
        )
    finally:
        await client.close()


def plugin_methods(handlers: "dict[str, Unary | Streaming]") -> Methods:
    """A plugin's side, by the methods' names; those that it lacks are unimplemented."""
    return {f"{PLUGIN}/{name}": handler for name, handler in handlers.items()}


def refused(why: str) -> GrpcFailure:
    """As Go's servers answer an error that is no status."""
    return GrpcFailure(why, code="UNKNOWN")
