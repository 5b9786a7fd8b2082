"""How long admission takes: each plugin's part, and all of them together.

Job: upstream's two histograms of it.
"""

from sampan.core.clock import Clock
from sampan.core.metrics import Metrics

_SECONDS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
ADMIT, VALIDATE = "admit", "validate"


class AdmissionMeasure:
    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self.now = clock.monotonic
        self._plugins = metrics.histogram(
            "apiserver_admission_controller_admission_duration_seconds",
            "Admission controller latency histogram in seconds, identified by name and broken out "
            "for each operation and API resource and type (validate or admit).",
            ("name", "operation", "rejected", "type"),
            _SECONDS,
        )
        self._steps = metrics.histogram(
            "apiserver_admission_step_admission_duration_seconds",
            "Admission sub-step latency histogram in seconds, broken out for each operation and "
            "API resource and step type (validate or admit).",
            ("operation", "rejected", "type"),
            _SECONDS,
        )

    def plugin(self, name: str, operation: str, kind: str, since: float, refused: bool) -> float:
        """When it ended."""
        now = self.now()
        self._plugins.observe(now - since, name, operation, _WORDS[refused], kind)
        return now

    def step(self, operation: str, kind: str, since: float, refused: bool) -> None:
        self._steps.observe(self.now() - since, operation, _WORDS[refused], kind)


_WORDS = {True: "true", False: "false"}
