"""Objects through the API's HTTP edge: created, read, changed, deleted."""

import asyncio

import pytest

from sampan.api.schema.published import Schema
from sampan.core.clock import SystemClock
from tests.support import virtual_time
from tests.support.generators.api_requests import JSON_PATCH, MERGE, api_server, pod

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def schema():
    return Schema.load()


def run(schema, story):
    async def main():
        async with api_server(schema) as api:
            await story(api)

    virtual_time.run(main())


def test_what_was_created_is_what_is_stored_and_answered(schema):
    """[A7] [A8]"""

    async def story(api):
        made = await api.made(PODS, pod("web"))
        meta = made["metadata"]
        assert meta["uid"]
        assert meta["creationTimestamp"] == "2023-11-14T22:13:20Z"
        assert (meta["namespace"], meta["generation"]) == ("default", 1)
        assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
        assert made["spec"]["serviceAccountName"] == "default"
        got = await api.get(f"{PODS}/web")
        assert got.obj == made
        untyped = {key: item for key, item in made.items() if key not in ("apiVersion", "kind")}
        assert (await api.get(PODS)).obj["items"] == [untyped]  # the list says what they are
        entry = await api.store.get("/registry/pods/default/web")
        assert str(entry.revision) == meta["resourceVersion"]
        assert b"resourceVersion" not in entry.value

    run(schema, story)


@pytest.mark.slow
def test_the_same_holds_on_a_file(schema, tmp_path):
    """[A7] [E1]"""

    async def main():
        url = f"sqlite:///{tmp_path}/state.db"
        async with api_server(schema, url, clock=SystemClock()) as api:
            made = await api.made(PODS, pod("web"))
            patched = await api.patch(f"{PODS}/web", {"metadata": {"labels": {"a": "b"}}})
            assert patched.obj["metadata"]["labels"] == {"a": "b"}
        async with api_server(schema, url, clock=SystemClock()) as api:
            again = (await api.get(f"{PODS}/web")).obj
            assert again == patched.obj
            assert again["metadata"]["uid"] == made["metadata"]["uid"]

    asyncio.run(main())


def test_a_second_start_writes_nothing(schema, tmp_path):
    async def main():
        url = f"sqlite:///{tmp_path}/state.db"
        async with api_server(schema, url, clock=SystemClock()) as api:
            revision = api.store.revision
        async with api_server(schema, url, clock=SystemClock()) as api:
            assert api.store.revision == revision

    asyncio.run(main())


def test_a_name_is_generated_and_a_taken_one_refused(schema):
    async def story(api):
        body = pod("")
        body["metadata"] = {"generateName": "job-"}
        names = {(await api.made(PODS, body))["metadata"]["name"] for _ in range(5)}
        assert len(names) == 5
        assert all(name.startswith("job-") and len(name) == 9 for name in names)
        await api.made(PODS, pod("web"))
        refused = await api.post(PODS, pod("web"))
        assert (refused.status, refused.obj["reason"]) == (409, "AlreadyExists")
        assert refused.message == 'pods "web" already exists'

    run(schema, story)


def test_a_namespace_must_be_there_and_alive(schema):
    """[A3]"""

    async def story(api):
        missing = await api.post("/api/v1/namespaces/nowhere/pods", pod("web"))
        assert (missing.status, missing.message) == (404, 'namespaces "nowhere" not found')
        await api.made("/api/v1/namespaces", {"metadata": {"name": "team"}})
        gone = await api.delete("/api/v1/namespaces/team")
        assert gone.obj["status"]["phase"] == "Terminating"
        refused = await api.post("/api/v1/namespaces/team/pods", pod("web"))
        assert refused.status == 403
        assert refused.message == (
            'pods "web" is forbidden: unable to create new content in namespace team because it is '
            "being terminated"
        )
        assert refused.obj["details"]["causes"][0]["reason"] == "NamespaceTerminating"
        immortal = await api.delete("/api/v1/namespaces/default")
        assert immortal.message == (
            'namespaces "default" is forbidden: this namespace may not be deleted'
        )

    run(schema, story)


def test_a_new_namespace_has_its_account_and_bundle_at_once(schema):
    """[X3]"""

    async def story(api):
        await api.made("/api/v1/namespaces", {"metadata": {"name": "team"}})
        assert (await api.get("/api/v1/namespaces/team/serviceaccounts/default")).status == 200
        assert (await api.get("/api/v1/namespaces/team/configmaps/kube-root-ca.crt")).status == 200
        await api.made("/api/v1/namespaces/team/pods", pod("web"))

    run(schema, story)


