"""Handshakes of exec and attach, and clients that go."""

import asyncio
import base64
import json

import pytest

from sampan.core.http import spdy
from sampan.core.http.messages import Request, Response, Upgrade
from sampan.core.http.websocket import CLOSE, FrameReader
from sampan.kubelet.contracts.local_streams import StreamOptions
from sampan.kubelet.streams.channels import upgrade

OPTIONS = StreamOptions(stdin=False, stdout=True, stderr=False, tty=False)
SPDY = {"upgrade": "SPDY/3.1", "x-stream-protocol-version": "v4.channel.k8s.io"}
WEB = {
    "upgrade": "websocket", "connection": "Upgrade", "sec-websocket-version": "13",
    "sec-websocket-key": "x",
}  # fmt: skip


async def nothing(channels):
    raise AssertionError("the client was not there")


def answer(headers):
    return upgrade(Request("GET", "/", "", headers, b""), OPTIONS, nothing)


@pytest.mark.parametrize(
    ("headers", "status", "text"),
    [
        ({}, 400, b"Upgrade request required"),
        ({**SPDY, "x-stream-protocol-version": "v9.channel.k8s.io"}, 403, b"negotiate protocol"),
        ({**WEB, "sec-websocket-protocol": "v9.channel.k8s.io"}, 400, b"unsupported protocol"),
        ({**WEB, "sec-websocket-version": "8"}, 400, b"unsupported WebSocket version"),
        ({**WEB, "sec-websocket-key": ""}, 400, b"missing Sec-WebSocket-Key"),
    ],
)
def test_a_handshake_that_means_nothing_is_refused(headers, status, text):
    reply = answer(headers)
    assert isinstance(reply, Response)
    assert reply.status == status
    assert text in reply.body


@pytest.mark.parametrize(
    "protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io", "base64.channel.k8s.io"]
)
def test_the_protocol_of_the_client_is_taken(protocol):
    reply = answer({**WEB, "sec-websocket-protocol": f"x, {protocol}"})
    assert isinstance(reply, Upgrade)
    assert ("sec-websocket-protocol", protocol) in reply.headers


class ClientThatGoes:
    def __init__(self, sent):
        self._sent = [*sent]

    async def read(self):
        return self._sent.pop(0) if self._sent else b""

    async def write(self, data):
        """Nobody reads it."""

    def close(self):
        """It is gone already."""


def test_a_client_that_goes_before_all_streams_are_there_hears_nothing():
    _, frame = spdy.Session().open({"streamtype": "error"})
    reply = answer(SPDY)
    assert isinstance(reply, Upgrade)
    with pytest.raises(ConnectionError):
        asyncio.run(reply.take_over(ClientThatGoes([frame])))


SUCCESS = {"metadata": {}, "status": "Success"}
FAILURE = {"metadata": {}, "status": "Failure", "message": "command terminated", "code": 500}


class Client(ClientThatGoes):
    """It keeps what it hears."""

    def __init__(self, sent=()):
        super().__init__(sent)
        self.written = b""

    async def write(self, data):
        self.written += data


def after(headers, client, status, options=OPTIONS):
    """Its output is "out", and then it ends so."""

    async def session(channels):
        await channels.send(1, b"out")
        await channels.finish(json.dumps(status).encode())

    reply = upgrade(Request("GET", "/", "", headers, b""), options, session)
    assert isinstance(reply, Upgrade)
    asyncio.run(reply.take_over(client))


def over_websocket(protocol, status):
    client = Client()
    after({**WEB, "sec-websocket-protocol": protocol}, client, status)
    frames = [
        frame.payload
        for frame in FrameReader(from_client=False).feed(client.written)
        if frame.opcode != CLOSE
    ]
    if "base64" not in protocol:
        return [(frame[0], frame[1:]) for frame in frames]
    return [(frame[0] - ord("0"), base64.b64decode(frame[1:])) for frame in frames]


@pytest.mark.parametrize("prefix", ["", "v4."])
@pytest.mark.parametrize("wire", ["channel.k8s.io", "base64.channel.k8s.io"])
@pytest.mark.parametrize("status", [SUCCESS, FAILURE])
def test_before_version_4_a_failure_is_a_message_and_a_success_nothing(prefix, wire, status):
    first, output, *end = over_websocket(prefix + wire, status)
    assert (first, output) == ((1, b""), (1, b"out"))  # the first says that somebody is there
    told = [(3, json.dumps(status).encode())]
    if not prefix:
        told = [] if status is SUCCESS else [(3, b"command terminated")]
    assert end == told


@pytest.mark.parametrize("version", ["", "v2.", "v3.", "v4."])
def test_a_terminal_has_no_sizes_before_version_3_and_no_status_before_version_4(version):
    client_side = spdy.Session()
    kinds = ["error", "stdout"] + (["resize"] if version in ("v3.", "v4.") else [])
    opened = [client_side.open({"streamtype": kind}) for kind in kinds]
    client = Client(frame for _, frame in opened)
    headers = {**SPDY, "x-stream-protocol-version": f"{version}channel.k8s.io"}
    terminal = StreamOptions(stdin=False, stdout=True, stderr=False, tty=True)
    after(headers, client, FAILURE, terminal)
    errors = opened[0][0]
    said = b"".join(
        event.payload
        for event in client_side.feed(client.written)
        if isinstance(event, spdy.Data) and event.stream == errors
    )
    assert said == (json.dumps(FAILURE).encode() if version == "v4." else b"command terminated")
