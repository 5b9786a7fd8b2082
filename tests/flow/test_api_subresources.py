"""Subresources and reviews, and who may come in, through the HTTP edge."""

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sampan.api import features
from sampan.api.features import Release
from sampan.api.schema.published import Schema
from sampan.apiserver.settings import ApiServerSettings
from tests.support import virtual_time
from tests.support.generators.api_requests import MERGE, api_server, pod
from tests.support.virtual_time import LoopClock

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture(scope="module")
def schema():
    return Schema.load()


def run(schema, story, **settings):
    key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )

    async def main():
        chosen = ApiServerSettings(token_signing_key_pem=key, **settings)
        async with api_server(schema, settings=chosen) as api:
            await story(api)

    virtual_time.run(main())


async def running_pod(api, name, **labels):
    body = pod(name)
    body["metadata"]["labels"] = labels
    await api.made(PODS, body)
    binding = {"metadata": {"name": name}, "target": {"name": "n1"}}
    assert (await api.post(f"{PODS}/{name}/binding", binding)).status == 201
    await api.patch(f"{PODS}/{name}/status", {"status": {"phase": "Running"}})


def test_a_pod_is_bound_once(schema):
    """[A9]"""

    async def story(api):
        made = await api.made(PODS, pod("web"))
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "web", "annotations": {"by": "me"}},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
        }
        wrong = {**binding, "metadata": {"name": "web", "uid": "another"}}
        assert (await api.post(f"{PODS}/web/binding", wrong)).status == 409
        done = await api.post(f"{PODS}/web/binding", binding)
        assert (done.status, done.obj["status"]) == (201, "Success")
        got = (await api.get(f"{PODS}/web")).obj
        assert got["spec"]["nodeName"] == "n1"
        assert got["metadata"]["annotations"] == {"by": "me"}
        assert got["metadata"]["generation"] == made["metadata"]["generation"]
        assert got["status"]["conditions"][0]["type"] == "PodScheduled"
        again = await api.post("/api/v1/namespaces/default/bindings", binding)
        assert again.status == 409
        nowhere = await api.post(f"{PODS}/web/binding", {**binding, "target": {}})
        assert (nowhere.status, nowhere.message) == (500, "target.name: Required value")

    run(schema, story)


def test_a_scale_is_read_and_written(schema):
    async def story(api):
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template, "replicas": 2}
        await api.made(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})
        scale = (await api.get(f"{DEPLOYMENTS}/d/scale")).obj
        assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
        assert scale["spec"] == {"replicas": 2}
        assert scale["status"]["selector"] == "a=b"
        scale["spec"]["replicas"] = 5
        changed = await api.put(f"{DEPLOYMENTS}/d/scale", scale)
        assert changed.obj["spec"]["replicas"] == 5
        assert (await api.put(f"{DEPLOYMENTS}/d/scale", scale)).status == 409
        await api.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 0}}, MERGE)
        got = (await api.get(f"{DEPLOYMENTS}/d")).obj
        assert (got["spec"]["replicas"], got["metadata"]["generation"]) == (0, 3)
        wrong = await api.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": -1}}, MERGE)
        assert wrong.status == 422

    run(schema, story)


async def evict(api, name, query="", **delete_options):
    body = {"metadata": {"name": name}, "deleteOptions": delete_options}
    return await api.post(f"{PODS}/{name}/eviction{query}", body)


async def budget(api, status=None, **spec):
    """A budget for pods with app=x that its controller has seen."""
    selector = {"matchLabels": {"app": "x"}}
    body = {"metadata": {"name": "p"}, "spec": {"minAvailable": 1, "selector": selector, **spec}}
    await api.made(BUDGETS, body)
    if status is not None:
        seen = {"status": {"observedGeneration": 1, **status}}
        assert (await api.patch(f"{BUDGETS}/p/status", seen, MERGE)).status == 200


async def budget_status(api):
    return (await api.get(f"{BUDGETS}/p")).obj["status"]


