"""Custom resources when somebody misbehaves: webhooks that hang or lie, definitions that go."""

import asyncio
import gc
from base64 import b64encode
from contextlib import asynccontextmanager

import orjson
import pytest

from sampan.api.custom.soundness import _Writer
from sampan.api.custom.value_validation import _Compiled
from sampan.api.schema.published import Schema
from sampan.apiserver.extension.conversion import AT_ONCE_BYTES
from sampan.apiserver.extension.conversion_webhook import BadAnswer, converted_of, review_of
from sampan.apiserver.watch.watch_cache import WINDOW_SECONDS
from sampan.core.clock import SystemClock
from sampan.core.http.messages import Request, Response, Stream
from sampan.core.http.server import Server
from sampan.core.tls import server_context
from tests.support import virtual_time
from tests.support.generators.api_requests import MERGE, api_server, client_certificate
from tests.support.parts.certificates import Authority
from tests.support.parts.loop_holds import loop_holds
from tests.support.processor_time import without_collector

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCHEMA = {
    "type": "object",
    "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
}


def definition(*versions, **more):
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "boats", "kind": "Boat"},
            "versions": [
                {
                    "name": one, "served": True, "storage": at == 0,
                    "schema": {"openAPIV3Schema": SCHEMA},
                }
                for at, one in enumerate(versions)
            ],
            **more,
        },
    }  # fmt: skip


def boat(name, version="v1", **spec):
    head = {"apiVersion": f"example.com/{version}", "kind": "Boat"}
    return {**head, "metadata": {"name": name}, "spec": spec}


def path(version="v1", name=""):
    where = f"/apis/example.com/{version}/namespaces/default/boats"
    return f"{where}/{name}" if name else where


async def served(api, *versions, **more):
    reply = await api.post(DEFINITIONS, definition(*versions, **more))
    assert reply.status == 201, reply.body
    while (await api.get(path(versions[0]))).status != 200:
        await asyncio.sleep(0.01)


OBJECTS = [
    {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "a", "uid": "1"}},
    {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "b", "uid": "2"}},
]
GOOD = [{**one, "apiVersion": "example.com/v2", "spec": {"x": 1}} for one in OBJECTS]


def answer(converted, **more):
    response = {"uid": "u", "result": {"status": "Success"}, "convertedObjects": converted, **more}
    head = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1"}
    return {**head, "response": response}


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (answer(GOOD[:1]), "returned 1 objects, expected 2"),
        (answer(GOOD, uid="other"), "expected response.uid"),
        (answer(GOOD, result={"status": "Failure", "message": "no way"}), "no way"),
        (answer(GOOD, result={}), "response.result.status was '', expected 'Success'"),
        (answer(OBJECTS), "invalid apiVersion"),
        (answer([{**GOOD[0], "kind": "Ship"}, GOOD[1]]), "must have the same kind"),
        (answer([{**GOOD[0], "metadata": {"name": "c", "uid": "1"}}, GOOD[1]]), "same name"),
        (answer([{**GOOD[0], "metadata": {"name": "a", "uid": "9"}}, GOOD[1]]), "same UID"),
        (answer([1, 2]), "missing metadata"),
        ({"kind": "ConversionReview"}, "expected webhook response of"),
        ({**answer(GOOD), "response": None}, "no response provided"),
    ],
)
def test_a_webhook_that_lies_is_not_believed(said, why):
    assert review_of(OBJECTS, "example.com/v2", "u")["request"]["uid"] == "u"
    with pytest.raises(BadAnswer, match=why.replace("(", ".")):
        converted_of(said, OBJECTS, "example.com/v2", "u")


def test_of_metadata_only_labels_and_annotations_are_the_webhooks():
    changed = {"name": "a", "uid": "1", "labels": {"x": "y"}, "finalizers": ["f"], "generation": 9}
    found = converted_of(
        answer([{**GOOD[0], "metadata": changed}, GOOD[1]]), OBJECTS, "example.com/v2", "u"
    )
    assert found[0]["metadata"] == {"name": "a", "uid": "1", "labels": {"x": "y"}}
    assert found[0]["spec"] == {"x": 1}


