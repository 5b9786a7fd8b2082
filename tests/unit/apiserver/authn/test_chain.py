import asyncio

import pytest

from sampan.api.errors import Unauthorized
from sampan.apiserver.authn.chain import Authentication, Authenticators
from sampan.core.clock import SystemClock
from sampan.core.http.messages import Request
from tests.support.generators.api_requests import client_certificate


@pytest.fixture(scope="module")
def authentication():
    return Authentication(Authenticators(), ("api",), lambda *_: None, SystemClock())


def who(authentication, asked):
    return asyncio.run(authentication.user(asked))


def request(path="/api/v1/pods", headers=None, certificate=None):
    return Request("GET", path, "", headers or {}, peer_certificate=certificate)


def test_a_certificate_names_user_and_groups(authentication):
    user = who(authentication, request(certificate=client_certificate("bob", "dev")))
    assert user.name == "bob"
    assert user.groups == ("dev", "system:authenticated")


def test_nobody_may_look_at_health_and_nothing_else(authentication):
    assert who(authentication, request("/readyz")).name == "system:anonymous"
    with pytest.raises(Unauthorized):
        who(authentication, request())


@pytest.mark.parametrize("header", ["Bearer x.y.z", "Bearer ", "Basic abc", "x"])
def test_bad_credentials_never_become_anonymous(authentication, header):
    with pytest.raises(Unauthorized):
        who(authentication, request("/readyz", {"authorization": header}))


def test_a_certificate_without_a_name_is_no_user(authentication):
    with pytest.raises(Unauthorized):
        who(authentication, request(certificate=client_certificate("", "dev")))
