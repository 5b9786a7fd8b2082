"""Proxy headers are believed beside a proxy's certificate only. [A1]"""

import asyncio

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from sampan.api.errors import Unauthorized
from sampan.apiserver.authn.chain import Authentication, Authenticators
from sampan.apiserver.authn.front_proxy import FrontProxy, Issued
from sampan.apiserver.authn.settings import FrontProxySettings
from sampan.core.clock import SystemClock
from sampan.core.http.messages import Request
from tests.support.parts.certificates import Authority

HEADERS = {
    "x-remote-user": "alice",
    "x-remote-group": "dev, ops",
    "x-remote-uid": "7",
    "x-remote-extra-acme.com%2Fscope": "a, b",
}
LINES = {"x-remote-group": ["dev", "ops"], "x-remote-extra-acme.com%2Fscope": ["a", "b"]}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    users, proxies = (Authority(tmp_path_factory.mktemp(one)) for one in ("users", "proxies"))

    def der(authority, name):
        pem = authority.issue(name).cert_path.read_bytes()
        certificate = x509.load_pem_x509_certificate(pem)
        return certificate.public_bytes(serialization.Encoding.DER)

    settings = FrontProxySettings(proxies.ca_path.read_bytes(), ("front",))
    chain = Authentication(
        Authenticators(
            front_proxy=FrontProxy(settings), is_client=Issued(users.ca_path.read_bytes())
        ),
        ("api",), lambda *_: None, SystemClock(),
    )  # fmt: skip

    def who(certificate, headers=HEADERS, lines=LINES):
        asked = Request("GET", "/api", "", headers, peer_certificate=certificate, repeated=lines)
        return asyncio.run(chain.user(asked))

    return who, {
        "front": der(proxies, "front"),
        "back": der(proxies, "back"),
        "bob": der(users, "bob"),
        "front of users": der(users, "front"),
    }


def test_a_proxy_speaks_for_others(world):
    who, certificates = world
    user = who(certificates["front"])
    assert (user.name, user.uid) == ("alice", "7")
    assert user.groups == ("dev", "ops", "system:authenticated")
    assert user.extra == {"acme.com/scope": ("a", "b")}


def test_a_comma_in_a_group_makes_no_second_one(world):
    """An attack on whoever lets users choose a group: `dev,system:masters` is one strange group."""
    who, certificates = world
    headers = {"x-remote-user": "eve", "x-remote-group": "dev,system:masters"}
    user = who(certificates["front"], headers, {})
    assert user.groups == ("dev,system:masters", "system:authenticated")


def test_forged_headers_are_not_believed(world):
    """An attack: a user sends the proxy's headers; a proxy's name signed by the users' CA."""
    who, certificates = world
    assert who(certificates["bob"]).name == "bob"
    assert who(certificates["front of users"]).name == "front"
    with pytest.raises(Unauthorized):
        who(None)


def test_a_proxy_of_another_name_and_one_that_names_nobody_are_nobody(world):
    who, certificates = world
    with pytest.raises(Unauthorized):
        who(certificates["back"])
    with pytest.raises(Unauthorized):
        who(certificates["front"], {})