async def make_ready(api, name):
    conditions = [{"type": "Ready", "status": "True"}]
    await api.patch(f"{PODS}/{name}/status", {"status": {"conditions": conditions}})


NO_BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."


def test_an_eviction_deletes_unless_a_budget_says_no(schema):
    async def story(api):
        for name in ("a", "b", "c"):
            await running_pod(api, name, app="x")
            await make_ready(api, name)
        assert (await evict(api, "a")).status == 201
        leaving = (await api.get(f"{PODS}/a")).obj
        assert leaving["metadata"]["deletionTimestamp"]
        assert leaving["status"]["conditions"][-1]["reason"] == "EvictionByEvictionAPI"
        await budget(api, {"desiredHealthy": 1, "currentHealthy": 1})
        refused = await evict(api, "b")
        assert (refused.status, refused.obj["reason"]) == (429, "TooManyRequests")
        assert refused.message == NO_BUDGET
        (cause,) = refused.obj["details"]["causes"]
        assert cause["message"] == (
            "The disruption budget p needs 1 healthy pods and has 1 currently"
        )
        assert "retry-after" not in refused.headers
        await api.patch(f"{BUDGETS}/p/status", {"status": {"disruptionsAllowed": 1}}, MERGE)
        assert (await evict(api, "b", "?dryRun=All")).status == 201
        assert (await budget_status(api))["disruptionsAllowed"] == 1
        assert (await evict(api, "b")).status == 201
        status = await budget_status(api)
        assert status["disruptionsAllowed"] == 0
        assert list(status["disruptedPods"]) == ["b"]
        assert status["conditions"][0]["reason"] == "InsufficientPods"
        assert (await evict(api, "c", "?dryRun=All")).status == 429

    run(schema, story)


def test_an_eviction_names_its_pod(schema):
    async def story(api):
        await running_pod(api, "a", app="x")
        wrong = await api.post(f"{PODS}/a/eviction", {"metadata": {"name": "b"}})
        assert (wrong.status, wrong.message) == (
            400, "name in URL does not match name in Eviction object",
        )  # fmt: skip

    run(schema, story)


def test_an_eviction_of_one_version_takes_that_version_and_no_other(schema):
    async def story(api):
        for name in ("a", "b"):
            await running_pod(api, name, app="x")
            await make_ready(api, name)
        await budget(api, {"disruptionsAllowed": 2})
        for stale in ({"resourceVersion": "1"}, {"uid": "another"}):
            refused = await evict(api, "a", preconditions=stale)
            assert refused.status == 409
            assert refused.message.startswith('Operation cannot be fulfilled on Pod "a": the ')
        assert (await budget_status(api))["disruptionsAllowed"] == 2
        for name in ("a", "b"):
            meta = (await api.get(f"{PODS}/{name}")).obj["metadata"]
            now = {"resourceVersion": meta["resourceVersion"], "uid": meta["uid"]}
            assert (await evict(api, name, preconditions=now)).status == 201
        assert (await budget_status(api))["disruptionsAllowed"] == 0

    run(schema, story)


def test_a_budget_that_its_controller_has_not_seen_is_not_charged(schema):
    async def story(api):
        await running_pod(api, "a", app="x")
        await make_ready(api, "a")
        await budget(api, {"disruptionsAllowed": 1})
        await api.patch(f"{BUDGETS}/p", {"spec": {"minAvailable": 2}}, MERGE)
        refused = await evict(api, "a")
        assert (refused.status, refused.message) == (429, NO_BUDGET)
        assert refused.headers["retry-after"] == "10"
        (cause,) = refused.obj["details"]["causes"]
        assert cause["message"] == (
            "The disruption budget p is still being processed by the server."
        )
        await api.patch(f"{BUDGETS}/p/status", {"status": {"observedGeneration": 2}}, MERGE)
        assert (await evict(api, "a")).status == 201

    run(schema, story)


