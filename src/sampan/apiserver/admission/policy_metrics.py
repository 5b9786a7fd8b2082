"""How often policies are asked, how that ends and what it costs, under upstream's names.

Job: one decision → a count and a duration.
"""

from sampan.core.metrics import Metrics

_SECONDS = (0.0000005, 0.001, 0.01, 0.1, 1.0)
_LABELS = ("enforcement_action", "error_type", "policy", "policy_binding")
_WORDS = {"validating": "Validation", "mutating": "Mutation"}


class PolicyMetrics:
    def __init__(self, metrics: Metrics, mode: str) -> None:
        start, word = f"apiserver_{mode}_admission_policy_", _WORDS[mode]
        self._checks = metrics.counter(
            f"{start}check_total",
            f"{word} admission policy check total, labeled by policy and further identified by "
            "binding and enforcement action taken.",
            _LABELS,
        )
        self._seconds = metrics.histogram(
            f"{start}check_duration_seconds",
            f"{word} admission latency for individual {word.lower()} expressions in seconds, "
            "labeled by policy and further including binding and enforcement action taken.",
            _LABELS,
            _SECONDS,
        )

    def count(self, policy: str, binding: str, error: str, action: str, took: float) -> None:
        labels = (action, error, policy, binding)
        self._checks.add(*labels)
        self._seconds.observe(took, *labels)
