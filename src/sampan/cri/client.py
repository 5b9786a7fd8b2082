"""The container runtime's gRPC socket: one call per method, each with a deadline.

Job: carry CRI messages over the unix socket, and turn gRPC's codes into our errors.
Invariant: every call has a deadline; nothing but a CriError (or cancellation) comes out.
Owner: kubelet.cri_runtime; nobody else talks to the socket.

Importing this module costs some 80 ms (gRPC and the messages): only a real node does.
"""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

# gRPC reads this while it is imported. With its fork handlers it would write to standard error
# each time that a child process is started.
os.putenv("GRPC_ENABLE_FORK_SUPPORT", "0")

import grpc
import grpc.aio

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

_OPTIONS = (
    # The runtime is local: when it comes back after a restart, be there at once.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # As upstream's kubelet: 16 MiB, for nodes with many containers.
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
    ("grpc.use_local_subchannel_pool", 1),
    # A proxy in the environment is never meant for a unix socket.
    ("grpc.enable_http_proxy", 0),
)


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


def error_of(failure: grpc.aio.AioRpcError, method: str) -> CriError:
    """The only place that knows gRPC's codes."""
    code = failure.code().name
    message = failure.details() or code.lower().replace("_", " ")
    return _CLASSES.get(code, CriError)(message, code=code, method=method)


class CriClient:
    """Both CRI services and containerd's event stream, on one socket."""

    def __init__(self, socket_path: str) -> None:
        self.socket_path = socket_path
        self._channel = grpc.aio.insecure_channel(f"unix://{socket_path}", options=_OPTIONS)
        self._calls: dict[str, Callable[..., Any]] = {}

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
        path = "/runtime.v1.RuntimeService/Version"
        call = self._method(path, cri.VersionResponse)
        try:
            await call(cri.VersionRequest(), timeout=timeout, wait_for_ready=True)
        except grpc.aio.AioRpcError as failure:
            raise error_of(failure, "Version") from failure

    async def close(self) -> None:
        await self._channel.close()

    async def _call(self, service: str, method: str, request: Message, timeout: float) -> Message:
        call = self._method(f"/{service}/{method}", getattr(cri, f"{method}Response"))
        trace = current_header()
        metadata = ((HEADER, trace),) if trace else None
        try:
            return await call(request, timeout=timeout, metadata=metadata)
        except grpc.aio.AioRpcError as failure:
            raise error_of(failure, method) from failure

    def _method(self, path: str, answer: Message) -> Callable[..., Any]:
        call = self._calls.get(path)
        if call is None:
            call = self._calls[path] = self._channel.unary_unary(
                path,
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=answer.FromString,
            )
        return call

    async def _stream(
        self, path: str, request: Message, answer: Message, metadata: Metadata
    ) -> AsyncIterator[Message]:
        call: Callable[..., Any] = self._channel.unary_stream(
            path,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )
        # A stream has no deadline: it lasts as long as the connection, and its reader watches it.
        stream = call(request, metadata=metadata)
        try:
            async for message in stream:
                yield message
        except grpc.aio.AioRpcError as failure:
            raise error_of(failure, path.rpartition("/")[2]) from failure
        finally:
            stream.cancel()