def test_a_pod_that_is_not_ready_goes_by_the_budgets_policy(schema):
    async def story(api):
        for name in ("a", "b"):
            await running_pod(api, name, app="x")
        await budget(api, {"desiredHealthy": 1, "currentHealthy": 0})
        assert (await evict(api, "a")).status == 429
        enough = {"status": {"currentHealthy": 1}}
        await api.patch(f"{BUDGETS}/p/status", enough, MERGE)
        assert (await evict(api, "a")).status == 201
        await api.patch(f"{BUDGETS}/p/status", {"status": {"currentHealthy": 0}}, MERGE)
        policy = {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}
        assert (await api.patch(f"{BUDGETS}/p", policy, MERGE)).status == 200
        assert (await evict(api, "b")).status == 201
        status = await budget_status(api)
        assert status.get("disruptedPods") in (None, {})

    run(schema, story)


def test_a_pod_that_does_not_run_is_evicted_whatever_its_budget_says(schema):
    async def story(api):
        body = pod("a")
        body["metadata"]["labels"] = {"app": "x"}
        await api.made(PODS, body)
        await budget(api, {"desiredHealthy": 1, "currentHealthy": 0})
        assert (await evict(api, "a", preconditions={"resourceVersion": "1"})).status == 409
        assert (await evict(api, "a")).status == 201
        assert (await api.get(f"{PODS}/a")).status == 404

    run(schema, story)


def test_a_token_is_good_for_its_time_and_audience(schema):
    """[A1]"""

    async def story(api):
        await api.made(ACCOUNTS, {"metadata": {"name": "bot"}})
        short = await api.post(f"{ACCOUNTS}/bot/token", {"spec": {"expirationSeconds": 5}})
        assert short.status == 422
        made = await api.made(f"{ACCOUNTS}/bot/token", {"spec": {"expirationSeconds": 600}})
        bearer = {"authorization": f"Bearer {made['status']['token']}"}
        review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        who = await api.send("POST", review, {}, user="", headers=bearer)
        user = who.obj["status"]["userInfo"]
        assert user["username"] == "system:serviceaccount:default:bot"
        assert (await api.send("GET", PODS, user="", headers=bearer)).status == 403
        asked = {"spec": {"token": made["status"]["token"]}}
        reviewed = await api.post("/apis/authentication.k8s.io/v1/tokenreviews", asked)
        assert reviewed.obj["status"]["authenticated"] is True
        await _tokens_are_good_for_whom_they_name(api, made["status"]["token"])
        foreign = await api.made(f"{ACCOUNTS}/bot/token", {"spec": {"audiences": ["vault"]}})
        other = {"authorization": f"Bearer {foreign['status']['token']}"}
        assert (await api.send("GET", PODS, user="", headers=other)).status == 401
        await LoopClock().sleep(601)
        assert (await api.send("GET", PODS, user="", headers=bearer)).status == 401

    run(schema, story)


async def _tokens_are_good_for_whom_they_name(api, token):
    async def reviewed(token, *audiences):
        asked = {"spec": {"token": token, "audiences": list(audiences)}}
        return (await api.post("/apis/authentication.k8s.io/v1/tokenreviews", asked)).obj["status"]

    [issuer] = (await reviewed(token))["audiences"]
    assert (await reviewed(token, "vault", issuer))["audiences"] == [issuer]
    assert await reviewed(token, "vault") == {
        "user": {},
        "error": f'[invalid bearer token, token audiences ["{issuer}"] is invalid for the target '
        'audiences ["vault"]]',
    }


def test_what_issuers_publish_may_be_kept_for_an_hour(schema):
    async def story(api):
        for path, kind in (
            ("/.well-known/openid-configuration", "application/json"),
            ("/openid/v1/jwks", "application/jwk-set+json"),
        ):
            reply = await api.get(path)
            headers = dict(reply.headers)
            assert headers["content-type"] == kind
            assert headers["cache-control"] == "public, max-age=3600"

    run(schema, story)


