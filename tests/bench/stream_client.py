"""exec and port-forward as kubectl's own client speaks them (SPDY/3.1), against any server.

Job: the same code asks the API server and the runtime's streaming server, so that their figures
    differ only by what lies between.
"""

import asyncio
import time
from urllib.parse import urlencode

from sampan.core.http import spdy
from sampan.core.http.client import HttpClient
from sampan.core.http.raw_connection import RawConnection

_UPGRADE = (("connection", "Upgrade"), ("upgrade", "SPDY/3.1"))
_EXEC = ("x-stream-protocol-version", "v4.channel.k8s.io")
_PORTS = ("x-stream-protocol-version", "portforward.k8s.io")
_SECONDS = 60.0


def exec_url(server: str, namespace: str, pod: str, command: list[str]) -> str:
    asked = [("stdout", "true"), ("stderr", "true"), *(("command", word) for word in command)]
    return f"{server}/api/v1/namespaces/{namespace}/pods/{pod}/exec?{urlencode(asked)}"


def port_forward_url(server: str, namespace: str, pod: str) -> str:
    return f"{server}/api/v1/namespaces/{namespace}/pods/{pod}/portforward"


async def run_command(http: HttpClient, url: str) -> tuple[bytes, bytes]:
    """(what it wrote, its status), once the command has ended."""
    connection = await _connected(http, url, _EXEC)
    session = spdy.Session()
    kinds, outputs = {}, {"error": b"", "stdout": b"", "stderr": b""}
    try:
        async with asyncio.timeout(_SECONDS):
            for kind in outputs:
                stream, frame = session.open({"streamtype": kind})
                kinds[stream] = kind
                await connection.write(frame)
            open_kinds = set(outputs)
            while open_kinds and (data := await connection.read()):
                for event in session.feed(data):
                    match event:
                        case spdy.Data(stream, payload, fin):
                            outputs[kinds[stream]] += payload
                            open_kinds -= {kinds[stream]} if fin else set()
                        case spdy.Reset(stream):
                            open_kinds.discard(kinds[stream])
    finally:
        connection.close()
    return outputs["stdout"], outputs["error"]


async def download(http: HttpClient, url: str, port: int, request: bytes) -> tuple[int, float]:
    """(bytes that came, seconds) of one forwarded connection."""
    connection = await _connected(http, url, _PORTS)
    session = spdy.Session()
    about = {"port": str(port), "requestid": "0"}
    received, began = 0, time.monotonic()
    try:
        async with asyncio.timeout(_SECONDS):
            _, frame = session.open({"streamtype": "error", **about}, fin=True)
            await connection.write(frame)
            stream, frame = session.open({"streamtype": "data", **about})
            await connection.write(frame + session.data(stream, request))
            ended = False
            while not ended and (data := await connection.read()):
                for event in session.feed(data):
                    match event:
                        case spdy.Data(number, payload, fin) if number == stream:
                            received += len(payload)
                            ended = ended or fin
                        case spdy.Reset(number) if number == stream:
                            ended = True
    finally:
        connection.close()
    return received, time.monotonic() - began


async def _connected(http: HttpClient, url: str, protocol: tuple[str, str]) -> RawConnection:
    answer = await http.upgrade("POST", url, headers=[*_UPGRADE, protocol])
    assert answer.connection is not None, (answer.status, answer.body)
    return answer.connection
