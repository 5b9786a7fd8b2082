"""The client against a real gRPC server on a unix socket."""

import asyncio
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import pytest

from sampan.core.telemetry.trace_context import trace_id_of
from sampan.core.telemetry.traces import Traces
from sampan.cri.client import (
    CriClient,
    CriError,
    CriNotFound,
    CriUnavailable,
    CriUnimplemented,
)
from sampan.cri.gen import containerd_events_pb2 as containerd
from sampan.cri.gen import runtime_pb2 as cri
from tests.support.manual_clock import ManualClock

SERVICE = "runtime.v1.RuntimeService"


@asynccontextmanager
async def serving(path, service, handlers):
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    server.add_insecure_port(f"unix://{path}")
    await server.start()
    client = CriClient(str(path))
    try:
        yield client
    finally:
        await client.close()
        await server.stop(None)


def unary(answer, request_type):
    async def handle(request, context):
        return await answer(request, context)

    return grpc.unary_unary_rpc_method_handler(
        handle,
        request_deserializer=request_type.FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )


def test_a_call_carries_its_message_and_brings_the_answer(tmp_path):
    async def version(request, context):
        return cri.VersionResponse(version=request.version, runtime_name="made-up")

    async def story():
        handlers = {"Version": unary(version, cri.VersionRequest)}
        async with serving(tmp_path / "s", SERVICE, handlers) as client:
            answer = await client.runtime("Version", cri.VersionRequest(version="v1"))
            assert (answer.version, answer.runtime_name) == ("v1", "made-up")

    asyncio.run(story())


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.NOT_FOUND, CriNotFound),
        (grpc.StatusCode.UNAVAILABLE, CriUnavailable),
        (grpc.StatusCode.DEADLINE_EXCEEDED, CriUnavailable),
        (grpc.StatusCode.UNIMPLEMENTED, CriUnimplemented),
        (grpc.StatusCode.UNKNOWN, CriError),
        (grpc.StatusCode.INVALID_ARGUMENT, CriError),
    ],
)
def test_each_code_becomes_one_kind_of_error_with_the_runtime_s_text(tmp_path, code, kind):
    """[R1]"""

    async def refuse(request, context):
        await context.abort(code, "no such thing")

    async def story():
        handlers = {"Version": unary(refuse, cri.VersionRequest)}
        async with serving(tmp_path / "s", SERVICE, handlers) as client:
            with pytest.raises(CriError) as caught:
                await client.runtime("Version", cri.VersionRequest())
        assert type(caught.value) is kind
        assert (caught.value.code, str(caught.value)) == (code.name, "no such thing")

    asyncio.run(story())


def test_a_runtime_that_hangs_is_unavailable_after_the_deadline(tmp_path):
    """[R1]"""

    async def hang(request, context):
        await asyncio.sleep(60)

    async def story():
        handlers = {"Version": unary(hang, cri.VersionRequest)}
        async with serving(tmp_path / "s", SERVICE, handlers) as client:
            with pytest.raises(CriUnavailable):
                await client.runtime("Version", cri.VersionRequest(), timeout=0.05)

    asyncio.run(story())


def test_without_anybody_at_the_socket_a_call_fails_at_once(tmp_path):
    async def story():
        client = CriClient(str(tmp_path / "nobody"))
        with pytest.raises(CriUnavailable):
            await client.runtime("Version", cri.VersionRequest())
        with pytest.raises(CriUnavailable):
            await client.wait_ready(0.05)
        await client.close()

    asyncio.run(story())


def test_the_event_stream_is_asked_for_with_namespace_and_filter_and_ends_with_its_error(tmp_path):
    """[R2]"""
    asked = []

    async def subscribe(request, context):
        asked.append((dict(context.invocation_metadata()), list(request.filters)))
        yield containerd.Envelope(topic="/tasks/exit")
        await context.abort(grpc.StatusCode.UNAVAILABLE, "going away")

    async def story():
        handlers = {
            "Subscribe": grpc.unary_stream_rpc_method_handler(
                subscribe,
                request_deserializer=containerd.SubscribeRequest.FromString,
                response_serializer=lambda message: message.SerializeToString(),
            )
        }
        service = "containerd.services.events.v1.Events"
        async with serving(tmp_path / "s", service, handlers) as client:
            stream = client.containerd_events("k8s.io", ["topic~=^/tasks/"])
            seen = [(await anext(stream)).topic]
            with pytest.raises(CriUnavailable, match="going away"):
                await anext(stream)
        assert seen == ["/tasks/exit"]
        metadata, filters = asked[0]
        assert metadata["containerd-namespace"] == "k8s.io"
        assert filters == ["topic~=^/tasks/"]

    asyncio.run(story())


def test_the_runtime_is_told_which_trace_a_call_belongs_to(tmp_path):
    asked = []

    async def version(request, context):
        asked.append(dict(context.invocation_metadata()).get("traceparent"))
        return cri.VersionResponse()

    async def story():
        traces = Traces(ManualClock())
        handlers = {"Version": unary(version, cri.VersionRequest)}
        async with serving(tmp_path / "s", SERVICE, handlers) as client:
            call = client.runtime("Version", cri.VersionRequest())
            await traces.timed("u", "kubelet", "sandbox and network", call)
            await client.runtime("Version", cri.VersionRequest())

    asyncio.run(story())
    assert asked[0].startswith(f"00-{trace_id_of('u')}-")
    assert asked[1] is None
