"""A simulated container's script: what the annotations of its pod say about it.

Job: read the annotations that simulated.py documents. Pure.
"""

from collections.abc import Mapping

PREFIX = "simulated.sampan.dev/"


class Script:
    __slots__ = ("_annotations", "_container")

    def __init__(self, annotations: Mapping[str, str], container: str = "") -> None:
        self._annotations, self._container = annotations, container

    def text(self, name: str) -> str:
        one = self._annotations.get(f"{PREFIX}{name}.{self._container}")
        return one if one is not None else self._annotations.get(PREFIX + name, "")

    def number(self, name: str) -> float | None:
        """None where there is nothing, or nothing that is a number."""
        try:
            return float(self.text(name))
        except ValueError:
            return None

    def seconds(self, name: str) -> float:
        return max(0.0, self.number(name) or 0.0)

    def stop_seconds(self) -> float | None:
        """None: it never obeys."""
        return None if self.text("stop-seconds") == "never" else self.seconds("stop-seconds")

    def exit_code(self, attempt: int) -> int:
        codes = [int(code) for code in self.text("exit-code").split(",") if code.strip().isdigit()]
        return codes[min(attempt, len(codes) - 1)] if codes else 0

    def failure(self, step: str) -> tuple[int | None, str] | None:
        """How often the step fails (None: always), and with what message."""
        for entry in self.text("fail").split(";"):
            name, _, rest = entry.strip().partition(":")
            if name == step:
                times, _, message = rest.partition(":")
                count = int(times) if times.isdigit() else None
                return count, message or f"{step} fails by script"
        return None
