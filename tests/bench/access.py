"""`python -m tests.bench.access`: what the chain before the store costs, in one run.

Job: CPU time of GET and create through handle_http, as a plain user with RBAC, the default plugins
    and flow control, against AlwaysAllow without plugins and without flow control; and the time of
    one RBAC decision with 1 000 bindings; then a flood over HTTPS. Figures are for people: nothing
    is asserted.
"""

import argparse
import asyncio
import gc
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import orjson

from sampan.api.schema import Schema
from sampan.apiserver.admission.settings import AdmissionSettings
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.bootstrap.objects import rbac_objects
from sampan.apiserver.authz.chain import Attributes
from sampan.apiserver.authz.rbac import Rbac
from sampan.apiserver.settings import ApiServerSettings
from sampan.core.clock import SystemClock
from sampan.core.http import Request
from sampan.testing.api_requests import Api, api_server, client_certificate, pod
from tests.bench import flood

DEFAULT_ON = (
    "CertificateApproval", "CertificateSigning", "CertificateSubjectRestriction",
    "DefaultIngressClass", "DefaultStorageClass", "DefaultTolerationSeconds", "LimitRanger",
    "MutatingAdmissionWebhook", "NamespaceLifecycle", "NodeRestriction",
    "PersistentVolumeClaimResize", "PodSecurity", "PodTopologyLabels", "Priority",
    "ResourceQuota", "RuntimeClass", "ServiceAccount", "StorageObjectInUseProtection",
    "TaintNodesByCondition", "ValidatingAdmissionWebhook",
)  # fmt: skip
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


def main() -> None:
    parser = argparse.ArgumentParser(description="what the chain before the store costs")
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--no-flood", action="store_true", help="without the load over HTTPS")
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
        print(
            f"{what}: {1e6 * less:.1f} µs of CPU without, {1e6 * more:.1f} µs with the chain: "
            f"a rate {100 * (1 - less / more):.1f} % lower"
        )
    print(f"RBAC decision, 1 000 bindings: {decision_micros(1000, 20000):.1f} µs")
    if not given.no_flood:
        flood.main()


if __name__ == "__main__":
    main()
