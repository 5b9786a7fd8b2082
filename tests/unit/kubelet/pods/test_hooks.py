"""[N10] [N11]"""

import asyncio

import pytest

from sampan.core.clock import SystemClock
from sampan.kubelet.contracts.runtime import ExecResult, RuntimeFailure
from sampan.kubelet.pods.hooks import HookFailure, Hooks, Subject, handler_of, hook_url
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock


class Answering:
    def __init__(self, answer):
        self._answer = answer

    async def exec_sync(self, container_id, command, timeout_seconds):
        if isinstance(self._answer, Exception):
            raise self._answer
        return ExecResult(self._answer, b"", b"")


SUBJECT = Subject(
    {"name": "main", "ports": [{"name": "web", "containerPort": 80}]},
    "id",
    "10.1.1.1",
    {"metadata": {"name": "web", "namespace": "ns", "uid": "u"}},
)


def ran(handler, answer=0, timeout=30.0):
    """How long it took, in virtual seconds."""

    async def story():
        clock = LoopClock()
        await Hooks(Answering(answer), clock).run(handler, SUBJECT, timeout)
        return clock.monotonic()

    return virtual_time.run(story())


def test_a_command_that_succeeds_is_enough():
    ran({"exec": {"command": ["true"]}})


def test_a_command_that_fails_or_cannot_be_run_is_a_failure():
    for answer in (1, RuntimeFailure("gone")):
        with pytest.raises(HookFailure):
            ran({"exec": {"command": ["false"]}}, answer)


def test_a_failure_is_told_in_upstreams_words():
    with pytest.raises(HookFailure) as failure:
        ran({"exec": {"command": ["sh", "-c", "exit 9"]}}, 9)
    assert str(failure.value) == (
        'Exec lifecycle hook ([sh -c exit 9]) for Container "main" in Pod "web_ns(u)" failed - '
        "error: command 'sh -c exit 9' exited with 9: , message: \"\""
    )


def test_a_sleep_takes_its_time_but_not_more_than_there_is():
    assert ran({"sleep": {"seconds": 5}}) == 5
    assert ran({"sleep": {"seconds": 50}}) == 30


def test_what_cannot_be_run_is_a_failure_that_names_it():
    with pytest.raises(HookFailure, match="tcpSocket"):
        ran({"tcpSocket": {"port": 80}})


def test_a_request_goes_to_the_pod_by_port_number_or_name():
    assert hook_url({"port": 8080}, SUBJECT) == "http://10.1.1.1:8080/"
    named = {"port": "web", "path": "bye", "scheme": "HTTPS", "host": "fd00::1"}
    assert hook_url(named, SUBJECT) == "https://[fd00::1]:80/bye"
    with pytest.raises(HookFailure, match="no port other"):
        hook_url({"port": "other"}, SUBJECT)


def test_a_request_that_gets_any_answer_succeeds_and_one_without_fails():
    async def story():
        async def refuse(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        hooks = Hooks(Answering(0), SystemClock())
        here = Subject({"name": "main"}, "id", "127.0.0.1")
        await hooks.run({"httpGet": {"port": port}}, here, 5.0)
        server.close()
        await server.wait_closed()
        with pytest.raises(HookFailure):
            await hooks.run({"httpGet": {"port": port}}, here, 5.0)
        await hooks.close()

    asyncio.run(story())


def test_a_container_without_hooks_has_none():
    assert handler_of({"name": "main"}, "preStop") is None
