"""kubelet_topology_manager_*: what is counted of the pods that are admitted.

Job: upstream's counters of admissions, of those that failed where resources are aligned, of aligned
    NUMA nodes, and how long it took.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from sampan.core.clock import Clock
from sampan.core.metrics import Metrics
from sampan.kubelet.contracts.resources_hook import PodRefused
from sampan.kubelet.resource_managers.topology_policies import (
    CONTAINER,
    NONE,
    POD,
    SINGLE_NUMA_NODE,
    TopologySettings,
)

_NUMA_NODE = "numa_node"
_MILLISECONDS = tuple(0.05 * 2**power for power in range(15))


class TopologyMetrics:
    def __init__(self, metrics: Metrics, clock: Clock, settings: TopologySettings) -> None:
        self._clock, self._settings = clock, settings
        self._asked = metrics.counter(
            "kubelet_topology_manager_admission_requests_total",
            "The number of admission requests where resources have to be aligned.",
        )
        self._failed = metrics.counter(
            "kubelet_topology_manager_admission_errors_total",
            "The number of admission request failures where resources could not be aligned.",
        )
        self._milliseconds = metrics.histogram(
            "kubelet_topology_manager_admission_duration_ms",
            "Duration in milliseconds to serve a pod admission request.",
            buckets=_MILLISECONDS,
        )
        self._aligned = metrics.counter(
            "kubelet_container_aligned_compute_resources_count",
            "Cumulative number of aligned compute resources allocated to containers by alignment "
            "type.", ("scope", "boundary"),
        )  # fmt: skip
        self._unaligned = metrics.counter(
            "kubelet_container_aligned_compute_resources_failure_count",
            "Cumulative number of failures to allocate aligned compute resources to containers by "
            "alignment type.", ("scope", "boundary"),
        )  # fmt: skip
        for counter in (self._aligned, self._unaligned):
            for scope in (CONTAINER, POD):
                counter.add(scope, _NUMA_NODE, by=0.0)

    @contextmanager
    def admission(self) -> Iterator[None]:
        self._asked.add()
        began = self._clock.monotonic()
        try:
            yield
        except PodRefused:
            if self._settings.policy != NONE:  # as upstream: `none` has nothing to align
                self._failed.add()
            raise
        finally:
            # As upstream: whole ones.
            self._milliseconds.observe(float(int((self._clock.monotonic() - began) * 1000)))

    def aligned(self, scope: str, *, is_aligned: bool = True) -> None:
        """Of a container, or of a pod as a whole, by the settings' scope."""
        if self._settings.policy == SINGLE_NUMA_NODE and self._settings.scope == scope:
            (self._aligned if is_aligned else self._unaligned).add(scope, _NUMA_NODE)
