"""What may pass, through the whole server. [A3]"""

import asyncio
import base64

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api import quantity
from sampan.apiserver.admission.plugins import UnknownPlugin
from sampan.apiserver.admission.settings import (
    AdmissionSettings,
    EventLimit,
    PodSecuritySettings,
    Standard,
)
from sampan.apiserver.settings import ApiServerSettings
from sampan.core.clock import SystemClock
from sampan.core.http.messages import Response
from sampan.core.http.server import Server
from sampan.core.tasks import all_of
from sampan.core.tls import server_context
from tests.support import virtual_time
from tests.support.generators.api_requests import MERGE, api_server, pod
from tests.support.parts.certificates import Authority
from tests.support.processor_time import spent
from tests.support.worlds.control_plane import published_schema

PODS = "/api/v1/namespaces/default/pods"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


def run(test, **admission):
    async def main():
        chosen = ApiServerSettings(admission=AdmissionSettings(**admission))
        async with api_server(published_schema(), settings=chosen) as api:
            await test(api)

    virtual_time.run(main())


def sized(name, cpu, **more):
    made = pod(name)
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}, **more}
    return made


async def quota(api, **hard):
    named = {key.replace("_", "."): value for key, value in hard.items()}
    await api.made(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": named}})


async def used(api):
    return (await api.get(f"{QUOTAS}/q")).obj["status"]["used"]


def test_a_quota_is_charged_and_refuses_what_goes_beyond():
    async def test(api):
        await quota(api, pods="2", requests_cpu="1")
        await api.made(PODS, sized("a", "600m"))
        assert await used(api) == {"pods": "1", "requests.cpu": "600m"}
        refused = await api.post(PODS, sized("b", "500m"))
        assert refused.status == 403
        assert refused.message == (
            'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=500m, '
            "used: requests.cpu=600m, limited: requests.cpu=1"
        )
        silent = await api.post(PODS, pod("c"))
        assert silent.message == (
            'pods "c" is forbidden: failed quota: q: must specify requests.cpu for: main'
        )
        assert (await api.post(f"{PODS}?dryRun=All", sized("d", "100m"))).status == 201
        assert (await used(api))["pods"] == "1"
        twice = await api.post(PODS, sized("a", "100m"))
        assert twice.status == 409
        assert await used(api) == {"pods": "1", "requests.cpu": "600m"}  # given back

    run(test)


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.lists(st.sampled_from([100, 200, 300, 700]), min_size=1, max_size=14),
    st.integers(1, 10),
    st.integers(200, 2000),
    st.lists(st.booleans(), min_size=14, max_size=14),
)
def test_a_quota_is_never_exceeded_however_many_create_at_once(sizes, most, cpu, doubled):
    """Some of them fail after they were charged (their name is taken): that is given back."""

    async def test(api):
        await quota(api, pods=str(most), requests_cpu=f"{cpu}m")
        names = [
            f"p{0 if twice else index}"
            for index, twice in zip(range(len(sizes)), doubled, strict=False)
        ]
        replies = await all_of(
            api.post(PODS, sized(name, f"{size}m")) for name, size in zip(names, sizes, strict=True)
        )
        assert {one.status for one in replies} <= {201, 403, 409}
        pods = (await api.get(PODS)).obj["items"]
        total = sum(
            quantity.parse(one["spec"]["containers"][0]["resources"]["requests"]["cpu"]).milli()
            for one in pods
        )
        assert len(pods) <= most
        assert total <= cpu
        # As the controller asks for it when a quota has changed: the server's own count.
        asked = {"status": {"used": {}}}
        await api.send(
            "PATCH", f"{QUOTAS}/q/status", asked, user="system:kube-controller-manager",
            headers={"content-type": MERGE},
        )  # fmt: skip
        status = await used(api)
        assert int(status["pods"]) == len(pods)
        assert quantity.parse(status["requests.cpu"]).milli() == total

    run(test)


