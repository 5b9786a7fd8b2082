"""Server-side apply and managedFields through the API, and with kubectl as judge. [A7]"""

import shutil

import pytest

from sampan.api.schema.published import Schema
from tests.support import virtual_time
from tests.support.generators.api_requests import MERGE, api_server, pod
from tests.support.parts.kubectl import Kubectl
from tests.support.parts.served_api import served_api

APPLY = "application/apply-patch+yaml"
MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@pytest.fixture(scope="module")
def schema():
    return Schema.load()


def run(schema, story):
    async def main():
        async with api_server(schema) as api:
            await story(api)

    virtual_time.run(main())


def config_map(name="a", **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(replicas=1):
    labels = {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "app:1"}]},
            },
        },
    }


def managers(obj):
    return [
        (one["manager"], one["operation"], one.get("subresource", ""))
        for one in obj["metadata"].get("managedFields", ())
    ]


def fields_of(obj, manager):
    entries = obj["metadata"]["managedFields"]
    return next(one["fieldsV1"] for one in entries if one["manager"] == manager)


async def apply(api, path, config, query="fieldManager=me"):
    return await api.patch(f"{path}/{config['metadata']['name']}?{query}", config, APPLY)


def test_an_apply_creates_and_the_same_again_changes_nothing(schema):
    async def story(api):
        made = await apply(api, MAPS, config_map(a="1"))
        assert made.status == 201
        again = await apply(api, MAPS, config_map(a="1"))
        assert (again.status, again.obj) == (200, made.obj)
        assert managers(made.obj) == [("me", "Apply", "")]
        changed = await apply(api, MAPS, config_map(b="2"))
        assert changed.obj["data"] == {"b": "2"}
        assert changed.obj["metadata"]["uid"] == made.obj["metadata"]["uid"]

    run(schema, story)


def test_a_conflict_is_409_with_its_causes_and_force_resolves_it(schema):
    async def story(api):
        await api.made(f"{MAPS}?fieldManager=maker", config_map(a="1"))
        refused = await apply(api, MAPS, config_map(a="2"))
        assert (refused.status, refused.obj["reason"]) == (409, "Conflict")
        assert refused.obj["message"] == (
            'Apply failed with 1 conflict: conflict with "maker" using v1: .data.a'
        )
        assert refused.obj["details"] == {
            "causes": [
                {
                    "reason": "FieldManagerConflict",
                    "message": 'conflict with "maker" using v1',
                    "field": ".data.a",
                }
            ]
        }
        forced = await apply(api, MAPS, config_map(a="2"), "fieldManager=me&force=true")
        assert forced.obj["data"] == {"a": "2"}
        assert fields_of(forced.obj, "me") == {"f:data": {"f:a": {}}}

    run(schema, story)


def test_a_dry_run_applies_nothing(schema):
    async def story(api):
        tried = await apply(api, MAPS, config_map(a="1"), "fieldManager=me&dryRun=All")
        assert (tried.status, tried.obj["data"]) == (201, {"a": "1"})
        assert (await api.get(f"{MAPS}/a")).status == 404

    run(schema, story)


def test_every_door_leaves_its_own_entry(schema):
    async def story(api):
        await api.made(f"{DEPLOYMENTS}?fieldManager=maker", deployment())
        path = f"{DEPLOYMENTS}/web"
        scale = {"spec": {"replicas": 4}}
        assert (await api.patch(f"{path}/scale?fieldManager=scaler", scale, MERGE)).status == 200
        status = {"status": {"replicas": 4}, "spec": {"replicas": 9}}
        await api.patch(f"{path}/status?fieldManager=reporter", status, MERGE)
        labels = {"metadata": {"labels": {"a": "b"}}}
        got = (await api.patch(f"{path}?fieldManager=labeller", labels)).obj
        assert sorted(managers(got)) == [
            ("labeller", "Update", ""),
            ("maker", "Update", ""),
            ("reporter", "Update", "status"),
            ("scaler", "Update", "scale"),
        ]
        assert fields_of(got, "scaler") == {"f:spec": {"f:replicas": {}}}
        assert fields_of(got, "reporter") == {"f:status": {"f:replicas": {}}}
        assert "f:replicas" not in fields_of(got, "maker")["f:spec"]
        assert got["spec"]["replicas"] == 4

    run(schema, story)


def test_what_admission_adds_is_nobodys_and_defaults_are_the_makers(schema):
    async def story(api):
        made = await api.made("/api/v1/namespaces/default/pods?fieldManager=maker", pod("web"))
        assert made["spec"]["serviceAccountName"] == "default"
        spec = fields_of(made, "maker")["f:spec"]
        assert "f:dnsPolicy" in spec
        assert "f:serviceAccountName" not in spec
        assert "." not in spec["f:containers"]

    run(schema, story)


