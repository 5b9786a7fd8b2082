"""Small rules of a request, through the API's HTTP edge: deadlines, forms, words."""

import asyncio

import pytest

from sampan.api.schema.published import Schema
from sampan.core.clock import SystemClock
from sampan.core.tasks import Tasks
from tests.support import virtual_time
from tests.support.generators.api_requests import MERGE, api_server, pod

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
REVIEW = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.fixture(scope="module")
def schema():
    return Schema.load()


def run(schema, story):
    async def main():
        async with api_server(schema) as api:
            await story(api)

    virtual_time.run(main())


def test_a_question_has_no_table(schema):
    """[A12]"""

    async def story(api):
        asked = await api.send("POST", REVIEWS, REVIEW, headers={"accept": TABLE})
        assert asked.status == 406
        either = f"{TABLE},application/json"
        asked = await api.send("POST", REVIEWS, REVIEW, headers={"accept": either})
        assert asked.obj["status"]["allowed"] is True
        assert (await api.post(REVIEWS, REVIEW)).obj["status"]["allowed"] is True

    run(schema, story)


def test_a_method_is_wrong_only_where_something_is(schema):
    """[A7]"""

    async def story(api):
        assert (await api.post("/nobody", {})).status == 404
        assert (await api.post("/version", {})).status == 405

    run(schema, story)


def test_a_stored_job_without_labels_has_its_pods(schema):
    """[A4] as the original defaults it whenever it reads it; a dry run is not read."""

    async def story(api):
        template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
        jobs = "/apis/batch/v1/namespaces/default/jobs"
        job = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template}}
        job["metadata"] = {"name": "work"}
        tried = await api.post(f"{jobs}?dryRun=All", job)
        assert "labels" not in tried.obj["metadata"]
        created = (await api.post(jobs, job)).obj
        assert created["metadata"]["labels"]["job-name"] == "work"
        assert created["metadata"]["labels"] == created["spec"]["template"]["metadata"]["labels"]
        named = {**job, "metadata": {"name": "named", "labels": {"own": "yes"}}}
        assert (await api.post(jobs, named)).obj["metadata"]["labels"] == {"own": "yes"}

    run(schema, story)


def test_a_timeout_must_be_a_duration(schema):
    """[A7]"""

    async def story(api):
        bad = await api.get(f"{PODS}?timeout=soon")
        assert (bad.status, bad.message) == (
            400,
            'invalid timeout specified in the request URL - time: invalid duration "soon"',
        )
        missing = await api.get(f"{PODS}?timeout=10")
        assert missing.message.endswith('time: missing unit in duration "10"')
        assert (await api.get(f"{PODS}?timeout=10s")).status == 200
        assert (await api.get(f"{PODS}?timeout=0s")).status == 200

    run(schema, story)


def test_a_request_ends_at_its_own_deadline(schema):
    """[A7] Here one that waits for a version which does not come."""

    async def story(api):
        late = await api.get(f"{PODS}?resourceVersion=999999&timeout=1s")
        assert (late.status, late.obj["reason"]) == (504, "Timeout")
        assert late.message == (
            "Timeout: request did not complete within requested timeout - context deadline exceeded"
        )
        patient = await api.get(f"{PODS}?resourceVersion=999999&timeout=1h")
        assert patient.message.startswith("Timeout: Too large resource version")

    run(schema, story)


def test_unknown_fields_are_named_before_doubled_ones(schema):
    """[A4]"""

    async def story(api):
        body = b'{"metadata":{"name":"a"},"data":{"a":"1","a":"2"},"nosuch":1}'
        refused = await api.send("POST", f"{MAPS}?fieldValidation=Strict", body)
        assert refused.message == (
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
            'unknown field "nosuch", duplicate field "data.a"'
        )

    run(schema, story)