def test_a_quota_counts_by_scope_class_and_kind():
    async def test(api):
        best = {"hard": {"pods": "1"}, "scopes": ["BestEffort"]}
        await api.made(QUOTAS, {"metadata": {"name": "q"}, "spec": best})
        counts = {"count/configmaps": "2", "services.nodeports": "1", "requests.storage": "5Gi"}
        await api.made(QUOTAS, {"metadata": {"name": "r"}, "spec": {"hard": counts}})
        await api.made(PODS, pod("a"))
        assert (await api.post(PODS, pod("b"))).status == 403
        await api.made(PODS, sized("c", "1"))
        maps = "/api/v1/namespaces/default/configmaps"
        await api.made(maps, {"metadata": {"name": "one"}})  # beside kube-root-ca.crt
        assert (await api.post(maps, {"metadata": {"name": "two"}})).status == 403
        spec = {"type": "NodePort", "ports": [{"port": 80}, {"port": 81, "name": "x"}]}
        spec["ports"][0]["name"] = "y"
        services = "/api/v1/namespaces/default/services"
        refused = await api.post(services, {"metadata": {"name": "s"}, "spec": spec})
        assert refused.status == 403, refused.body
        claim = {
            "metadata": {"name": "c"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "6Gi"}},
            },
        }
        assert (await api.post(CLAIMS, claim)).status == 403

    run(test)


def test_what_is_written_into_a_quotas_status_allows_nothing():
    """An attack: who may write the status says that nothing is used. It stands as it was written,
    until the controller counts, and is not believed."""

    async def test(api):
        await quota(api, pods="1")
        await api.made(PODS, pod("a"))
        lie = {"status": {"used": {"pods": "0"}, "hard": {"pods": "9"}}}
        answer = await api.patch(f"{QUOTAS}/q/status", lie, MERGE)
        assert answer.obj["status"] == lie["status"]
        assert await used(api) == {"pods": "0"}
        assert (await api.post(PODS, pod("b"))).status == 403

    run(test)


def test_limit_ranges_fill_in_and_bound():
    async def test(api):
        limit = {
            "type": "Container",
            "default": {"cpu": "500m"},
            "defaultRequest": {"cpu": "250m"},
            "max": {"cpu": "1"},
            "min": {"cpu": "100m"},
        }
        ranges = "/api/v1/namespaces/default/limitranges"
        await api.made(ranges, {"metadata": {"name": "l"}, "spec": {"limits": [limit]}})
        made = await api.made(PODS, pod("a"))
        assert made["spec"]["containers"][0]["resources"] == {
            "limits": {"cpu": "500m"},
            "requests": {"cpu": "250m"},
        }
        assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
            "LimitRanger plugin set: cpu request for container main; cpu limit for container main"
        )
        much = await api.post(PODS, sized("b", "2", limits={"cpu": "2"}))
        assert much.message == (
            'pods "b" is forbidden: maximum cpu usage per Container is 1, but limit is 2'
        )
        little = await api.post(PODS, sized("c", "50m", limits={"cpu": "60m"}))
        assert "minimum cpu usage per Container is 100m, but request is 50m" in little.message

    run(test)


async def labelled(api, name, **labels):
    meta = {
        "name": name,
        "labels": {
            f"pod-security.kubernetes.io/{key.replace('_', '-')}": value
            for key, value in labels.items()
        },
    }
    await api.made("/api/v1/namespaces", {"metadata": meta})
    return f"/api/v1/namespaces/{name}/pods"


GOOD = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def secured(name, context, **spec):
    made = pod(name, **spec)
    made["spec"]["containers"][0]["securityContext"] = context
    return made


