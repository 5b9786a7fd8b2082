"""gRPC over a unix socket, the answering side.

Job: serve async functions at a socket; what they refuse becomes gRPC's status.
Invariant: a handler's GrpcFailure is the caller's status; anything else is a bug, and UNKNOWN.
Owner: whoever starts it stops it, and with it the socket goes.
"""

import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

# gRPC reads these while it is imported.
os.putenv("GRPC_ENABLE_FORK_SUPPORT", "0")
os.putenv("GRPC_VERBOSITY", "ERROR")

import grpc
import grpc.aio

from sampan.core.fast_dataclass import dataclass
from sampan.core.grpc.status_codes import GrpcFailure

Message = Any
LARGEST_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Unary:
    request: Message  # its class
    handle: Callable[[Message], Awaitable[Message]]


@dataclass(frozen=True, slots=True)
class Streaming:
    """One request, many answers."""

    request: Message
    handle: Callable[[Message], AsyncIterator[Message]]


Methods = Mapping[str, Unary | Streaming]  # by /package.Service/Method


class SocketServer:
    def __init__(self, path: str, methods: Methods) -> None:
        self.path, self._methods = path, methods
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        """Raises OSError where nothing can listen there."""
        server = grpc.aio.server(options=(("grpc.max_receive_message_length", LARGEST_BYTES),))
        services: dict[str, dict[str, grpc.RpcMethodHandler[Any, Any]]] = {}
        for path, method in self._methods.items():
            _, service, name = path.split("/")
            services.setdefault(service, {})[name] = _handler(method)
        server.add_generic_rpc_handlers(
            tuple(grpc.method_handlers_generic_handler(*item) for item in services.items())
        )
        try:
            server.add_insecure_port(f"unix://{self.path}")
        except RuntimeError as error:
            raise OSError(f"cannot listen at {self.path}: {error}") from error
        await server.start()
        self._server = server

    async def stop(self, grace_seconds: float = 0.0) -> None:
        if self._server is not None:
            await self._server.stop(grace_seconds)
            self._server = None
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)


def _handler(method: Unary | Streaming) -> "grpc.RpcMethodHandler[Any, Any]":
    shared = {
        "request_deserializer": method.request.FromString,
        "response_serializer": lambda message: message.SerializeToString(),
    }
    if isinstance(method, Unary):
        return grpc.unary_unary_rpc_method_handler(_answering(method), **shared)
    return grpc.unary_stream_rpc_method_handler(_streaming(method), **shared)


def _answering(method: Unary) -> Callable[..., Any]:
    async def answer(request: Message, context: "grpc.aio.ServicerContext[Any, Any]") -> Message:
        try:
            return await method.handle(request)
        except GrpcFailure as failure:
            await context.abort(grpc.StatusCode[failure.code], failure.message)

    return answer


def _streaming(method: Streaming) -> Callable[..., Any]:
    async def answers(
        request: Message, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> AsyncIterator[Message]:
        try:
            async for message in method.handle(request):
                yield message
        except GrpcFailure as failure:
            await context.abort(grpc.StatusCode[failure.code], failure.message)

    return answers