def test_a_namespace_leaves_when_its_finalizers_are_gone(schema):
    async def story(api):
        path = "/api/v1/namespaces/team"
        await api.made("/api/v1/namespaces", {"metadata": {"name": "team"}})
        leaving = (await api.delete(path)).obj
        assert leaving["spec"]["finalizers"] == ["kubernetes"]
        leaving["spec"]["finalizers"] = []
        done = await api.put(f"{path}/finalize", leaving)
        assert done.status == 200, done.body
        assert (await api.get(path)).status == 404

    run(schema, story)


def test_an_update_based_on_an_old_state_is_refused(schema):
    async def story(api):
        first = await api.made(PODS, pod("web"))
        second = {**first, "metadata": {**first["metadata"], "labels": {"v": "2"}}}
        assert (await api.put(f"{PODS}/web", second)).status == 200
        third = {**first, "metadata": {**first["metadata"], "labels": {"v": "3"}}}
        refused = await api.put(f"{PODS}/web", third)
        assert refused.status == 409
        assert refused.message == (
            'Operation cannot be fulfilled on pods "web": the object has been modified; please '
            "apply your changes to the latest version and try again"
        )
        del third["metadata"]["resourceVersion"]
        unconditional = await api.put(f"{PODS}/web", third)
        assert unconditional.obj["metadata"]["labels"] == {"v": "3"}

    run(schema, story)


def test_a_lease_cannot_be_replaced_unconditionally(schema):
    async def story(api):
        path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        await api.made(path, {"metadata": {"name": "x"}, "spec": {"holderIdentity": "a"}})
        refused = await api.put(
            f"{path}/x", {"metadata": {"name": "x"}, "spec": {"holderIdentity": "b"}}
        )
        assert refused.status == 422
        assert "must be specified for an update" in refused.message

    run(schema, story)


def test_an_update_that_changes_nothing_writes_nothing(schema):
    async def story(api):
        made = await api.made(PODS, pod("web"))
        revision = api.store.revision
        again = await api.put(f"{PODS}/web", made)
        assert again.obj == made
        assert api.store.revision == revision

    run(schema, story)


