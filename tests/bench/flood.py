"""One user floods the API server over HTTPS; another asks for one object now and then.

Job: the other's latency without and with the flood, and how the flood was answered. The flood is
    bounded: CONNECTIONS on loopback, for as long as the other needs.
"""

import asyncio
import multiprocessing
import ssl
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import orjson

from sampan.client import kubeconfig
from sampan.core.http.client import HttpClient
from sampan.core.tasks import all_of
from sampan.core.tls import client_context
from tests.support.generators.api_requests import pod
from tests.support.parts.sampan_process import SampanProcess

CONNECTIONS = 100
PODS = "/api/v1/namespaces/default/pods"
GROUP = "rbac.authorization.k8s.io"
TOKENS = "flood-token,flooder,1\nquiet-token,quiet,2\n"


@dataclass(frozen=True, slots=True)
class Flooded:
    alone: list[float]  # seconds of each of the quiet user's requests
    flooded: list[float]
    answers: Counter  # of the flood, by status
    retry_after: set[str]  # what those that were refused were told

    @property
    def ratio(self) -> float:
        """Of nine requests in ten."""
        alone, flooded = (statistics.quantiles(of, n=10)[-1] for of in (self.alone, self.flooded))
        return flooded / alone


def run(*flags: str, pods: int = 1000, asked: int = 60) -> Flooded:
    """Against a `sampan up` of its own."""
    with tempfile.TemporaryDirectory(prefix="sampan-flood-") as root:
        tokens = Path(root) / "tokens.csv"
        tokens.write_text(TOKENS)
        server = SampanProcess(
            Path(root), "--runtime", "none", "--token-auth-file", str(tokens), *flags
        ).up()
        try:
            return asyncio.run(_flooded(server, pods, asked))
        finally:
            server.reset()


async def _flooded(server: SampanProcess, pods: int, asked: int) -> Flooded:
    to = kubeconfig.load(str(server.kubeconfig), {}, "").connection()
    admin = client_context(ca_data=to.ca, pair_data=(to.certificate, to.key))
    async with _client(admin) as http:
        await _furnish(http, to.server, pods)
    async with _client(client_context(ca_data=to.ca)) as quiet:
        alone = await _asked(quiet, to.server, asked)
        # A process of its own: what the flood reads is not to slow down who measures.
        here, there = multiprocessing.Pipe()
        flood = multiprocessing.get_context("spawn").Process(
            target=_flooder, args=(there, to.server, to.ca)
        )
        flood.start()
        try:
            await asyncio.to_thread(here.recv)  # under way
            flooded = await _asked(quiet, to.server, asked)
            here.send("enough")
            answers, told = await asyncio.to_thread(here.recv)
        finally:
            flood.join(30)
            flood.kill()
    return Flooded(alone, flooded, answers, told)


def _flooder(pipe: Connection, url: str, ca: str) -> None:
    async def main() -> None:
        ended, answers, told = asyncio.Event(), Counter(), set[str]()
        context = client_context(ca_data=ca)
        async with asyncio.TaskGroup() as group:
            for _ in range(CONNECTIONS):
                group.create_task(_flood(context, url, ended, answers, told))
            while answers.total() < CONNECTIONS:
                await asyncio.sleep(0.01)
            pipe.send("under way")
            await asyncio.to_thread(pipe.recv)
            ended.set()
        pipe.send((answers, told))

    asyncio.run(main())


@asynccontextmanager
async def _client(context: ssl.SSLContext) -> AsyncIterator[HttpClient]:
    http = HttpClient(ssl_context=context)
    try:
        yield http
    finally:
        await http.close()


async def _furnish(http: HttpClient, url: str, pods: int) -> None:
    async def made(path: str, body: dict) -> None:
        reply = await http.request(
            "POST", url + path, headers=[("content-type", "application/json")],
            body=orjson.dumps(body),
        )  # fmt: skip
        assert reply.status == 201, reply.body

    users = [{"apiGroup": GROUP, "kind": "User", "name": one} for one in ("flooder", "quiet")]
    role = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "view"}
    binding = {"metadata": {"name": "both"}, "roleRef": role, "subjects": users}
    await made(f"/apis/{GROUP}/v1/clusterrolebindings", binding)
    for start in range(0, pods, 50):
        await all_of(
            made(PODS, pod(f"p{number}", schedulerName="nobody"))
            for number in range(start, min(start + 50, pods))
        )


async def _asked(http: HttpClient, url: str, count: int) -> list[float]:
    seconds = []
    for _ in range(count):
        began = time.perf_counter()
        reply = await http.request(
            "GET", f"{url}{PODS}/p0", headers=[("authorization", "Bearer quiet-token")]
        )
        seconds.append(time.perf_counter() - began)
        assert reply.status == 200, reply.body
        await asyncio.sleep(0.01)
    return seconds


async def _flood(
    context: ssl.SSLContext, url: str, ended: asyncio.Event, answers: Counter, told: set[str]
) -> None:
    """Whole lists, one after the other, as fast as they come; what they say is not looked at."""
    headers = [("authorization", "Bearer flood-token")]
    async with _client(context) as http:
        while not ended.is_set():
            stream = await http.stream("GET", url + PODS, headers=headers)
            answers[stream.status] += 1
            told |= {stream.headers[one] for one in stream.headers if one == "retry-after"}
            async for _ in stream:
                pass


def main() -> None:
    for name, flags in (("without flow control", ("--enable-priority-and-fairness=false",)),
                        ("with flow control", ())):  # fmt: skip
        found = run(*flags)
        alone, flooded = (
            ", ".join(f"{1000 * one:.1f}" for one in (statistics.median(of),
                                                      statistics.quantiles(of, n=10)[-1], max(of)))
            for of in (found.alone, found.flooded)
        )  # fmt: skip
        print(
            f"flood of {CONNECTIONS} connections {name}: another user's GET takes (median, of 9 in "
            f"10, at most) {flooded} ms instead of {alone} ms: {found.ratio:.0f} times; "
            f"answers {dict(found.answers)}"
        )


if __name__ == "__main__":
    main()
