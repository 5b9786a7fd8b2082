"""`python -m tests.bench.access`: what the chain before the store costs, in one run.

Job: CPU time of GET and create through handle_http, as a plain user with RBAC, the default plugins
    and flow control, against AlwaysAllow without plugins and without flow control; and the time of
    one RBAC decision with 1 000 bindings; then a flood over HTTPS. Figures are for people: nothing
    is asserted.
"""

import argparse
import asyncio
import gc
import ssl
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

import orjson

from sampan.api.schema.published import Schema
from sampan.apiserver.admission.plugins import ROWS
from sampan.apiserver.admission.settings import AdmissionSettings
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.bootstrap.objects import rbac_objects
from sampan.apiserver.authz.chain import Attributes
from sampan.apiserver.authz.rbac import Rbac
from sampan.apiserver.settings import ApiServerSettings
from sampan.client import kubeconfig
from sampan.core.clock import SystemClock
from sampan.core.http.client import HttpClient
from sampan.core.http.messages import Request
from sampan.core.tls import client_context
from tests.bench import flood, load
from tests.bench.usage import cpu_seconds
from tests.support.generators.api_requests import Api, api_server, client_certificate, pod
from tests.support.parts.sampan_process import SampanProcess

DEFAULT_ON = tuple(row.name for row in ROWS if row.is_on)
PODS = "/api/v1/namespaces/default/pods"
# What the plugins would add: with it, both servers store the same.
COMPLETE = {
    "serviceAccountName": "default",
    "serviceAccount": "default",
    "priority": 0,
    "preemptionPolicy": "PreemptLowerPriority",
    "tolerations": [
        {
            "key": f"node.kubernetes.io/{taint}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
        for taint in ("not-ready", "unreachable")
    ],
}
BATCH = 100  # requests that one server answers before it is the other's turn
GROUP = "rbac.authorization.k8s.io"


def decision_micros(bindings: int, rounds: int) -> float:
    objects: dict[str, dict[tuple[str, str], dict]] = {}
    for resource, obj in rbac_objects():
        meta = obj["metadata"]
        objects.setdefault(resource.kind, {})[meta.get("namespace", ""), meta["name"]] = obj
    for number in range(bindings):
        namespace, name = f"ns{number % 50}", f"b{number}"
        objects["RoleBinding"][namespace, name] = {
            "kind": "RoleBinding",
            "metadata": {"name": name, "namespace": namespace},
            "roleRef": {"kind": "ClusterRole", "name": "edit"},
            "subjects": [{"kind": "User", "name": f"u{number % 100}"}],
        }
    rbac = Rbac(
        lambda resource, namespace, name: objects[resource.kind].get((namespace, name)),
        lambda resource: list(objects[resource.kind].values()),
    )
    user = User("u7", ("dev", "system:authenticated"))
    asked = [
        Attributes(user, "list", "", "pods", "", "ns7"),
        Attributes(user, "delete", "example.com", "boats", "", "ns7", "a"),
    ]
    for one in asked:
        rbac.authorize(one)
    began = time.process_time()
    for _ in range(rounds):
        for one in asked:
            rbac.authorize(one)
    return 1e6 * (time.process_time() - began) / (2 * rounds)


async def costs(
    schema: Schema, cases: dict[str, ApiServerSettings], count: int
) -> dict[str, list[float]]:
    """Per case: CPU seconds of a GET, of a create, and of a create of a pod that says all that
    plugins would, each for a plain user. The servers take turns batch by batch, so that the
    machine's moods are shared."""
    async with AsyncExitStack() as stack:
        servers = {name: await stack.enter_async_context(_server(schema, settings))
                   for name, settings in cases.items()}  # fmt: skip
        found: dict[str, list[float]] = {name: [] for name in cases}
        for requests in (_gets(count), _creates(count, "p", {}), _creates(count, "c", COMPLETE)):
            spent: dict[str, list[float]] = {name: [] for name in cases}
            for start in range(0, count, BATCH):
                batch = requests[start : start + BATCH]
                for name, server in servers.items():
                    spent[name].append(await _spent(server, batch))
            for name, batches in spent.items():
                found[name].append(statistics.median(batches) / BATCH)
    return found


@asynccontextmanager
async def _server(schema: Schema, settings: ApiServerSettings) -> AsyncIterator[Api]:
    async with api_server(schema, settings=settings, clock=SystemClock()) as api:
        binding = {
            "metadata": {"name": "b"},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"apiGroup": GROUP, "kind": "User", "name": "dev"}],
        }
        await api.made(f"/apis/{GROUP}/v1/namespaces/default/rolebindings", binding)
        await api.made(PODS, pod("web"))
        yield api


def _gets(count: int) -> list[Request]:
    certificate = client_certificate("dev", "team")
    return [Request("GET", f"{PODS}/web", "", {}, b"", peer_certificate=certificate)] * count


