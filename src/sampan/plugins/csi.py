"""A CSI driver's socket: its services' methods by name.

Job: carry CSI v1 messages to a driver, each call with its deadline.
"""

from typing import Any

from sampan.core.grpc.socket_client import SocketClient
from sampan.plugins.gen import sampan_csi_pb2 as messages

Message = Any
__all__ = ["CALL_SECONDS", "CONTROLLER", "IDENTITY", "NODE", "CsiSocket", "Message", "messages"]
# As upstream's csiTimeout: what every call of the kubelet's gets.
CALL_SECONDS = 120.0

IDENTITY, CONTROLLER, NODE = "csi.v1.Identity", "csi.v1.Controller", "csi.v1.Node"


class CsiSocket:
    def __init__(self, path: str) -> None:
        self._socket = SocketClient(path)

    async def identity(
        self, method: str, request: Message, seconds: float = CALL_SECONDS
    ) -> Message:
        return await self._call(IDENTITY, method, request, seconds)

    async def controller(
        self, method: str, request: Message, seconds: float = CALL_SECONDS
    ) -> Message:
        return await self._call(CONTROLLER, method, request, seconds)

    async def node(self, method: str, request: Message, seconds: float = CALL_SECONDS) -> Message:
        """Raises GrpcFailure, as the others do."""
        return await self._call(NODE, method, request, seconds)

    async def close(self) -> None:
        await self._socket.close()

    async def _call(self, service: str, method: str, request: Message, seconds: float) -> Message:
        answer = getattr(messages, f"{method}Response")
        return await self._socket.call(f"/{service}/{method}", request, answer, seconds=seconds)
