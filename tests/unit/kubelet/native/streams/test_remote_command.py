"""exec and attach over a real connection: how they end."""

import asyncio
import json
import socket
from contextlib import asynccontextmanager

from sampan.core.http.raw_connection import RawConnection
from sampan.core.http.websocket import WebSocket
from sampan.core.tasks import Tasks
from sampan.kubelet.contracts.local_streams import StreamOptions
from sampan.kubelet.native.streams.remote_command import AttachSession, ExecSession
from sampan.kubelet.streams.channels import WebChannels
from sampan.runtime.spawn import Launch

OPTIONS = StreamOptions(stdin=True, stdout=True, stderr=False, tty=False, command=("true",))


@asynccontextmanager
async def connected():
    """Channels of the node's side, and the client's end, which reads and says nothing."""
    ours, theirs = socket.socketpair()
    transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=ours)
    raw = RawConnection(transport)
    transport.set_protocol(raw)
    reader, writer = await asyncio.open_connection(sock=theirs)
    try:
        yield WebChannels(WebSocket(raw), "v4.channel.k8s.io"), reader, writer
    finally:
        writer.close()
        raw.close()


async def status_of(session):
    """What the client is told in the end; it goes when it has heard it."""
    async with connected() as (channels, reader, writer):
        running = Tasks("test").start("session", session.run(channels))
        head = await reader.readexactly(2)
        message = await reader.readexactly(head[1])
        writer.close()
        await running
        return message[0], json.loads(message[1:])["status"]


def test_a_command_ends_while_its_client_may_still_type(tmp_path):
    pid_file = tmp_path / "pid"
    pid_file.write_text("1")
    session = ExecSession(Launch(("true",)), pid_file, OPTIONS)
    assert asyncio.run(status_of(session)) == (3, "Success")


def test_a_container_ends_while_its_client_may_still_type(tmp_path):
    async def story():
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(str(tmp_path / "attach"))
            listening.listen(1)
            session = AttachSession(tmp_path, OPTIONS, stdin_once=False)
            told = Tasks("test").start("client", status_of(session))
            listening.setblocking(False)
            connection, _ = await asyncio.get_running_loop().sock_accept(listening)
            for _ in range(10):  # whoever reads the client's words has begun
                await asyncio.sleep(0)
            connection.close()
            return await told

    assert asyncio.run(story()) == (3, "Success")
