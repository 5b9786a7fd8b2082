"""Steps that fail as often as a script says.

Job: count; a step that has to fail now gets its message.
"""

from collections import Counter

from sampan.kubelet.simulated.script import Script


class ScriptedFailures:
    def __init__(self) -> None:
        self._failed: Counter[tuple[str, str, str]] = Counter()

    def next(self, step: str, about: str, script: Script) -> str | None:
        """None: the step does not fail this time."""
        failure = script.failure(step)
        if failure is None:
            return None
        times, message = failure
        key = (step, about, message)
        if times is not None and self._failed[key] >= times:
            return None
        self._failed[key] += 1
        return message
