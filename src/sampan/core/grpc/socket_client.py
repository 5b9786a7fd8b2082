"""gRPC over a unix socket, the caller's side: one call per method, each with a deadline.

Job: carry messages to whoever listens at the socket, and turn gRPC's codes into GrpcFailure.
Invariant: every unary call has a deadline; nothing but GrpcFailure (or cancellation) comes out.

Importing this module costs some 80 ms: only who has somebody to call does.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

# gRPC reads these while it is imported. With its fork handlers it would write to standard error
# each time that a child process is started, and else each time that somebody hangs up.
os.putenv("GRPC_ENABLE_FORK_SUPPORT", "0")
os.putenv("GRPC_VERBOSITY", "ERROR")

import grpc
import grpc.aio

from sampan.core.grpc.status_codes import GrpcFailure

LONGEST_PATH = 107  # of a unix socket's address
Message = Any  # the generated classes carry no types
Metadata = Sequence[tuple[str, str]]

_OPTIONS = (
    # The other side is local: when it comes back after a restart, be there at once.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # 16 MiB: lists of many things are long.
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
    ("grpc.use_local_subchannel_pool", 1),
    # A proxy in the environment is never meant for a unix socket.
    ("grpc.enable_http_proxy", 0),
)


def failure_of(error: grpc.aio.AioRpcError, method: str) -> GrpcFailure:
    """The only place that reads gRPC's own errors."""
    code = error.code().name
    message = error.details() or code.lower().replace("_", " ")
    return GrpcFailure(message, code=code, method=method.rpartition("/")[2])


class SocketClient:
    def __init__(self, socket_path: str) -> None:
        self.socket_path = socket_path
        self._directory = -1  # open as long as it is needed to reach the socket
        self._channel = grpc.aio.insecure_channel(f"unix://{self._address()}", options=_OPTIONS)
        self._calls: dict[str, Callable[..., Any]] = {}
        self._closed = False

    async def call(
        self,
        path: str,
        request: Message,
        answer: Message,
        *,
        seconds: float,
        metadata: Metadata = (),
        waits: bool = False,
    ) -> Message:
        """`path`: /package.Service/Method. `waits`: for somebody who is not there yet, until the
        deadline. Raises GrpcFailure."""
        try:
            return await self._method(path, answer)(
                request, timeout=seconds, metadata=metadata or None, wait_for_ready=waits
            )
        except grpc.aio.AioRpcError as error:
            raise failure_of(error, path) from error
        except (grpc.aio.UsageError, asyncio.CancelledError) as error:
            if self._is_cancelled():
                raise
            raise self._hung_up(path) from error

    async def stream(
        self, path: str, request: Message, answer: Message, metadata: Metadata = ()
    ) -> AsyncIterator[Message]:
        """No deadline: it lasts as long as the connection, and its reader watches it."""
        call: Callable[..., Any] = self._channel.unary_stream(
            path,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )
        stream = call(request, metadata=metadata or None)
        try:
            async for message in stream:
                yield message
        except grpc.aio.AioRpcError as error:
            raise failure_of(error, path) from error
        finally:
            stream.cancel()

    async def connections(self) -> AsyncIterator[bool]:
        """Is somebody there? As often as that changes; who went is looked for."""
        while True:
            state = self._channel.get_state(try_to_connect=True)
            yield state is grpc.ChannelConnectivity.READY
            try:
                await self._channel.wait_for_state_change(state)
            except (grpc.aio.UsageError, asyncio.CancelledError):
                if self._is_cancelled():
                    raise
                return

    async def close(self) -> None:
        self._closed = True
        await self._channel.close()
        if self._directory >= 0:
            os.close(self._directory)
            self._directory = -1

    def _address(self) -> str:
        """A path may be longer than an address of a socket may be."""
        if len(os.fsencode(self.socket_path)) <= LONGEST_PATH:
            return self.socket_path
        directory, name = os.path.split(self.socket_path)
        try:
            self._directory = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return self.socket_path  # there is nothing: gRPC says so
        return f"/proc/self/fd/{self._directory}/{name}"

    def _is_cancelled(self) -> bool:
        """Closed by its owner while somebody calls: the caller was not cancelled for that."""
        task = asyncio.current_task()
        return not self._closed or (task is not None and task.cancelling() > 0)

    def _hung_up(self, path: str) -> GrpcFailure:
        method = path.rpartition("/")[2]
        return GrpcFailure("the connection was closed", code="CANCELLED", method=method)

    def _method(self, path: str, answer: Message) -> Callable[..., Any]:
        call = self._calls.get(path)
        if call is None:
            call = self._calls[path] = self._channel.unary_unary(
                path,
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=answer.FromString,
            )
        return call
