"""Handshakes of exec and attach, and clients that go."""

import asyncio

import pytest

from sampan.core.http import spdy
from sampan.core.http.messages import Request, Response, Upgrade
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
