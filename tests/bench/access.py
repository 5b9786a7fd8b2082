"""`python -m tests.bench.access`: what the chain before the store costs, in one run.

Job: rates of GET and create through handle_http, as a plain user with RBAC, the default plugins and
    flow control, against AlwaysAllow without plugins and without flow control; and the time of one
    RBAC decision with 1 000 bindings. Figures are for people: nothing is asserted.
"""

import argparse
import asyncio
import gc
import statistics
import time

import orjson

from sampan.api.schema import Schema
from sampan.apiserver.admission.plugins import AdmissionSettings
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.bootstrap.objects import rbac_objects
from sampan.apiserver.authz.chain import Attributes
from sampan.apiserver.authz.rbac import Rbac
from sampan.apiserver.settings import ApiServerSettings
from sampan.core.clock import SystemClock
from sampan.core.http import Request
from sampan.testing.api_requests import api_server, client_certificate, pod

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
    began = time.perf_counter()
    for _ in range(rounds):
        for one in asked:
            rbac.authorize(one)
    return 1e6 * (time.perf_counter() - began) / (2 * rounds)


async def rates(
    schema: Schema, settings: ApiServerSettings, count: int
) -> tuple[float, float, float]:
    """(GET/s, create/s, create/s of pods that say all that plugins would), of a plain user."""
    async with api_server(schema, settings=settings, clock=SystemClock()) as api:
        binding = {
            "metadata": {"name": "b"},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"apiGroup": GROUP, "kind": "User", "name": "dev"}],
        }
        await api.made(f"/apis/{GROUP}/v1/namespaces/default/rolebindings", binding)
        await api.made(PODS, pod("web"))
        certificate = client_certificate("dev", "team")
        get = Request("GET", f"{PODS}/web", "", {}, b"", peer_certificate=certificate)
        gets = await _rate(api, [get] * count)
        plain = [pod(f"p{number}") for number in range(count // 4)]
        complete = [pod(f"c{number}", **COMPLETE) for number in range(count // 4)]
        creates = [
            await _rate(
                api,
                [
                    Request("POST", PODS, "", {}, orjson.dumps(one), peer_certificate=certificate)
                    for one in bodies
                ],
            )
            for bodies in (plain, complete)
        ]
    return gets, *creates


async def _rate(api, requests: list[Request]) -> float:
    gc.collect()
    began = time.perf_counter()
    for one in requests:
        reply = await api.server.handle_http(one)
        assert reply.status in (200, 201), reply
    return len(requests) / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description="what the chain before the store costs")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    schema = Schema.load()
    bare = ApiServerSettings(
        authorization_modes=("AlwaysAllow",), request_seats=0,
        admission=AdmissionSettings(disabled=DEFAULT_ON),
    )  # fmt: skip
    full = ApiServerSettings()
    found: dict[str, list[tuple[float, ...]]] = {"bare": [], "full": []}
    for _ in range(given.rounds):  # in turn, so that the machine's moods are shared
        for name, settings in (("bare", bare), ("full", full)):
            found[name].append(asyncio.run(rates(schema, settings, given.count)))
    for index, what in enumerate(("GET", "create", "create, complete pods")):
        least, most = (
            statistics.median(one[index] for one in found[name]) for name in ("bare", "full")
        )
        print(
            f"{what}: {least:,.0f}/s without, {most:,.0f}/s with the chain: "
            f"{100 * (least - most) / least:.1f} % less"
        )
    print(f"RBAC decision, 1 000 bindings: {decision_micros(1000, 20000):.1f} µs")


if __name__ == "__main__":
    main()
