"""What /metrics/probes shows: how often each probe of each container said what, and how fast.

Job: count results under upstream's names for as long as the pod is there.
Invariant: a pod that is forgotten leaves no series behind; a restarted container goes on counting.
Owner: ProbeManager.
"""

from functools import cached_property

from sampan.api.objects import name_of, namespace_of, uid_of
from sampan.core.metrics import Metrics
from sampan.kubelet.probes.finding import Probed
from sampan.kubelet.probes.tally import Kind

SUCCESSFUL, FAILED, UNKNOWN = "successful", "failed", "unknown"
# Prometheus' own default, which upstream leaves as it is.
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class _Series:
    def __init__(self) -> None:
        self.metrics = Metrics()
        self.total = self.metrics.counter(
            "prober_probe_total",
            "Cumulative number of a liveness, readiness or startup probe for a container by "
            "result.",
            ("probe_type", "result", "container", "pod", "namespace", "pod_uid"),
        )
        self.seconds = self.metrics.histogram(
            "prober_probe_duration_seconds",
            "Duration in seconds for a probe response.",
            ("probe_type", "container", "pod", "namespace"),
            BUCKETS,
        )


class ProbeResults:
    def __init__(self) -> None:
        self._known: dict[str, set[tuple[str, str, str, str]]] = {}  # by pod uid

    @cached_property
    def _series(self) -> _Series:
        """Many simulated nodes never have a probe."""
        return _Series()

    def add(self, kind: Kind, about: Probed, result: str, seconds: float) -> None:
        pod, uid = about.pod, uid_of(about.pod)
        labels = (kind.capitalize(), about.container["name"], name_of(pod), namespace_of(pod))
        self._known.setdefault(uid, set()).add(labels)
        self._series.total.add(labels[0], result, *labels[1:], uid)
        if result != FAILED:  # as upstream
            self._series.seconds.observe(seconds, *labels)

    def forget(self, uid: str) -> None:
        for labels in self._known.pop(uid, ()):
            self._series.seconds.forget(*labels)
            for result in (SUCCESSFUL, FAILED, UNKNOWN):
                self._series.total.forget(labels[0], result, *labels[1:], uid)

    def render(self) -> str:
        return self._series.metrics.render()
