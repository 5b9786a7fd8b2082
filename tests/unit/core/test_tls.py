"""TLS contexts, tried with real handshakes on loopback."""

import asyncio
import ssl
from contextlib import suppress

import pytest

from sampan.core import tls
from sampan.core.http.client import HttpClient
from sampan.core.http.errors import HttpError
from sampan.core.http.messages import Request, Response
from sampan.core.http.server import Server
from tests.support.parts.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("other"), "other-ca")


def asked(server: ssl.SSLContext, client: ssl.SSLContext, host: str = "127.0.0.1") -> bytes:
    """The body that a server with the one context gives a client with the other."""

    async def handler(request: Request) -> Response:
        return Response(200, (), b"cert" if request.peer_certificate else b"no cert")

    async def story() -> bytes:
        running = Server(handler, ssl_context=server)
        port = await running.start("127.0.0.1", 0)
        http = HttpClient(ssl_context=client)
        try:
            return (await http.request("GET", f"https://{host}:{port}/")).body
        finally:
            await http.close()
            await running.stop(1.0)

    return asyncio.run(story())


def test_a_client_certificate_is_optional(authority):
    pair, alice = authority.issue("server"), authority.issue("alice")
    server = tls.server_context(pair.cert_path, pair.key_path, authority.ca_path)
    without = tls.client_context(ca_path=authority.ca_path)
    files = tls.client_context(
        ca_path=authority.ca_path, cert_path=alice.cert_path, key_path=alice.key_path
    )
    data = tls.client_context(
        ca_data=authority.ca_path.read_bytes(),
        pair_data=(alice.cert_path.read_bytes(), alice.key_path.read_bytes()),
    )
    assert asked(server, without) == b"no cert"
    assert asked(server, files) == b"cert"
    assert asked(server, data, "localhost") == b"cert"


def test_a_client_certificate_of_a_stranger_fails_the_handshake(authority, stranger):
    pair, mallory = authority.issue("server"), stranger.issue("mallory")
    server = tls.server_context(pair.cert_path, pair.key_path, authority.ca_path)
    client = tls.client_context(
        ca_path=authority.ca_path, cert_path=mallory.cert_path, key_path=mallory.key_path
    )
    with pytest.raises(HttpError):
        asked(server, client)


def test_a_required_client_certificate_is_required(authority):
    pair = authority.issue("server")
    server = tls.server_context(
        pair.cert_path, pair.key_path, authority.ca_path, require_client_cert=True
    )
    with pytest.raises(HttpError):
        asked(server, tls.client_context(ca_path=authority.ca_path))
    with pytest.raises(ValueError, match="no CA"):
        tls.server_context(pair.cert_path, pair.key_path, require_client_cert=True)


def test_a_server_of_a_stranger_is_refused_unless_told_otherwise(authority, stranger):
    pair = stranger.issue("server")
    server = tls.server_context(pair.cert_path, pair.key_path)
    with pytest.raises(HttpError, match="certificate verify failed"):
        asked(server, tls.client_context(ca_path=authority.ca_path))
    with pytest.raises(HttpError, match="certificate verify failed"):
        asked(server, tls.client_context())
    assert asked(server, tls.client_context(verify=False)) == b"no cert"


def test_only_http_1_1_is_offered_and_nothing_older_than_tls_1_2(authority):
    pair = authority.issue("server")
    server = tls.server_context(pair.cert_path, pair.key_path)
    assert server.minimum_version == ssl.TLSVersion.TLSv1_2

    async def story() -> str | None:
        async def handler(request: Request) -> Response:
            return Response(200)

        running = Server(handler, ssl_context=server)
        port = await running.start("127.0.0.1", 0)
        offering = ssl.create_default_context(cafile=str(authority.ca_path))
        offering.set_alpn_protocols(["h2", "http/1.1"])
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=offering)
        chosen = writer.get_extra_info("ssl_object").selected_alpn_protocol()
        writer.close()
        with suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()
        await running.stop(1.0)
        return chosen

    assert asyncio.run(story()) == "http/1.1"
