"""Real programs for tests: started as children, stopped by their pid, their output kept.

Job: start a program, wait for a sign of readiness, stop it; fail with its output.
"""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_LONGEST_PAUSE_SECONDS = 0.25


class Program:
    """A child process whose output goes to a file, so that it never blocks on a full pipe."""

    def __init__(
        self, command: Sequence[str], output: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.command, self.output = list(command), output
        with output.open("ab") as sink:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
            )

    def wait_until(self, ready: Callable[[], bool], seconds: float = 90.0) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            if self.process.poll() is not None:
                raise AssertionError(f"{self.command[0]} ended early:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.command[0]} not ready in {seconds} s:\n{self.tail()}")
            time.sleep(0.01)

    def tail(self, lines: int = 40) -> str:
        text = self.output.read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def stop(self, seconds: float = 30.0) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"{self.command[0]} did not stop:\n{self.tail()}") from None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def eventually(check: Callable[[], object], seconds: float = 60.0, every: float = 0.05) -> object:
    """The first truthy answer of `check`; asks again until then, for at most `seconds`.

    What takes long is asked less and less often: each question to kubectl is a process, and half of
    a machine that asks has less time for the answer."""
    deadline = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {getattr(check, '__name__', check)}")
        time.sleep(every)
        every = max(every, min(every * 1.25, _LONGEST_PAUSE_SECONDS))