@pytest.mark.parametrize(
    ("field", "code", "said"),
    [
        ("default", 500, "etcdserver: request is too large"),
        ("maxLimitRequestRatio", 403, "e.com/r499 max limit to request ratio per Container is 2"),
    ],
)
def test_thousands_of_containers_by_thousands_of_limits_are_no_more_than_could_be_stored(
    field, code, said
):
    async def story():
        async with api_server(published_schema()) as api:
            limit = {"type": "Container", field: {f"e.com/r{n}": "2" for n in range(4_000)}}
            made = {"metadata": {"name": "r"}, "spec": {"limits": [limit]}}
            await api.made("/api/v1/namespaces/default/limitranges", made)
            many = [{"name": f"c{n}", "image": "i"} for n in range(3_000)]
            wanted = {"metadata": {"name": "p"}, "spec": {"containers": many}}
            with spent() as one:
                got = await api.post("/api/v1/namespaces/default/pods", wanted)
            assert got.status == code
            assert said in got.obj["message"]
            assert len(got.body) < 100_000
            assert one.seconds < 3  # 12 000 000 of them take several times as long

    virtual_time.run(story())


def test_a_restricted_namespace_takes_restricted_pods_only():
    async def test(api):
        path = await labelled(api, "tight", enforce="restricted")
        refused = await api.post(path, pod("a"))
        assert refused.message == (
            'pods "a" is forbidden: violates PodSecurity "restricted:latest": '
            'allowPrivilegeEscalation != false (container "main" must set '
            "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities "
            '(container "main" must set securityContext.capabilities.drop=["ALL"]), '
            'runAsNonRoot != true (pod or container "main" must set '
            'securityContext.runAsNonRoot=true), seccompProfile (pod or container "main" must '
            'set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
        )
        assert (await api.post(path, secured("b", GOOD))).status == 201
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
        deployment = {
            "metadata": {"name": "d"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
        }
        made = await api.post("/apis/apps/v1/namespaces/tight/deployments", deployment)
        assert made.status == 201  # its pods would be refused, it is not

    run(test)


def test_warnings_are_shown_and_nothing_is_refused():
    async def test(api):
        path = await labelled(api, "soft", warn="baseline", warn_version="v1.30")
        made = await api.post(path, pod("a", hostNetwork=True))
        assert made.status == 201
        assert made.headers["warning"] == (
            '299 - "would violate PodSecurity \\"baseline:v1.30\\": host namespaces '
            '(hostNetwork=true)"'
        )

    run(test)


def test_a_namespace_that_gets_stricter_says_which_pods_would_not_pass():
    async def test(api):
        path = await labelled(api, "old")
        await api.made(path, pod("loose", hostNetwork=True))
        patch = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}
        reply = await api.patch("/api/v1/namespaces/old", patch, MERGE)
        assert reply.status == 200
        assert "loose: host namespaces" in reply.headers["warning"]
        bad = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "strict"}}}
        assert (await api.patch("/api/v1/namespaces/old", bad, MERGE)).status == 422

    run(test)


def test_defaults_and_exemptions_come_from_the_settings():
    chosen = PodSecuritySettings(
        {"enforce": Standard("baseline")}, exempt_namespaces=frozenset({"kube-system"})
    )

    async def test(api):
        assert (await api.post(PODS, pod("a", hostPID=True))).status == 403
        system = "/api/v1/namespaces/kube-system/pods"
        assert (await api.post(system, pod("a", hostPID=True))).status == 201

    run(test, pod_security=chosen)