def _creates(count: int, prefix: str, spec: dict) -> list[Request]:
    certificate = client_certificate("dev", "team")
    bodies = (orjson.dumps(pod(f"{prefix}{number}", **spec)) for number in range(count))
    return [Request("POST", PODS, "", {}, one, peer_certificate=certificate) for one in bodies]


async def _spent(api: Api, requests: list[Request]) -> float:
    gc.collect()
    began = time.process_time()
    for one in requests:
        reply = await api.server.handle_http(one)
        assert reply.status in (200, 201), reply
    return time.process_time() - began


def over_https(count: int, rounds: int) -> dict[str, list[float]]:
    """Per case: CPU seconds of a create and of a GET in a `sampan up` of its own, over TLS, on
    SQLite, for a plain user; in turns."""
    bare = ("--authorization-mode", "AlwaysAllow", "--enable-priority-and-fairness=false",
            "--disable-admission-plugins", ",".join(DEFAULT_ON))  # fmt: skip
    with ExitStack() as stack:
        servers = {name: _process(stack, flags) for name, flags in (("bare", bare), ("full", ()))}
        found: dict[str, list[list[float]]] = {name: [] for name in servers}
        for number in range(rounds):
            for name, server in servers.items():
                found[name].append(asyncio.run(_https_round(server, count, number)))
    return {name: [statistics.median(one) for one in zip(*of, strict=True)]
            for name, of in found.items()}  # fmt: skip


def _process(stack: ExitStack, flags: tuple[str, ...]) -> SampanProcess:
    root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sampan-access-")))
    (root / "tokens.csv").write_text("plain-token,dev,1,team\n")
    server = SampanProcess(
        root, "--runtime", "none", "--token-auth-file", str(root / "tokens.csv"), *flags
    )
    stack.callback(server.reset)
    return server.up()


async def _https_round(server: SampanProcess, count: int, number: int) -> list[float]:
    to = kubeconfig.load(str(server.kubeconfig), {}, "").connection()
    target = load.Target.of(to.server, client_context(ca_data=to.ca))
    if number == 0:
        admin = client_context(ca_data=to.ca, pair_data=(to.certificate, to.key))
        await _bind(to.server, admin)
    spent = []
    gets = [_with_token(target, "GET", f"{PODS}/r0-0", b"")] * count
    creates = [
        _with_token(target, "POST", PODS, orjson.dumps(pod(f"r{number}-{one}",
                                                           schedulerName="nobody")))
        for one in range(count // 2)
    ]  # fmt: skip
    for requests in (creates, gets):
        began = cpu_seconds([server.pid])
        await load.rate(target, requests, 16)
        spent.append((cpu_seconds([server.pid]) - began) / len(requests))
    return spent


async def _bind(url: str, admin: ssl.SSLContext) -> None:
    http = HttpClient(ssl_context=admin)
    binding = {
        "metadata": {"name": "bench"},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": "dev"}],
    }
    reply = await http.request(
        "POST", f"{url}/apis/{GROUP}/v1/namespaces/default/rolebindings",
        headers=[("content-type", "application/json")], body=orjson.dumps(binding),
    )  # fmt: skip
    assert reply.status == 201, reply.body
    await http.close()


def _with_token(target: load.Target, method: str, path: str, body: bytes) -> bytes:
    plain = load.request_bytes(target, method, path, body)
    line, _, rest = plain.partition(b"\r\n")
    return line + b"\r\nauthorization: Bearer plain-token\r\n" + rest


def _print(what: str, less: float, more: float) -> None:
    print(
        f"{what}: {1e6 * less:.1f} µs of CPU without, {1e6 * more:.1f} µs with the chain: "
        f"a rate {100 * (1 - less / more):.1f} % lower"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="what the chain before the store costs")
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--in-process", action="store_true", help="without the load over HTTPS")
    given = parser.parse_args()
    bare = ApiServerSettings(
        authorization_modes=("AlwaysAllow",), request_seats=0,
        admission=AdmissionSettings(disabled=DEFAULT_ON),
    )  # fmt: skip
    cases = {"bare": bare, "full": ApiServerSettings()}
    found = asyncio.run(costs(Schema.load(), cases, given.count))
    for what, less, more in zip(
        ("GET", "create", "create, complete pods"), found["bare"], found["full"], strict=True
    ):
        _print(what, less, more)
    print(f"RBAC decision, 1 000 bindings: {decision_micros(1000, 20000):.1f} µs")
    if given.in_process:
        return
    https = over_https(2 * given.count // 4, 9)
    for what, less, more in zip(("create", "GET"), https["bare"], https["full"], strict=True):
        _print(f"{what} over HTTPS", less, more)
    flood.main()


if __name__ == "__main__":
    main()
