"""Listeners: what is served, and what is said of the others."""

import base64

import pytest

from sampan.network.gateway.listeners import listeners_of
from tests.support.parts import gateways as made
from tests.support.parts.certificates import Authority

SECRET_REF = {"name": "cert"}


def conditions(entry, **more):
    gateway = made.gateway(entry)
    (found,) = listeners_of(gateway, made.world(**more))
    told = {each.type: each.reason for each in found.verdicts}
    return found, told


@pytest.fixture(scope="module")
def secret(tmp_path_factory):
    pair = Authority(tmp_path_factory.mktemp("ca")).issue("a.com")
    data = {"tls.crt": pair.cert_path.read_bytes(), "tls.key": pair.key_path.read_bytes()}
    return {"data": {name: base64.b64encode(text).decode() for name, text in data.items()}}


def https(**tls):
    return made.listener("https", 443, "HTTPS", tls={"certificateRefs": [SECRET_REF], **tls})


def test_a_listener_of_http_is_served():
    found, told = conditions(made.listener(hostname="A.com"))
    assert found.is_served
    assert found.hostname == "a.com"
    assert told == {
        "Accepted": "Accepted",
        "Conflicted": "NoConflicts",
        "ResolvedRefs": "ResolvedRefs",
        "Programmed": "Programmed",
    }


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (made.listener(protocol="TCP"), "UnsupportedProtocol"),
        (made.listener(port=81), "PortUnavailable"),
        (made.listener(port=443), "PortUnavailable"),
        (https(mode="Passthrough"), "UnsupportedValue"),
        (https(frontendValidation={"caCertificateRefs": []}), "UnsupportedValue"),
        (https(options={"example.com/min-version": "1.3"}), "UnsupportedValue"),
    ],
)
def test_what_is_not_here_is_not_accepted(entry, reason):
    found, told = conditions(entry)
    assert told["Accepted"] == reason
    assert told["Programmed"] == "Invalid"
    assert not found.is_served


def test_certificates_of_clients_are_not_passed_over():
    gateway = made.gateway(https(), tls={"frontend": {"default": {"validation": {}}}})
    (found,) = listeners_of(gateway, made.world())
    assert found.verdicts[0].reason == "UnsupportedValue"


def test_a_certificate_comes_from_a_secret(secret):
    found, told = conditions(https(), secrets={"infra/cert": secret})
    assert found.is_served
    assert found.secrets == ("infra/cert",)
    assert told["ResolvedRefs"] == "ResolvedRefs"


@pytest.mark.parametrize(
    "reference",
    [{"name": "none"}, {"name": "broken"}, {"name": "cert", "kind": "ConfigMap"},
     {"name": "cert", "group": "x.io"}],
)  # fmt: skip
def test_a_certificate_that_cannot_be_had(reference, secret):
    entry = https(certificateRefs=[reference])
    secrets = {"infra/cert": secret, "infra/broken": {"data": {"tls.crt": "eA=="}}}
    found, told = conditions(entry, secrets=secrets)
    assert told["ResolvedRefs"] == "InvalidCertificateRef"
    assert told["Programmed"] == "Invalid"
    assert not found.is_served


def test_a_certificate_of_another_namespace_needs_a_grant(secret):
    entry = https(certificateRefs=[{"name": "cert", "namespace": "certs"}])
    secrets = {"certs/cert": secret}
    assert conditions(entry, secrets=secrets)[1]["ResolvedRefs"] == "RefNotPermitted"
    grant = {
        "metadata": {"name": "g", "namespace": "certs"},
        "spec": {
            "from": [{"group": made.GROUP, "kind": "Gateway", "namespace": "infra"}],
            "to": [{"group": "", "kind": "Secret"}],
        },
    }
    assert conditions(entry, secrets=secrets, grants=[grant])[0].is_served


def test_kinds_of_routes_that_are_not_served():
    only = made.listener(allowedRoutes={"kinds": [{"kind": "TLSRoute"}]})
    found, told = conditions(only)
    assert told["ResolvedRefs"] == "InvalidRouteKinds"
    assert not found.takes_routes
    both = made.listener(allowedRoutes={"kinds": [{"kind": "TLSRoute"}, {"kind": "HTTPRoute"}]})
    found, told = conditions(both)
    assert told["ResolvedRefs"] == "InvalidRouteKinds"
    assert found.takes_routes


def test_two_protocols_on_one_port_conflict():
    gateway = made.gateway(made.listener(), made.listener("other", 80, "HTTPS"))
    found = listeners_of(gateway, made.world())
    assert [each.verdicts[1].reason for each in found] == ["ProtocolConflict"] * 2
    assert not any(each.is_served for each in found)