def test_a_schema_that_its_hash_names_may_be_kept_for_a_year(schema):
    async def story(api):
        paths = (await api.get("/openapi/v3")).obj["paths"]
        url = paths["apis/apps/v1"]["serverRelativeURL"]
        kept = dict((await api.get(url)).headers)
        assert kept["cache-control"] == "public, immutable"
        assert kept["expires"].endswith(" UTC")
        moved = await api.get("/openapi/v3/apis/apps/v1?hash=OLD")
        assert (moved.status, dict(moved.headers)["location"]) == (301, url)
        asked = dict((await api.get("/openapi/v3/apis/apps/v1")).headers)
        assert asked["cache-control"] == "no-cache, private"

    run(schema, story)


def owners(obj):
    return [
        (entry["manager"], entry["operation"], entry.get("subresource"), "time" in entry,
         "f:replicas" in entry["fieldsV1"]["f:spec"])
        for entry in obj["metadata"]["managedFields"]
    ]  # fmt: skip


def test_owners_of_replicas_go_through_the_scale_as_in_the_original(schema):
    """As v1.35.8: who writes by the scale has an entry without a time, before the others; who
    writes what is there splits the entry of the one who has it."""
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template}

    async def story(api):
        async def scaled(name, manager, replicas):
            scale = {"metadata": {"name": name, "namespace": "default"}}
            where = f"{path}/{name}/scale?fieldManager={manager}"
            await api.put(where, {**scale, "spec": {"replicas": replicas}})
            return owners((await api.get(f"{path}/{name}")).obj)

        for name in ("changed", "same"):
            await api.made(f"{path}?fieldManager=maker", {"metadata": {"name": name}, "spec": spec})
        maker = ("maker", "Update", None, True, False)
        scaler = ("scaler", "Update", "scale", False, True)
        assert await scaled("changed", "scaler", 5) == [scaler, maker]
        assert await scaled("changed", "scaler", 6) == [scaler, maker]
        other = ("other", "Update", "scale", False, True)
        assert await scaled("changed", "other", 2) == [other, maker]
        split = ("maker", "Update", None, False, True)
        assert await scaled("same", "scaler", 3) == [split, maker]
        assert await scaled("same", "scaler", 4) == [maker]

    run(schema, story)


def test_the_root_names_every_path_that_can_be_asked(schema):
    async def story(api):
        paths = (await api.get("/")).obj["paths"]
        assert paths == sorted(set(paths))
        assert {"/api/v1", "/apis/apps", "/apis/apps/v1", "/readyz/ping", "/openid/v1/jwks"} <= {
            *paths
        }
        for path in paths:
            assert (await api.get(path)).status in (200, 406), path
        found = (await api.get("/api")).obj["serverAddressByClientCIDRs"]
        assert found == [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]

    run(schema, story)


def test_what_drivers_said_of_devices_goes_with_their_allocation(schema):
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"

    async def story(api):
        spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "dc"}}]}}
        await api.made(claims, {"metadata": {"name": "c"}, "spec": spec})
        device = {"driver": "d.example.com", "pool": "p", "device": "x"}
        allocation = {"devices": {"results": [{"request": "r", **device}]}}
        status = {"allocation": allocation, "devices": [device]}
        done = await api.patch(f"{claims}/c/status", {"status": status}, MERGE)
        assert [each["device"] for each in done.obj["status"]["devices"]] == ["x"]
        done = await api.patch(f"{claims}/c/status", {"status": {"allocation": None}}, MERGE)
        assert (done.status, done.obj["status"]) == (200, {})

    run(schema, story)


def test_a_lease_has_nothing_of_an_election_that_is_not_held(schema):
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

    async def story(api):
        wanted = {"strategy": "OldestEmulationVersion", "preferredHolder": "b"}
        spec = {"holderIdentity": "a", "leaseDurationSeconds": 9}
        made = await api.made(leases, {"metadata": {"name": "l"}, "spec": {**spec, **wanted}})
        assert made["spec"] == spec
        done = await api.patch(f"{leases}/l", {"spec": wanted}, MERGE)
        assert (done.status, done.obj["spec"]) == (200, spec)

    run(schema, story)


