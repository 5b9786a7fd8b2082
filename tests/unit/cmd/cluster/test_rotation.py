"""Certificates are renewed before they expire."""

import asyncio
import contextlib
import ssl
import time

import pytest
from cryptography import x509

from sampan.cmd.cluster import pki, rotation
from sampan.cmd.cluster.certificates.ensure import ensure
from sampan.core.tls import client_context, server_context

DAY = 86400.0


class Calendar:
    """A clock on which sleeping turns the page at once."""

    def __init__(self):
        self.seconds = 1_700_000_000.0

    def now(self):
        return self.seconds

    def monotonic(self):
        return self.seconds

    async def sleep(self, seconds):
        self.seconds += seconds


class Renewed(Exception):
    """The test has seen what it waited for."""


def serial(path):
    return x509.load_pem_x509_certificate(path.read_bytes()).serial_number


def test_a_certificate_is_replaced_in_time_and_the_context_shows_the_new_one(tmp_path):
    clock = Calendar()
    leaves = pki.leaves(["localhost"], "n1", ["n1"])
    ensure(tmp_path, leaves, clock)
    where = pki.Pki(tmp_path)
    path = where.certificate("apiserver")
    context = server_context(path, where.key("apiserver"), where.ca)
    served = [rotation.Served(context, "apiserver")]
    first = serial(path)
    clock.seconds += 200 * DAY
    assert not rotation.renew(tmp_path, leaves, served, clock)
    clock.seconds += 120 * DAY
    assert rotation.renew(tmp_path, leaves, served, clock)
    assert serial(path) != first
    assert oct(where.key("apiserver").stat().st_mode)[-3:] == "600"


def shown_to(server, client):
    """The certificate that the client shows, over a handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asked = server.wrap_bio(to_server, to_client, server_side=True)
    asking = client.wrap_bio(to_client, to_server, server_hostname="n1")
    for end in (asking, asked, asking, asked):
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    return x509.load_der_x509_certificate(asked.getpeercert(True)).serial_number


def test_what_is_shown_to_nodes_is_renewed_as_well(tmp_path):
    clock = Calendar()
    clock.seconds = time.time()  # noqa: TID251  # OpenSSL reads the machine's own clock
    leaves = pki.leaves(["localhost"], "n1", ["n1"])
    ensure(tmp_path, leaves, clock)
    where, file = pki.Pki(tmp_path), "apiserver-kubelet-client"
    server = server_context(
        where.certificate("kubelet"), where.key("kubelet"), where.ca, require_client_cert=True
    )
    client = client_context(
        ca_path=where.ca, cert_path=where.certificate(file), key_path=where.key(file)
    )
    assert shown_to(server, client) == serial(where.certificate(file))
    where.certificate(file).unlink()  # gone is as good as old
    assert rotation.renew(tmp_path, leaves, [rotation.Served(client, file)], clock)
    assert shown_to(server, client) == serial(where.certificate(file))


def test_it_looks_twice_a_day_for_as_long_as_the_cluster_runs(tmp_path):
    clock = Calendar()
    leaves = pki.leaves(["localhost"], "n1", ["n1"])[:1]
    ensure(tmp_path, leaves, clock)
    start = clock.now()

    def renewed():
        raise Renewed

    with pytest.raises(Renewed):
        asyncio.run(rotation.keep_fresh(tmp_path, leaves, list, renewed, clock))
    assert 304 * DAY <= clock.now() - start <= 306 * DAY


def test_a_certificate_that_somebody_else_writes_is_shown_as_well(tmp_path):
    """What is of no use is left; what is not there for a moment is waited for."""
    loaded = []

    class Context:
        def load_cert_chain(self, certificate, key):
            if b"bad" in certificate.read_bytes():
                raise ssl.SSLError("bad")
            loaded.append(certificate.read_bytes())

    pair = (tmp_path / "c", tmp_path / "k")
    turns = iter([b"one", b"two", b"bad", None, b"three", b"three"])

    class Turning(Calendar):
        async def sleep(self, seconds):
            await super().sleep(seconds)
            text = next(turns, Renewed)
            if text is Renewed:
                raise Renewed
            for path in pair:
                path.unlink(missing_ok=True)
                if text is not None:
                    path.write_bytes(text)

    for path in pair:
        path.write_bytes(b"one")
    with pytest.raises(Renewed):
        asyncio.run(rotation.keep_loaded(Context(), pair, Turning()))
    assert loaded == [b"two", b"three"]