def renamed(obj, wanted):
    """What v1 calls size, v2 calls length."""
    spec = dict(obj.get("spec") or {})
    old, new = ("size", "length") if wanted.endswith("v2") else ("length", "size")
    if old in spec:
        spec[new] = spec.pop(old)
    return {**obj, "apiVersion": wanted, "spec": spec}


class ConversionWebhook:
    """What it was asked; how it answers can be changed while it runs."""

    def __init__(self, folder):
        self.asked = []
        self.converted = renamed
        self.hangs = asyncio.Event()
        self.hangs.set()
        self._authority = Authority(folder)

    async def _answer(self, request: Request) -> Response:
        review = orjson.loads(request.body)["request"]
        self.asked.append(len(review["objects"]))
        await self.hangs.wait()
        out = [self.converted(obj, review["desiredAPIVersion"]) for obj in review["objects"]]
        said = answer([obj for obj in out if obj is not None], uid=review["uid"])
        return Response(200, (("content-type", "application/json"),), orjson.dumps(said))

    @asynccontextmanager
    async def serving(self):
        """As the `conversion` of a definition."""
        pair = self._authority.issue("webhook")
        server = Server(self._answer, ssl_context=server_context(pair.cert_path, pair.key_path))
        port = await server.start("127.0.0.1", 0)
        bundle = b64encode(self._authority.ca_path.read_bytes()).decode()
        client = {"url": f"https://127.0.0.1:{port}/convert", "caBundle": bundle}
        hook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
        try:
            yield {"strategy": "Webhook", "webhook": hook}
        finally:
            await server.stop(0.1)


def with_webhook(folder, story):
    async def told():
        webhook = ConversionWebhook(folder)
        async with (
            webhook.serving() as conversion,
            api_server(Schema.load(), clock=SystemClock()) as api,
        ):
            await served(api, "v1", "v2", conversion=conversion)
            return await story(api, webhook)

    return asyncio.run(told())


@pytest.mark.slow
def test_objects_are_read_and_written_through_a_conversion_webhook(tmp_path):
    async def story(api, webhook):
        for name in ("a", "b"):
            assert (await api.post(path("v1"), boat(name, size=3))).status == 201
        found = (await api.get(path("v2"))).obj["items"]
        assert [item["spec"] for item in found] == [{"length": 3}, {"length": 3}]
        assert webhook.asked == [2], "one question for a whole list"
        await api.get(path("v2", "a"))
        assert webhook.asked == [2], "what was converted is kept"
        made = await api.post(path("v2"), boat("c", "v2", length=5))
        assert made.obj["spec"] == {"length": 5}
        assert (await api.get(path("v1", "c"))).obj["spec"] == {"size": 5}

    with_webhook(tmp_path, story)


@pytest.mark.slow
def test_a_watch_and_patches_speak_the_version_that_they_ask_for(tmp_path):
    async def story(api, _webhook):
        made = (await api.post(path("v1"), boat("a", size=3))).obj
        revision = made["metadata"]["resourceVersion"]
        watch = await api.watch(f"{path('v2')}?resourceVersion={revision}")
        for kind, body in (
            ("application/merge-patch+json", {"spec": {"length": 4}}),
            ("application/json-patch+json", [
                {"op": "test", "path": "/spec/length", "value": 4},
                {"op": "replace", "path": "/spec/length", "value": 5},
            ]),
        ):  # fmt: skip
            reply = await api.patch(path("v2", "a"), body, kind)
            assert reply.status == 200, reply.body
            event = await watch.next()
            assert event["object"]["apiVersion"] == "example.com/v2"
            assert event["object"]["spec"] == reply.obj["spec"]
        assert (await api.get(path("v1", "a"))).obj["spec"] == {"size": 5}
        await watch.close()

    with_webhook(tmp_path, story)


