"""Spans of this process on their way to the API server, which keeps the traces.

Job: a batch a moment after the first span; nothing while there is none.
Invariant: tracing never holds anybody up: what cannot be delivered is lost.
"""

from sampan.api.errors import ApiError
from sampan.client.rest import RestClient
from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.core.telemetry.traces import Outbox

PATH = "/sampan/v1/spans"
BATCH_SECONDS = 0.2

log = get_logger(__name__)


class TraceDelivery:
    def __init__(self, client: RestClient, outbox: Outbox, clock: Clock) -> None:
        self._client, self._outbox, self._clock = client, outbox, clock

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._outbox.noted()
            await self._clock.sleep(BATCH_SECONDS)
            spans = [
                {
                    "uid": uid, "lane": span.lane, "name": span.name, "began": span.began,
                    "ended": span.ended, "facts": dict(span.facts),
                }
                for uid, noted in self._outbox.take()
                for span in noted
            ]  # fmt: skip
            try:
                await self._client.post_path(PATH, {"spans": spans})
            except ApiError as error:
                # An API server that keeps none, or none that answers: the work goes on without.
                log.debug("spans were not delivered", count=len(spans), error=error)
