"""Export to a collector over HTTP: what it gets, and what happens where it is away."""

import asyncio
import json

from sampan.core.http.messages import Response
from sampan.core.http.server import Server
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.core.telemetry.export import Exporter, ExportSettings
from sampan.core.telemetry.otlp import MILLION
from sampan.core.telemetry.traces import Traces
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock

UID = "0af76519-16cd-43dd-8448-eb211c80319c"


async def delivered(status, per_million=MILLION):
    """What a collector that answers so is sent, and what is counted."""
    asked, came, clock = [], asyncio.Event(), LoopClock()

    async def collect(request):
        asked.append(request)
        came.set()
        return Response(status)

    server, tasks = Server(collect), Tasks("test")
    port = await server.start("127.0.0.1", 0)
    metrics = Metrics(Traces(clock))
    settings = ExportSettings(f"http://127.0.0.1:{port}", per_million)
    tasks.supervise("export", Exporter(settings, metrics, clock).run)
    metrics.traces.span_for(UID, "kubelet", "sync pod", 0.1)
    counter = metrics.counter("sampan_exported_spans_total", "")
    try:
        if per_million:
            await asyncio.wait_for(came.wait(), 60)
            while not counter.value("sent") + counter.value("failed"):
                await asyncio.sleep(0.01)
        else:
            await asyncio.sleep(30)
    finally:
        await tasks.stop()
        await server.stop(0.1)
    return asked, (counter.value("sent"), counter.value("failed"))


def test_a_collector_gets_what_was_noted():
    [request], counts = virtual_time.run(delivered(200))
    assert (request.method, request.path) == ("POST", "/v1/traces")
    assert request.headers["content-type"] == "application/json"
    [group] = json.loads(request.body)["resourceSpans"]
    [span] = group["scopeSpans"][0]["spans"]
    assert (span["name"], span["traceId"]) == ("sync pod", UID.replace("-", ""))
    assert counts == (1, 0)


def test_one_that_takes_nothing_holds_nobody_up():
    [_], counts = virtual_time.run(delivered(503))
    assert counts == (0, 1)


def test_what_is_not_sampled_is_not_sent():
    asked, counts = virtual_time.run(delivered(200, 0))
    assert (asked, counts) == ([], (0, 0))
