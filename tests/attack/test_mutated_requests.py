"""Thousands of requests with something wrong in them, from an account without rights.

Over a real connection to a whole server: each gets a refusal, nobody waits for it, and nothing of
it stays. REQUESTS= and SEED= of `make attack` choose how many and which.
"""

import asyncio
import gc
import http.client
import os
import random
import re
import threading
import time
from collections import Counter

import pytest

from sampan.core.clock import SystemClock
from sampan.core.http.messages import Limits
from sampan.core.http.server import Server
from tests.support.generators.api_requests import api_server, client_certificate
from tests.support.parts.loop_holds import loop_holds
from tests.support.seed import SEED, drawn
from tests.support.worlds.control_plane import published_schema

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

REQUESTS = int(os.environ.get("SAMPAN_REQUESTS", "1500"))
AT_ONCE, WAIT_SECONDS = 25, 0.2
MOST_HOLD_SECONDS, MOST_GROWN_BYTES = 0.1, 24 * 1024 * 1024
# What everybody may see who has a name: who they are, and what there is (system:basic-user,
# system:discovery, system:public-info-viewer).
PUBLIC = re.compile(
    rb'"kind": ?"(API|Self)\w+"|"(swagger|openapi|paths|major|gitVersion)"|^ok|livez|readyz'
)
ANSWER = re.compile(rb"HTTP/1\.1 (\d{3})([^\0]*?)(?=HTTP/1\.1 |\Z)")
NS = "/api/v1/namespaces/default"
PATHS = (
    f"{NS}/pods", f"{NS}/pods/web", f"{NS}/secrets", f"{NS}/secrets/a", f"{NS}/pods/web/exec",
    f"{NS}/pods/web:@127.0.0.1/proxy/x", f"{NS}/services/https:web:443/proxy/", f"{NS}/pods/a/log",
    f"{NS}/pods/web/eviction", f"{NS}/pods/web/binding", "/api/v1/nodes/n1/proxy/pods",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "/api/v1/namespaces",
    "/apis/apps/v1/namespaces/default/deployments/d/scale", f"{NS}/serviceaccounts/a/token",
    "/apis/certificates.k8s.io/v1/certificatesigningrequests/c/approval", "/metrics", "/logs/x",
    f"{NS}/pods?watch=true", f"{NS}/pods?labelSelector=a%20in%20(b,c)&limit=1&continue=x",
)  # fmt: skip
BODIES = (
    b"", b'{"metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"i"}]}}',
    b"a0: &a0 {k: v}\na1: {<<: [*a0, *a0, *a0]}\n", b"[" * 5000, b'{"a":' * 3000, b"k8s\x00\n\x0b",
    b'[{"op":"copy","from":"","path":"/a"}]', b'{"metadata":{"name":' + b"9" * 5000 + b"}}",
)  # fmt: skip
HEADERS = (
    "content-type: application/json", "content-type: application/yaml", "accept: */*;q=0.1",
    "content-type: application/apply-patch+yaml", "content-type: application/json-patch+json",
    "content-type: application/vnd.kubernetes.protobuf", "accept: application/json;as=Table;v=v1",
    "impersonate-user: admin", "impersonate-group: system:masters", "x-remote-user: admin",
    "x-remote-group: system:masters", "authorization: Bearer x.y.z", "audit-id: " + "a" * 500,
    "upgrade: websocket\r\nconnection: Upgrade", "expect: 100-continue", "te: trailers",
    "accept-encoding: gzip;q=0, br", "x-forwarded-for: 127.0.0.1", "transfer-encoding: chunked",
    "content-length: 7", "connection: close, content-length", "cookie: a=b",
)  # fmt: skip