def test_storage_gets_its_default_class_and_its_protection():
    async def test(api):
        classes = "/apis/storage.k8s.io/v1/storageclasses"
        note = {"storageclass.kubernetes.io/is-default-class": "true"}
        await api.made(
            classes, {"metadata": {"name": "fast", "annotations": note}, "provisioner": "x/y"}
        )
        claim = {
            "metadata": {"name": "c"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        made = await api.made(CLAIMS, claim)
        assert made["spec"]["storageClassName"] == "fast"
        assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
        grown = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
        reply = await api.patch(f"{CLAIMS}/c", grown, MERGE)
        assert reply.status in (403, 422)

    run(test)


def test_a_runtime_class_brings_its_overhead():
    async def test(api):
        row = {
            "metadata": {"name": "vm"},
            "handler": "kata",
            "overhead": {"podFixed": {"cpu": "100m"}},
            "scheduling": {"nodeSelector": {"kind": "vm"}},
        }
        await api.made("/apis/node.k8s.io/v1/runtimeclasses", row)
        made = await api.made(PODS, pod("a", runtimeClassName="vm"))
        assert made["spec"]["overhead"] == {"cpu": "100m"}
        assert made["spec"]["nodeSelector"] == {"kind": "vm"}
        assert (await api.post(PODS, pod("b", runtimeClassName="gone"))).status == 403
        wrong = pod("c", runtimeClassName="vm", overhead={"cpu": "1"})
        assert (await api.post(PODS, wrong)).status == 403

    run(test)


def test_a_node_writes_only_what_is_its_own():
    """An attack: a kubelet labels itself, another node, or another node's pods."""

    async def test(api):
        async def n1(method, path, body=None, kind=""):
            headers = {"content-type": kind} if kind else {}
            return await api.send(
                method, path, body, user="system:node:n1", group="system:nodes", headers=headers
            )

        nodes = "/api/v1/nodes"
        assert (await n1("POST", nodes, {"metadata": {"name": "n1"}})).status == 201
        assert (await n1("POST", nodes, {"metadata": {"name": "n2"}})).status == 403
        await api.made(nodes, {"metadata": {"name": "n2"}})
        for name, label, status in (
            ("n1", "example.com/rack", 200),
            ("n1", "topology.kubernetes.io/zone", 200),
            ("n1", "node-restriction.kubernetes.io/trusted", 403),
            ("n1", "node-role.kubernetes.io/control-plane", 403),
            ("n2", "example.com/rack", 403),
        ):
            patch = {"metadata": {"labels": {label: "x"}}}
            reply = await n1("PATCH", f"{nodes}/{name}", patch, MERGE)
            assert reply.status == status, (label, reply.message)
        taint = {"spec": {"taints": []}}
        assert (await n1("PATCH", f"{nodes}/n1", taint, MERGE)).status == 403
        wanted = [{"name": "a", "resourceClaimName": "b"}]
        await api.made(PODS, pod("mine", nodeName="n1", resourceClaims=wanted))
        await api.made(PODS, pod("theirs", nodeName="n2"))
        status = {"status": {"phase": "Running"}}
        assert (await n1("PATCH", f"{PODS}/mine/status", status, MERGE)).status == 200
        assert (await n1("PATCH", f"{PODS}/theirs/status", status, MERGE)).status == 403
        assert (await n1("DELETE", f"{PODS}/theirs")).status == 403
        assert (await n1("POST", PODS, pod("new", nodeName="n1"))).status == 403
        note = {"kubernetes.io/config.mirror": "x"}
        mirror = pod("static", nodeName="n1")
        mirror["metadata"]["annotations"] = note
        assert (await n1("POST", PODS, mirror)).status == 201
        thief = pod("thief", nodeName="n1", volumes=[{"name": "s", "secret": {"secretName": "x"}}])
        thief["metadata"]["annotations"] = note
        assert (await n1("POST", PODS, thief)).status == 403
        claims = {"status": {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "b"}]}}
        refused = await n1("PATCH", f"{PODS}/mine/status", claims, MERGE)
        assert refused.status == 403
        assert "cannot update resource claim statuses" in refused.message

    run(test)


@pytest.mark.parametrize(
    "spec",
    [
        {"imagePullSecrets": [{"name": "x"}]},
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]},
        {"volumes": [{"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "x"}}}]},
        {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "x"}}]}}]},
        {"volumes": [{"name": "v", "configMap": {"name": "x"}}]},
        {"resourceClaims": [{"name": "c", "resourceClaimName": "x"}]},
        {"containers": [{"name": "a", "image": "i", "envFrom": [{"secretRef": {"name": "x"}}]}]},
        {"containers": [{"name": "a", "image": "i", "env": [
            {"name": "E", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "k"}}}]}]},
        {"serviceAccountName": "default"},
    ],
)  # fmt: skip
def test_a_mirror_pod_reaches_for_nothing(spec):
    """An attack: a node makes the pod that opens the door itself."""

    async def test(api):
        mirror = pod("static", nodeName="n1", **spec)
        mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
        got = await api.send("POST", PODS, mirror, user="system:node:n1", group="system:nodes")
        assert got.status == 403
        assert "reference" in got.message

    run(test)


