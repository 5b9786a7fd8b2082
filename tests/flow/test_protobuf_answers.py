"""Answers in protobuf, for clients that take nothing else."""

import struct

import pytest

from sampan.api.protobuf.codec import ProtobufReader
from sampan.api.protobuf.values import each_field, plain_fields
from sampan.api.schema.published import Schema
from sampan.core.http import Request, Stream
from sampan.testing import virtual_time
from sampan.testing.generators.api_requests import api_server, client_certificate, pod

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
