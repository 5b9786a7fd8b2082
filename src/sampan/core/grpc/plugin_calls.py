"""Calls of a plugin behind a unix socket, whose few messages are written by hand.

Job: a method and the bytes of its request → the fields of the answer.
Invariant: every call has a deadline; GrpcFailure comes out, or ValueError where the answer is no
    message.
"""

from typing import TYPE_CHECKING

from sampan.core.protobuf_wire import fields

if TYPE_CHECKING:
    from sampan.core.grpc.socket_client import SocketClient


class PluginCalls:
    def __init__(self, socket_path: str, service: str) -> None:
        """`service`: with its package, as v2.KeyManagementService."""
        self._path, self._service = socket_path, service
        self._client: SocketClient | None = None  # gRPC is loaded by who has somebody to call

    async def call(
        self, method: str, request: bytes, seconds: float, *, waits: bool = False
    ) -> list[tuple[int, bytes | int]]:
        """`waits`: for somebody who is not there yet."""
        from sampan.core.grpc.socket_client import SocketClient

        if self._client is None:
            self._client = SocketClient(self._path)
        answer = await self._client.call(
            f"/{self._service}/{method}", _Raw(request), _Raw, seconds=seconds, waits=waits
        )
        return list(fields(answer.text))

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()


class _Raw:
    """A message that was written by hand."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    def SerializeToString(self) -> bytes:  # protobuf's own name
        return self.text

    @classmethod
    def FromString(cls, text: bytes) -> "_Raw":
        return cls(text)
