"""Metrics of admission policies, under upstream's names.

Job: one decision → a count and a duration.
"""

from sampan.core.metrics import Metrics

_SECONDS = (0.0000005, 0.001, 0.01, 0.1, 1.0)
_LABELS = ("error_type", "policy", "policy_binding")


class PolicyMetrics:
    """Of validating policies: also what was done about it."""

    def __init__(self, metrics: Metrics) -> None:
        start, labels = "apiserver_validating_admission_policy_", ("enforcement_action", *_LABELS)
        self._checks = metrics.counter(
            f"{start}check_total",
            "Validation admission policy check total, labeled by policy and further identified by "
            "binding and enforcement action taken.",
            labels,
        )
        self._seconds = metrics.histogram(
            f"{start}check_duration_seconds",
            "Validation admission latency for individual validation expressions in seconds, "
            "labeled by policy and further including binding and enforcement action taken.",
            labels,
            _SECONDS,
        )

    def count(self, policy: str, binding: str, error: str, action: str, took: float) -> None:
        labels = (action, error, policy, binding)
        self._checks.add(*labels)
        self._seconds.observe(took, *labels)


class MutationMetrics:
    def __init__(self, metrics: Metrics) -> None:
        start = "apiserver_mutating_admission_policy_"
        self._checks = metrics.counter(
            f"{start}check_total",
            "Mutation admission policy check total, labeled by policy and further identified by "
            "binding.",
            _LABELS,
        )
        self._seconds = metrics.histogram(
            f"{start}check_duration_seconds",
            "Mutation admission latency for individual mutation expressions in seconds, labeled "
            "by policy and binding.",
            _LABELS,
            _SECONDS,
        )

    def count(self, policy: str, binding: str, error: str, took: float) -> None:
        labels = (error, policy, binding)
        self._checks.add(*labels)
        self._seconds.observe(took, *labels)
