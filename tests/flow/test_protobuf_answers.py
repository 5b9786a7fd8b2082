"""Answers in protobuf, for clients that take nothing else."""

import asyncio
import struct

import pytest

from sampan.api.protobuf.codec import ProtobufReader
from sampan.api.protobuf.values import each_field, plain_fields
from sampan.api.schema.published import Schema
from sampan.core.http.messages import Request, Stream
from tests.support import virtual_time
from tests.support.generators.api_requests import api_server, client_certificate, pod

PODS = "/api/v1/namespaces/default/pods"
PROTOBUF = "application/vnd.kubernetes.protobuf"
SCHEMA = Schema.load()
READER = ProtobufReader(SCHEMA)


def run(story):
    async def main():
        async with api_server(SCHEMA) as api:
            await story(api)

    virtual_time.run(main())


def read(data):
    obj, problems = READER.object_in(data)
    assert problems == []
    if obj["kind"] == "Status":
        return obj
    return SCHEMA.check(obj["apiVersion"], obj["kind"], obj).obj


async def asked(api, method, path, body=None):
    reply = await api.send(method, path, body, headers={"accept": PROTOBUF})
    assert reply.headers["content-type"] == PROTOBUF
    return reply


def test_an_object_is_the_same_in_protobuf():
    """[A11]"""

    async def story(api):
        created = await asked(api, "POST", PODS, pod("web"))
        assert created.status == 201
        plain = (await api.get(f"{PODS}/web")).obj
        assert read(created.body) == plain
        assert read((await asked(api, "GET", f"{PODS}/web")).body) == plain

    run(story)


def test_json_comes_first_where_it_is_taken_too():
    async def story(api):
        reply = await api.get(PODS, f"{PROTOBUF},application/json")
        assert reply.headers["content-type"] == "application/json"

    run(story)


def test_a_list_and_an_error():
    """[A11]"""

    async def story(api):
        for name in ("a", "b"):
            await api.made(PODS, pod(name))
        reply = await asked(api, "GET", PODS)
        envelope = plain_fields(reply.body, 4, len(reply.body))
        type_meta = plain_fields(envelope[1], 0, len(envelope[1]))
        assert (type_meta[1], type_meta[2]) == (b"v1", b"PodList")
        items = [number for number, *_ in each_field(envelope[2], 0, len(envelope[2]))]
        assert items == [1, 2, 2]
        missing = await asked(api, "GET", f"{PODS}/nosuch")
        status = read(missing.body)
        assert (missing.status, status["code"], status["reason"]) == (404, 404, "NotFound")
        assert status["message"] == 'pods "nosuch" not found'

    run(story)


def test_a_watch_comes_in_frames():
    """[A11]"""

    async def story(api):
        request = Request(
            "GET", PODS, "watch=true", {"accept": f"{PROTOBUF};stream=watch"}, b"",
            peer_certificate=client_certificate("admin", "system:masters"),
        )  # fmt: skip
        stream = await api.server.handle_http(request)
        assert isinstance(stream, Stream)
        assert ("content-type", f"{PROTOBUF};stream=watch") in list(stream.headers)
        created = await api.made(PODS, pod("web"))
        frame = await stream.chunks.__anext__()
        (size,) = struct.unpack(">I", frame[:4])
        event = plain_fields(frame, 4, 4 + size)
        assert event[1] == b"ADDED"
        assert read(plain_fields(event[2], 0, len(event[2]))[1]) == created
        await stream.chunks.aclose()

    run(story)


@pytest.mark.parametrize("accept", ["application/xml", f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io"])
def test_what_is_not_offered_is_406(accept):
    async def story(api):
        reply = await api.get(PODS, accept)
        assert reply.status == 406

    run(story)


PARTIAL = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIALS = f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def parts(data, number):
    """Every content of one field of a message."""
    return [data[at:end] for found, _, at, end in each_field(data, 0, len(data)) if found == number]


def opened(data):
    """(apiVersion, kind, message) of an envelope."""
    assert data.startswith(b"k8s\0")
    [type_meta], [raw] = parts(data[4:], 1), parts(data[4:], 2)
    [version], [kind] = parts(type_meta, 1), parts(type_meta, 2)
    return version.decode(), kind.decode(), raw


def named(partial):
    [metadata] = parts(partial, 1)
    [name] = parts(metadata, 1)
    return name.decode()


WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


async def serve_widgets(api):
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }  # fmt: skip
    await api.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    while (await api.get(WIDGETS)).status != 200:
        await asyncio.sleep(0.1)


def widget(name):
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}}


