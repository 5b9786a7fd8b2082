"""Looks at real servers on this machine's loopback [N13]."""

import asyncio
import socket
import ssl
from concurrent import futures

import grpc
import pytest

from sampan.kubelet.contracts.runtime import CommandTimedOut, ExecResult, RuntimeFailure
from sampan.kubelet.probes.check import NodeCheck
from sampan.kubelet.probes.finding import Probed, ProbeError
from sampan.kubelet.probes.http_check import why_no_connection
from sampan.kubelet.probes.tally import Kind, Probe

CONTAINER = {"name": "main", "ports": [{"name": "web", "containerPort": 1}]}
ABOUT = Probed({"metadata": {}}, CONTAINER, "id", "127.0.0.1")


class OneCommand:
    """As much of a runtime as an exec probe needs."""

    def __init__(self, answer):
        self._answer = answer

    async def exec_sync(self, container_id, command, timeout_seconds):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def look(action, runtime=None, timeout_seconds=60.0):
    probe = Probe(Kind.LIVENESS, action, timeout_seconds=timeout_seconds)
    return NodeCheck(runtime)(probe, ABOUT)


def test_a_command_is_expanded_with_what_the_spec_itself_says():
    """[N13] As charts write it: `pg_isready -U $(POSTGRES_USER)`."""
    asked = []

    class Runtime:
        async def exec_sync(self, container_id, command, timeout_seconds):
            asked.append(command)
            return ExecResult(0, b"", b"")

    secret = {"secretKeyRef": {"name": "s", "key": "k"}}
    env = [{"name": "WHO", "value": "me"}, {"name": "PASS", "valueFrom": secret}]
    about = Probed({"metadata": {}}, {**CONTAINER, "env": env}, "id", "127.0.0.1")
    words = ["is", "$(WHO)", "$(PASS)", "$(OTHER)", "$$(WHO)"]
    probe = Probe(Kind.LIVENESS, {"exec": {"command": words}}, timeout_seconds=1.0)
    asyncio.run(NodeCheck(Runtime())(probe, about))
    assert asked == [["is", "me", "", "$(OTHER)", "$(WHO)"]]


class Page:
    """A server that answers every request with the same bytes, and keeps what it was asked."""

    def __init__(self, *answers):
        self._answers, self.asked = list(answers), []

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *raised):
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head.decode())
        answer = self._answers[min(len(self.asked), len(self._answers)) - 1]
        if answer is None:
            await reader.read()  # until the client gives up
        else:
            writer.write(answer.replace("PORT", str(self.port)).encode())
            await writer.drain()
        writer.close()


OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
BAD = "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n"
THERE = "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:PORT/b\r\ncontent-length: 0\r\n\r\n"
AWAY = "HTTP/1.1 302 Found\r\nlocation: http://example.invalid/\r\ncontent-length: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("answers", "success", "output", "warning"),
    [
        ([OK], True, "ok", False),
        ([BAD], False, "HTTP probe failed with statuscode: 503", False),
        ([THERE, OK], True, "ok", False),
        ([AWAY], True, "Probe terminated redirects, Response body: ", True),
    ],
)
def test_http_is_judged_by_its_status_and_redirects_stay_on_the_host(
    answers, success, output, warning
):
    async def story():
        async with Page(*answers) as page:
            found = await look({"httpGet": {"port": page.port, "path": "a b"}})
            assert (found.success, found.output, found.warning) == (success, output, warning)
            assert page.asked[0].startswith("GET /a%20b HTTP/1.1\r\n")

    asyncio.run(story())


def test_http_headers_are_the_users_where_there_are_some():
    async def story():
        async with Page(OK) as page:
            given = [{"name": "Host", "value": "web.example"}, {"name": "Accept", "value": ""}]
            await look({"httpGet": {"port": page.port, "httpHeaders": given}})
            asked = page.asked[0].lower()
            assert "host: web.example" in asked
            assert "accept" not in asked
            assert "user-agent: kube-probe/1.35" in asked
            assert "connection: close" in asked

    asyncio.run(story())


