"""The scheduler's metrics, under upstream's names.

Job: declare them, and turn attempts into observations.
"""

from sampan.core.metrics import Metrics
from sampan.core.telemetry.spans import TOP, Span
from sampan.scheduler.cache.cache_state import CacheState
from sampan.scheduler.decision.decide import Chosen, Decision, Refused
from sampan.scheduler.decision.rule_costs import RuleCosts
from sampan.scheduler.queue.queue_state import Place, QueueState, Waiting

SCHEDULED, UNSCHEDULED, ERROR = "scheduled", "unschedulable", "error"
_MOST_ATTEMPTS = 15  # from here on they share one label
_QUEUES = {
    "active": Place.ACTIVE,
    "backoff": Place.BACKOFF,
    "unschedulable": Place.UNSCHEDULABLE,
    "gated": Place.GATED,
}


LANE = "scheduler"


class Measures:
    def __init__(self, metrics: Metrics, queue: QueueState, cache: CacheState) -> None:
        self.traces = metrics.traces
        self._attempts = metrics.counter(
            "scheduler_schedule_attempts_total",
            "Number of attempts to schedule pods, by the result.",
            ("result", "profile"),
        )
        self._attempt_seconds = metrics.histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Latency of one attempt in seconds (decision and binding), by the result.",
            ("result", "profile"),
            buckets=[0.001 * 2**step for step in range(15)],
        )
        self._pod_seconds = metrics.histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Latency from a pod's first appearance in the queue to its binding, in seconds.",
            ("attempts",),
            buckets=[0.01 * 2**step for step in range(20)],
        )
        self._pod_attempts = metrics.histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts until a pod was scheduled.",
            buckets=[1, 2, 4, 8, 16],
        )
        self._preemptions = metrics.counter(
            "scheduler_preemption_attempts_total", "Number of attempts to make room by preemption."
        )
        self._victims = metrics.histogram(
            "scheduler_preemption_victims",
            "Number of pods that a preemption removes.",
            buckets=[1, 2, 4, 8, 16, 32, 64],
        )
        self._decision_seconds = metrics.histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Latency of one decision in seconds.",
            buckets=[0.001 * 2**step for step in range(15)],
        )
        self._plugin_seconds = metrics.histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point.",
            ("plugin", "extension_point", "status"),
            buckets=[0.00001 * 1.5**step for step in range(20)],
        )
        self._show_state(metrics, queue, cache)

    def _show_state(self, metrics: Metrics, queue: QueueState, cache: CacheState) -> None:
        metrics.gauge(
            "scheduler_pending_pods", "Number of pending pods, by the queue.", ("queue",)
        ).read_from(lambda: {(name,): float(queue.count(place)) for name, place in _QUEUES.items()})
        metrics.gauge(
            "scheduler_unschedulable_pods",
            "Number of unschedulable pods, by the plugin that refused them.",
            ("plugin", "profile"),
        ).read_from(lambda: {key: float(count) for key, count in queue.refused_by().items()})
        metrics.gauge(
            "scheduler_cache_size",
            "Number of nodes, pods and assumed pods that are known.",
            ("type",),
        ).read_from(
            lambda: {
                ("nodes",): float(len(cache.columns)),
                ("pods",): float(len(cache)),
                ("assumed_pods",): float(cache.assumed()),
            }
        )

    def decided(
        self, waiting: Waiting, decision: Decision, seconds: float, costs: RuleCosts | None = None
    ) -> None:
        self._decision_seconds.observe(seconds)
        if costs is not None:
            for (point, plugin), spent in costs.seconds.items():
                self._plugin_seconds.observe(spent, plugin, point, "Success")
        traces = self.traces
        if not traces.is_on:
            return
        uid, now = waiting.pod.uid, traces.now()
        traces.add(uid, Span(LANE, "queue", now - seconds - waiting.waited, now - seconds, TOP,
                             {"attempt": str(waiting.attempts)}))  # fmt: skip
        match decision:
            case Chosen(node):
                facts = {"node": node, "feasible nodes": str(decision.feasible)}
            case Refused():
                facts = {"refused by": ", ".join(sorted(decision.rules))}
        if costs is not None and costs.seconds:
            facts["costs"] = costs.text()
        traces.add(uid, Span(LANE, "filter and score", now - seconds, now, TOP, facts))

    def attempted(self, result: str, seconds: float, profile: str) -> None:
        self._attempts.add(result, profile)
        self._attempt_seconds.observe(seconds, result, profile)

    def preempted(self, victims: int) -> None:
        """One attempt to make room; none were found where `victims` is 0."""
        self._preemptions.add()
        if victims:
            self._victims.observe(victims)

    def scheduled(self, waiting: Waiting, now: float) -> None:
        attempts = waiting.attempts
        label = str(attempts) if attempts < _MOST_ATTEMPTS else f"{_MOST_ATTEMPTS}+"
        self._pod_seconds.observe(now - waiting.first_seen, label)
        self._pod_attempts.observe(attempts)
