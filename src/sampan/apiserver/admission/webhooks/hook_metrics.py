"""What calls to webhooks cost and how they end, under upstream's names.

Job: one measured call → durations, refusals, failures.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from sampan.core.clock import Clock
from sampan.core.metrics import Metrics

_SECONDS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0)
_START = "apiserver_admission_webhook_"


class HookOutcome:
    def __init__(self) -> None:
        self.code, self.failure, self.ignored = 0, False, False

    def refused(self, code: int) -> None:
        self.code = code

    def failed(self, ignored: bool) -> None:
        self.failure, self.ignored = True, ignored


class HookMetrics:
    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._clock = clock
        self._seconds = metrics.histogram(
            f"{_START}admission_duration_seconds",
            "Admission webhook latency histogram in seconds, identified by name and broken out "
            "for each operation and API resource and type (validate or admit).",
            ("name", "operation", "rejected", "type"),
            _SECONDS,
        )
        self._refusals = metrics.counter(
            f"{_START}rejection_count",
            "Admission webhook rejection count, identified by name and broken out for each "
            "admission type (validating or admit) and operation.",
            ("error_type", "name", "operation", "rejection_code", "type"),
        )
        self._open = metrics.counter(
            f"{_START}fail_open_count",
            "Admission webhook fail open count, identified by name and broken out for each "
            "admission type (validating or mutating).",
            ("name", "type"),
        )
        self._total = metrics.counter(
            f"{_START}request_total",
            "Admission webhook request total, identified by name and broken out for each "
            "admission type (validating or mutating) and operation.",
            ("code", "name", "operation", "rejected", "type"),
        )

    @contextmanager
    def measured(self, name: str, kind: str, operation: str) -> Iterator[HookOutcome]:
        outcome, began = HookOutcome(), self._clock.monotonic()
        try:
            yield outcome
        finally:
            rejected = str(bool(outcome.code or (outcome.failure and not outcome.ignored))).lower()
            self._seconds.observe(self._clock.monotonic() - began, name, operation, rejected, kind)
            code = str(outcome.code or (500 if outcome.failure else 200))
            self._total.add(code, name, operation, rejected, kind)
            if outcome.failure and outcome.ignored:
                self._open.add(name, kind)
            elif rejected == "true":
                why = "calling_webhook_error" if outcome.failure else "no_error"
                self._refusals.add(why, name, operation, code, kind)
