"""Admission plugins that are off unless they are asked for, through the whole server. [A3]"""

import asyncio

import orjson
import pytest

from sampan.api.errors import Forbidden
from sampan.api.resources import CLUSTER_TRUST_BUNDLES
from sampan.apiserver.admission.builtin.certificates import cluster_trust_bundle_attest
from sampan.apiserver.admission.chain import CREATE, UPDATE, Attributes
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.admission.settings import (
    AdmissionSettings,
    ImagePolicySettings,
    NodeSelectorSettings,
    TolerationSettings,
)
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.chain import Authorization, Decision
from sampan.apiserver.outside.webhook_client import Target
from sampan.apiserver.settings import ApiServerSettings
from sampan.core.clock import SystemClock
from sampan.core.http.messages import Response
from sampan.core.http.server import Server
from tests.support import virtual_time
from tests.support.generators.api_requests import MERGE, api_server, pod
from tests.support.worlds.control_plane import published_schema

PODS = "/api/v1/namespaces/default/pods"
NAMESPACE = "/api/v1/namespaces/default"
SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
TOLERATED = "scheduler.alpha.kubernetes.io/"
DEDICATED = {"key": "dedicated", "operator": "Equal", "value": "team", "effect": "NoSchedule"}


def run(test, *enabled, **more):
    async def main():
        chosen = ApiServerSettings(admission=AdmissionSettings(enabled=enabled, **more))
        async with api_server(published_schema(), settings=chosen) as api:
            await test(api)

    virtual_time.run(main())


async def annotate(api, **notes):
    patch = {"metadata": {"annotations": notes}}
    assert (await api.patch(NAMESPACE, patch, MERGE)).status == 200


def test_a_namespace_is_made_by_what_is_made_in_it():
    async def test(api):
        path = "/api/v1/namespaces/new/configmaps"
        assert (await api.post(path, {"metadata": {"name": "m"}})).status == 201
        assert (await api.get("/api/v1/namespaces/new")).status == 200

    run(test, "NamespaceAutoProvision")


def test_nothing_is_made_in_a_namespace_that_is_not_there():
    async def test(api):
        reply = await api.post("/api/v1/namespaces/no/configmaps", {"metadata": {"name": "m"}})
        assert (reply.status, reply.message) == (404, 'namespaces "no" not found')

    run(test, "NamespaceExists", disabled=("NamespaceLifecycle",))


def test_images_are_always_pulled():
    async def test(api):
        made = await api.made(PODS, pod("a"))
        assert made["spec"]["containers"][0]["imagePullPolicy"] == "Always"
        # An update that brings no new image is let through as it is.
        labels = {"metadata": {"labels": {"a": "b"}}}
        assert (await api.patch(f"{PODS}/a", labels, MERGE)).status == 200

    run(test, "AlwaysPullImages")


