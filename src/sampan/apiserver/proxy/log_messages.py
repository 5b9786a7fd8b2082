"""A container's log as the messages of a WebSocket.

Job: choose the protocol (`binary.k8s.io`, `base64.binary.k8s.io`, none), and send what comes.
Invariant: an empty message comes first, as upstream: the client hears that the log has begun.
"""

import base64
from collections.abc import AsyncIterator

from sampan.api.errors import BadRequest
from sampan.core.http.messages import Connection, Request, Upgrade
from sampan.core.http.websocket import BINARY, TEXT, WebSocket, accept, protocols_of, why_not

BASE64 = "base64.binary.k8s.io"
_SPOKEN = ("", "binary.k8s.io", BASE64)


def chosen_protocol(request: Request) -> str:
    """Raises BadRequest."""
    wrong = why_not(request)
    if wrong:
        raise BadRequest(wrong)
    for item in protocols_of(request) or [""]:
        if item in _SPOKEN:
            return item
    raise BadRequest(
        f"unable to upgrade: the WebSocket protocols spoken here are {', '.join(_SPOKEN[1:])}"
    )


def log_messages(request: Request, protocol: str, chunks: AsyncIterator[bytes]) -> Upgrade:
    async def take_over(connection: Connection) -> None:
        socket = WebSocket(connection)
        opcode = TEXT if protocol == BASE64 else BINARY
        try:
            await socket.send(b"", opcode)
            async for chunk in chunks:
                await socket.send(base64.b64encode(chunk) if opcode == TEXT else chunk, opcode)
            await socket.close()
            await socket.receive()  # the client's own close
        except ConnectionError:
            return  # it has gone
        finally:
            await chunks.aclose()  # type: ignore[attr-defined]  # a generator, which can be closed

    return Upgrade(accept(request, protocol), take_over)