@pytest.mark.slow
def test_a_field_selector_asks_of_the_version_that_is_spoken(tmp_path):
    """Its fields need not be there in the version that is stored."""

    async def story(api, _webhook):
        made = (await api.get(f"{DEFINITIONS}/boats.example.com")).obj
        for version, field in zip(made["spec"]["versions"], ("size", "length"), strict=True):
            spec = {"type": "object", "properties": {field: {"type": "integer"}}}
            version["schema"]["openAPIV3Schema"] = {"type": "object", "properties": {"spec": spec}}
            version["selectableFields"] = [{"jsonPath": f".spec.{field}"}]
        assert (await api.put(f"{DEFINITIONS}/boats.example.com", made)).status == 200
        while (await api.get(f"{path('v1')}?fieldSelector=spec.size%3D4")).status != 200:
            await asyncio.sleep(0.01)
        for name, size in (("a", 3), ("b", 4)):
            assert (await api.post(path("v1"), boat(name, size=size))).status == 201
        selected = f"{path('v2')}?fieldSelector=spec.length%3D3"
        assert (await api.get(selected)).items == ["a"]
        assert (await api.get(f"{path('v1')}?fieldSelector=spec.size%3D4")).items == ["b"]
        assert (await api.get(f"{path('v1')}?fieldSelector=spec.length%3D4")).status == 400
        watch = await api.watch(selected)
        assert await watch.seen(1) == [("ADDED", "a")]
        merge = "application/merge-patch+json"
        await api.patch(path("v1", "b"), {"spec": {"size": 5}}, merge)
        await api.patch(path("v1", "b"), {"spec": {"size": 3}}, merge)
        await api.patch(path("v1", "b"), {"metadata": {"labels": {"x": "y"}}}, merge)
        await api.patch(path("v1", "a"), {"spec": {"size": 9}}, merge)
        await api.delete(path("v1", "a"))
        await api.delete(path("v1", "b"))
        seen = [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a"), ("DELETED", "b")]
        assert await watch.seen(4) == seen
        await watch.close()
        await api.post(path("v1"), boat("c", size=3))
        await api.post(path("v1"), boat("d", size=4))
        assert [item["metadata"]["name"] for item in (await api.delete(selected)).obj["items"]] == [
            "c"
        ]
        assert (await api.get(path("v1"))).items == ["d"]

    with_webhook(tmp_path, story)


def owners(obj):
    """(manager, version) → the fields of the spec."""
    return {
        (entry["manager"], entry["apiVersion"].rpartition("/")[2]): sorted(
            key for key in entry["fieldsV1"].get("f:spec", {}) if key != "."
        )
        for entry in obj["metadata"]["managedFields"]
    }


APPLY = "application/apply-patch+yaml"


@pytest.mark.slow
def test_a_field_changes_its_owner_across_versions(tmp_path):
    async def story(api, webhook):
        await api.post(f"{path('v1')}?fieldManager=first", boat("a", size=3, colour="red"))
        patch = {"spec": {"length": 4}}
        reply = await api.patch(
            f"{path('v2', 'a')}?fieldManager=second", patch, "application/merge-patch+json"
        )
        assert reply.status == 200, reply.body
        assert owners(reply.obj) == {
            ("first", "v1"): ["f:colour"], ("second", "v2"): ["f:length"],
        }  # fmt: skip
        asked = len(webhook.asked)
        own = boat("a", "v2", length=4)
        reply = await api.patch(f"{path('v2', 'a')}?fieldManager=third", own, APPLY)
        assert reply.status == 200, reply.body
        assert len(webhook.asked) > asked
        reply = await api.patch(f"{path('v1', 'a')}?fieldManager=fourth", boat("a", size=9), APPLY)
        assert reply.status == 409, reply.body
        assert "third" in reply.message
        assert ".spec.length" in reply.message

    with_webhook(tmp_path, story)


@pytest.mark.slow
def test_an_applier_that_changes_its_version_gives_up_what_it_no_longer_says(tmp_path):
    async def story(api, _webhook):
        where = f"{path('v1', 'a')}?fieldManager=me"
        assert (await api.patch(where, boat("a", size=3, colour="red"), APPLY)).status == 201
        where = f"{path('v2', 'a')}?fieldManager=me"
        reply = await api.patch(where, boat("a", "v2", length=4), APPLY)
        assert reply.status == 200, reply.body
        assert reply.obj["spec"] == {"length": 4}
        assert owners(reply.obj) == {("me", "v2"): ["f:length"]}

    with_webhook(tmp_path, story)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lie", "why"),
    [
        (lambda obj, _wanted: None, "returned 0 objects, expected 1"),
        (lambda obj, _wanted: obj, "invalid apiVersion"),
        (
            lambda obj, wanted: renamed(
                {**obj, "metadata": {**obj["metadata"], "name": "z"}}, wanted
            ),
            "must have the same name",
        ),
    ],
)
def test_a_lie_fails_the_request_and_nothing_else(tmp_path, lie, why):
    async def story(api, webhook):
        await api.post(path("v1"), boat("a", size=3))
        webhook.converted = lie
        for reply in (await api.get(path("v2", "a")), await api.get(path("v2"))):
            assert reply.status == 500, reply.body
            assert why in reply.message
        assert (await api.post(path("v2"), boat("b", "v2", length=1))).status == 500
        assert (await api.get(path("v1", "a"))).status == 200
        webhook.converted = renamed
        assert (await api.get(path("v2", "a"))).obj["spec"] == {"length": 3}

    with_webhook(tmp_path, story)


