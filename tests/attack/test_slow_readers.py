"""Watchers and askers that do not read what they asked for: bounded in sum, and given back."""

import contextlib
import http.client
import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sampan.client import kubeconfig
from sampan.core import tls
from tests.support.parts.sampan_process import SampanProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
READERS, CHANGES, BYTES = 200, 60, 100_000
MAPS = "/api/v1/namespaces/default/configmaps"
# 64 MiB of answers that nobody reads, what TLS needs for each connection, and the window of changes
# that watches are served from.
MOST_GROWN_KIB = 208 * 1024
MOST_FOR_LISTS_KIB = 360 * 1024  # of 2 GB: some that are being made, before the first are cut off


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    process = SampanProcess(tmp_path_factory.mktemp("readers"), "--runtime", "none")
    process.up()
    yield process
    process.stop()
    process.reset()


class Client:
    def __init__(self, cluster):
        self._connection = kubeconfig.load(str(cluster.kubeconfig), {}, "").connection()
        self._where = urlsplit(self._connection.server)
        self._context = tls.client_context(
            ca_data=self._connection.ca, pair_data=self._connection.pair
        )

    def silent(self, path):
        """Has asked, and reads nothing."""
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.connect((self._where.hostname, self._where.port))
        made = self._context.wrap_socket(plain, server_hostname=self._where.hostname)
        made.sendall(f"GET {path} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
        return made

    def call(self, method, path, body=None):
        server = http.client.HTTPSConnection(
            self._where.hostname, self._where.port, context=self._context, timeout=120
        )
        with contextlib.closing(server):
            kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
            text = None if body is None else json.dumps(body)
            server.request(method, path, body=text, headers={"content-type": kind})
            answer = server.getresponse()
            said = answer.read()
            assert answer.status in (200, 201), said
            return json.loads(said)


def resident_kib(cluster):
    status = Path(f"/proc/{cluster.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


@pytest.mark.parametrize(
    "path",
    [
        f"{MAPS}?watch=true",
        f"{MAPS}?watch=true&fieldSelector=metadata.name%3Dlarge",
        f"{MAPS}?watch=true&labelSelector=%21none",
    ],
)
def test_watchers_that_do_not_read_take_little_together(cluster, path):
    client = Client(cluster)
    client.call("POST", MAPS, {"metadata": {"name": "large"}, "data": {"a": ""}})
    before = resident_kib(cluster)
    readers = [client.silent(path) for _ in range(READERS)]
    try:
        for number in range(CHANGES):
            text = f"{number:06}" + "x" * BYTES
            client.call("PATCH", f"{MAPS}/large", {"data": {"a": text}})
        grown = resident_kib(cluster) - before
        print(f"{grown >> 10} MiB while {READERS} do not read {CHANGES} changes")
        assert grown < MOST_GROWN_KIB
        assert client.call("GET", f"{MAPS}/large")["data"]["a"] == text, "others are served"
    finally:
        for each in readers:
            each.close()
        client.call("DELETE", f"{MAPS}/large")


def test_lists_that_nobody_reads_take_little_together(cluster):
    client = Client(cluster)
    for number in range(20):
        made = {"metadata": {"name": f"m{number}"}, "data": {"a": "x" * 500_000}}
        client.call("POST", MAPS, made)
    before = resident_kib(cluster)
    readers = [client.silent(MAPS) for _ in range(READERS)]
    try:
        for _ in range(5):
            client.call("GET", "/api/v1/namespaces/default")
        grown = resident_kib(cluster) - before
        print(f"{grown >> 10} MiB for {READERS} lists of 10 MB")
        assert grown < MOST_FOR_LISTS_KIB
    finally:
        for each in readers:
            each.close()