def test_plugins_are_switched_on_and_off_by_name():
    async def test(api):
        made = await api.made(PODS, pod("a"))
        assert made["spec"]["containers"][0]["imagePullPolicy"] == "Always"
        assert "priority" not in made["spec"]
        unknown = pod("b", priorityClassName="nothing")
        assert (await api.post(PODS, unknown)).status == 201

    run(test, enabled=("AlwaysPullImages",), disabled=("Priority",))
    with pytest.raises(UnknownPlugin, match='admission plugin "Nothing" is unknown'):
        run(test, enabled=("Nothing",))


def test_events_are_limited_where_that_is_asked_for():
    async def test(api):
        path = "/api/v1/namespaces/default/events"
        about = {"kind": "Pod", "namespace": "default", "name": "p"}
        codes = [
            (await api.post(path, {"metadata": {"name": f"e{n}"}, "involvedObject": about})).status
            for n in range(4)
        ]
        assert codes == [201, 201, 429, 429]

    run(test, enabled=("EventRateLimit",), event_limits=(EventLimit("Namespace", 0.1, 2),))


def test_an_owner_reference_needs_the_right_to_delete():
    async def test(api):
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "1"}
        made = {"metadata": {"name": "m", "ownerReferences": [owner]}}
        rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
        rule = {"verbs": ["create"], "apiGroups": [""], "resources": ["configmaps"]}
        await api.made(f"{rbac}/roles", {"metadata": {"name": "r"}, "rules": [rule]})
        binding = {
            "metadata": {"name": "r"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "Role",
                "name": "r",
            },
            "subjects": [{"kind": "User", "name": "bob"}],
        }
        await api.made(f"{rbac}/rolebindings", binding)
        path = "/api/v1/namespaces/default/configmaps"
        refused = await api.send("POST", path, made, user="bob", group="")
        assert "cannot set an ownerRef on a resource you can't delete" in refused.message
        assert (await api.post(path, made)).status == 201

    run(test, enabled=("OwnerReferencesPermissionEnforcement",))


# Webhooks: real servers on loopback.


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


def hooked(authority, answer, test):
    """`answer(review, path)` → the response without its uid, or a Response, or None: no answer."""
    asked = []

    async def main():
        stuck = asyncio.Event()

        async def handle(request):
            review = orjson.loads(request.body)
            asked.append(review["request"])
            response = answer(review["request"], request.path)
            if response is None:
                await stuck.wait()
            if isinstance(response, Response):
                return response
            response["uid"] = review["request"]["uid"]
            body = orjson.dumps({**review, "request": None, "response": response})
            return Response(200, [("content-type", "application/json")], body)

        pair = authority.issue("hook")
        server = Server(handle, ssl_context=server_context(pair.cert_path, pair.key_path))
        port = await server.start("127.0.0.1", 0)
        try:
            async with api_server(published_schema(), clock=SystemClock()) as api:
                await test(api, f"https://127.0.0.1:{port}", asked)
        finally:
            stuck.set()
            await server.stop(0.1)

    asyncio.run(main())


def configuration(authority, url, name="hook.example.com", **more):
    bundle = base64.b64encode(authority.ca_path.read_bytes()).decode()
    rule = {
        "operations": ["CREATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods"],
    }
    hook = {
        "name": name,
        "clientConfig": {"url": url, "caBundle": bundle},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }
    return {"metadata": {"name": name}, "webhooks": [hook]}


HOOKS = "/apis/admissionregistration.k8s.io/v1"


def patch_of(*operations):
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(orjson.dumps(list(operations))).decode(),
    }