@pytest.mark.slow
def test_who_waits_for_a_webhook_that_hangs_waits_alone(tmp_path):
    async def story(api, webhook):
        await api.post(path("v1"), boat("a", size=3))
        webhook.hangs.clear()
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(api.get(path("v2", "a")))
            while not webhook.asked:
                await asyncio.sleep(0.01)
            assert (await api.get(path("v1", "a"))).status == 200
            assert (await api.post(path("v1"), boat("b", size=1))).status == 201
            assert not waiting.done()
            webhook.hangs.set()
        assert waiting.result().obj["spec"] == {"length": 3}

    with_webhook(tmp_path, story)


ADMISSION = "/apis/admissionregistration.k8s.io/v1"
V2_ONLY = {
    "operations": ["CREATE", "UPDATE"],
    "apiGroups": ["example.com"],
    "apiVersions": ["v2"],
    "resources": ["boats"],
}


class Shortener(ConversionWebhook):
    """Converts, and as an admission webhook makes every boat shorter that it is shown."""

    def __init__(self, folder):
        super().__init__(folder)
        self.shown = []

    async def _answer(self, request: Request) -> Response:
        body = orjson.loads(request.body)
        if body["kind"] != "AdmissionReview":
            return await super()._answer(request)
        asked = body["request"]
        self.shown.append((asked["kind"]["version"], asked["object"]["apiVersion"]))
        length = asked["object"]["spec"]["length"]
        patch = [{"op": "replace", "path": "/spec/length", "value": length - 1}]
        said = {
            **{field: body[field] for field in ("kind", "apiVersion")},
            "response": {
                "uid": asked["uid"],
                "allowed": True,
                "patchType": "JSONPatch",
                "patch": b64encode(orjson.dumps(patch)).decode(),
            },
        }
        return Response(200, (("content-type", "application/json"),), orjson.dumps(said))


