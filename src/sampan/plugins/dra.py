"""Drivers of dynamic resource allocation: v1 and v1beta1 of the kubelet's protocol.

Job: carry the messages to a driver's socket with the protocol's deadline; what both sides are
    called by.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from sampan.core.fast_dataclass import dataclass
from sampan.core.grpc.socket_client import SocketClient
from sampan.core.grpc.socket_server import Methods, Streaming, Unary
from sampan.plugins.gen import sampan_dra_health_pb2 as health_messages
from sampan.plugins.gen import sampan_dra_pb2 as messages

Message = Any
# What a driver lists as its versions → the service on the wire.
SERVICES = {
    "v1.DRAPlugin": "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin",
    "v1beta1.DRAPlugin": "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin",
}
HEALTH_SERVICE, HEALTH = "v1alpha1.DRAResourceHealth", "/v1alpha1.DRAResourceHealth"
HEALTH_WORDS = {1: "Healthy", 2: "Unhealthy"}  # anything else: Unknown
TOLD_FOR_SECONDS = 86400  # our drivers tell every change, and nothing else
CALL_SECONDS = 45.0  # as upstream
__all__ = ["DraClient", "dra_methods", "health_messages", "messages"]


@dataclass(frozen=True, slots=True)
class ClaimName:
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Readied:
    """A device that a driver made ready."""

    pool: str
    device: str
    requests: Sequence[str] = ()
    cdi_devices: Sequence[str] = ()
    share: str | None = None


@dataclass(frozen=True, slots=True)
class DeviceHealth:
    pool: str
    device: str
    health: str
    seconds: float  # until it is not known any more; 0: not said
    message: str = ""


Prepared = Mapping[str, Sequence[Readied] | str]  # by the claim's uid; a text: why not
Unprepared = Mapping[str, str]  # by the claim's uid; empty: done


class DraClient:
    def __init__(self, path: str, version: str) -> None:
        self._socket, self._service = SocketClient(path), SERVICES[version]

    def connections(self) -> AsyncIterator[bool]:
        """Is the driver there? As often as that changes."""
        return self._socket.connections()

    async def prepare(self, claims: Iterable[ClaimName]) -> Prepared:
        """Raises GrpcFailure, as the other does."""
        request = messages.NodePrepareResourcesRequest(claims=map(_claim, claims))
        kind = messages.NodePrepareResourcesResponse
        answer = await self._call("NodePrepareResources", request, kind)
        return {
            uid: found.error or [_readied(device) for device in found.devices]
            for uid, found in answer.claims.items()
        }

    async def unprepare(self, claims: Iterable[ClaimName]) -> Unprepared:
        request = messages.NodeUnprepareResourcesRequest(claims=map(_claim, claims))
        kind = messages.NodeUnprepareResourcesResponse
        answer = await self._call("NodeUnprepareResources", request, kind)
        return {uid: found.error for uid, found in answer.claims.items()}

    async def watch_health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        """For as long as the driver lives. Raises GrpcFailure."""
        request = health_messages.NodeWatchResourcesRequest()
        kind = health_messages.NodeWatchResourcesResponse
        method = f"{HEALTH}/NodeWatchResources"
        async for answer in self._socket.stream(method, request, kind):
            yield [_device_health(item) for item in answer.devices]

    async def close(self) -> None:
        await self._socket.close()

    async def _call(self, method: str, request: Message, answer: Message) -> Message:
        path = self.path(method)
        return await self._socket.call(path, request, answer, seconds=CALL_SECONDS)

    def path(self, method: str) -> str:
        return f"{self._service}/{method}"


def _device_health(item: Message) -> DeviceHealth:
    word = HEALTH_WORDS.get(item.health, "Unknown")
    seconds = max(0.0, float(item.health_check_timeout_seconds))
    place = item.device
    return DeviceHealth(place.pool_name, place.device_name, word, seconds, item.message)


def _claim(claim: ClaimName) -> Message:
    return messages.Claim(namespace=claim.namespace, name=claim.name, uid=claim.uid)


def _readied(device: Message) -> Readied:
    return Readied(
        device.pool_name,
        device.device_name,
        tuple(device.request_names),
        tuple(device.cdi_device_ids),
        device.share_id if device.HasField("share_id") else None,
    )


Prepare = Callable[[Sequence[ClaimName]], Awaitable[Prepared]]
Unprepare = Callable[[Sequence[ClaimName]], Awaitable[Unprepared]]
Health = Callable[[], AsyncIterator[Mapping[tuple[str, str], str]]]  # pool and device → word


def dra_methods(
    versions: Iterable[str], prepare: Prepare, unprepare: Unprepare, health: Health | None = None
) -> Methods:
    """A driver's side. The functions raise GrpcFailure for what fails as a whole."""

    async def prepared(request: Message) -> Message:
        found = await prepare([_named(claim) for claim in request.claims])
        answer = messages.NodePrepareResourcesResponse()
        for uid, devices in found.items():
            if isinstance(devices, str):
                answer.claims[uid].error = devices
            else:
                answer.claims[uid].devices.extend(map(_device, devices))
        return answer

    async def unprepared(request: Message) -> Message:
        found = await unprepare([_named(claim) for claim in request.claims])
        answer = messages.NodeUnprepareResourcesResponse()
        for uid, why in found.items():
            answer.claims[uid].error = why
        return answer

    methods: dict[str, Unary | Streaming] = {}
    for version in versions:
        service = SERVICES[version]
        methods[f"{service}/NodePrepareResources"] = Unary(
            messages.NodePrepareResourcesRequest, prepared
        )
        methods[f"{service}/NodeUnprepareResources"] = Unary(
            messages.NodeUnprepareResourcesRequest, unprepared
        )
    if health is not None:
        methods[f"{HEALTH}/NodeWatchResources"] = _health_method(health)
    return methods


def _health_method(health: Health) -> Streaming:
    codes = {word: code for code, word in HEALTH_WORDS.items()}

    async def watch(_request: Message) -> AsyncIterator[Message]:
        async for found in health():
            answer = health_messages.NodeWatchResourcesResponse()
            for (pool, device), word in found.items():
                item = answer.devices.add(health=codes.get(word, 0))
                item.health_check_timeout_seconds = TOLD_FOR_SECONDS
                item.device.pool_name, item.device.device_name = pool, device
            yield answer

    return Streaming(health_messages.NodeWatchResourcesRequest, watch)


def _named(claim: Message) -> ClaimName:
    return ClaimName(claim.namespace, claim.name, claim.uid)


def _device(device: Readied) -> Message:
    return messages.Device(
        request_names=device.requests,
        pool_name=device.pool,
        device_name=device.device,
        cdi_device_ids=device.cdi_devices,
        share_id=device.share,
    )
