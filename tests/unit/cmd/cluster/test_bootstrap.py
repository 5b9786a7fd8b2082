"""A node that asks for its certificate, and asks again in time."""

import asyncio
import base64
import datetime
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sampan.api.errors import AlreadyExists, Forbidden, ServiceUnavailable
from sampan.cmd.cluster import bootstrap
from sampan.cmd.errors import CannotStart
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock

DAY = 86400.0


class Signing:
    """A cluster that signs what it is asked for, for ten days."""

    def __init__(self, clock, denies=False, troubles=()):
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._clock, self._denies, self._troubles = clock, denies, list(troubles)
        self.requests = {}

    async def create(self, _resource, obj):
        if self._troubles:
            raise self._troubles.pop(0)
        name = obj["metadata"]["name"]
        if name in self.requests:
            raise AlreadyExists("it is there")
        self.requests[name] = obj

    async def get(self, _resource, _namespace, name):
        if self._denies:
            denied = {"type": "Denied", "message": "not this one"}
            return {"status": {"conditions": [denied]}}
        asked = x509.load_pem_x509_csr(base64.b64decode(self.requests[name]["spec"]["request"]))
        now = datetime.datetime.fromtimestamp(self._clock.now(), datetime.UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(asked.subject)
            .issuer_name(asked.subject)
            .public_key(asked.public_key())
            .serial_number(1)
            .not_valid_before(now)
            .not_valid_after(now + datetime.timedelta(days=10))
            .sign(self._key, hashes.SHA256())
        )
        pem = made.public_bytes(serialization.Encoding.PEM)
        return {"status": {"certificate": base64.b64encode(pem).decode()}}


def test_it_asks_once_and_again_before_the_end(tmp_path):
    async def test():
        clock = LoopClock()
        cluster = Signing(clock, troubles=[ServiceUnavailable("not yet")])
        assert bootstrap.due(tmp_path, "n", clock.now())
        await bootstrap.obtain(cluster, tmp_path, "n", clock)
        assert not bootstrap.due(tmp_path, "n", clock.now() + 7 * DAY)
        assert bootstrap.due(tmp_path, "n", clock.now() + 9 * DAY)
        assert bootstrap.due(tmp_path, "other", clock.now())
        (request,) = cluster.requests.values()
        assert request["spec"]["signerName"] == bootstrap.CLIENT.signer
        assert not (tmp_path / f"{bootstrap.CLIENT.next_file}.key").exists()

    virtual_time.run(test())


def test_a_node_that_runs_renews_its_certificate(tmp_path):
    async def test():
        clock = LoopClock()
        cluster = Signing(clock)
        await bootstrap.obtain(cluster, tmp_path, "n", clock)
        first = (tmp_path / f"{bootstrap.FILE}.crt").read_bytes()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        renewing = bootstrap.keep_fresh(cluster, context, tmp_path, "n", clock)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(renewing, 9 * DAY)
        assert (tmp_path / f"{bootstrap.FILE}.crt").read_bytes() != first
        assert len(cluster.requests) == 2

    virtual_time.run(test())


def test_a_refusal_is_told(tmp_path):
    async def test():
        clock = LoopClock()
        with pytest.raises(CannotStart, match="refused: not this one"):
            await bootstrap.obtain(Signing(clock, denies=True), tmp_path, "n", clock)
        unknown = Signing(clock, troubles=[Forbidden("who are you")])
        with pytest.raises(CannotStart, match="does not let this node ask"):
            await bootstrap.obtain(unknown, tmp_path, "n", clock)

    virtual_time.run(test())


def test_an_interrupted_node_asks_the_same_question(tmp_path):
    async def test():
        clock = LoopClock()
        with pytest.raises(CannotStart):
            await bootstrap.obtain(Signing(clock, denies=True), tmp_path, "n", clock)
        cluster = Signing(clock)
        names = []
        for _ in range(2):
            key = bootstrap._next_key(bootstrap.Pki(tmp_path), bootstrap.CLIENT)
            names.append(bootstrap.request_of(key, "n")["metadata"]["name"])
        assert names[0] == names[1]
        await bootstrap.obtain(cluster, tmp_path, "n", clock)
        assert list(cluster.requests) == [names[0]]

    virtual_time.run(test())
