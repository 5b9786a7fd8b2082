"""storage_operation_duration_seconds: how long volumes take, by plugin and operation.

Job: upstream's histogram.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from sampan.core.clock import Clock
from sampan.core.metrics import Metrics

MOUNT, UNMOUNT, UNMOUNT_DEVICE = "volume_mount", "volume_unmount", "unmount_device"
MAP, UNMAP, UNMAP_DEVICE = "map_volume", "unmap_volume", "unmap_device"
_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600)


class StorageOperations:
    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._clock = clock
        self._seconds = metrics.histogram(
            "storage_operation_duration_seconds",
            "Storage operation duration",
            ("volume_plugin", "operation_name", "status", "migrated"),
            buckets=_BUCKETS,
        )

    @contextmanager
    def timed(self, plugin: str, operation: str, *, migrated: bool = False) -> Iterator[None]:
        """On the loop."""
        began, is_done = self._clock.monotonic(), False
        try:
            yield
            is_done = True
        finally:
            took = self._clock.monotonic() - began
            self.observe(plugin, operation, took, is_done=is_done, migrated=migrated)

    def observe(
        self, plugin: str, operation: str, seconds: float, *, is_done: bool, migrated: bool = False
    ) -> None:
        status = "success" if is_done else "fail-unknown"
        is_migrated = "true" if migrated else "false"
        self._seconds.observe(seconds, plugin, operation, status, is_migrated)
