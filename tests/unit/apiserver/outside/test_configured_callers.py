"""apiserver/outside/configured_callers.py: whom a clientConfig means."""

import base64

import pytest

from sampan.apiserver.outside.configured_callers import ConfiguredCallers
from sampan.apiserver.outside.webhook_client import CallFailed, NotCallable
from tests.support import virtual_time


def resolve(namespace, name, port):
    if name == "gone":
        raise CallFailed('service "gone" not found')
    return ("10.0.0.1" if name == "four" else "fd00::1"), port + 8000


def target(config):
    return ConfiguredCallers(resolve)._target(config, "timeout=5s")


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("https://h:1//mutate", "/mutate"),  # as envtest writes it
        ("https://h:1", "/"),
        ("https://h:1/", "/"),
        ("https://h:1/a/", "/a"),
        ("https://h:1/a//b/../c/./d", "/a/c/d"),
        ("https://h:1/../../a", "/a"),
        ("https://h:1/a%20b/%C3%A9", "/a%20b/%C3%A9"),
    ],
)
def test_the_path_of_a_url_is_cleaned_as_client_go_does(given, path):
    assert target({"url": given}).url == f"https://h:1{path}?timeout=5s"


def test_a_service_is_found_at_an_endpoint_and_known_by_its_name():
    found = target({"service": {"namespace": "n", "name": "four", "path": "//hook/", "port": 1}})
    assert found.url == "https://10.0.0.1:8001/hook?timeout=5s"
    assert found.server_name == "four.n.svc"
    assert found.shown_url == "https://four.n.svc:1/hook?timeout=5s"
    assert target({"service": {"namespace": "n", "name": "six"}}).url.startswith(
        "https://[fd00::1]"
    )


def test_a_service_that_is_gone_is_told_with_the_url():
    with pytest.raises(CallFailed, match=r'Post "https://gone\.n\.svc:443/\?timeout=5s": service'):
        target({"service": {"namespace": "n", "name": "gone"}})


@pytest.mark.parametrize(
    ("bundle", "why"),
    [
        (b"no certificate", "unable to load root certificates: unable to parse bytes as PEM block"),
        (
            b"-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n",
            "unable to load root certificates: failed to parse certificate",
        ),
    ],
)
def test_nobody_is_called_by_a_bundle_without_certificates(bundle, why):
    config = {"url": "https://127.0.0.1:1/", "caBundle": base64.b64encode(bundle).decode()}

    async def call():
        await ConfiguredCallers(resolve).post(config, {}, 5)

    with pytest.raises(NotCallable, match=why):
        virtual_time.run(call())