def test_a_status_is_applied_through_its_door(schema):
    async def story(api):
        await api.made(f"{DEPLOYMENTS}?fieldManager=maker", deployment())
        config = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
        config["status"] = {"replicas": 2}
        path = f"{DEPLOYMENTS}/web/status?fieldManager=me"
        got = (await api.patch(path, config, APPLY)).obj
        assert got["status"] == {"replicas": 2}
        assert ("me", "Apply", "status") in managers(got)
        missing = f"{DEPLOYMENTS}/ghost/status?fieldManager=me"
        config["metadata"]["name"] = "ghost"
        assert (await api.patch(missing, config, APPLY)).status == 404

    run(schema, story)


def scale(replicas, **metadata):
    spec = {} if replicas is None else {"replicas": replicas}
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "web", **metadata},
        "spec": spec,
    }


def test_a_scale_is_applied_among_those_who_own_the_number(schema):
    """[A7] as the original: a Scale has owners of its own, and its deployment has the same"""

    async def story(api):
        path = f"{DEPLOYMENTS}/web"
        await api.patch(f"{path}?fieldManager=maker", deployment(2), APPLY)
        door = f"{path}/scale?fieldManager=scaler"
        taken = await api.patch(door, scale(3), APPLY)
        assert taken.status == 409
        assert taken.message == (
            'Apply failed with 1 conflict: conflict with "maker": .spec.replicas'
        )
        forced = await api.patch(f"{door}&force=true", scale(3), APPLY)
        assert (forced.status, forced.obj["kind"]) == (200, "Scale")
        assert forced.obj["spec"] == {"replicas": 3}
        assert "managedFields" not in forced.obj["metadata"]
        got = (await api.get(path)).obj
        assert got["spec"]["replicas"] == 3
        assert got["metadata"]["generation"] == 2
        assert managers(got) == [("scaler", "Apply", "scale"), ("maker", "Apply", "")]
        assert fields_of(got, "scaler") == {"f:spec": {"f:replicas": {}}}
        assert "f:replicas" not in fields_of(got, "maker")["f:spec"]
        again = await api.patch(door, scale(3), APPLY)
        assert again.obj["metadata"]["resourceVersion"] == got["metadata"]["resourceVersion"]

    run(schema, story)


def test_who_updates_a_scale_is_in_the_way_of_who_applies_it(schema):
    async def story(api):
        path = f"{DEPLOYMENTS}/web"
        await api.made(f"{DEPLOYMENTS}?fieldManager=maker", deployment(2))
        patched = await api.patch(
            f"{path}/scale?fieldManager=hand", {"spec": {"replicas": 4}}, MERGE
        )
        assert patched.status == 200
        door = f"{path}/scale?fieldManager=scaler"
        taken = await api.patch(door, scale(5), APPLY)
        assert taken.message == (
            'Apply failed with 1 conflict: conflict with "hand" with subresource "scale" using '
            "autoscaling/v1: .spec.replicas"
        )
        # Who asks for what is there shares it.
        assert (await api.patch(door, scale(4), APPLY)).status == 200
        got = (await api.get(path)).obj
        assert ("hand", "Update", "scale") in managers(got)
        assert ("scaler", "Apply", "scale") in managers(got)

    run(schema, story)


def test_an_applied_scale_must_be_one_and_of_something(schema):
    async def story(api):
        path = f"{DEPLOYMENTS}/web/scale?fieldManager=scaler"
        assert (await api.patch(path, scale(1), APPLY)).status == 404
        await api.made(DEPLOYMENTS, deployment())
        nameless = await api.patch(f"{DEPLOYMENTS}/web/scale", scale(1), APPLY)
        assert nameless.status == 422
        assert "fieldManager: Required value: is required for apply patch" in nameless.message
        odd = await api.patch(path, deployment(3), APPLY)
        assert odd.status == 400
        assert "invalid object type: apps/v1, Kind=Deployment" in odd.message
        negative = await api.patch(f"{path}&force=true", scale(-1), APPLY)
        assert negative.status == 422
        stale = await api.patch(f"{path}&force=true", scale(2, resourceVersion="1"), APPLY)
        assert stale.status == 409

    run(schema, story)


def test_a_resize_is_applied_and_owns_resources_only(schema):
    """[A7] pods/resize"""

    async def story(api):
        pods = "/api/v1/namespaces/default/pods"
        made = pod("a")
        made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
        await api.made(f"{pods}?fieldManager=maker", made)
        resources = {"requests": {"cpu": "200m"}}
        wanted = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "a", "labels": {"not": "mine"}},
            "spec": {"containers": [{"name": "main", "resources": resources}]},
        }
        door = f"{pods}/a/resize?fieldManager=sizer"
        taken = await api.patch(door, wanted, APPLY)
        assert taken.status == 409
        assert 'conflict with "maker" using v1' in taken.message
        done = await api.patch(f"{door}&force=true", wanted, APPLY)
        assert done.status == 200, done.body
        assert done.obj["spec"]["containers"][0]["resources"] == resources
        assert done.obj["spec"]["containers"][0]["image"] == "registry.example/app:1"
        assert "labels" not in done.obj["metadata"]
        assert ("sizer", "Apply", "resize") in managers(done.obj)
        container = {".": {}, "f:resources": {"f:requests": {"f:cpu": {}}}}
        owned = {"f:spec": {"f:containers": {'k:{"name":"main"}': container}}}
        assert fields_of(done.obj, "sizer") == owned

    run(schema, story)