def test_the_servers_own_fields_cannot_be_changed(schema):
    async def story(api):
        made = await api.made(PODS, pod("web"))
        changed = {**made, "metadata": {**made["metadata"]}, "status": {"phase": "Running"}}
        changed["metadata"] |= {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 99}
        got = (await api.put(f"{PODS}/web", changed)).obj
        assert got["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]
        assert got["metadata"]["generation"] == 1
        assert got["status"] == made["status"]
        changed["metadata"]["uid"] = "another"
        other = await api.put(f"{PODS}/web", changed)
        assert other.status == 409
        assert "UID in precondition: another" in other.message

    run(schema, story)


def test_status_is_written_apart_from_spec(schema):
    async def story(api):
        made = await api.made(PODS, pod("web"))
        changed = {**made, "status": {"phase": "Running"}, "spec": {"containers": []}}
        got = (await api.put(f"{PODS}/web/status", changed)).obj
        assert got["status"] == {"phase": "Running", "qosClass": "BestEffort"}
        assert got["spec"] == made["spec"]
        patch = {"status": {"podIP": "10.0.0.9"}, "spec": {"nodeName": "sneaky"}}
        got = (await api.patch(f"{PODS}/web/status", patch)).obj
        assert got["status"]["podIP"] == "10.0.0.9"
        assert "nodeName" not in got["spec"]

    run(schema, story)


def test_generation_counts_changes_of_spec_only(schema):
    async def story(api):
        path = "/apis/apps/v1/namespaces/default/deployments"
        await api.made(path, deployment("web", replicas=1))
        labelled = await api.patch(f"{path}/web", {"metadata": {"labels": {"a": "b"}}})
        assert labelled.obj["metadata"]["generation"] == 1
        scaled = await api.patch(f"{path}/web", {"spec": {"replicas": 3}})
        assert scaled.obj["metadata"]["generation"] == 2
        status = await api.patch(f"{path}/web/status", {"status": {"replicas": 3}})
        assert status.obj["metadata"]["generation"] == 2

    run(schema, story)


def test_annotations_of_deployments_count_as_a_generation_but_not_by_their_status(schema):
    async def story(api):
        path = "/apis/apps/v1/namespaces/default/deployments"
        await api.made(path, deployment("web", replicas=1))
        said = {"metadata": {"annotations": {"kubernetes.io/change-cause": "new image"}}}
        assert (await api.patch(f"{path}/web", said)).obj["metadata"]["generation"] == 2
        revision = {"metadata": {"annotations": {"deployment.kubernetes.io/revision": "1"}}}
        meta = (await api.patch(f"{path}/web/status", revision)).obj["metadata"]
        assert meta["generation"] == 2
        assert meta["annotations"]["deployment.kubernetes.io/revision"] == "1"

    run(schema, story)


def test_three_kinds_of_patches_and_the_fourth_wants_a_manager(schema):
    async def story(api):
        await api.made(PODS, pod("web"))
        image = {"spec": {"containers": [{"name": "main", "image": "other:2"}]}}
        got = (await api.patch(f"{PODS}/web", image)).obj
        assert [one["image"] for one in got["spec"]["containers"]] == ["other:2"]
        got = (await api.patch(f"{PODS}/web", {"metadata": {"labels": {"a": "1"}}}, MERGE)).obj
        assert got["metadata"]["labels"] == {"a": "1"}
        operations = [{"op": "replace", "path": "/metadata/labels/a", "value": "2"}]
        got = (await api.patch(f"{PODS}/web", operations, JSON_PATCH)).obj
        assert got["metadata"]["labels"] == {"a": "2"}
        refused = await api.patch(f"{PODS}/web", {}, "application/apply-patch+yaml")
        assert (refused.status, refused.obj["details"]["causes"][0]["field"]) == (
            422,
            "fieldManager",
        )
        stale = {"metadata": {"resourceVersion": "1", "labels": {"a": "3"}}}
        assert (await api.patch(f"{PODS}/web", stale, MERGE)).status == 409

    run(schema, story)


def test_unknown_and_repeated_fields_by_field_validation(schema):
    """[A4]"""

    async def story(api):
        body = pod("web")
        body["spec"]["foo"] = 1
        strict = await api.post(f"{PODS}?fieldValidation=Strict", body)
        assert strict.status == 400
        assert 'strict decoding error: unknown field "spec.foo"' in strict.message
        warned = await api.post(PODS, body)
        assert warned.status == 201
        assert warned.headers["warning"] == '299 - "unknown field \\"spec.foo\\""'
        twice = b'{"metadata":{"name":"a","name":"b"},"spec":{"containers":[]}}'
        strict = await api.post(f"{PODS}?fieldValidation=Strict", twice)
        assert 'duplicate field "metadata.name"' in strict.message
        ignored = await api.post(f"{PODS}?fieldValidation=Ignore&dryRun=All", body | {"x": 1})
        assert "warning" not in ignored.headers

    run(schema, story)


def test_every_cause_of_an_invalid_object_is_named(schema):
    """[A4]"""

    async def story(api):
        reply = await api.post(PODS, {"metadata": {"name": "Web"}, "spec": {"containers": [{}]}})
        assert reply.status == 422
        fields = {cause["field"] for cause in reply.obj["details"]["causes"]}
        assert {"metadata.name", "spec.containers[0].name"} <= fields

    run(schema, story)


def test_dry_run_shows_and_stores_nothing(schema):
    async def story(api):
        shown = await api.post(f"{PODS}?dryRun=All", pod("web"))
        assert shown.status == 201
        assert shown.obj["metadata"]["uid"]
        assert "resourceVersion" not in shown.obj["metadata"]
        assert (await api.get(f"{PODS}/web")).status == 404
        await api.made(PODS, pod("web"))
        revision = api.store.revision
        changed = await api.patch(f"{PODS}/web?dryRun=All", {"metadata": {"labels": {"a": "b"}}})
        assert changed.obj["metadata"]["labels"] == {"a": "b"}
        assert (await api.delete(f"{PODS}/web?dryRun=All")).status == 200
        assert api.store.revision == revision
        wrong = await api.post(f"{PODS}?dryRun=Some", pod("other"))
        assert wrong.status == 422

    run(schema, story)


def test_deleting_a_running_pod_takes_its_grace(schema):
    async def story(api):
        await api.made(PODS, pod("web", terminationGracePeriodSeconds=20))
        binding = {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n1"}}
        assert (await api.post(f"{PODS}/web/binding", binding)).status == 201
        leaving = (await api.delete(f"{PODS}/web")).obj["metadata"]
        assert leaving["deletionGracePeriodSeconds"] == 20
        assert leaving["deletionTimestamp"] == "2023-11-14T22:13:40Z"
        assert leaving["generation"] == 2
        longer = (await api.delete(f"{PODS}/web?gracePeriodSeconds=90")).obj["metadata"]
        assert longer == leaving
        shorter = (await api.delete(f"{PODS}/web", {"gracePeriodSeconds": 5})).obj["metadata"]
        assert shorter["deletionGracePeriodSeconds"] == 5
        assert shorter["deletionTimestamp"] == "2023-11-14T22:13:25Z"
        wrong = {"gracePeriodSeconds": 0, "preconditions": {"uid": "other"}}
        assert (await api.delete(f"{PODS}/web", wrong)).status == 409
        assert (await api.delete(f"{PODS}/web", {"gracePeriodSeconds": 0})).status == 200
        assert (await api.get(f"{PODS}/web")).status == 404

    run(schema, story)


def test_finalizers_hold_an_object_until_they_are_gone(schema):
    async def story(api):
        path = "/api/v1/namespaces/default/configmaps"
        await api.made(path, {"metadata": {"name": "x", "finalizers": ["example.com/hold"]}})
        held = (await api.delete(f"{path}/x")).obj
        assert held["metadata"]["deletionTimestamp"]
        assert held["metadata"]["deletionGracePeriodSeconds"] == 0
        freed = await api.patch(f"{path}/x", {"metadata": {"finalizers": None}}, MERGE)
        assert freed.status == 200
        assert (await api.get(f"{path}/x")).status == 404

    run(schema, story)


def test_propagation_sets_the_garbage_collectors_finalizers(schema):
    async def story(api):
        path = "/apis/apps/v1/namespaces/default/deployments"
        await api.made(path, deployment("web", replicas=1))
        held = await api.delete(f"{path}/web", {"propagationPolicy": "Foreground"})
        assert held.obj["metadata"]["finalizers"] == ["foregroundDeletion"]
        orphan = await api.delete(f"{path}/web", {"propagationPolicy": "Orphan"})
        assert orphan.obj["metadata"]["finalizers"] == ["orphan"]
        gone = await api.delete(f"{path}/web", {"propagationPolicy": "Background"})
        assert gone.obj["status"] == "Success"
        assert gone.obj["details"]["kind"] == "deployments"

    run(schema, story)


def test_a_collection_is_deleted_by_its_selectors(schema):
    async def story(api):
        for name, team in (("a", "red"), ("b", "blue"), ("c", "red")):
            body = pod(name)
            body["metadata"]["labels"] = {"team": team}
            await api.made(PODS, body)
        gone = await api.delete(f"{PODS}?labelSelector=team%3Dred&fieldSelector=metadata.name!%3Dc")
        assert (gone.obj["kind"], gone.items) == ("PodList", ["a"])
        assert (await api.get(PODS)).items == ["b", "c"]

    run(schema, story)


def test_yaml_goes_in_and_comes_out(schema):
    """[A11]"""

    async def story(api):
        text = b"metadata: {name: x}\ndata:\n  when: 2026-01-01\n"
        path = "/api/v1/namespaces/default/configmaps"
        yaml = {"content-type": "application/yaml", "accept": "application/yaml"}
        made = await api.send("POST", path, text, headers=yaml)
        assert made.status == 201, made.body
        assert b"when: '2026-01-01'" in made.body
        assert made.headers["content-type"] == "application/yaml"

    run(schema, story)


def test_protobuf_is_read_and_answered_in_json(schema):
    """[A11]"""

    async def story(api):
        protobuf = "application/vnd.kubernetes.protobuf"
        headers = {"content-type": protobuf, "accept": f"{protobuf}, */*"}
        type_meta = b"\x0a\x02v1\x12\x09ConfigMap"
        # ObjectMeta{name: "x"}, data: {"a": "b"}
        raw = b"\x0a\x03\x0a\x01x" + b"\x12\x06\x0a\x01a\x12\x01b"
        body = b"k8s\0\x0a" + bytes([len(type_meta)]) + type_meta + b"\x12"
        body += bytes([len(raw)]) + raw
        path = "/api/v1/namespaces/default/configmaps"
        made = await api.send("POST", path, body, headers=headers)
        assert made.status == 201, made.body
        assert made.obj["data"] == {"a": "b"}
        broken = await api.send("POST", path, body[:-2], headers=headers)
        assert (broken.status, broken.obj["kind"]) == (400, "Status")
        listed = await api.get(PODS, accept=protobuf)
        assert (listed.status, listed.headers["content-type"]) == (200, protobuf)
        assert (await api.get(PODS, accept=f"{protobuf},application/json")).status == 200

    run(schema, story)


def test_names_and_namespaces_must_agree(schema):
    async def story(api):
        await api.made(PODS, pod("web"))
        other = await api.put(f"{PODS}/web", pod("other"))
        assert other.message == (
            "the name of the object (other) does not match the name on the URL (web)"
        )
        body = pod("x")
        body["metadata"]["namespace"] = "kube-system"
        assert (await api.post(PODS, body)).message == (
            "the namespace of the provided object does not match the namespace sent on the request"
        )
        wrong = await api.post(PODS, {"apiVersion": "v1", "kind": "Service", "metadata": {}})
        assert wrong.status == 400
        assert 'Service in version "v1" cannot be handled as a Pod' in wrong.message

    run(schema, story)


def deployment(name, replicas):
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod(name)["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def _but_identity(pod):
    own = ("name", "uid", "resourceVersion")
    return {**pod, "metadata": {k: v for k, v in pod["metadata"].items() if k not in own}}


def test_the_fourth_pod_of_a_template_is_made_as_the_first(schema):
    """Whatever is known of those before it."""
    limits = {"limits": {"cpu": "1000m", "memory": "1Mi"}}
    template = pod("")["spec"] | {"tolerations": [{"key": "a", "operator": "Exists"}]}
    template["containers"] = [{**template["containers"][0], "resources": limits, "odd": 1}]
    known = template | {"containers": [{**template["containers"][0]}]}
    del known["containers"][0]["odd"]
    wrong = known | {"dnsPolicy": "Never heard of"}
    mirror = {"kubernetes.io/config.mirror": "x"}

    async def outcome(api, name, spec, **meta):
        body = pod(name) | {"spec": spec}
        body["metadata"] |= meta
        answer = await api.post(PODS, body)
        told = answer.headers.get("warning", "")
        if answer.status == 201:
            return _but_identity(answer.obj), told
        return answer.status, answer.obj["message"].replace(name, "NAME"), told

    async def story(api):
        for spec, words in ((known, ""), (template, "unknown field"), (wrong, "dnsPolicy")):
            outcomes = [await outcome(api, f"a{i}", spec) for i in range(4)]
            assert outcomes == outcomes[:1] * 4
            assert words in f"{outcomes[0][1]}"
            for item in (await api.get(PODS)).obj["items"]:
                await api.delete(f"{PODS}/{item['metadata']['name']}")
        # A good spec, but not with this annotation, this name or these labels.
        assert (await outcome(api, "a5", known, annotations=mirror))[0] == 422
        assert (await outcome(api, "A_5", known))[0] == 422
        assert (await outcome(api, "a5", known, labels={"a": "?"}))[0] == 422
        assert "hostname" in (await outcome(api, "a.b", known))[1]

    run(schema, story)


_BY_PUT = {
    "/api/v1/namespaces/default/services": {"spec": {"ports": [{"port": 80}]}},
    "/api/v1/namespaces/default/limitranges": {"spec": {"limits": []}},
    "/apis/coordination.k8s.io/v1/namespaces/default/leases": {"spec": {"holderIdentity": "a"}},
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles": {"rules": []},
}


@pytest.mark.parametrize("path", _BY_PUT)
def test_a_put_creates_where_its_kind_lets_it_and_the_caller_may(schema, path):
    async def story(api):
        body = {"metadata": {"name": "x", "resourceVersion": "5"}, **_BY_PUT[path]}
        refused = await api.send("PUT", f"{path}/x", body, user="bob", group="dev")
        assert refused.status == 403
        other = await api.put(f"{path}/y", body)
        assert (other.status, other.obj["reason"]) == (400, "BadRequest")
        named = {**body, "metadata": {"name": "x", "uid": "gone"}}
        assert (await api.put(f"{path}/x", named)).obj["reason"] == "Conflict"
        made = await api.put(f"{path}/x", body)
        assert made.status == 201, made.obj
        assert (await api.get(f"{path}/x")).obj == made.obj
        assert (await api.put(f"{path}/x", made.obj)).status == 200

    run(schema, story)


def test_a_put_of_other_kinds_and_a_patch_find_nothing(schema):
    async def story(api):
        account = {"metadata": {"name": "x"}}
        path = "/api/v1/namespaces/default/serviceaccounts/x"
        assert (await api.put(path, account)).status == 404
        leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        assert (await api.patch(f"{leases}/x", {"spec": {}}, MERGE)).status == 404
        grant = {"rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
                            "verbs": ["update"]}]}  # fmt: skip
        roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
        await api.made(f"{roles}/roles", {"metadata": {"name": "r"}, **grant})
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}
        bound = {"metadata": {"name": "b"}, "roleRef": ref, "subjects": [subject]}
        await api.made(f"{roles}/rolebindings", bound)
        lease = {"metadata": {"name": "x"}, "spec": {"holderIdentity": "bob"}}
        done = await api.send("PUT", f"{leases}/x", lease, user="bob", group="dev")
        assert done.status == 403, "who may only update creates nothing"

    run(schema, story)
