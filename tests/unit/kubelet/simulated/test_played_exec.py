"""What a simulated command says to its client."""

import asyncio

import orjson

from sampan.core import spdy
from sampan.core.websocket import BINARY, FrameReader
from sampan.kubelet.contracts.runtime import ExecResult
from sampan.kubelet.simulated.played_exec import PlayedExec, play_on_websocket


class Wire:
    def __init__(self, sent):
        self.sent, self.written, self.closed = [*sent], b"", False

    async def read(self):
        return self.sent.pop(0) if self.sent else b""

    async def write(self, data):
        self.written += data

    def close(self):
        self.closed = True


def heard(result, kinds, expected=None):
    client = spdy.Session()
    opened = [client.open({"streamtype": kind}) for kind in kinds]
    names = {stream: kind for (stream, _), kind in zip(opened, kinds, strict=True)}
    wire = Wire(frame for _, frame in opened)
    asyncio.run(PlayedExec(result, expected or kinds).run(wire))
    assert wire.closed
    said = {}
    for event in client.feed(wire.written):
        if isinstance(event, spdy.Data):
            said[names[event.stream]] = event.payload
    return said


def test_output_and_status_are_written_when_all_streams_are_there():
    said = heard(ExecResult(0, b"out", b"err"), ["error", "stdin", "stdout", "stderr"])
    assert (said["stdout"], said["stderr"]) == (b"out", b"err")
    assert orjson.loads(said["error"]) == {"metadata": {}, "status": "Success"}


def test_a_failure_has_its_code():
    said = heard(ExecResult(3, b"", b""), ["error", "stdout"])
    status = orjson.loads(said["error"])
    assert status["reason"] == "NonZeroExitCode"
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


def test_a_client_that_goes_before_all_streams_are_there_hears_nothing():
    assert heard(ExecResult(0, b"out", b""), ["error"], expected=["error", "stdout"]) == {}


def test_a_websocket_has_the_same_in_channels():
    wire = Wire([])
    asyncio.run(play_on_websocket(ExecResult(0, b"out", b"err"), ["error", "stdout"], wire))
    frames = FrameReader(from_client=False).feed(wire.written)
    said = [frame.payload for frame in frames if frame.opcode == BINARY]
    assert said[0] == b"\x01out"
    assert said[1][:1] == b"\x03"
    assert len(said) == 2, "nobody wanted stderr"
