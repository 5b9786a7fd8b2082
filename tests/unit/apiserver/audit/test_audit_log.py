"""What the audit log says of the end of a request. [A10]"""

import asyncio

import orjson
import pytest

from sampan.apiserver.audit.audit_log import Audit, audit_reply
from sampan.apiserver.audit.policy import AuditPolicy
from sampan.apiserver.authn.user import User
from sampan.core.http.messages import Request, Response, Stream, Upgrade
from tests.support.manual_clock import ManualClock

REQUEST = Request("POST", "/api/v1/namespaces/a/pods/web/exec", "", {})


class Lines:
    def __init__(self):
        self.events = []

    def write(self, line):
        self.events.append(orjson.loads(line))

    async def close(self):
        pass


@pytest.fixture
def lines():
    return Lines()


@pytest.fixture
def entry(lines):
    rules = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
    audit = Audit(AuditPolicy(rules), [lines], ManualClock(), lambda: "an-id")
    return audit.begin(REQUEST, None, User("bob"))


def ends(lines):
    return [(one["stage"], one["responseStatus"]) for one in lines.events[1:]]


def test_an_answer_is_complete_at_once(entry, lines):
    audit_reply(entry, REQUEST, Response(201))
    assert ends(lines) == [("ResponseComplete", {"metadata": {}, "code": 201})]


def test_a_stream_is_complete_when_it_is_closed_however_often(entry, lines):
    async def main():
        async def chunks():
            yield b"a"

        reply = audit_reply(entry, REQUEST, Stream(200, (), chunks()))
        assert await anext(reply.chunks) == b"a"
        assert len(ends(lines)) == 1
        await reply.chunks.aclose()
        await reply.chunks.aclose()

    asyncio.run(main())
    assert [stage for stage, _ in ends(lines)] == ["ResponseStarted", "ResponseComplete"]


def test_an_upgraded_connection_is_complete_when_it_is_over(entry, lines):
    async def take_over(_):
        pass

    reply = audit_reply(entry, REQUEST, Upgrade((), take_over))
    assert ends(lines) == [("ResponseStarted", {"metadata": {}, "code": 101})]
    reply.ended()
    assert ends(lines)[1] == ("ResponseComplete", {"metadata": {}, "code": 101})


def test_a_caller_who_left_before_the_answer_is_noted_as_such(entry, lines):
    entry.closed_early()
    ((stage, status),) = ends(lines)
    assert stage == "ResponseComplete"
    assert status["message"] == "Connection closed early"
    assert status["code"] == 200


def test_a_bug_is_noted_as_a_panic(entry, lines):
    entry.panicked(AssertionError("oh"))
    ((stage, status),) = ends(lines)
    assert stage == "Panic"
    assert status["code"] == 500
    assert status["message"] == "APIServer panic'd: oh"