def test_a_refusal_carries_its_warnings(schema):
    """[A4]"""

    async def story(api):
        body = {"metadata": {"name": "a"}, "data": {"bad key": "1"}, "nosuch": 1}
        refused = await api.post(f"{MAPS}?fieldValidation=Warn", body)
        assert refused.status == 422
        assert refused.headers["warning"] == '299 - "unknown field \\"nosuch\\""'

    run(schema, story)


def test_a_version_on_a_new_object_is_found_after_everything_else(schema):
    """[A7]"""

    async def story(api):
        wrong = pod("a", containers=[])
        wrong["metadata"]["resourceVersion"] = "7"
        assert (await api.post(PODS, wrong)).status == 422
        versioned = pod("a")
        versioned["metadata"]["resourceVersion"] = "7"
        refused = await api.post(PODS, versioned)
        assert refused.status == 500
        assert refused.message == "resourceVersion should not be set on objects to be created"
        assert "reason" not in refused.obj
        versioned["metadata"]["resourceVersion"] = "0"
        assert (await api.post(PODS, versioned)).status == 201

    run(schema, story)


def test_a_strategic_patch_may_say_that_it_is_something_else(schema):
    """[A7] As ansible's k8s_scale does."""

    async def story(api):
        path = "/apis/apps/v1/namespaces/default/deployments"
        await api.made(path, made("a", "deployments"))
        patch = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 3}}
        scaled = await api.patch(f"{path}/a/scale", patch)
        assert (scaled.status, scaled.obj["kind"]) == (200, "Scale")
        assert scaled.obj["spec"]["replicas"] == 3
        refused = await api.patch(f"{path}/a/scale", patch, MERGE)
        assert refused.status == 422
        assert "converting (v1.Deployment) to (autoscaling.Scale)" in refused.message

    run(schema, story)


@pytest.mark.slow
def test_a_webhook_that_does_not_answer_is_told_with_its_deadline(schema):
    """[A3]"""

    async def main():
        never = asyncio.Event()

        async def silent(_reader, writer):
            await never.wait()
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with api_server(schema, clock=SystemClock()) as api:
            hook = {
                "name": "slow.example.com", "sideEffects": "None", "timeoutSeconds": 1,
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": f"https://127.0.0.1:{port}/hook"},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                           "resources": ["configmaps"]}],
            }  # fmt: skip
            path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
            await api.made(path, {"metadata": {"name": "slow"}, "webhooks": [hook]})
            refused = await api.post(MAPS, {"metadata": {"name": "a"}})
            assert refused.message == (
                'Internal error occurred: failed calling webhook "slow.example.com": failed to'
                f' call webhook: Post "https://127.0.0.1:{port}/hook?timeout=1s": '
                "context deadline exceeded"
            )
        never.set()
        server.close()
        await server.wait_closed()

    asyncio.run(main())


def made(name, kind):
    labels = {"a": name}
    template = {"metadata": {"labels": labels}, "spec": pod(name)["spec"]}
    if kind == "jobs":
        template["spec"] = {**template["spec"], "restartPolicy": "Never"}
        return {"metadata": {"name": name}, "spec": {"template": template}}
    selector = labels if kind == "replicationcontrollers" else {"matchLabels": labels}
    return {"metadata": {"name": name}, "spec": {"selector": selector, "template": template}}


@pytest.mark.parametrize(
    ("path", "orphans"),
    [
        ("/api/v1/namespaces/default/replicationcontrollers", True),
        ("/apis/batch/v1/namespaces/default/jobs", True),
        ("/apis/apps/v1/namespaces/default/replicasets", False),
        ("/apis/apps/v1/namespaces/default/deployments", False),
    ],
)
def test_every_kind_has_its_own_way_with_dependents(schema, path, orphans):
    """[A7] Where a deletion does not say what becomes of them."""

    async def story(api):
        kind = path.rpartition("/")[2]
        for name in ("a", "b"):
            assert (await api.post(path, made(name, kind))).status == 201
        gone = await api.delete(f"{path}/a")
        left = await api.get(f"{path}/a")
        assert (left.status == 200) is orphans
        if orphans:
            assert left.obj["metadata"]["finalizers"] == ["orphan"]
        warned = gone.headers.get("warning", "")
        assert warned.startswith('299 - "child pods are preserved') is (kind == "jobs")
        said = await api.delete(f"{path}/b", {"propagationPolicy": "Background"})
        assert "warning" not in said.headers
        assert (await api.get(f"{path}/b")).status == 404

    run(schema, story)