def request(rng: random.Random) -> bytes:
    method = rng.choice(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"))
    body = rng.choice(BODIES)
    lines = [f"{method} {rng.choice(PATHS)} HTTP/1.1", "host: a", f"content-length: {len(body)}"]
    lines += rng.sample(HEADERS, rng.randint(0, 4))
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def mutated(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        at, size = rng.randrange(len(data) + 1), rng.randint(1, 12)
        match rng.randrange(5):
            case 0:
                data = data[:at] + rng.randbytes(size) + data[at + size :]
            case 1:
                data = data[:at] + data[at + size :]
            case 2:
                data = data[:at] + data[at : at + size] * rng.randint(2, 30) + data[at + size :]
            case 3:
                other = rng.choice((b"%2e%2e/", b"%00", b"\r\n", b"//", b"\t", b"..;/", b"%", b";"))
                data = data[:at] + other + data[at:]
            case 4:
                data = data[:at] + request(rng) + data[at:]
        data = data or b"\n"
    return data


async def answers(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    got, patience = b"", WAIT_SECONDS
    try:
        writer.write(data)
        while True:
            async with asyncio.timeout(patience):
                more = await reader.read(65536)
            if not more:
                return got
            got, patience = got + more, 0.02
    except (ConnectionError, TimeoutError):
        return got  # it waits for more than we have to say, or has said what it had to
    finally:
        writer.transport.abort()


def resident_bytes() -> int:
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def waits_of_another_client(port: int, over: threading.Event) -> list[float]:
    """From a thread of its own, one request after the other: how long each took, in seconds of this
    process's processor time, so that the load of others does not count."""
    waits: list[float] = []
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    while not over.wait(0.01):
        began = time.process_time()
        connection.request("GET", "/version")
        assert connection.getresponse().read()
        waits.append(time.process_time() - began)
    connection.close()
    return sorted(waits)


def test_nothing_but_refusals_and_nobody_waits():
    rng = drawn()
    certificate = client_certificate("eve", "nobodies")
    wrong: list[tuple[bytes, bytes]] = []
    seen: Counter[str] = Counter()
    waits: list[float] = []

    async def main():
        async with api_server(published_schema(), clock=SystemClock()) as api:
            await api.made(f"{NS}/secrets", {"metadata": {"name": "a"}, "data": {"k": "c2VjcmV0"}})

            async def as_eve(asked):
                asked.peer_certificate = certificate
                return await api.server.handle_http(asked)

            server = Server(as_eve, limits=Limits(header_seconds=2.0, body_seconds=2.0))
            port = await server.start("127.0.0.1", 0)

            async def one():
                data = mutated(rng, request(rng))
                got = await answers(port, data)
                for status, rest in ANSWER.findall(got):
                    seen[status.decode()] += 1
                    fine = status[:1] == b"4" or status in (b"100", b"505")
                    if not fine and not (status[:1] in b"23" and PUBLIC.search(rest)):
                        wrong.append((data, status + rest[:300]))
                assert b"c2VjcmV0" not in got

            async def batch(count):
                for start in range(0, count, AT_ONCE):
                    await asyncio.gather(  # noqa: TID251
                        *(one() for _ in range(min(AT_ONCE, count - start)))
                    )

            await batch(min(300, REQUESTS))
            before = resident_bytes()
            over = threading.Event()
            loop = asyncio.get_running_loop()
            other = loop.run_in_executor(None, waits_of_another_client, port, over)
            try:
                async with loop_holds() as holds:
                    await batch(REQUESTS)
            finally:
                over.set()
                waits.extend(await other)
            grown = resident_bytes() - before
            await server.stop(1.0)
            return holds.longest_seconds, grown

    held, grown = asyncio.run(main())
    print(f"seed {SEED}: {REQUESTS} requests, held {held * 1000:.0f} ms, grown {grown >> 10} KiB")
    print(dict(seen))
    # The attackers of this test share the processor, and the lock, with the server.
    middle, late, longest = (1000 * waits[int(share * len(waits))] for share in (0.5, 0.99, 0.9999))
    print(f"another client waited {middle:.0f} ms, 1 in 100 {late:.0f}, the longest {longest:.0f}")
    assert wrong == []
    assert seen["403"] > REQUESTS / 10  # many were understood, and refused
    assert held < MOST_HOLD_SECONDS
    assert late < 1000 * MOST_HOLD_SECONDS
    assert grown < MOST_GROWN_BYTES