@pytest.mark.slow
def test_a_mutating_webhook_changes_a_validating_one_refuses(authority):
    def answer(request, path):
        if path == "/change":
            add = {"op": "add", "path": "/metadata/labels", "value": {"by": "hook"}}
            return {**patch_of(add), "warnings": ["changed it"], "auditAnnotations": {"a": "b"}}
        assert request["object"]["metadata"]["labels"] == {"by": "hook"}
        return {"allowed": False, "status": {"code": 418, "message": "no tea"}}

    async def test(api, url, asked):
        change = configuration(authority, f"{url}/change")
        await api.made(f"{HOOKS}/mutatingwebhookconfigurations", change)
        made = await api.post(PODS, pod("a"))
        assert made.obj["metadata"]["labels"] == {"by": "hook"}
        assert "changed it" in str(made.headers)
        assert asked[0]["operation"] == "CREATE"
        assert asked[0]["userInfo"]["username"] == "admin"
        assert asked[0]["resource"] == {"group": "", "version": "v1", "resource": "pods"}
        refuse = configuration(authority, f"{url}/refuse", "no.example.com")
        await api.made(f"{HOOKS}/validatingwebhookconfigurations", refuse)
        refused = await api.post(PODS, pod("b"))
        assert refused.message == 'admission webhook "no.example.com" denied the request: no tea'
        assert (await api.get(f"{PODS}/b")).status == 404
        await api.delete(f"{HOOKS}/validatingwebhookconfigurations/no.example.com")
        assert (await api.post(PODS, pod("b"))).status == 201

    hooked(authority, answer, test)


@pytest.mark.slow
def test_what_a_webhook_made_of_an_object_is_read_as_a_body_is(authority):
    """[A3] What the kind does not have is dropped, what is missing is filled in, and a value of the
    wrong type never gets as far as validation."""
    operations = {
        "/fields": [
            {"op": "add", "path": "/spec/nonsense", "value": 1},
            {"op": "add", "path": "/spec/hostNetwork", "value": False},
            {"op": "add", "path": "/spec/containers/-", "value": {"name": "x", "image": "i"}},
            {"op": "replace", "path": "/kind", "value": "Node"},
        ],
        "/type": [{"op": "add", "path": "/spec/hostNetwork", "value": "yes"}],
        "/nothing": [{"op": "remove", "path": "/spec/nothing"}],
    }

    def answer(_request, path):
        return patch_of(*operations[path])

    async def test(api, url, _asked):
        hooks = f"{HOOKS}/mutatingwebhookconfigurations"
        await api.made(hooks, configuration(authority, f"{url}/fields"))
        made = (await api.post(PODS, pod("a"))).obj
        assert (made["kind"], made["spec"].keys() & {"nonsense", "hostNetwork"}) == ("Pod", set())
        added = made["spec"]["containers"][1]
        assert (added["imagePullPolicy"], added["resources"]) == ("Always", {})
        await api.delete(f"{hooks}/hook.example.com")
        await api.made(hooks, configuration(authority, f"{url}/type", failurePolicy="Ignore"))
        refused = await api.post(PODS, pod("b"))
        assert (refused.status, refused.message) == (
            500,
            "Internal error occurred: json: cannot unmarshal string into Go struct field "
            "PodSpec.spec.hostNetwork of type bool",
        )
        await api.delete(f"{hooks}/hook.example.com")
        await api.made(hooks, configuration(authority, f"{url}/nothing"))
        refused = await api.post(PODS, pod("b"))
        assert refused.status == 500
        assert refused.message.startswith("Internal error occurred: ")

    hooked(authority, answer, test)