@pytest.mark.slow
def test_admission_by_an_equivalent_version_sees_what_the_conversion_webhook_makes(tmp_path):
    async def story():
        webhook = Shortener(tmp_path)
        async with (
            webhook.serving() as conversion,
            api_server(Schema.load(), clock=SystemClock()) as api,
        ):
            await served(api, "v1", "v2", conversion=conversion)
            hook = {
                "name": "short.example.com",
                "rules": [V2_ONLY],
                "clientConfig": conversion["webhook"]["clientConfig"],
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
            }
            hooks = {"metadata": {"name": "short"}, "webhooks": [hook]}
            await api.made(f"{ADMISSION}/mutatingwebhookconfigurations", hooks)
            spec = {
                "matchConstraints": {"resourceRules": [V2_ONLY]},
                "validations": [{"expression": "object.spec.length < 5", "message": "too long"}],
            }
            policies = f"{ADMISSION}/validatingadmissionpolicies"
            await api.made(policies, {"metadata": {"name": "short"}, "spec": spec})
            binding = {"policyName": "short", "validationActions": ["Deny"]}
            bindings = f"{policies[:-3]}ybindings"
            await api.made(bindings, {"metadata": {"name": "short"}, "spec": binding})
            made = await api.made(path(), boat("a", size=4))
            assert made["spec"] == {"size": 3}
            assert made["apiVersion"] == "example.com/v1"
            assert webhook.shown == [("v2", "example.com/v2")]
            refused = await api.post(path(), boat("b", size=9))
            assert refused.status == 422
            assert "too long" in refused.message
            changed = await api.patch(path(name="a"), {"spec": {"size": 9}}, MERGE)
            assert changed.status == 422
            assert (await api.get(path("v2", "a"))).obj["spec"] == {"length": 3}

    asyncio.run(story())


@pytest.mark.slow
def test_a_migration_of_what_is_stored():
    """The storage version changes; what was written in the old one is read and written anew, and
    the old one can go when status.storedVersions no longer names it."""

    async def story():
        async with api_server(Schema.load()) as api:
            await served(api, "v1", "v2")
            await api.post(path("v1"), boat("a", size=3))
            where = f"{DEFINITIONS}/boats.example.com"
            found = (await api.get(where)).obj
            for version in found["spec"]["versions"]:
                version["storage"] = version["name"] == "v2"
            assert (await api.put(where, found)).status == 200
            while (await api.get(where)).obj["status"]["storedVersions"] != ["v1", "v2"]:
                await asyncio.sleep(0.01)
            found = (await api.get(where)).obj
            without = [item for item in found["spec"]["versions"] if item["name"] == "v2"]
            refused = await api.put(
                where, {**found, "spec": {**found["spec"], "versions": without}}
            )
            assert refused.status == 422
            assert "must remain in spec.versions until a storage migration" in refused.message
            obj = (await api.get(path("v2", "a"))).obj
            assert (await api.put(path("v2", "a"), obj)).status == 200
            found = (await api.get(where)).obj
            found["status"]["storedVersions"] = ["v2"]
            assert (await api.put(f"{where}/status", found)).status == 200
            found = (await api.get(where)).obj
            found["spec"]["versions"] = without
            assert (await api.put(where, found)).status == 200
            while (await api.get(path("v1", "a"))).status != 404:
                await asyncio.sleep(0.01)
            obj = (await api.get(path("v2", "a"))).obj
            assert (obj["apiVersion"], obj["spec"]) == ("example.com/v2", {"size": 3})

    virtual_time.run(story())


@pytest.mark.slow
def test_a_conversion_webhook_that_hangs_fails_its_own_readers_only(tmp_path):
    authority = Authority(tmp_path)
    pair = authority.issue("webhook")

    async def story():
        over = asyncio.Event()

        async def webhook(_request):
            await over.wait()
            return Response(500)

        server = Server(webhook, ssl_context=server_context(pair.cert_path, pair.key_path))
        port = await server.start("127.0.0.1", 0)
        bundle = b64encode(authority.ca_path.read_bytes()).decode()
        client = {"url": f"https://127.0.0.1:{port}/convert", "caBundle": bundle}
        hook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
        async with api_server(Schema.load()) as api:
            await served(api, "v1", "v2", conversion={"strategy": "Webhook", "webhook": hook})
            assert (await api.post(path("v1"), boat("a", size=3))).status == 201
            async with asyncio.TaskGroup() as group:
                waiting = group.create_task(api.get(path("v2")))
                await asyncio.sleep(1)
                assert not waiting.done()
                assert (await api.get(path("v1"))).items == ["a"]
            reply = waiting.result()
            assert reply.status == 500
            why = f'Post "https://127.0.0.1:{port}/convert?timeout=30s": context deadline exceeded'
            start = "conversion webhook for example.com/v1, Kind=Boat failed: "
            assert reply.message == f"{start}{why}"
        over.set()
        await server.stop(0.1)

    virtual_time.run(story())


