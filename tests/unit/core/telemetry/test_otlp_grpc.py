"""Export over gRPC, to a collector that speaks it."""

import asyncio

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)

from sampan.core.clock import SystemClock
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.core.telemetry.export import Exporter, ExportSettings
from sampan.core.telemetry.traces import Traces

UID = "0af76519-16cd-43dd-8448-eb211c80319c"


class Collector(TraceServiceServicer):
    def __init__(self, refuses=False):
        self.taken, self.came, self._refuses = [], asyncio.Event(), refuses

    async def Export(self, request: ExportTraceServiceRequest, context):
        self.taken.append(request)
        self.came.set()
        if self._refuses:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "full")
        return ExportTraceServiceResponse()


async def exported(collector, where):
    """By a part of a process to that collector; what is counted."""
    server, tasks, clock = grpc.aio.server(), Tasks("test"), SystemClock()
    add_TraceServiceServicer_to_server(collector, server)
    port = server.add_insecure_port(where)
    await server.start()
    metrics = Metrics(Traces(clock))
    endpoint = where.replace(":0", f":{port}")
    tasks.supervise("export", Exporter(ExportSettings(endpoint), metrics, clock).run)
    metrics.traces.span_for(UID, "kubelet", "sync pod", 0.1, error="no sandbox")
    counter = metrics.counter("sampan_exported_spans_total", "")
    try:
        async with asyncio.timeout(60):
            await collector.came.wait()
            while not counter.value("sent") + counter.value("failed"):
                await asyncio.sleep(0.01)
    finally:
        await tasks.stop()
        await server.stop(None)
    return counter.value("sent"), counter.value("failed")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["", "unix:"])
def test_a_collector_gets_what_was_noted(scheme, tmp_path):
    async def scenario():
        collector = Collector()
        where = f"unix:{tmp_path}/otel.sock" if scheme else "127.0.0.1:0"
        assert await exported(collector, where) == (1, 0)
        [request] = collector.taken
        [group] = request.resource_spans
        assert group.resource.attributes[0].value.string_value == "kubelet"
        [span] = group.scope_spans[0].spans
        assert (span.name, span.trace_id.hex()) == ("sync pod", UID.replace("-", ""))
        assert (span.status.message, span.status.code) == ("no sandbox", 2)

    asyncio.run(scenario())


@pytest.mark.slow
def test_one_that_takes_nothing_holds_nobody_up():
    async def scenario():
        assert await exported(Collector(refuses=True), "127.0.0.1:0") == (0, 1)

    asyncio.run(scenario())
