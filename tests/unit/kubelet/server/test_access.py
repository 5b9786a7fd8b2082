"""Who may ask a node what [N19]."""

import asyncio

import pytest

from sampan.api.errors import ServiceUnavailable
from sampan.core.http.messages import Request
from sampan.kubelet.server.access import ServerAccess, Wish, wish_of
from tests.support.manual_clock import ManualClock


@pytest.mark.parametrize(
    ("method", "path", "verb", "subresources"),
    [
        ("GET", "/metrics", "get", ("metrics",)),
        ("GET", "/metrics/cadvisor", "get", ("metrics",)),
        ("GET", "/stats/summary", "get", ("stats",)),
        ("POST", "/checkpoint/ns/pod/c", "create", ("checkpoint",)),
        ("GET", "/pods", "get", ("pods", "proxy")),
        ("GET", "/runningpods/", "get", ("pods", "proxy")),
        ("HEAD", "/healthz/ping", "get", ("healthz", "proxy")),
        ("GET", "/configz", "get", ("configz", "proxy")),
        ("POST", "/exec/ns/pod/c", "create", ("proxy",)),
        ("GET", "/exec/ns/pod/c", "create", ("proxy",)),
        ("GET", "/attach/ns/pod/c", "create", ("proxy",)),
        ("GET", "/portForward/ns/pod", "create", ("proxy",)),
        ("GET", "//%65xec/ns/pod/c", "create", ("proxy",)),
        ("PUT", "/run/ns/pod/c", "create", ("proxy",)),
        ("GET", "/containerLogs/ns/pod/c", "get", ("proxy",)),
        ("GET", "/metricsx", "get", ("proxy",)),
        ("BREW", "/", "", ("proxy",)),
    ],
)
def test_a_path_is_a_subresource_of_the_node(method, path, verb, subresources):
    assert wish_of(method, path) == Wish(verb, subresources)


class Api:
    """Knows one token, and what its owner may."""

    def __init__(self, allowed=(), gone=False):
        self.asked, self._allowed, self.gone = [], allowed, gone

    async def create(self, resource, obj, namespace=""):
        if self.gone:
            raise ServiceUnavailable("nobody there")
        self.asked.append((resource.kind, obj["spec"]))
        if resource.kind == "TokenReview":
            user = {"username": "scraper", "groups": ["system:authenticated"], "uid": "7"}
            good = obj["spec"]["token"] == "good"
            return {"status": {"authenticated": True, "user": user} if good else {}}
        about = obj["spec"]["resourceAttributes"]
        assert (about["resource"], about["name"]) == ("nodes", "n1")
        return {"status": {"allowed": about["subresource"] in self._allowed}}


def asking(access, path="/metrics", token="good"):
    headers = {"authorization": f"Bearer {token}"} if token else {}
    refused = asyncio.run(access.refusal(Request("GET", path, "", headers)))
    return None if refused is None else (refused.status, refused.body)


def test_a_token_gets_what_the_api_allows_and_no_more():
    api = Api(allowed=("metrics",))
    access = ServerAccess("n1", api, ManualClock())
    assert asking(access) is None
    forbidden = b"Forbidden (user=scraper, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"
    assert asking(access, "/pods") == (403, forbidden)
    assert asking(access, token="bad") == (401, b"Unauthorized")
    assert asking(access, token="") == (401, b"Unauthorized")


def test_the_api_is_asked_again_only_after_minutes():
    api, clock = Api(allowed=("metrics",)), ManualClock()
    access = ServerAccess("n1", api, clock)
    for _ in range(3):
        assert asking(access) is None
    assert [kind for kind, _ in api.asked] == ["TokenReview", "SubjectAccessReview"]
    asyncio.run(clock.advance(121.0))
    assert asking(access) is None
    assert [kind for kind, _ in api.asked].count("TokenReview") == 2
    assert [kind for kind, _ in api.asked].count("SubjectAccessReview") == 1


def test_an_api_that_does_not_answer_lets_nobody_in():
    api = Api(gone=True)
    access = ServerAccess("n1", api, ManualClock())
    assert asking(access)[0] == 500
    api.gone = False
    asking(access)
    api.gone = True
    status, why = asking(access, "/stats/summary")
    assert (status, why.split()[0]) == (500, b"Authorization")
    assert asking(ServerAccess("n1", None, ManualClock())) == (401, b"Unauthorized")