@pytest.mark.slow
def test_a_definition_goes_while_watches_and_writers_use_it():
    async def story():
        certificate = client_certificate("admin", "system:masters")
        async with api_server(Schema.load()) as api:
            await served(api, "v1")
            watches = []
            for _ in range(1000):
                request = Request("GET", path(), "watch=true", {}, peer_certificate=certificate)
                reply = await api.server.handle_http(request)
                assert isinstance(reply, Stream)
                watches.append(reply)
            codes = set()

            async def write(worker):
                for at in range(40):
                    codes.add((await api.post(path(), boat(f"b{worker}-{at}"))).status)
                    await asyncio.sleep(0.01)

            async def end():
                await asyncio.sleep(0.1)
                name = f"{DEFINITIONS}/boats.example.com"
                assert (await api.send("DELETE", name)).status == 200

            async with asyncio.TaskGroup() as group:
                for worker in range(5):
                    group.create_task(write(worker))
                group.create_task(end())
            while (await api.get(f"{DEFINITIONS}/boats.example.com")).status != 404:
                await asyncio.sleep(0.1)
            assert codes <= {201, 403, 404}
            assert (await api.get(path())).status == 404
            for one in watches:
                lines = b"".join([chunk async for chunk in one.chunks]).splitlines()
                assert lines[-1].startswith((b'{"type":"DELETED"', b'{"type":"ADDED"'))
            assert (await api.post("/api/v1/namespaces/default/configmaps", {
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "still"},
            })).status == 201  # fmt: skip

    virtual_time.run(story())


GONE = {
    "strategy": "Webhook",
    "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "default", "name": "gone"}},
    },
}


def condition(obj, kind):
    return next(one for one in obj["status"]["conditions"] if one["type"] == kind)


@pytest.mark.slow
@pytest.mark.parametrize("first", ["v1", "v2"])
def test_a_definition_goes_whose_conversion_webhook_is_gone_already(first):
    """An operator is deleted before its definitions: what is stored need not be converted."""

    async def story():
        async with api_server(Schema.load()) as api:
            await served(api, "v1", "v2", conversion=GONE)
            where = f"{DEFINITIONS}/boats.example.com"
            await api.post(path("v1"), boat("a"))
            if first == "v2":
                found = (await api.get(where)).obj
                found["spec"]["versions"].reverse()
                assert (await api.put(where, found)).status == 200
            await api.delete(where)
            async with asyncio.timeout(10):
                while (await api.get(where)).status != 404:
                    await asyncio.sleep(0.05)

    virtual_time.run(story())


@pytest.mark.slow
def test_a_definition_that_cannot_go_holds_up_no_other():
    """Its object is stored in a version that only the webhook that is gone could convert."""

    async def story():
        async with api_server(Schema.load()) as api:
            await served(api, "v1", "v2", conversion=GONE)
            where = f"{DEFINITIONS}/boats.example.com"
            await api.post(path("v1"), boat("a"))
            found = (await api.get(where)).obj
            for version in found["spec"]["versions"]:
                version["storage"] = version["name"] == "v2"
            assert (await api.put(where, found)).status == 200
            await api.delete(where)
            loop = asyncio.get_running_loop()
            while condition((await api.get(where)).obj, "Terminating")["reason"] != (
                "InstanceDeletionFailed"
            ):
                await asyncio.sleep(0.001)
            for number in range(3):
                plural = f"others{number}"
                other = definition("v1")
                other["metadata"]["name"] = f"{plural}.example.com"
                other["spec"]["names"] = {"plural": plural, "kind": f"Other{number}"}
                began = loop.time()
                await api.post(DEFINITIONS, other)
                while (await api.get(f"/apis/example.com/v1/{plural}")).status != 200:
                    await asyncio.sleep(0.001)
                await api.delete(f"{DEFINITIONS}/{plural}.example.com")
                while (await api.get(f"{DEFINITIONS}/{plural}.example.com")).status != 404:
                    await asyncio.sleep(0.001)
                assert loop.time() - began < 0.5
            told = condition((await api.get(where)).obj, "Terminating")
            assert told["message"].startswith("could not issue all deletes: conversion webhook for")

    virtual_time.run(story())