def test_endless_redirects_end():
    async def story():
        async with Page(THERE) as page:
            found = await look({"httpGet": {"port": page.port}})
            assert not found.success
            assert "stopped after 10 redirects" in found.output

    asyncio.run(story())


def test_a_server_that_does_not_answer_fails_in_time():
    async def story():
        async with Page(None) as page:
            found = await look({"httpGet": {"port": page.port}}, timeout_seconds=0.05)
            assert not found.success
            assert "context deadline exceeded" in found.output

    asyncio.run(story())


def test_a_server_that_hangs_up_or_talks_nonsense_is_told_from_one_that_is_not_there():
    async def story():
        broken = "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
        for answer, why in (("", "EOF"), ("what?\r\n\r\n", f'{broken} "what?"')):
            async with Page(answer) as page:
                found = await look({"httpGet": {"port": page.port}})
                assert not found.success
                assert found.output.startswith(f'Get "http://127.0.0.1:{page.port}/": {why}')

    asyncio.run(story())


def test_connections_are_judged_by_being_made():
    async def story():
        async with Page(OK) as page:
            assert (await look({"tcpSocket": {"port": page.port}})).success
            port = page.port
        for action in ({"tcpSocket": {"port": port}}, {"httpGet": {"port": port}}):
            found = await look(action)
            assert not found.success
            expected = f"dial tcp 127.0.0.1:{port}: connect: connection refused"
            assert found.output.endswith(expected)

    asyncio.run(story())


def test_a_page_without_tls_and_a_host_that_nobody_knows_are_told():
    plain = ssl.SSLError(1, "x")
    plain.reason = "WRONG_VERSION_NUMBER"
    words = "http: server gave HTTP response to HTTPS client"
    assert why_no_connection("10.0.0.1", 443, plain) == words
    nobody = why_no_connection("none.invalid", 80, socket.gaierror(-2, "x"))
    assert nobody == "dial tcp: lookup none.invalid: no such host"


def test_a_port_that_has_no_such_name_is_an_error_and_no_failure():
    with pytest.raises(ProbeError, match=r'strconv\.Atoi: parsing "nope": invalid syntax'):
        asyncio.run(look({"tcpSocket": {"port": "nope"}}))


def test_commands_are_judged_by_their_exit_code():
    action = {"exec": {"command": ["cat", "/x"]}}
    good = asyncio.run(look(action, OneCommand(ExecResult(0, b"fine", b""))))
    assert (good.success, good.output) == (True, "fine")
    bad = asyncio.run(look(action, OneCommand(ExecResult(1, b"", b"no such file"))))
    assert (bad.success, bad.output) == (False, "no such file")
    late = asyncio.run(look(action, OneCommand(CommandTimedOut("late")), timeout_seconds=1.0))
    assert late.output == 'command timed out: "cat /x" timed out after 1s'
    with pytest.raises(ProbeError):
        asyncio.run(look(action, OneCommand(RuntimeFailure("gone"))))


@pytest.mark.slow
def test_grpc_is_judged_by_the_health_service():
    statuses = {b"": b"\x08\x01", b"\x0a\x03bad": b"\x08\x02"}

    class Health(grpc.GenericRpcHandler):
        def service(self, call):
            if call.method == "/grpc.health.v1.Health/Check":
                return grpc.unary_unary_rpc_method_handler(lambda asked, _: statuses[asked])
            return None

    with futures.ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)
        server.add_generic_rpc_handlers((Health(),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        good = asyncio.run(look({"grpc": {"port": port}}))
        assert (good.success, good.output) == (True, "service healthy")
        bad = asyncio.run(look({"grpc": {"port": port, "service": "bad"}}))
        assert (bad.success, bad.output) == (
            False,
            'service unhealthy (responded with "NOT_SERVING")',
        )
        server.stop(None).wait()
    nobody = asyncio.run(look({"grpc": {"port": port}}, timeout_seconds=0.2))
    assert not nobody.success
    assert "failed to connect service" in nobody.output