@pytest.mark.parametrize(("path", "make"), [(PODS, pod), (WIDGETS, widget)])
def test_metadata_alone_is_offered_in_protobuf_of_every_kind(path, make):
    """[A11] What client-go's metadata informers ask for first."""

    async def story(api):
        await serve_widgets(api)
        for name in ("a", "b"):
            await api.made(path, make(name))
        got = await api.get(f"{path}/a", PARTIAL)
        version, kind, raw = opened(got.body)
        assert (got.status, version, kind) == (200, "meta.k8s.io/v1", "PartialObjectMetadata")
        assert named(raw) == "a"
        version, kind, raw = opened((await api.get(path, PARTIALS)).body)
        assert (version, kind) == ("meta.k8s.io/v1", "PartialObjectMetadataList")
        assert [named(item) for item in parts(raw, 2)] == ["a", "b"]
        assert (await api.get(path, PARTIAL)).status == 406  # a list is no object
        assert (await api.get(f"{path}/a", PARTIALS)).status in (406, 500)
        json = PARTIAL.replace(PROTOBUF, "application/json")
        both = await api.get(f"{path}/a", f"{PARTIAL},{json}")
        assert both.obj["kind"] == "PartialObjectMetadata"

    run(story)


@pytest.mark.parametrize(("path", "make"), [(PODS, pod), (WIDGETS, widget)])
def test_metadata_alone_is_watched_in_frames(path, make):
    async def story(api):
        await serve_widgets(api)
        accept = PARTIAL.replace(";as=", ";stream=watch;as=")
        request = Request(
            "GET", path, "watch=true", {"accept": accept}, b"",
            peer_certificate=client_certificate("admin", "system:masters"),
        )  # fmt: skip
        stream = await api.server.handle_http(request)
        assert isinstance(stream, Stream), stream
        await api.made(path, make("web"))
        frame = await stream.chunks.__anext__()
        [event] = parts(frame[4:], 2)
        [envelope] = parts(event, 1)
        assert opened(envelope)[1] == "PartialObjectMetadata"
        assert named(opened(envelope)[2]) == "web"
        await stream.chunks.aclose()

    run(story)


def test_a_custom_object_whole_has_no_form_in_protobuf():
    """[A6] As the original: 406, and the refusal itself is in protobuf."""

    async def story(api):
        await serve_widgets(api)
        await api.made(WIDGETS, widget("a"))
        reply = await asked(api, "GET", f"{WIDGETS}/a")
        assert (reply.status, read(reply.body)["reason"]) == (406, "NotAcceptable")

    run(story)


def test_discovery_is_offered_in_protobuf():
    """[C3] Field by field as the message types of meta/v1 and apidiscovery/v2 have them."""

    async def story(api):
        version, kind, raw = opened((await asked(api, "GET", "/api")).body)
        assert (version, kind, parts(raw, 1)) == ("v1", "APIVersions", [b"v1"])
        _, kind, raw = opened((await asked(api, "GET", "/apis")).body)
        assert (kind, b"apps" in {parts(group, 1)[0] for group in parts(raw, 1)}) == (
            "APIGroupList",
            True,
        )
        _, kind, raw = opened((await asked(api, "GET", "/apis/apps")).body)
        [preferred] = parts(raw, 3)
        assert (kind, parts(preferred, 1), parts(preferred, 2)) == (
            "APIGroup", [b"apps/v1"], [b"v1"],
        )  # fmt: skip
        _, kind, raw = opened((await asked(api, "GET", "/api/v1")).body)
        pods = next(item for item in parts(raw, 2) if parts(item, 1) == [b"pods"])
        fields = plain_fields(pods, 0, len(pods))
        assert (kind, parts(raw, 1), fields[2], fields[3]) == (
            "APIResourceList",
            [b"v1"],
            1,
            b"Pod",
        )
        assert b"deletecollection" in parts(fields[4], 1)
        assert parts(pods, 5) == [b"po"]

    run(story)


def test_aggregated_discovery_is_offered_in_protobuf():
    async def story(api):
        accept = f"{PROTOBUF};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        reply = await api.get("/apis", accept)
        assert reply.headers["content-type"] == accept
        version, kind, raw = opened(reply.body)
        assert (version, kind) == ("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList")
        apps = next(group for group in parts(raw, 2) if named(group) == "apps")
        [served] = parts(apps, 2)
        assert (parts(served, 1), parts(served, 3)) == ([b"v1"], [b"Current"])
        sets = next(item for item in parts(served, 2) if parts(item, 1) == [b"deployments"])
        [response] = parts(sets, 2)
        assert parts(response, 3) == [b"Deployment"]
        assert parts(sets, 3) == [b"Namespaced"]
        assert {parts(sub, 1)[0] for sub in parts(sets, 8)} == {b"scale", b"status"}

    run(story)