def test_ephemeral_containers_are_applied(schema):
    async def story(api):
        pods = "/api/v1/namespaces/default/pods"
        await api.made(f"{pods}?fieldManager=maker", pod("a"))
        wanted = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "a"},
            "spec": {"ephemeralContainers": [{"name": "debug", "image": "tools:1"}]},
        }
        door = f"{pods}/a/ephemeralcontainers?fieldManager=debugger"
        done = await api.patch(door, wanted, APPLY)
        assert done.status == 200, done.body
        assert done.obj["spec"]["ephemeralContainers"][0]["name"] == "debug"
        assert ("debugger", "Apply", "ephemeralcontainers") in managers(done.obj)
        assert list(fields_of(done.obj, "debugger")["f:spec"]) == ["f:ephemeralContainers"]
        assert (
            await api.patch(
                f"{pods}/b/ephemeralcontainers?fieldManager=x",
                {**wanted, "metadata": {"name": "b"}},
                APPLY,
            )
        ).status == 404

    run(schema, story)


def test_entries_are_reset_by_an_empty_one_and_kept_otherwise(schema):
    async def story(api):
        made = await api.made(f"{MAPS}?fieldManager=maker", config_map(a="1"))
        del made["metadata"]["managedFields"]
        kept = (await api.put(f"{MAPS}/a", made)).obj
        assert managers(kept) == [("maker", "Update", "")]
        empty = {"metadata": {"managedFields": [{}]}}
        reset = (await api.patch(f"{MAPS}/a", empty, MERGE)).obj
        assert managers(reset) == []
        first = await apply(api, MAPS, config_map(b="2"))
        assert managers(first.obj) == [("me", "Apply", ""), ("before-first-apply", "Update", "")]

    run(schema, story)


def test_names_and_uids_must_fit(schema):
    async def story(api):
        wrong = await api.patch(f"{MAPS}/b?fieldManager=me", config_map("a"), APPLY)
        assert wrong.status == 400
        stale = config_map(a="1")
        await apply(api, MAPS, stale)
        stale["metadata"]["resourceVersion"] = "1"
        stale["data"]["a"] = "2"
        assert (await apply(api, MAPS, stale)).status == 409

    run(schema, story)


# --- kubectl


OLD_KUBECTL = "kubectl-1.20"  # where somebody has put one beside the other


@pytest.fixture(scope="module")
def served(schema, tmp_path_factory):
    with served_api(schema, tmp_path_factory.mktemp("served")) as api:
        yield api


def manifest(data):
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: up}}\ndata: {data}\n"


@pytest.mark.slow
@pytest.mark.kubectl
@pytest.mark.parametrize("binary", ["kubectl", OLD_KUBECTL])
def test_kubectl_goes_from_client_side_to_server_side_apply(served, tmp_path, binary):
    """[C6] What it wrote by itself, it may change on the server without force."""
    if shutil.which(binary) is None:
        pytest.skip(f"no {binary} here")
    kubectl = Kubectl(served.admin, tmp_path, binary)
    kubectl.apply(manifest('{a: "1", b: "2"}'))
    on_server = ("apply", "--server-side", "-f", "-")
    assert "serverside-applied" in kubectl(*on_server, stdin=manifest('{a: "9", b: "2"}'))
    assert kubectl.get("cm", "up")["data"] == {"a": "9", "b": "2"}
    kubectl("patch", "cm", "up", "--type=merge", "-p", '{"data":{"a":"0"}}')
    said = kubectl.fails(*on_server, stdin=manifest('{a: "3", b: "2"}'))
    assert "Apply failed with 1 conflict: conflict with" in said
    kubectl(*on_server, "--force-conflicts", stdin=manifest('{a: "3", b: "2"}'))
    assert kubectl.get("cm", "up")["data"]["a"] == "3"
    kubectl("delete", "cm", "up")


@pytest.mark.slow
@pytest.mark.kubectl
def test_kubectl_shows_edits_and_diffs_what_was_applied(served, tmp_path):
    """[C6]"""
    kubectl = Kubectl(served.admin, tmp_path)
    on_server = ("--server-side", "-f", "-")
    kubectl("apply", *on_server, stdin=manifest('{a: "1"}'))
    text = kubectl("get", "cm", "up", "-o", "yaml", "--show-managed-fields")
    assert "f:data:\n        f:a: {}\n    manager: kubectl\n    operation: Apply" in text
    assert "managedFields" not in kubectl("get", "cm", "up", "-o", "yaml")
    assert kubectl("diff", *on_server, stdin=manifest('{a: "1"}')) == ""

    kubectl("delete", "cm", "up")