@pytest.mark.slow
def test_a_webhook_patches_the_version_that_it_was_shown(authority):
    """[A3] matchPolicy Equivalent: the write is in another version than the rule."""

    def answer(request, _path):
        assert request["object"]["apiVersion"] == "autoscaling/v1"
        value = {"op": "add", "path": "/spec/targetCPUUtilizationPercentage", "value": 33}
        return patch_of(value)

    async def test(api, url, asked):
        rule = {
            "operations": ["CREATE"], "apiGroups": ["autoscaling"], "apiVersions": ["v1"],
            "resources": ["horizontalpodautoscalers"],
        }  # fmt: skip
        hooks = f"{HOOKS}/mutatingwebhookconfigurations"
        await api.made(hooks, configuration(authority, url, rules=[rule]))
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
        spec = {"scaleTargetRef": target, "maxReplicas": 3}
        path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
        made = await api.post(path, {"metadata": {"name": "h"}, "spec": spec})
        [metric] = made.obj["spec"]["metrics"]
        assert metric["resource"]["target"]["averageUtilization"] == 33
        assert len(asked) == 1

    hooked(authority, answer, test)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"patchType": None}, "webhook returned response.patch but not response.patchType"),
        ({"patchType": "Merge"}, 'unsupported patch type "Merge"'),
    ],
)
def test_a_patch_of_another_type_is_a_failure_of_the_webhook(authority, change, why):
    def answer(_request, _path):
        return {**patch_of({"op": "add", "path": "/metadata/labels", "value": {}}), **change}

    async def test(api, url, _asked):
        hooks = f"{HOOKS}/mutatingwebhookconfigurations"
        await api.made(hooks, configuration(authority, url))
        refused = await api.post(PODS, pod("a"))
        assert (refused.status, why in refused.message) == (500, True)
        await api.delete(f"{hooks}/hook.example.com")
        await api.made(hooks, configuration(authority, url, failurePolicy="Ignore"))
        assert (await api.post(PODS, pod("a"))).status == 201

    hooked(authority, answer, test)


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "status"), [("Fail", 500), ("Ignore", 201)])
def test_a_webhook_that_never_answers_or_redirects_counts_as_failed(authority, policy, status):
    """An attack: a webhook that hangs, and one that sends the request elsewhere."""

    def answer(_request, path):
        if path == "/away":
            return Response(302, [("location", "https://127.0.0.1:1/steal")], b"")
        return None

    async def test(api, url, asked):
        for path in ("/stuck", "/away"):
            hook = configuration(authority, f"{url}{path}", failurePolicy=policy, timeoutSeconds=1)
            await api.made(f"{HOOKS}/validatingwebhookconfigurations", hook)
            reply = await api.post(PODS, pod(path[1:]))
            assert reply.status == status
            if status == 500:
                assert 'failed calling webhook "hook.example.com"' in reply.message
            await api.delete(f"{HOOKS}/validatingwebhookconfigurations/hook.example.com")

    hooked(authority, answer, test)


@pytest.mark.slow
def test_webhooks_are_asked_only_about_what_they_select(authority):
    async def test(api, url, asked):
        hook = configuration(
            authority, url,
            objectSelector={"matchLabels": {"watched": "yes"}},
            namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        )  # fmt: skip
        await api.made(f"{HOOKS}/validatingwebhookconfigurations", hook)
        marked = pod("a")
        marked["metadata"]["labels"] = {"watched": "yes"}
        await api.made(PODS, pod("plain"))
        await api.made("/api/v1/namespaces/kube-system/pods", marked)
        assert asked == []
        await api.made(PODS, marked)
        assert len(asked) == 1
        dry = configuration(authority, url, "side.example.com", sideEffects="Some")
        assert (await api.post(f"{HOOKS}/validatingwebhookconfigurations", dry)).status == 422

    hooked(authority, lambda *_: {"allowed": True}, test)


