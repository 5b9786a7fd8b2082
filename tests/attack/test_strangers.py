"""Who has no credentials: pipelined requests, silent connections, handshakes; others go on."""

import contextlib
import os
import socket
import ssl
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sampan.client import kubeconfig
from tests.support.parts.another_client import another_client
from tests.support.parts.sampan_process import SampanProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
MOST_SECONDS = 0.05
STRANGERS = {
    "health": b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n",
    "a bad token":
        b"GET /api/v1/pods HTTP/1.1\r\nhost: a\r\nauthorization: Bearer a.b.c\r\n\r\n",
    "no token": b"GET /api/v1/pods HTTP/1.1\r\nhost: a\r\n\r\n",
    "the page": b"GET /ui/ HTTP/1.1\r\nhost: a\r\n\r\n",
    "discovery": b"GET /openapi/v2 HTTP/1.1\r\nhost: a\r\n\r\n",
    "an unknown path": b"GET /x/y/z?a=b HTTP/1.1\r\nhost: a\r\n\r\n",
    "a small body": b"POST /api/v1/pods HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}",
    "chunks":
        b"POST /api HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    process = SampanProcess(tmp_path_factory.mktemp("strangers"), "--runtime", "none")
    process.up()
    with another_client(process):  # what a start leaves for later is done then
        together(4, pipeline, process, STRANGERS["health"], 200)
    yield process
    process.stop()
    process.reset()


def address(cluster):
    where = urlsplit(kubeconfig.load(str(cluster.kubeconfig), {}, "").connection().server)
    return where.hostname, where.port


def context():
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


def connected(cluster):
    return context().wrap_socket(socket.create_connection(address(cluster), timeout=30))


def pipeline(cluster, request, count):
    """As many as a connection takes, read or not."""
    with contextlib.suppress(OSError), connected(cluster) as stranger:
        reader = threading.Thread(target=drain, args=(stranger,), daemon=True)
        reader.start()
        stranger.sendall(request * count)
        reader.join(20)


def drain(stranger):
    """Until nothing has come for a while."""
    stranger.settimeout(1.5)
    with contextlib.suppress(OSError, ValueError):
        while stranger.recv(1 << 16):
            pass


def together(count, do, *arguments):
    threads = [threading.Thread(target=do, args=arguments, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


@pytest.mark.parametrize("what", STRANGERS)
def test_pipelined_requests_of_strangers_hold_nobody(cluster, what):
    with another_client(cluster) as other:
        time.sleep(0.3)
        together(10, pipeline, cluster, STRANGERS[what], 2000)
    print(f"{what}: {other.delays}")
    assert other.delays.p999 < MOST_SECONDS


def test_requests_behind_a_body_that_never_ends_hold_nobody(cluster):
    """Every piece that is read begins inside of a body, and ends with requests."""
    request = STRANGERS["health"] * 2000
    told = b"POST /api HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n"
    with another_client(cluster) as other:
        time.sleep(0.2)
        together(8, pipeline, cluster, told + b"0123456789" + request, 3)
    print(other.delays)
    assert other.delays.p999 < MOST_SECONDS


def test_handshakes_by_the_hundred_hold_nobody(cluster):
    def shake(cluster):
        for _ in range(40):
            with contextlib.suppress(OSError), connected(cluster):
                pass

    with another_client(cluster) as other:
        time.sleep(0.2)
        together(12, shake, cluster)
    print(other.delays)
    assert other.delays.p999 < MOST_SECONDS


def resident_kib(cluster):
    status = Path(f"/proc/{cluster.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def test_connections_that_say_nothing_take_no_memory_and_end(cluster):
    before = resident_kib(cluster)
    for _ in range(3):
        silent = []
        for _ in range(1500):
            with contextlib.suppress(OSError):
                silent.append(socket.create_connection(address(cluster), timeout=5))
        with another_client(cluster) as other:  # who means it gets in among them
            time.sleep(0.3)
        assert other.delays.p999 < MOST_SECONDS
        assert descriptors(cluster) < 800, "of one address"
        for each in silent:
            each.close()
    grown = resident_kib(cluster) - before
    print(f"{grown} KiB after 4500 silent connections")
    assert grown < 32 * 1024


def descriptors(cluster):
    return len(os.listdir(f"/proc/{cluster.pid}/fd"))


def test_strangers_with_tls_are_few_and_leave_little(cluster):
    before = resident_kib(cluster)
    strangers = []
    for _ in range(900):
        with contextlib.suppress(OSError):
            strangers.append(connected(cluster))
    with another_client(cluster) as other:
        time.sleep(0.3)
    assert other.delays.p999 < MOST_SECONDS
    assert descriptors(cluster) < 800
    for each in strangers:
        each.close()
    assert resident_kib(cluster) - before < 160 * 1024


def test_plain_http_is_told_that_this_is_https(cluster):
    with socket.create_connection(address(cluster), timeout=10) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        assert b"Client sent an HTTP request to an HTTPS server." in plain.recv(1000)
