"""port-forward over WebSocket channels, SPDY/3.1 on the node's side.

Job: channel 2n carries the bytes of the n-th port, channel 2n+1 its errors; both begin with the
    port's number (two bytes, little end first). In the base64 protocols a message is text: the
    channel as a digit, then its bytes.
Invariant: one connection into the pod per port; when all have ended, the WebSocket is closed.
"""

import base64
import binascii
import struct
from collections.abc import Sequence

from sampan.api.errors import ApiError, BadRequest
from sampan.apiserver.proxy.stream_translation import ConnectNode, open_connection
from sampan.core.digits import is_digits
from sampan.core.http import spdy
from sampan.core.http.messages import Connection, Request, Upgrade
from sampan.core.http.websocket import TEXT, WebSocket, accept, protocols_of, why_not
from sampan.core.tasks import Tasks

BINARY_PROTOCOLS = ("v4.channel.k8s.io", "channel.k8s.io", "")  # none is the oldest of them
BASE64_PROTOCOLS = ("v4.base64.channel.k8s.io", "base64.channel.k8s.io")
NODE_PROTOCOLS = ("portforward.k8s.io",)


def port_channels(request: Request, ports: Sequence[str], connect: ConnectNode) -> Upgrade:
    """Raises BadRequest."""
    wrong = why_not(request)
    if wrong:
        raise BadRequest(wrong)
    spoken = (*BINARY_PROTOCOLS, *BASE64_PROTOCOLS)
    chosen = next((item for item in protocols_of(request) or [""] if item in spoken), None)
    if chosen is None:
        listed = ", ".join(item for item in spoken if item)
        raise BadRequest(f"unable to upgrade: the WebSocket protocols spoken here are {listed}")
    numbers = _numbers(ports)

    async def take_over(connection: Connection) -> None:
        socket = _Messages(WebSocket(connection), chosen in BASE64_PROTOCOLS)
        await _PortChannels(socket, numbers).run(connect)

    return Upgrade(accept(request, chosen), take_over)


class _Messages:
    """A channel and its bytes, in the form of the protocol."""

    def __init__(self, socket: WebSocket, in_base64: bool) -> None:
        self._socket, self._in_base64 = socket, in_base64

    async def send(self, channel: int, payload: bytes) -> None:
        if self._in_base64:
            text = bytes([ord("0") + channel]) + base64.b64encode(payload)
            await self._socket.send(text, TEXT)
        else:
            await self._socket.send(bytes([channel]) + payload)

    async def receive(self) -> tuple[int, bytes] | None:
        """None at the end."""
        while (message := await self._socket.receive()) is not None:
            if not message:
                continue
            if not self._in_base64:
                return message[0], message[1:]
            try:
                return message[0] - ord("0"), base64.b64decode(message[1:], validate=True)
            except binascii.Error:
                return None
        return None

    async def close(self) -> None:
        await self._socket.close()


def _numbers(ports: Sequence[str]) -> list[int]:
    if not ports:
        raise BadRequest('query parameter "port" is required')
    for port in ports:
        if not is_digits(port) or not 1 <= int(port) <= 65535:
            raise BadRequest(f'unable to parse "{port}" as a port')
    return [int(port) for port in ports]


class _PortChannels:
    def __init__(self, socket: _Messages, ports: list[int]) -> None:
        self._socket, self._ports = socket, ports
        self._session = spdy.Session()
        self._channels: dict[int, int] = {}  # SPDY stream → channel
        self._streams: dict[int, int] = {}  # channel → SPDY stream

    async def run(self, connect: ConnectNode) -> None:
        for channel in range(2 * len(self._ports)):
            await self._socket.send(channel, struct.pack("<H", self._ports[channel // 2]))
        try:
            node = await open_connection(connect, NODE_PROTOCOLS)
        except ApiError as error:
            await self._socket.send(1, error.message.encode())
            await self._socket.close()
            return
        tasks = Tasks("port-forward")
        try:
            await self._open_streams(node)
            tasks.start("to the node", self._copy_to_node(node))
            await self._copy_from_node(node)
        finally:
            await tasks.stop()
            node.close()
        await self._socket.close()

    async def _open_streams(self, node: Connection) -> None:
        for index, port in enumerate(self._ports):
            of_pair = {"port": str(port), "requestid": str(index)}
            for channel, kind in ((2 * index + 1, "error"), (2 * index, "data")):
                stream, frame = self._session.open({"streamtype": kind, **of_pair})
                self._channels[stream], self._streams[channel] = channel, stream
                await node.write(frame)
                if kind == "error":  # we have nothing to say there
                    await node.write(self._session.data(stream, b"", fin=True))

    async def _copy_to_node(self, node: Connection) -> None:
        try:
            while (message := await self._socket.receive()) is not None:
                channel, payload = message
                if channel % 2 == 0 and channel in self._streams:
                    await node.write(self._session.data(self._streams[channel], payload))
        except ConnectionError:
            return
        finally:
            node.close()

    async def _copy_from_node(self, node: Connection) -> None:
        open_channels = {channel for channel in self._streams if channel % 2 == 0}
        try:
            while open_channels and (data := await node.read()):
                for event in self._session.feed(data):
                    await self._take(event, node, open_channels)
        except ConnectionError:
            return

    async def _take(self, event: spdy.Event, node: Connection, open_channels: set[int]) -> None:
        match event:
            case spdy.Data(stream, payload, fin):
                channel = self._channels.get(stream)
                if channel is not None and payload:
                    await self._socket.send(channel, payload)
                if fin and channel is not None:
                    open_channels.discard(channel)
            case spdy.Reset(stream):
                open_channels.discard(self._channels.get(stream, -1))
            case spdy.Ping() if not self._session.is_answer(event):
                await node.write(self._session.ping(event.number))