@pytest.mark.slow
def test_a_webhook_that_asks_for_it_is_called_again_after_a_later_change(authority):
    def answer(request, path):
        labels = request["object"]["metadata"].get("labels") or {}
        if path == "/second":
            add = {"op": "add", "path": "/metadata/labels", "value": {**labels, "second": "yes"}}
            return patch_of(add)
        return {"allowed": True}

    async def test(api, url, asked):
        first = configuration(authority, f"{url}/first", "a.example.com",
                              reinvocationPolicy="IfNeeded")  # fmt: skip
        second = configuration(authority, f"{url}/second", "b.example.com")
        for one in (first, second):
            await api.made(f"{HOOKS}/mutatingwebhookconfigurations", one)
        await api.made(PODS, pod("a"))
        assert len(asked) == 3
        assert asked[2]["object"]["metadata"]["labels"] == {"second": "yes"}

    hooked(authority, answer, test)


@pytest.mark.slow
def test_a_webhook_behind_a_service_must_show_the_services_name(authority):
    async def test(api, url, asked):
        port = int(url.rpartition(":")[2])
        spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
        await api.made(
            "/api/v1/namespaces/default/services", {"metadata": {"name": "h"}, "spec": spec}
        )
        hook = configuration(authority, url)
        bundle = hook["webhooks"][0]["clientConfig"]["caBundle"]
        service = {"namespace": "default", "name": "h", "path": "/x", "port": port}
        hook["webhooks"][0]["clientConfig"] = {"service": service, "caBundle": bundle}
        await api.made(f"{HOOKS}/validatingwebhookconfigurations", hook)
        reply = await api.post(PODS, pod("a"))
        # The certificate of the test names localhost, not h.default.svc: it must not be believed.
        assert reply.status == 500
        assert asked == []

    hooked(authority, lambda *_: {"allowed": True}, test)


@pytest.mark.slow
def test_connections_go_through_admission_with_what_they_ask_for(authority):
    """[A3] exec, attach, port-forward and proxy are CONNECT, with options as their object."""

    def answer(request, _path):
        if request["object"].get("command") == ["sh"]:
            return {"allowed": False, "status": {"message": "no shells"}}
        return {"allowed": True}

    async def test(api, url, asked):
        rule = {
            "operations": ["CONNECT"],
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["pods/exec", "pods/attach", "pods/portforward", "*/proxy"],
        }
        hook = configuration(authority, url, rules=[rule])
        await api.made(f"{HOOKS}/validatingwebhookconfigurations", hook)
        await api.made(PODS, pod("a"))
        refused = await api.get(f"{PODS}/a/exec?command=sh&stdin=true&container=main")
        assert refused.message.endswith("denied the request: no shells")
        request = asked[-1]
        assert request["operation"] == "CONNECT"
        assert (request["subResource"], request["name"]) == ("exec", "a")
        assert request["kind"] == {"group": "", "version": "v1", "kind": "PodExecOptions"}
        assert request["resource"] == {"group": "", "version": "v1", "resource": "pods"}
        assert request["object"] == {
            "kind": "PodExecOptions",
            "apiVersion": "v1",
            "stdin": True,
            "container": "main",
            "command": ["sh"],
        }
        # Whatever is admitted goes on; this server has no nodes to go to.
        for path, kind in (
            ("exec?command=ls", "PodExecOptions"),
            ("attach?tty=true", "PodAttachOptions"),
            ("portforward?ports=80", "PodPortForwardOptions"),
            ("proxy/a/b", "PodProxyOptions"),
        ):
            assert (await api.get(f"{PODS}/a/{path}")).status == 503
            assert asked[-1]["object"]["kind"] == kind
        assert asked[-1]["object"]["path"] == "/a/b"
        assert (await api.get("/api/v1/nodes/n/proxy/metrics")).status == 503
        assert asked[-1]["object"]["kind"] == "NodeProxyOptions"
        before = len(asked)
        assert (await api.get(f"{PODS}/a/log")).status == 503
        assert len(asked) == before  # reading a log is no connection

    hooked(authority, answer, test)


def test_nothing_connects_where_everything_is_denied():
    async def test(api):
        reply = await api.get(f"{PODS}/a/exec?command=ls")
        assert reply.status == 403
        assert "admission control is denying all modifications" in reply.message

    run(test, enabled=("AlwaysDeny",))