_SLICE = {"driver": "d.example.com", "nodeName": "n", "devices": [],
          "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}  # fmt: skip
# A path, the object without its metadata, a change, and what is said to it.
_UPDATES = [
    ("/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities",
     {"storageClassName": "fast", "capacity": "1Gi"}, {"storageClassName": "slow"},
     'storageClassName: Invalid value: "slow": field is immutable'),
    ("/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities",
     {"storageClassName": "fast"}, {"maximumVolumeSize": "-1"},
     'maximumVolumeSize: Invalid value: "-1": must be greater than or equal to 0'),
    ("/apis/resource.k8s.io/v1/deviceclasses",
     {"spec": {}}, {"spec": {"selectors": [{"cel": {"expression": "nope("}}]}},
     'spec.selectors[0].cel.expression: Invalid value: "nope("'),
    ("/apis/resource.k8s.io/v1/resourceslices",
     {"spec": _SLICE}, {"spec": {"nodeName": "m"}},
     'spec.nodeName: Invalid value: "m": field is immutable'),
    ("/apis/networking.k8s.io/v1/ipaddresses",
     {"spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "s"}}},
     {"spec": {"parentRef": {"name": "t"}}},
     'spec.parentRef: Invalid value: {"Group":"","Resource":"services","Namespace":"default",'
     '"Name":"t"}: field is immutable'),
]  # fmt: skip


@pytest.mark.parametrize(("path", "obj", "change", "says"), _UPDATES)
def test_an_update_is_checked_as_a_create_is_and_keeps_what_is_immutable(
    schema, path, obj, change, says
):
    async def story(api):
        name = "10.96.0.77" if path.endswith("ipaddresses") else "thing"
        await api.made(path, {"metadata": {"name": name}, **obj})
        done = await api.patch(f"{path}/{name}", change, MERGE)
        assert done.status == 422, done.obj
        assert says in done.obj["message"]

    run(schema, story)


def test_reviews_answer_for_oneself_and_for_others(schema):
    """[A2]"""

    async def story(api):
        me = await api.made("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        assert me["status"]["userInfo"]["username"] == "admin"
        what = {"resourceAttributes": {"verb": "get", "resource": "pods"}}
        path = "/apis/authorization.k8s.io/v1"
        mine = await api.made(f"{path}/selfsubjectaccessreviews", {"spec": what})
        assert mine["status"] == {"allowed": True}
        bobs = await api.made(f"{path}/subjectaccessreviews", {"spec": {**what, "user": "bob"}})
        assert bobs["status"]["allowed"] is False
        rules = {"spec": {"namespace": "default"}}
        listed = await api.made(f"{path}/selfsubjectrulesreviews", rules)
        assert listed["status"]["resourceRules"][0]["verbs"] == ["*"]

    run(schema, story)


# A kind, and whether a write of its status may change labels, and annotations.
_METADATA_BY_STATUS = {
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas": (
        False, False, {"matchingPrecedence": 9000, "priorityLevelConfiguration": {"name": "x"}},
    ),
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations": (
        False, False, {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}},
    ),
    "/apis/networking.k8s.io/v1/servicecidrs": (False, False, {"cidrs": ["10.9.0.0/24"]}),
    "/apis/storage.k8s.io/v1/volumeattachments": (
        False, False,
        {"attacher": "a.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
    ),
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims": (
        False, False,
        {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "dc"}}]}},
    ),
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies": (
        False, False,
        {"matchConstraints": {"resourceRules": [
            {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
             "resources": ["deployments"]}]},
         "validations": [{"expression": "true"}]},
    ),
    "/apis/apiregistration.k8s.io/v1/apiservices": (
        False, False,
        {"group": "example.com", "version": "v1", "groupPriorityMinimum": 9, "versionPriority": 9},
    ),
    DEPLOYMENTS: (
        False, True,
        {"selector": {"matchLabels": {"a": "b"}},
         "template": {"metadata": {"labels": {"a": "b"}},
                      "spec": {"containers": [{"name": "c", "image": "i"}]}}},
    ),
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets": (True, True, {"minAvailable": 1}),
    PODS: (True, True, {"containers": [{"name": "c", "image": "i"}]}),
}  # fmt: skip


