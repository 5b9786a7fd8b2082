"""Both sides of a gRPC socket, with messages of a real protocol."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from sampan.core.grpc.activated_server import ActivatedServer
from sampan.core.grpc.socket_client import SocketClient
from sampan.core.grpc.socket_server import SocketServer, Streaming, Unary
from sampan.core.grpc.status_codes import GrpcFailure, status_text
from sampan.plugins.gen import sampan_registration_pb2 as registration

GET_INFO = "/pluginregistration.Registration/GetInfo"
WATCH = "/made.up.Service/Watch"


async def info(_request):
    return registration.PluginInfo(type="CSIPlugin", name="a.example.com")


async def refuse(_request):
    raise GrpcFailure("not today", code="FAILED_PRECONDITION")


async def count(_request):
    for number in range(3):
        yield registration.PluginInfo(name=str(number))


METHODS = {
    GET_INFO: Unary(registration.InfoRequest, info),
    "/made.up.Service/Refuse": Unary(registration.InfoRequest, refuse),
    WATCH: Streaming(registration.InfoRequest, count),
}


def asked(path, method=GET_INFO):
    async def ask():
        client = SocketClient(str(path))
        try:
            request = registration.InfoRequest()
            return await client.call(method, request, registration.PluginInfo, seconds=5.0)
        finally:
            await client.close()

    return ask()


def test_answers_refusals_and_streams_go_over_the_socket(tmp_path):
    async def story():
        server = SocketServer(str(tmp_path / "s"), METHODS)
        await server.start()
        try:
            assert (await asked(tmp_path / "s")).name == "a.example.com"
            with pytest.raises(GrpcFailure) as refused:
                await asked(tmp_path / "s", "/made.up.Service/Refuse")
            assert refused.value.code == "FAILED_PRECONDITION"
            assert str(refused.value) == "rpc error: code = FailedPrecondition desc = not today"
            client = SocketClient(str(tmp_path / "s"))
            stream = client.stream(WATCH, registration.InfoRequest(), registration.PluginInfo)
            assert [item.name async for item in stream] == ["0", "1", "2"]
            await client.close()
        finally:
            await server.stop()
        assert not (tmp_path / "s").exists()

    asyncio.run(story())


def test_who_closes_a_client_ends_its_calls_with_a_failure_and_cancels_nobody(tmp_path):
    async def wait(_request):
        await asyncio.sleep(60)

    async def story():
        methods = {GET_INFO: Unary(registration.InfoRequest, wait)}
        server = SocketServer(str(tmp_path / "s"), methods)
        await server.start()
        client, request = SocketClient(str(tmp_path / "s")), registration.InfoRequest()
        loop = asyncio.get_running_loop()

        def call():
            work = client.call(GET_INFO, request, registration.PluginInfo, seconds=30.0)
            return loop.create_task(work)

        cancelled, calling = call(), call()
        await asyncio.sleep(0.1)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        assert cancelled.cancelled()
        await client.close()
        for task in (calling, call()):
            with pytest.raises(GrpcFailure, match="the connection was closed"):
                await task
        await server.stop()

    asyncio.run(story())


def test_nobody_at_the_socket_is_unavailable(tmp_path):
    with pytest.raises(GrpcFailure) as failed:
        asyncio.run(asked(tmp_path / "nothing"))
    assert failed.value.code == "UNAVAILABLE"


def test_a_server_begins_with_its_first_caller_and_keeps_its_socket(tmp_path):
    path = tmp_path / "s"
    begun = []

    def methods():
        begun.append(time.monotonic())
        return METHODS

    async def story():
        path.write_text("left by somebody else")
        server = ActivatedServer(str(path), methods)
        await server.start()
        file = os.stat(path)
        assert begun == []
        assert [answer.name for answer in (await asked(path), await asked(path))] == [
            "a.example.com"
        ] * 2
        assert len(begun) == 1
        assert os.stat(path).st_ino == file.st_ino
        assert oct(file.st_mode & 0o777) == "0o600"
        await server.stop()
        assert os.listdir(tmp_path) == []

    asyncio.run(story())


@pytest.mark.parametrize(
    ("code", "text"),
    [("CANCELLED", "Canceled"), ("DEADLINE_EXCEEDED", "DeadlineExceeded"), ("OK", "OK")],
)
def test_codes_are_spelled_as_go_spells_them(code, text):
    assert status_text(code, "x") == f"rpc error: code = {text} desc = x"


def descriptors_of(directory):
    """Of this process."""
    own = Path("/proc/self/fd")
    links = [own / number for number in os.listdir(own)]
    return [str(link) for link in links if link.is_symlink() and link.readlink() == directory]


def test_a_socket_is_reached_by_a_path_that_is_longer_than_an_address(tmp_path):
    """As its own process names it, in a container, it is short: that of the machine is not."""
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)

    async def story():
        server = SocketServer(str(tmp_path / "s"), METHODS)
        await server.start()
        try:
            os.rename(tmp_path / "s", deep / "s")
            assert (await asked(deep / "s")).name == "a.example.com"
            assert descriptors_of(deep) == []
            with pytest.raises(GrpcFailure):
                await asked(deep / "gone" / "s")
        finally:
            await server.stop()

    asyncio.run(story())
