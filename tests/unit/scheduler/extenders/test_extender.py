import asyncio
import random
from contextlib import asynccontextmanager
from dataclasses import replace

import orjson
import pytest

from sampan.cmd.cluster.schedulers import extender_of
from sampan.core.clock import SystemClock
from sampan.core.http.client import HttpClient
from sampan.core.http.messages import Request, Response
from sampan.core.http.server import Server, bound_socket
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.core.tls import server_context
from sampan.scheduler.decision.plugin_verdicts import ExtenderFailed
from sampan.scheduler.extenders.extender import Extender
from sampan.scheduler.loop import Scheduler
from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.requests import Usage
from sampan.scheduler.preemption.victims import Candidate
from sampan.scheduler.settings import ExtenderSettings, Tls
from tests.support.parts.certificates import Authority
from tests.support.worlds.small_api import SmallApi


class Program:
    """An extender of somebody's: answers by verb, and keeps what it was asked."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    async def handle(self, request: Request) -> Response:
        body = orjson.loads(request.body)
        verb = request.path.rpartition("/")[2]
        self.asked.append((verb, body))
        answer = self.answers[verb]
        if callable(answer):
            answer = answer(body)
        if isinstance(answer, float):
            await asyncio.sleep(answer)
            answer = {}
        if isinstance(answer, int):
            return Response(answer, (), b"")
        if isinstance(answer, bytes):
            return Response(200, (), answer)
        return Response(200, (), orjson.dumps(answer))


@asynccontextmanager
async def extender(program, **settings):
    listening = bound_socket("127.0.0.1", 0)
    port = listening.getsockname()[1]
    server = Server(program.handle)
    await server.start_on(listening)
    http = HttpClient()
    verbs = {f"{verb}_verb": verb for verb in program.answers}
    try:
        url = f"http://127.0.0.1:{port}/ext"
        given = {"timeout_seconds": 60.0, **verbs, **settings}
        yield Extender(ExtenderSettings(url, **given), http)
    finally:
        await http.close()
        await server.stop(0.1)


POD = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {}}
NODES = [{"metadata": {"name": name}} for name in "abc"]


def asked(program, question, **settings):
    async def story():
        async with extender(program, **settings) as one:
            return await question(one)

    return asyncio.run(story())


def test_filter_and_prioritize():
    """[S4]"""
    program = Program(
        filter={"nodes": {"items": NODES[:2]}, "failedAndUnresolvableNodes": {"c": "no licence"}},
        prioritize=[{"host": "a", "score": 10}, {"host": "b", "score": 3}],
    )
    answer = asked(program, lambda one: one.answer(POD, NODES), weight=2)
    assert answer.allowed == {"a", "b"}
    assert answer.failed == {"c": "no licence"}
    assert answer.unresolvable == {"c"}
    assert answer.points == {"a": 200, "b": 60}
    assert [verb for verb, _ in program.asked] == ["filter", "prioritize"]
    assert len(program.asked[1][1]["nodes"]["items"]) == 2


def test_one_that_keeps_the_nodes_itself_gets_names_only():
    program = Program(filter={"nodenames": ["b"]})
    answer = asked(program, lambda one: one.answer(POD, NODES), node_names_only=True)
    assert answer.allowed == {"b"}
    assert program.asked[0][1]["nodenames"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ({"filter": {"nodes": {"items": [{"metadata": {"name": "x"}}]}}}, "not asked about"),
        ({"filter": {"error": "out of order"}}, "out of order"),
        ({"filter": 500}, "answers 500"),
        ({"filter": b"<html>"}, "something else than JSON"),
        ({"filter": []}, "something else than an object"),
        ({"prioritize": {"a": 1}}, "with no list"),
        ({"prioritize": [{"host": "a", "score": 11}]}, "0 to 10"),
    ],
)
def test_one_that_lies_is_not_believed(answers, why):
    """[S4]"""
    with pytest.raises(ExtenderFailed, match=why):
        asked(Program(**answers), lambda one: one.answer(POD, NODES))


def test_one_that_hangs_is_not_waited_for():
    """[S4]"""
    hangs = Program(filter=600.0)
    with pytest.raises(ExtenderFailed, match=r"no answer within 0\.1 s"):
        asked(hangs, lambda one: one.answer(POD, NODES), timeout_seconds=0.1)


def test_preempt_may_spare_nodes_but_not_invent_victims():
    pods = tuple(AssignedPod(Usage((), 0, 0), uid=uid) for uid in "xy")
    those = [Candidate("a", pods, 0), Candidate("b", pods, 1)]
    good = {"nodeNameToMetaVictims": {"b": {"pods": [{"uid": "x"}], "numPDBViolations": 1}}}
    found = asked(Program(preempt=good), lambda one: one.preempted(POD, those))
    assert found == [("b", frozenset("x"), 1)]
    for bad in ({"c": {"pods": [{"uid": "x"}]}}, {"a": {"pods": [{"uid": "q"}]}}, {"a": None}):
        with pytest.raises(ExtenderFailed):
            asked(
                Program(preempt={"nodeNameToMetaVictims": bad}),
                lambda one: one.preempted(POD, those),
            )


def test_bind_is_done_by_it():
    program = Program(bind={})
    asked(program, lambda one: one.bind(POD, "a"))
    assert program.asked == [
        ("bind", {"podName": "p", "podNamespace": "default", "podUID": "u", "node": "a"})
    ]


def test_only_pods_with_a_managed_resource_are_of_interest():
    one = Extender(ExtenderSettings("http://x", managed=frozenset({"example.com/gpu"})), None)
    assert not one.is_interested(POD)
    requests = {"example.com/gpu": "1"}
    assert one.is_interested({"spec": {"containers": [{"resources": {"requests": requests}}]}})


def scheduled(program, **settings):
    async def story():
        api = SmallApi(SystemClock())
        for name in "abc":
            await api.node(name)
        async with extender(program, **settings) as one:
            scheduler = Scheduler(
                api, clock=SystemClock(), rng=random.Random(1), metrics=Metrics(), extenders=[one]
            )
            tasks = Tasks("test")
            tasks.start("scheduler", scheduler.run())
            await api.pod("p")
            try:
                async with asyncio.timeout(60):
                    while not api.bindings and api.pod_scheduled("p") is None:
                        await asyncio.sleep(0.01)
            finally:
                await tasks.stop()
        return api

    return asyncio.run(story())


@pytest.mark.slow
def test_a_scheduler_follows_its_extender():
    """[S4]"""
    program = Program(
        filter=lambda body: {"nodes": {"items": body["nodes"]["items"][:2]}},
        prioritize=lambda body: [{"host": "b", "score": 10}],
    )
    assert scheduled(program).bindings == [("p", "b")]


@pytest.mark.slow
def test_an_extender_that_fails_holds_up_its_pods_and_says_so_unless_it_is_ignorable():
    api = scheduled(Program(filter=500))
    assert api.bindings == []
    assert "answers 500" in api.pod_scheduled("p")["message"]
    assert api.pod_scheduled("p")["reason"] == "SchedulerError"
    assert len(scheduled(Program(filter=500), ignorable=True).bindings) == 1


@pytest.mark.slow
def test_an_extender_is_known_by_its_certificate(tmp_path):
    """[S4] tlsConfig: the wrong authority is not trusted; a client's certificate is shown."""
    authority, other = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    pair, mine = authority.issue("extender"), authority.issue("scheduler")
    program = Program(filter={"nodenames": ["a"]})

    async def asked_with(tls):
        context = server_context(
            pair.cert_path, pair.key_path, authority.ca_path, require_client_cert=True
        )
        listening = bound_socket("127.0.0.1", 0)
        port = listening.getsockname()[1]
        server = Server(program.handle, ssl_context=context)
        await server.start_on(listening)
        one = extender_of(
            ExtenderSettings(
                f"https://localhost:{port}", filter_verb="filter", node_names_only=True, tls=tls
            )
        )
        try:
            return await one.answer(POD, [{"metadata": {"name": "a"}}])
        finally:
            await one.close()
            await server.stop(0.1)

    certificate, key = mine.cert_path.read_bytes(), mine.key_path.read_bytes()
    good = Tls(ca=authority.ca_path.read_bytes(), certificate=certificate, key=key)
    assert asyncio.run(asked_with(good)).allowed == {"a"}
    for bad in (
        Tls(ca=other.ca_path.read_bytes(), certificate=certificate, key=key),
        Tls(ca=authority.ca_path.read_bytes()),
        Tls(ca=good.ca, certificate=certificate, key=key, server_name="somebody-else"),
    ):
        with pytest.raises(ExtenderFailed):
            asyncio.run(asked_with(bad))
    assert asyncio.run(asked_with(replace(good, ca=b"", insecure=True))).allowed == {"a"}