@pytest.mark.parametrize("path", _METADATA_BY_STATUS)
def test_a_write_of_the_status_changes_the_metadata_that_its_kind_lets_it(schema, path):
    labels, annotations, spec = _METADATA_BY_STATUS[path]

    async def story(api):
        name = "v1.example.com" if path.endswith("apiservices") else "thing"
        await api.made(path, {"metadata": {"name": name, "labels": {"old": "1"}}, "spec": spec})
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
        meta = {"labels": {"new": "1"}, "annotations": {"new": "1"}, "ownerReferences": [owner]}
        done = await api.patch(f"{path}/{name}/status", {"metadata": meta}, MERGE)
        assert done.status == 200, done.obj
        for shown in (done.obj, (await api.get(f"{path}/{name}")).obj):
            found = shown["metadata"]
            assert found["labels"] == ({"old": "1", "new": "1"} if labels else {"old": "1"})
            assert ("annotations" in found) is annotations
            if not annotations or path == PODS:
                assert "ownerReferences" not in found
            by_status = [
                entry["fieldsV1"].get("f:metadata", {})
                for entry in found["managedFields"]
                if entry.get("subresource") == "status"
            ]
            assert any("f:labels" in fields for fields in by_status) is labels

    run(schema, story)


def test_a_pod_s_status_does_not_lose_of_which_spec_something_was_said(schema):
    async def story(api):
        await api.made(PODS, pod("web"))
        said = {"type": "Ready", "status": "True", "observedGeneration": 1}
        status = {"observedGeneration": 1, "conditions": [said]}
        await api.patch(f"{PODS}/web/status", {"status": status}, MERGE)
        shown = (await api.get(f"{PODS}/web")).obj
        del shown["status"]["observedGeneration"]
        mine = {"type": "Mine", "status": "True"}
        shown["status"]["conditions"] = [{"type": "Ready", "status": "False"}, mine]
        found = (await api.put(f"{PODS}/web/status", shown)).obj["status"]
        assert found["observedGeneration"] == 1
        kinds = {each["type"]: each.get("observedGeneration") for each in found["conditions"]}
        assert kinds == {"Ready": 1, "Mine": None}

    run(schema, story)


def test_nobody_comes_in_without_credentials(schema):
    """[A1]"""

    async def story(api):
        for path in ("/healthz", "/livez", "/readyz", "/version"):
            assert (await api.send("GET", path, user="")).status == 200
        for path in (PODS, "/api", "/metrics", "/nothing", "/openapi/v2"):
            reply = await api.send("GET", path, user="")
            assert (reply.status, reply.obj["reason"]) == (401, "Unauthorized")
        bad = {"authorization": "Bearer nonsense"}
        assert (await api.send("GET", "/readyz", user="", headers=bad)).status == 401
        forbidden = await api.send("GET", "/metrics", user="bob", group="dev")
        assert forbidden.message == 'forbidden: User "bob" cannot get path "/metrics"'
        assert (await api.send("GET", "/nothing", user="bob", group="dev")).status == 403

    run(schema, story)


def test_what_a_node_must_answer_is_refused_where_there_is_no_way_to_nodes(schema):
    async def story(api):
        await api.made(PODS, pod("web"))
        for path in ("log", "exec", "proxy"):
            assert (await api.get(f"{PODS}/web/{path}")).status == 503

    run(schema, story)


def asking(name, cpu):
    made = pod(name)
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return made


