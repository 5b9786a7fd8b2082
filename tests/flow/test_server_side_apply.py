"""Server-side apply and managedFields through the API, and with kubectl as judge. [A7]"""

import shutil

import pytest

from sampan.api.schema import Schema
from sampan.testing import virtual_time
from sampan.testing.api_requests import MERGE, api_server, pod
from sampan.testing.kubectl import Kubectl
from sampan.testing.served_api import served_api

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
