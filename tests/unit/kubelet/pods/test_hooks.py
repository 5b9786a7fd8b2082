"""[N10] [N11]"""

import asyncio
import contextlib

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


class Said(list):
    def warning(self, pod, reason, message, *, container=""):
        self.append((reason, message))


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
        await Hooks(Answering(answer), clock, Said()).run(handler, SUBJECT, timeout)
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
    with pytest.raises(HookFailure, match=r'parsing "other": invalid syntax'):
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
        hooks = Hooks(Answering(0), SystemClock(), Said())
        here = Subject({"name": "main"}, "id", "127.0.0.1")
        await hooks.run({"httpGet": {"port": port}}, here, 5.0)
        server.close()
        await server.wait_closed()
        with pytest.raises(HookFailure) as failure:
            await hooks.run({"httpGet": {"port": port, "path": "/bye"}}, here, 5.0)
        assert str(failure.value) == (
            'HTTP lifecycle hook (/bye) for Container "main" in Pod "_()" failed - error: '
            f'Get "http://127.0.0.1:{port}/bye": dial tcp 127.0.0.1:{port}: connect: '
            "connection refused"
        )
        await hooks.close()

    asyncio.run(story())


def test_a_server_without_tls_is_asked_without_it_and_without_credentials():
    asked = []

    async def answer(reader, writer):
        head = await reader.read(4096)
        is_plain = head.startswith(b"GET")
        if is_plain:
            asked.append(head)
        writer.write(f"HTTP/1.1 {200 if is_plain else 400} x\r\ncontent-length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def story():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        said = Said()
        hooks = Hooks(Answering(0), SystemClock(), said)
        token = [{"name": "Authorization", "value": "Bearer x"}, {"name": "X-Y", "value": "z"}]
        action = {"port": port, "scheme": "HTTPS", "httpHeaders": token}
        here = Subject({"name": "main"}, "id", "127.0.0.1")
        await hooks.run({"httpGet": action}, here, 5.0)
        where = f"127.0.0.1:{port}"
        words = f"request to HTTPS lifecycle hook {where} got HTTP response"
        assert said == [("LifecycleHTTPFallback", f"{words}, retry with HTTP succeeded")]
        assert b"bearer" not in asked[0].lower()
        assert b"x-y: z" in asked[0].lower()
        server.close()
        await server.wait_closed()
        await hooks.close()

    asyncio.run(story())


def test_a_container_without_hooks_has_none():
    assert handler_of({"name": "main"}, "preStop") is None