def test_services_get_no_external_addresses():
    async def test(api):
        path = f"{NAMESPACE}/services"
        spec = {"ports": [{"port": 80}], "externalIPs": ["192.0.2.1"]}
        refused = await api.post(path, {"metadata": {"name": "s"}, "spec": spec})
        assert refused.message.endswith("Use of external IPs is denied by admission control.")
        assert (
            await api.post(path, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
        ).status == 201

    run(test, "DenyServiceExternalIPs")


def test_hard_anti_affinity_stays_on_the_node():
    def apart(key):
        term = {"topologyKey": key, "labelSelector": {"matchLabels": {"a": "b"}}}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        return {"affinity": {"podAntiAffinity": required}}

    async def test(api):
        assert (await api.post(PODS, pod("a", **apart("kubernetes.io/hostname")))).status == 201
        refused = await api.post(PODS, pod("b", **apart("topology.kubernetes.io/zone")))
        assert "but only key kubernetes.io/hostname is allowed" in refused.message

    run(test, "LimitPodHardAntiAffinityTopology")


def test_who_asks_for_a_device_tolerates_its_nodes():
    async def test(api):
        body = pod("a")
        limits = {"example.com/gpu": "1"}
        body["spec"]["containers"][0]["resources"] = {"limits": limits, "requests": limits}
        tolerations = (await api.made(PODS, body))["spec"]["tolerations"]
        wanted = {"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
        assert wanted in tolerations

    run(test, "ExtendedResourceToleration")


def test_a_namespace_chooses_its_nodes():
    selectors = NodeSelectorSettings("pool=any", {"default": "pool=x,disk=ssd"})

    async def without_list(api):
        assert (await api.made(PODS, pod("a")))["spec"]["nodeSelector"] == {"pool": "any"}

    run(without_list, "PodNodeSelector", node_selectors=NodeSelectorSettings("pool=any"))

    async def with_list(api):
        await annotate(api, **{SELECTOR: "pool=x, disk=ssd"})
        made = await api.made(PODS, pod("b"))
        assert made["spec"]["nodeSelector"] == {"pool": "x", "disk": "ssd"}
        conflict = await api.post(PODS, pod("c", nodeSelector={"pool": "y"}))
        assert "conflicts with its namespace node label selector" in conflict.message
        outside = await api.post(PODS, pod("d", nodeSelector={"zone": "z"}))
        assert "labels conflict with its namespace whitelist" in outside.message

    run(with_list, "PodNodeSelector", node_selectors=selectors)


def test_a_namespace_chooses_what_its_pods_tolerate():
    async def test(api):
        made = await api.made(PODS, pod("a"))
        assert DEDICATED in made["spec"]["tolerations"]  # the cluster's default
        await annotate(api, **{
            f"{TOLERATED}defaultTolerations": "[]",
            f"{TOLERATED}tolerationsWhitelist": orjson.dumps(
                [DEDICATED, {"operator": "Exists", "effect": "NoExecute"}]
            ).decode(),
        })  # fmt: skip
        assert (await api.post(PODS, pod("b", tolerations=[DEDICATED]))).status == 201
        other = [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
        refused = await api.post(PODS, pod("c", tolerations=other))
        assert "conflict with its namespace whitelist" in refused.message

    settings = TolerationSettings(defaults=(DEDICATED,))
    run(test, "PodTolerationRestriction", tolerations=settings)


def test_what_is_limited_needs_a_quota_that_covers_it():
    limited = (
        {"resource": "pods", "matchContains": ["requests.cpu"]},
        {
            "resource": "pods",
            "matchScopes": [
                {"scopeName": "PriorityClass", "operator": "In", "values": ["vip"]},
            ],
        },
    )

    async def test(api):
        assert (await api.post(PODS, pod("a"))).status == 201
        body = pod("b")
        body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
        refused = await api.post(PODS, body)
        assert "insufficient quota to consume: requests.cpu" in refused.message
        quotas = f"{NAMESPACE}/resourcequotas"
        hard = {"spec": {"hard": {"requests.cpu": "2"}}}
        await api.made(quotas, {"metadata": {"name": "q"}, **hard})
        assert (await api.post(PODS, body)).status == 201
        classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
        await api.made(classes, {"metadata": {"name": "vip"}, "value": 5})
        vip = pod("c", priorityClassName="vip")
        vip["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1m"}}
        refused = await api.post(PODS, vip)
        shown = "insufficient quota to match these scopes: [{PriorityClass In [vip]}]"
        assert shown in refused.message
        scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["vip"]}
        spec = {"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [scope]}}
        await api.made(quotas, {"metadata": {"name": "vips"}, "spec": spec})
        assert (await api.post(PODS, vip)).status == 201

    run(test, limited_resources=limited)


@pytest.mark.parametrize("open_", [True, False])
def test_an_image_policy_backend_decides(open_):
    asked = []

    async def handle(request):
        review = orjson.loads(request.body)
        asked.append(review["spec"])
        if len(asked) > 2:
            return Response(500)
        images = [one["image"] for one in review["spec"]["containers"]]
        status = {"allowed": "bad" not in images[0], "reason": "it is bad"}
        return Response(200, [("content-type", "application/json")],
                        orjson.dumps({**review, "status": status}))  # fmt: skip

    async def main():
        backend = Server(handle)
        port = await backend.start("127.0.0.1", 0)
        target = Target(f"http://127.0.0.1:{port}/")
        policy = ImagePolicySettings(target, retry_seconds=0.001, allows_on_failure=open_)
        chosen = AdmissionSettings(enabled=("ImagePolicyWebhook",), image_policy=policy)
        settings = ApiServerSettings(admission=chosen)
        async with api_server(published_schema(), settings=settings, clock=SystemClock()) as api:
            body = pod("a")
            body["metadata"]["annotations"] = {"x.image-policy.k8s.io/ticket": "7", "y": "z"}
            assert (await api.post(PODS, body)).status == 201
            assert (await api.post(PODS, {**body, "metadata": {**body["metadata"], "name": "b"}})
                    ).status == 201  # fmt: skip
            assert len(asked) == 1  # remembered
            assert asked[0]["annotations"] == {"x.image-policy.k8s.io/ticket": "7"}
            assert asked[0]["namespace"] == "default"
            bad = pod("c")
            bad["spec"]["containers"][0]["image"] = "bad"
            refused = await api.post(PODS, bad)
            why = "image policy webhook backend denied one or more images: it is bad"
            assert refused.message == f'pods "c" is forbidden: {why}'
            bad["spec"]["containers"][0]["image"] = "another"
            assert (await api.post(PODS, bad)).status == (201 if open_ else 403)
        await backend.stop(0.1)

    asyncio.run(main())


def test_who_publishes_a_signers_roots_may_attest_for_it():
    """Domains; single signers are in tests/flow/test_recorded_certificate_kinds.py."""

    def only(asked):
        good = (asked.verb, asked.resource, asked.name) == ("attest", "signers", "a.com/*")
        return (Decision.ALLOW if good else Decision.NO_OPINION), ""

    def judged(signer, old=None):
        initializer = PluginInitializer(None, Authorization([only]), *[None] * 11)
        step = cluster_trust_bundle_attest.plugin(initializer).validate
        new = {"spec": {"signerName": signer}}
        operation = UPDATE if old else CREATE
        attributes = Attributes(
            User("eve"), operation, CLUSTER_TRUST_BUNDLES, "", "b", "", new, old, dry_run=False
        )
        waiting = step(attributes)
        return None if waiting is None else asyncio.run(_awaited(waiting))

    judged("a.com/x")
    judged("")
    judged("b.com/x", {"spec": {"signerName": "b.com/x"}})
    with pytest.raises(Forbidden, match="not permitted to attest for signerName"):
        judged("b.com/x")


async def _awaited(waiting):
    return await waiting


def test_pods_of_one_account_name_their_token_alike_unless_the_name_is_taken():
    """So that pods of one template are alike, in memory as well."""

    async def main():
        settings = ApiServerSettings(mount_service_account_tokens=True)
        async with api_server(published_schema(), settings=settings) as api:
            first, second = [(await api.made(PODS, pod(name)))["spec"] for name in "ab"]
            assert first["volumes"] == second["volumes"]
            name = first["volumes"][0]["name"]
            assert name.startswith("kube-api-access-")
            own = await api.made(PODS, pod("c", volumes=[{"name": name, "emptyDir": {}}]))
            names = [one["name"] for one in own["spec"]["volumes"]]
            assert len(set(names)) == 2

    virtual_time.run(main())
