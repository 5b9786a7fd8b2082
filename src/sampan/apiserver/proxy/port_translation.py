"""port-forward over WebSocket channels (`v4.channel.k8s.io`), SPDY/3.1 on the node's side.

Job: channel 2n carries the bytes of the n-th port, channel 2n+1 its errors; both begin with the
    port's number (two bytes, little end first).
Invariant: one connection into the pod per port; when all have ended, the WebSocket is closed.
"""

import struct
from collections.abc import Sequence

from sampan.api.errors import ApiError, BadRequest
from sampan.apiserver.proxy.stream_translation import ConnectNode, open_connection
from sampan.core import spdy
from sampan.core.http import Connection, Request, Upgrade
from sampan.core.tasks import Tasks
from sampan.core.websocket import WebSocket, accept, protocols_of, why_not

V4 = "v4.channel.k8s.io"
NODE_PROTOCOLS = ("portforward.k8s.io",)


def port_channels(request: Request, ports: Sequence[str], connect: ConnectNode) -> Upgrade:
    """Raises BadRequest."""
    wrong = why_not(request)
    if wrong:
        raise BadRequest(wrong)
    if V4 not in protocols_of(request):
        raise BadRequest(f"unable to upgrade: of the WebSocket protocols only {V4} is spoken here")
    numbers = _numbers(ports)

    async def take_over(connection: Connection) -> None:
        await _PortChannels(WebSocket(connection), numbers).run(connect)

    return Upgrade(accept(request, V4), take_over)


def _numbers(ports: Sequence[str]) -> list[int]:
    if not ports:
        raise BadRequest('query parameter "port" is required')
    for port in ports:
        if not port.isdigit() or not 1 <= int(port) <= 65535:
            raise BadRequest(f'unable to parse "{port}" as a port')
    return [int(port) for port in ports]


class _PortChannels:
    def __init__(self, socket: WebSocket, ports: list[int]) -> None:
        self._socket, self._ports = socket, ports
        self._session = spdy.Session()
        self._channels: dict[int, int] = {}  # SPDY stream → channel
        self._streams: dict[int, int] = {}  # channel → SPDY stream

    async def run(self, connect: ConnectNode) -> None:
        for channel in range(2 * len(self._ports)):
            await self._socket.send(bytes([channel]) + struct.pack("<H", self._ports[channel // 2]))
        try:
            node = await open_connection(connect, NODE_PROTOCOLS)
        except ApiError as error:
            await self._socket.send(bytes([1]) + error.message.encode())
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
                if message and message[0] % 2 == 0 and message[0] in self._streams:
                    await node.write(self._session.data(self._streams[message[0]], message[1:]))
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
                    await self._socket.send(bytes([channel]) + payload)
                if fin and channel is not None:
                    open_channels.discard(channel)
            case spdy.Reset(stream):
                open_channels.discard(self._channels.get(stream, -1))
            case spdy.Ping() if not self._session.is_answer(event):
                await node.write(self._session.ping(event.number))
