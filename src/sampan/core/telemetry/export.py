"""Spans on their way to a collector: OTLP over gRPC, or over HTTP in JSON.

Job: a batch some seconds after its first span, of the traces that are sampled.
Invariant: export holds nobody up: what a collector does not take is counted and lost.
"""

import json
from typing import Any, Protocol

from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.client import HttpClient
from sampan.core.http.errors import HttpError
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.telemetry.otlp import MILLION, is_sampled, request_of
from sampan.core.telemetry.spans import TRACE_ID, Span
from sampan.core.telemetry.traces import Outbox

BATCH_SECONDS = 1.0
TIMEOUT_SECONDS = 10.0  # as OTLP's exporters
PATH = "/v1/traces"  # of OTLP/HTTP
DEFAULT_ENDPOINT = "localhost:4317"  # OTLP's own for gRPC, as upstream

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """As upstream's TracingConfiguration; `endpoint`: as gRPC names it, or a URL of OTLP/HTTP."""

    endpoint: str = DEFAULT_ENDPOINT
    per_million: int = MILLION


class Sender(Protocol):
    async def send(self, request: Any) -> str:
        """Why it was not taken; empty: it was."""

    async def close(self) -> None: ...


class HttpSender:
    def __init__(self, url: str, timeout_seconds: float) -> None:
        url = url.rstrip("/")
        self._url = url if url.endswith(PATH) else url + PATH
        self._http, self._timeout_seconds = HttpClient(), timeout_seconds

    async def send(self, request: Any) -> str:
        headers, body = [("content-type", "application/json")], json.dumps(request).encode()
        try:
            answer = await self._http.request(
                "POST", self._url, headers=headers, body=body, timeout_seconds=self._timeout_seconds
            )
        except (HttpError, OSError) as error:
            return str(error) or type(error).__name__
        return "" if answer.status < 300 else f"it answers {answer.status}"

    async def close(self) -> None:
        await self._http.close()


def _sender_to(endpoint: str) -> Sender:
    if endpoint.startswith(("http://", "https://")):
        return HttpSender(endpoint, TIMEOUT_SECONDS)
    from sampan.core.telemetry.otlp_grpc import GrpcSender  # takes its time; few export

    return GrpcSender(endpoint, TIMEOUT_SECONDS)


class Exporter:
    def __init__(self, settings: ExportSettings, metrics: Metrics, clock: Clock) -> None:
        self._settings, self._clock, self._outbox = settings, clock, Outbox()
        self._traces, self._sender = metrics.traces, _sender_to(settings.endpoint)
        self._traces.export_to(self._outbox)
        self._count = metrics.counter(
            "sampan_exported_spans_total", "Spans, by whether the collector took them.", ("result",)
        )
        self._is_down = False  # so that one that is away is said once

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                await self._outbox.noted()
                await self._clock.sleep(BATCH_SECONDS)
                await self._deliver(self._outbox.take())
        finally:
            await self._sender.close()

    async def _deliver(self, noted: list[tuple[str, list[Span]]]) -> None:
        chosen = [item for item in noted if self._is_chosen(*item)]
        if not chosen:
            return
        ids = {uid: self._traces.id_of(uid) for uid, _ in chosen}
        count = sum(len(spans) for _, spans in chosen)
        trouble = await self._sender.send(request_of(chosen, ids))
        self._count.add("failed" if trouble else "sent", by=count)
        if trouble and not self._is_down:
            log.warning("collector refused spans", endpoint=self._settings.endpoint, error=trouble)
        self._is_down = bool(trouble)

    def _is_chosen(self, uid: str, spans: list[Span]) -> bool:
        trace_id = spans[0].facts.get(TRACE_ID) or self._traces.id_of(uid)
        return is_sampled(trace_id, self._settings.per_million)
