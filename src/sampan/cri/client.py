"""The container runtime's gRPC socket: one call per method, each with a deadline.

Job: carry CRI messages over the unix socket, and turn gRPC's codes into our errors.
Invariant: every call has a deadline; nothing but a CriError (or cancellation) comes out.
Owner: kubelet.cri_runtime; nobody else talks to the socket.

Importing this module costs some 80 ms (gRPC and the messages): only a real node does.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from sampan.core.grpc.socket_client import SocketClient
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.telemetry.trace_context import HEADER, current_header
from sampan.cri.gen import containerd_events_pb2 as containerd
from sampan.cri.gen import runtime_pb2 as cri

Message = Any  # the generated classes carry no types
Metadata = Sequence[tuple[str, str]]

# As upstream's --runtime-request-timeout: what a call gets when nothing longer is needed.
REQUEST_SECONDS = 120.0
# As upstream: a sandbox pulls its network together, so it gets twice as long.
SANDBOX_SECONDS = 240.0
# Upstream lets a pull run for ever; a bound frees the image for the next attempt.
PULL_SECONDS = 3600.0


class CriError(Exception):
    """The runtime answered with a failure. `code` is gRPC's name for it."""

    def __init__(self, message: str, *, code: str, method: str) -> None:
        super().__init__(message)
        self.message, self.code, self.method = message, code, method


class CriUnavailable(CriError):
    """Nobody answers at the socket, or not before the deadline."""


class CriNotFound(CriError):
    """The sandbox, container or image is not there."""


class CriUnimplemented(CriError):
    """This runtime does not have the method."""


_CLASSES: dict[str, type[CriError]] = {
    "UNAVAILABLE": CriUnavailable,
    "DEADLINE_EXCEEDED": CriUnavailable,
    "NOT_FOUND": CriNotFound,
    "UNIMPLEMENTED": CriUnimplemented,
}


def error_of(failure: GrpcFailure) -> CriError:
    """The only place that knows gRPC's codes."""
    kind = _CLASSES.get(failure.code, CriError)
    return kind(failure.message, code=failure.code, method=failure.method)


class CriClient:
    """Both CRI services and containerd's event stream, on one socket."""

    def __init__(self, socket_path: str) -> None:
        self.socket_path = socket_path
        self._socket = SocketClient(socket_path)

    async def runtime(
        self, method: str, request: Message, *, timeout: float = REQUEST_SECONDS
    ) -> Message:
        """Call `method` of the RuntimeService."""
        return await self._call("runtime.v1.RuntimeService", method, request, timeout)

    async def image(
        self, method: str, request: Message, *, timeout: float = REQUEST_SECONDS
    ) -> Message:
        """Call `method` of the ImageService."""
        return await self._call("runtime.v1.ImageService", method, request, timeout)

    def container_events(self) -> AsyncIterator[Message]:
        """CRI's own stream of ContainerEventResponse."""
        path = "/runtime.v1.RuntimeService/GetContainerEvents"
        return self._stream(path, cri.GetEventsRequest(), cri.ContainerEventResponse, ())

    def containerd_events(self, namespace: str, filters: Sequence[str]) -> AsyncIterator[Message]:
        """containerd's stream of Envelopes; it begins with the events after the subscription."""
        return self._stream(
            "/containerd.services.events.v1.Events/Subscribe",
            containerd.SubscribeRequest(filters=filters),
            containerd.Envelope,
            (("containerd-namespace", namespace),),
        )

    async def wait_ready(self, timeout: float) -> None:
        """Returns when the socket answers gRPC; CriUnavailable after `timeout` seconds."""
        path, request = "/runtime.v1.RuntimeService/Version", cri.VersionRequest()
        try:
            await self._socket.call(path, request, cri.VersionResponse, seconds=timeout, waits=True)
        except GrpcFailure as failure:
            raise error_of(failure) from failure

    async def close(self) -> None:
        await self._socket.close()

    async def _call(self, service: str, method: str, request: Message, timeout: float) -> Message:
        answer, trace = getattr(cri, f"{method}Response"), current_header()
        metadata = ((HEADER, trace),) if trace else ()
        try:
            return await self._socket.call(
                f"/{service}/{method}", request, answer, seconds=timeout, metadata=metadata
            )
        except GrpcFailure as failure:
            raise error_of(failure) from failure

    async def _stream(
        self, path: str, request: Message, answer: Message, metadata: Metadata
    ) -> AsyncIterator[Message]:
        try:
            async for message in self._socket.stream(path, request, answer, metadata):
                yield message
        except GrpcFailure as failure:
            raise error_of(failure) from failure
