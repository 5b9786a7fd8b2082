"""The port of a component: health for everybody, figures for whom the API allows them."""

import asyncio
import socket
import ssl

import orjson
import pytest

from sampan.api import features
from sampan.api.errors import ServiceUnavailable
from sampan.api.features import Release
from sampan.client.delegated_access import MASTERS, DelegatedAccess
from sampan.cmd.cluster.component_server import ComponentServer, serving_context, zpages_of
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import ServingChoices
from sampan.core import tls
from sampan.core.clock import SystemClock
from sampan.core.http.client import HttpClient
from sampan.core.http.messages import Request
from sampan.core.metrics import Metrics
from tests.support.manual_clock import ManualClock
from tests.support.parts.certificates import Authority


class Api:
    def __init__(self, allowed=(), gone=False):
        self.allowed, self.gone = allowed, gone

    async def create(self, resource, obj, namespace=""):
        if self.gone:
            raise ServiceUnavailable("nobody there")
        spec = obj["spec"]
        if resource.kind == "TokenReview":
            return {"status": {"authenticated": True, "user": {"username": spec["token"]}}}
        return {"status": {"allowed": spec["user"] in self.allowed}}


def server(api, choices=None, trouble=""):
    metrics = Metrics()
    metrics.counter("scheduled_total", "How many.").add()
    checks = {"leaderElection": lambda: trouble}
    access = DelegatedAccess(api, SystemClock())
    return ComponentServer(choices or ServingChoices(), access, checks, metrics, SystemClock())


def asked(found, path, token="", method="GET"):
    headers = {"authorization": f"Bearer {token}"} if token else {}
    reply = asyncio.run(found.answer(Request(method, path, "", headers)))
    return reply.status, reply.body.decode()


def test_health_is_for_everybody_and_knows_the_lease():
    for path in ("/healthz", "/livez", "/readyz"):
        assert asked(server(Api()), path) == (200, "ok")
        status, text = asked(server(Api(), trouble="it ran out"), path)
        assert status == 500
        assert "[-]leaderElection failed" in text


def test_figures_are_for_whom_the_api_allows_them():
    found = server(Api(allowed=("scraper",)))
    status, text = asked(found, "/metrics", "scraper")
    assert status == 200
    assert "scheduled_total 1" in text
    status, text = asked(found, "/metrics")
    assert (status, orjson.loads(text)["message"]) == (
        403, 'forbidden: User "system:anonymous" cannot get path "/metrics"',
    )  # fmt: skip
    assert asked(found, "/metrics", "eve")[0] == 403
    assert asked(found, "/metrics/slis", "scraper")[0] == 200
    assert asked(found, "/else", "scraper")[0] == 404
    assert asked(found, "/metrics", "scraper", "POST")[0] == 405


@pytest.mark.kubernetes("1.37")
def test_what_it_is_and_with_which_flags_is_shown_where_the_gates_are_on():
    access = DelegatedAccess(Api(allowed=("eve",)), SystemClock())
    flags = {"config": "/a", "leader-elect": "true"}
    clock = ManualClock()

    def ask(path):
        found = ComponentServer(ServingChoices(), access, {}, Metrics(), clock)
        found.zpages = zpages_of("kube-scheduler", flags, clock)
        return asked(found, path, "eve")

    status, text = ask("/statusz")
    assert status == 200
    assert text.endswith("Paths: /flagz /healthz /livez /metrics /readyz\n")
    assert ask("/flagz")[1].endswith("config=/a\nleader-elect=true\n")
    with features.used(Release("1.35")):
        assert ask("/statusz")[0] == ask("/flagz")[0] == 404


def test_an_api_that_does_not_answer_lets_nobody_in():
    found = server(Api(gone=True))
    assert asked(found, "/metrics", "scraper")[0] == 500
    assert asked(found, "/healthz")[0] == 200


def test_paths_can_be_opened():
    found = server(Api(), ServingChoices(open_paths=("/metrics", "/livez/*")))
    assert asked(found, "/metrics")[0] == 200
    assert asked(found, "/livez/ping")[0] == 200
    assert asked(found, "/healthz")[0] == 403


def test_without_files_it_has_a_certificate_all_the_same():
    assert isinstance(serving_context(ServingChoices(), SystemClock()), ssl.SSLContext)
    with pytest.raises(CannotStart, match="belong together"):
        serving_context(ServingChoices(certificate="c"), SystemClock())
    with pytest.raises(CannotStart, match="health and metrics"):
        serving_context(ServingChoices(certificate="/none", key="/none"), SystemClock())


def test_a_port_that_is_taken_is_said():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        choices = ServingChoices(port=taken.getsockname()[1])
        with pytest.raises(CannotStart, match="is in use: choose another with --secure-port"):
            asyncio.run(server(Api(), choices).start())


def test_callers_may_show_certificates_once_the_cluster_says_who_signs_them(tmp_path):
    authority = Authority(tmp_path)
    asked = []

    class Cluster:
        async def get(self, resource, namespace, name):
            asked.append(f"{namespace}/{name}")
            if len(asked) == 1:
                raise ServiceUnavailable("not yet")
            return {"data": {"client-ca-file": authority.ca_path.read_text()}}

    async def story():
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        clock = ManualClock()
        access = DelegatedAccess(Api(), clock)
        found = ComponentServer(ServingChoices(port=port), access, {}, Metrics(), clock)
        await found.start()
        learning = asyncio.ensure_future(found.learn_client_ca(Cluster()))  # noqa: TID251
        await clock.advance(5)
        await learning
        pair = authority.issue("admin", MASTERS)
        trusting = tls.client_context(
            cert_path=pair.cert_path, key_path=pair.key_path, verify=False
        )
        client = HttpClient(ssl_context=trusting)
        answer = await client.request("GET", f"https://127.0.0.1:{port}/metrics")
        assert answer.status == 200
        await client.close()
        await found.stop()

    asyncio.run(story())
    assert asked == ["kube-system/extension-apiserver-authentication"] * 2