def compiled():
    """Of all custom kinds: what is there, whether somebody still has it or not."""
    return sum(isinstance(one, _Writer | _Compiled) for one in gc.get_objects())


def test_of_a_kind_that_is_gone_nothing_is_remembered():
    """Whoever makes and deletes kinds all day does not fill the server's memory with them."""

    async def story():
        async with api_server(Schema.load()) as api:
            caches, before = api.server._registry.cache.kinds(), compiled()
            where, place = f"{DEFINITIONS}/boats.example.com", "/registry/boats.example.com/"

            async def come_and_go():
                await served(api, "v1")
                assert (await api.post(path("v1"), boat("a", x=1))).status == 201
                assert compiled() > before
                await api.delete(where)
                while (await api.get(where)).status != 404:
                    await asyncio.sleep(0.01)

            await come_and_go()
            await asyncio.sleep(WINDOW_SECONDS / 2)
            assert compiled() == before
            assert place in caches
            await come_and_go()
            await served(api, "v1")
            await asyncio.sleep(WINDOW_SECONDS * 2)
            assert place in caches, "it is defined again"
            await api.delete(where)
            await asyncio.sleep(WINDOW_SECONDS * 2)
            assert place not in caches
            await served(api, "v1")
            assert (await api.post(path("v1"), boat("a"))).status == 201
            assert [one["metadata"]["name"] for one in (await api.get(path())).obj["items"]] == [
                "a"
            ]

    gc.disable()
    try:
        virtual_time.run(story())
    finally:
        gc.enable()


@pytest.mark.slow
def test_objects_that_do_not_go_are_told_of_after_a_minute():
    async def story():
        async with api_server(Schema.load()) as api:
            await served(api, "v1")
            where = f"{DEFINITIONS}/boats.example.com"
            held = boat("a")
            held["metadata"]["finalizers"] = ["example.com/hold"]
            await api.post(path("v1"), held)
            await api.delete(where)
            await asyncio.sleep(61)
            told = condition((await api.get(where)).obj, "Terminating")
            assert told["reason"] in ("InstanceDeletionCheck", "InstanceDeletionInProgress")
            assert (await api.patch(path("v1", "a"), {"metadata": {"finalizers": None}}, MERGE)).obj
            await asyncio.sleep(5)
            assert (await api.get(where)).status == 404

    virtual_time.run(story())


@pytest.mark.slow
def test_a_long_list_is_converted_in_portions_beside_the_loop(tmp_path):
    """Of 3 000 objects with many fields each: more than what one answer may have."""
    fields = {f"f{number}": {"a": []} for number in range(50)}

    async def story(api, webhook):
        for number in range(3_000):
            await api.made(path("v1"), boat(f"b{number}", size=number, **fields))
        with without_collector():
            async with loop_holds() as holds:
                found = await api.get(path("v2"))
        assert found.status == 200, found.body[:300]
        lengths = [item["spec"]["length"] for item in found.obj["items"]]
        assert sorted(lengths) == list(range(3_000))
        assert sum(webhook.asked) == 3_000
        assert max(webhook.asked) <= AT_ONCE_BYTES / 1_500
        return holds.longest_seconds

    # The webhook itself, whose answers are made on the same loop, is part of what is measured.
    assert with_webhook(tmp_path, story) < 0.25