def test_a_volume_remembers_since_when_it_is_in_its_phase(schema):
    """[A7]"""

    async def story(api):
        path = "/api/v1/persistentvolumes"
        spec = {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/x"},
        }  # fmt: skip
        first = (await api.made(path, {"metadata": {"name": "v"}, "spec": spec}))["status"]
        await asyncio.sleep(60)
        same = await api.patch(f"{path}/v/status", {"status": {"message": "m"}}, MERGE)
        assert same.obj["status"]["lastPhaseTransitionTime"] == first["lastPhaseTransitionTime"]
        moved = await api.patch(f"{path}/v/status", {"status": {"phase": "Available"}}, MERGE)
        assert moved.obj["status"]["lastPhaseTransitionTime"] == "2023-11-14T22:14:20Z"

    run(schema, story)


FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"
_USER_RULE = {
    "subjects": [{"kind": "User", "user": {"name": "flooder"}}],
    "resourceRules": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
    ],
}


def test_a_reply_says_by_whom_its_request_was_classified(schema):
    async def story(api):
        async def classified():
            asked = await api.send("GET", PODS, user="flooder", group="dev")
            headers = dict(asked.headers)
            return tuple(headers[f"x-kubernetes-pf-{each}-uid"]
                         for each in ("flowschema", "prioritylevel"))  # fmt: skip

        async def uid_of(plural, name):
            return (await api.get(f"{FLOWS}/{plural}/{name}")).obj["metadata"]["uid"]

        usual = (
            await uid_of("flowschemas", "global-default"),
            await uid_of("prioritylevelconfigurations", "global-default"),
        )
        assert await classified() == usual
        spec = {"priorityLevelConfiguration": {"name": "mine"}, "matchingPrecedence": 900,
                "rules": [_USER_RULE]}  # fmt: skip
        made = await api.made(f"{FLOWS}/flowschemas", {"metadata": {"name": "mine"}, "spec": spec})
        assert await classified() == usual, "it leads nowhere yet"
        limited = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
        level = await api.made(
            f"{FLOWS}/prioritylevelconfigurations", {"metadata": {"name": "mine"}, "spec": limited}
        )
        assert await classified() == (made["metadata"]["uid"], level["metadata"]["uid"])

    run(schema, story)


def test_what_every_cluster_has_of_flow_schemas_cannot_be_changed_and_comes_back(schema):
    async def until(true):
        async with asyncio.timeout(60):
            while not await true():
                await asyncio.sleep(0.1)

    async def story(api):
        tasks = Tasks("test")
        tasks.start("upkeep", api.server.keep_repaired())
        for path, spec in (
            ("flowschemas/exempt", {"matchingPrecedence": 2}),
            ("flowschemas/catch-all", {"distinguisherMethod": None}),
            ("prioritylevelconfigurations/catch-all", {"limited": {"lendablePercent": 9}}),
        ):
            done = await api.patch(f"{FLOWS}/{path}", {"spec": spec}, MERGE)
            name = path.partition("/")[2]
            assert done.status == 422
            assert f"spec of '{name}' must equal the fixed value" in done.obj["message"]
            labelled = await api.patch(f"{FLOWS}/{path}", {"metadata": {"labels": {}}}, MERGE)
            assert labelled.status == 200, labelled.obj
            before = (await api.get(f"{FLOWS}/{path}")).obj
            await api.send("DELETE", f"{FLOWS}/{path}")

            async def is_back(path=path, before=before):
                found = await api.get(f"{FLOWS}/{path}")
                return found.status == 200 and found.obj["spec"] == before["spec"]

            await until(is_back)
        await tasks.stop()

    run(schema, story)