def test_a_resize_changes_resources_and_nothing_else(schema):
    """[A5] [N6]"""

    async def story(api):
        made = await api.made(PODS, asking("web", "1"))
        container = made["spec"]["containers"][0]
        container["resources"], container["image"] = {"requests": {"cpu": "2"}}, "other"
        made["metadata"]["labels"] = {"not": "taken"}
        answer = await api.put(f"{PODS}/web/resize", made)
        assert answer.status == 200, answer.obj
        spec, meta = answer.obj["spec"], answer.obj["metadata"]
        assert spec["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
        assert spec["containers"][0]["image"] != "other"
        assert "labels" not in meta
        assert meta["generation"] == 2
        patch = {"spec": {"containers": [{"name": container["name"], "resources": {
            "requests": {"cpu": "3"}}}]}}  # fmt: skip
        answer = await api.patch(f"{PODS}/web/resize", patch)
        assert answer.obj["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "3"}}
        assert answer.obj["metadata"]["generation"] == 3

    run(schema, story)


def test_a_resize_may_not_change_the_quality_of_service_or_the_containers(schema):
    """[A5]"""

    async def story(api):
        made = await api.made(PODS, asking("web", "1"))
        made["spec"]["containers"][0]["resources"] = {}
        assert (await api.put(f"{PODS}/web/resize", made)).status == 422
        made["spec"]["containers"][0]["name"] = "renamed"
        assert (await api.put(f"{PODS}/web/resize", made)).status == 422

    run(schema, story)


def test_a_resize_needs_what_its_node_declares(schema):
    """NodeDeclaredFeatureValidator."""
    needed = "InPlacePodLevelResourcesVerticalScaling"

    async def story(api):
        bound = pod("web")
        bound["spec"] |= {"nodeName": "n", "resources": {"requests": {"cpu": "1"}}}
        await api.made(PODS, bound)
        node = await api.made("/api/v1/nodes", {"metadata": {"name": "n"}})
        patch = {"spec": {"resources": {"requests": {"cpu": "2"}}}}
        answer = await api.patch(f"{PODS}/web/resize", patch)
        assert (answer.status, answer.obj["message"]) == (
            403,
            f'pods "web" is forbidden: pod update requires features {needed} which are not '
            'available on node "n"',
        )
        node["status"] = {"declaredFeatures": [needed]}
        assert (await api.put("/api/v1/nodes/n/status", node)).status == 200
        answer = await api.patch(f"{PODS}/web/resize", patch)
        assert answer.status == 200, answer.obj
        assert answer.obj["spec"]["resources"] == {"requests": {"cpu": "2"}}

    with features.used(Release("1.37")):
        run(schema, story)


def test_ephemeral_containers_are_added_to_a_pod_and_stay(schema):
    """[A5] [C6] as `kubectl debug` does it"""

    async def story(api):
        made = await api.made(PODS, pod("web"))
        debugger = {"name": "debugger", "image": "busybox"}
        made["spec"]["ephemeralContainers"] = [debugger]
        made["spec"]["containers"][0]["image"] = "other"
        answer = await api.put(f"{PODS}/web/ephemeralcontainers", made)
        assert answer.status == 200, answer.obj
        [added] = answer.obj["spec"]["ephemeralContainers"]
        assert added["terminationMessagePath"] == "/dev/termination-log"
        assert answer.obj["spec"]["containers"][0]["image"] != "other"
        assert answer.obj["metadata"]["generation"] == 2
        patch = {"spec": {"ephemeralContainers": [{"name": "second", "image": "busybox"}]}}
        answer = await api.patch(f"{PODS}/web/ephemeralcontainers", patch)
        names = [one["name"] for one in answer.obj["spec"]["ephemeralContainers"]]
        assert sorted(names) == ["debugger", "second"]
        empty = {**answer.obj, "spec": {**answer.obj["spec"], "ephemeralContainers": []}}
        refused = await api.put(f"{PODS}/web/ephemeralcontainers", empty)
        assert refused.status == 422
        assert "may not be removed" in refused.obj["message"]

    run(schema, story)


def test_deprecated_kinds_warn(schema):
    async def story(api):
        reply = await api.get("/api/v1/namespaces/default/endpoints")
        assert reply.headers["warning"].startswith('299 - "v1 Endpoints is deprecated in v1.33+')

    run(schema, story)


def test_one_store_of_events_for_both_groups(schema):
    async def story(api):
        path = "/api/v1/namespaces/default/events"
        event = {
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default"},
            "reason": "Started",
            "type": "Normal",
            "firstTimestamp": "2023-11-14T22:13:20Z",
            "lastTimestamp": "2023-11-14T22:13:20Z",
            "count": 1,
            "source": {"component": "kubelet"},
        }
        await api.made(path, event)
        other = "/apis/events.k8s.io/v1/namespaces/default/events"
        seen = (await api.get(f"{other}/e")).obj
        assert (seen["apiVersion"], seen["kind"]) == ("events.k8s.io/v1", "Event")
        assert seen["regarding"]["name"] == "web"
        assert (await api.get(f"{path}?fieldSelector=involvedObject.name%3Dweb")).items == ["e"]
        assert (await api.get(f"{other}?fieldSelector=regarding.name%3Dweb")).items == ["e"]
        await LoopClock().sleep(3700)
        assert (await api.get(path)).items == []

    run(schema, story)


def test_services_get_addresses_and_keep_them(schema):
    async def story(api):
        path = "/api/v1/namespaces/default/services"
        own = (await api.get(f"{path}/kubernetes")).obj
        assert own["spec"]["clusterIP"] == "10.96.0.1"
        body = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "type": "NodePort"}}
        made = await api.made(path, body)
        assert made["spec"]["clusterIP"].startswith("10.")
        patched = await api.patch(f"{path}/s", {"metadata": {"labels": {"a": "b"}}})
        assert patched.obj["spec"] == made["spec"]
        replaced = await api.put(f"{path}/s", body)
        assert replaced.obj["spec"]["clusterIP"] == made["spec"]["clusterIP"]
        again = {**body, "metadata": {"name": "t"}}
        again["spec"] = {**body["spec"], "clusterIP": made["spec"]["clusterIP"]}
        refused = await api.post(path, again)
        assert refused.status == 422
        assert "provided IP is already allocated" in refused.message

    run(schema, story)


