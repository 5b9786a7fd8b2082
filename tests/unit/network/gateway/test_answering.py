"""What a rule makes of a request."""

import random
from collections import Counter

from sampan.core.http.messages import Request, Response
from sampan.core.http.origin import Origin
from sampan.network.gateway.answering import answer_of
from sampan.network.gateway.rules import rules_of
from sampan.network.gateway.table import Found
from sampan.network.ingress.backends import Unavailable
from sampan.network.ingress.forwarding import ANSWER_SECONDS, Asked, Listener
from tests.support.parts import gateways as made

SERVED = {80: 80, 443: 443}


def answer(rule, path="/a/b", resolve=None, rng=None, **headers):
    (found,), refused = rules_of(made.http_route(rule))
    assert not refused
    request = Request("GET", path, "q=1", {"host": "a.com", **headers})
    asked = Asked(Listener("http", 80), "a.com", path, request)
    prefix = found.matches[0].path

    def everybody(backend):
        return [Origin("http", backend.reference.name, 80)]

    return request, answer_of(
        Found(found, "infra/r", prefix),
        asked,
        resolve or everybody,
        SERVED,
        rng or random.Random(1),
    )


def test_a_request_without_filters_goes_as_it_is():
    request, way = answer(made.rule("/a"))
    assert way.endpoints == [Origin("http", "web", 80)]
    assert way.there(request) == request
    assert way.back([("a", "1")]) == [("a", "1")]
    assert way.answer_seconds == ANSWER_SECONDS


def test_filters_of_the_rule_come_before_those_of_the_backend():
    def add(value):
        return {
            "type": "RequestHeaderModifier",
            "requestHeaderModifier": {"add": [{"name": "X", "value": value}]},
        }

    rewrite = {
        "type": "URLRewrite",
        "urlRewrite": {
            "hostname": "b.org",
            "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/z"},
        },
    }
    answered = {
        "type": "ResponseHeaderModifier",
        "responseHeaderModifier": {"set": [{"name": "Y", "value": "1"}]},
    }
    backend = made.backend(filters=[add("backend"), answered])
    given = made.rule("/a", backend, filters=[add("rule"), rewrite], timeouts={"request": "2s"})
    request, way = answer(given, x="client")
    changed = way.there(request)
    assert changed.headers == {"host": "b.org", "x": "client,rule,backend"}
    assert changed.path == "/z/b"
    assert changed.query == "q=1"
    assert way.back([]) == [("y", "1")]
    assert way.answer_seconds == 2


def test_a_redirect_is_answered_here():
    redirect = {"scheme": "https", "statusCode": 301,
                "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/z"}}  # fmt: skip
    given = made.rule("/a", filters=[{"type": "RequestRedirect", "requestRedirect": redirect}])
    _, reply = answer(given)
    assert isinstance(reply, Response)
    assert (reply.status, list(reply.headers)) == (301, [("location", "https://a.com/z/b?q=1")])


def test_backends_have_requests_by_their_weight():
    rng = random.Random(7)
    given = made.rule("/a", made.backend("x", weight=3), made.backend("y", weight=1),
                      made.backend("never", weight=0))  # fmt: skip
    asked = Counter(answer(given, rng=rng)[1].endpoints[0].host for _ in range(400))
    assert set(asked) == {"x", "y"}
    assert 270 <= asked["x"] <= 330


def test_without_a_backend_it_fails():
    nobody = {"matches": [{"path": {"type": "PathPrefix", "value": "/"}}]}
    assert answer(nobody)[1].status == 500
    assert answer(made.rule("/", made.backend(weight=0)))[1].status == 500
    found = answer(made.rule("/"), resolve=lambda _backend: Unavailable(503, "no endpoints"))[1]
    assert found.status == 503
