from sampan.api.errors import NotFound
from sampan.client.trace_delivery import BATCH_SECONDS, PATH, TraceDelivery
from sampan.core.tasks import Tasks
from sampan.core.telemetry.traces import Outbox, Traces
from tests.support.virtual_time import LoopClock, run


class OtherServer:
    """An API server that is not sampan's."""

    def __init__(self):
        self.asked = []

    async def post_path(self, path, body):
        self.asked.append((path, len(body["spans"])))
        raise NotFound("the server could not find the requested resource")


def test_a_server_that_keeps_no_traces_is_no_reason_to_stop():
    async def story():
        clock, outbox, server = LoopClock(), Outbox(), OtherServer()
        traces = Traces(clock, outbox=outbox)
        tasks = Tasks("test")
        tasks.start("delivery", TraceDelivery(server, outbox, clock).run())
        for number in range(2):
            traces.span(f"uid-{number}", "kubelet", "start", clock.now())
            await clock.sleep(2 * BATCH_SECONDS)
        await tasks.stop()
        assert server.asked == [(PATH, 1)] * 2

    run(story())
