"""etcd_request_* metrics of the store, under upstream's names.

Job: count and time what is written.
"""

from collections.abc import Awaitable

from sampan.api.resources import Resource
from sampan.core.clock import Clock
from sampan.core.metrics import Metrics
from sampan.store.contract import KeyExists, RevisionMismatch, StoreError

_LABELS = ("operation", "group", "resource")
# As upstream's: those of the requests' durations.
_SECONDS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0,
            8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0)  # fmt: skip


class StoreMetrics:
    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._clock = clock
        self._seconds = metrics.histogram(
            "etcd_request_duration_seconds",
            "Etcd request latency in seconds for each operation and object type.",
            _LABELS,
            _SECONDS,
        )
        self._requests = metrics.counter(
            "etcd_requests_total",
            "Etcd request counts for each operation and object type.",
            _LABELS,
        )
        self._errors = metrics.counter(
            "etcd_request_errors_total",
            "Etcd failed request counts for each operation and object type.",
            _LABELS,
        )

    async def timed(self, operation: str, resource: Resource, write: Awaitable[int]) -> int:
        labels = (operation, resource.group, resource.plural)
        began = self._clock.monotonic()
        try:
            return await write
        except (KeyExists, RevisionMismatch):
            raise  # an answer like any other
        except StoreError:
            self._errors.add(*labels)
            raise
        finally:
            self._requests.add(*labels)
            self._seconds.observe(self._clock.monotonic() - began, *labels)
