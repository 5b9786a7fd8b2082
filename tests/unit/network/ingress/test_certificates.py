import base64
import ssl

import pytest

from sampan.network.ingress.certificates import Certificates, context_of
from sampan.network.ingress.problems import problems_of
from sampan.network.ingress.routing import routing_table
from tests.support.parts.certificates import Authority


def secret(pair):
    return {
        "data": {
            name: base64.b64encode(path.read_bytes()).decode()
            for name, path in (("tls.crt", pair.cert_path), ("tls.key", pair.key_path))
        }
    }


def ingress(*hosts, name="cert"):
    return {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"tls": [{"hosts": list(hosts), "secretName": name}]},
    }


def shown(server, client_context, name):
    """The subject of the certificate that the server shows; a handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client_context.wrap_bio(to_client, to_server, server_hostname=name)
    far = server.wrap_bio(to_server, to_client, server_side=True)
    for side in (near, far, near, far):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    found = near.getpeercert(binary_form=True)
    assert found is not None
    return found


@pytest.fixture
def world(tmp_path):
    return Authority(tmp_path)


def der(pair):
    return ssl.PEM_cert_to_DER_cert(pair.cert_path.read_text())


def trusting_nobody():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def test_a_client_is_shown_the_certificate_of_the_name_it_asks_for(world):
    first, second, own = (world.issue(name, names=[name]) for name in ("a.com", "b.com", "own"))
    secrets = {"shop/cert": secret(first)}
    table = routing_table([ingress("a.com", "*.a.com")])
    made = []

    def default():
        made.append(1)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(own.cert_path, own.key_path)
        return context

    certificates = Certificates(lambda: table, secrets.get, default)
    server, client = certificates.context(), trusting_nobody()
    assert shown(server, client, "a.com") == der(first)
    assert shown(server, client, "x.a.com") == der(first)
    assert not made
    assert shown(server, client, "other.com") == shown(server, client, None) == der(own)
    secrets["shop/cert"] = secret(second)
    assert shown(server, client, "a.com") == der(second)
    secrets["shop/cert"] = {"data": {"tls.crt": "AAAA", "tls.key": "AAAA"}}
    assert shown(server, client, "a.com") == der(own)
    del secrets["shop/cert"]
    assert shown(server, client, "a.com") == der(own)
    assert made == [1]


def test_a_broken_secret_is_told_with_a_reason(world):
    good, other = world.issue("a.com"), world.issue("b.com")
    mixed = secret(good)
    mixed["data"]["tls.key"] = secret(other)["data"]["tls.key"]
    assert isinstance(context_of(secret(good)), ssl.SSLContext)
    for broken in (mixed, {}, {"data": {"tls.crt": "?", "tls.key": "?"}}):
        assert isinstance(context_of(broken), str)
        [(reason, _)] = problems_of(ingress("a.com"), lambda _: None, lambda _, it=broken: it)
        assert reason == "InvalidCertificate"
    [(reason, message)] = problems_of(ingress("a.com"), lambda _: None, lambda _: None)
    assert (reason, message) == (
        "SecretNotFound",
        'Secret "shop/cert" of type kubernetes.io/tls not found',
    )


def test_a_key_with_a_password_asks_nobody(world):
    from cryptography.hazmat.primitives import serialization

    pair = world.issue("a.com")
    key = serialization.load_pem_private_key(pair.key_path.read_bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    held = secret(pair)
    held["data"]["tls.key"] = base64.b64encode(locked).decode()
    assert isinstance(context_of(held), str)