def test_numbers_are_counted(schema):
    """[A10]"""

    async def story(api):
        await api.get(PODS)
        text = (await api.get("/metrics")).body.decode()
        assert (
            'apiserver_request_total{code="200",component="apiserver",dry_run="",group="",'
            'resource="pods",scope="namespace",subresource="",verb="LIST",version="v1"} 1'
        ) in text
        assert "apiserver_request_duration_seconds_bucket" in text

    run(schema, story)


def test_a_secret_takes_plain_text(schema):
    async def story(api):
        path = "/api/v1/namespaces/default/secrets"
        made = await api.made(path, {"metadata": {"name": "s"}, "stringData": {"a": "b"}})
        assert made["data"] == {"a": "Yg=="}
        assert "stringData" not in made

    run(schema, story)


def test_the_server_tells_what_it_is_and_its_flags_to_who_may_ask(schema):
    async def story(api):
        text = (await api.get("/statusz")).body.decode()
        assert "Paths: /flagz /healthz /livez /metrics /readyz /statusz /version\n" in text
        assert (await api.get("/flagz")).body.endswith(b"secure-port=6443\n")
        assert {"/statusz", "/flagz"} <= {*(await api.get("/")).obj["paths"]}
        wanted = "application/json;g=config.k8s.io;v=v1beta1;as=Statusz"
        found = await api.get("/statusz", wanted)
        assert found.obj["goVersion"] == (await api.get("/version")).obj["goVersion"]
        refused = await api.get("/statusz", "application/json")
        assert (refused.status, refused.obj["reason"]) == (406, "NotAcceptable")
        assert (await api.send("GET", "/flagz", user="eve", group="")).status == 403
        assert (await api.send("GET", "/flagz", user="m", group="system:monitoring")).status == 200

    with features.used(Release("1.37")):
        run(schema, story, flags={"secure-port": "6443"})
