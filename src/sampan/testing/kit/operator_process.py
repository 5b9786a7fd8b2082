"""An operator beside a test cluster: a command, or a function in a process of its own.

Job: start it with the cluster's kubeconfig, wait until it watches, show what it prints, end it.
Invariant: it ends with the test, also when the test's process is killed: the cluster's process
    ends it then.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TYPE_CHECKING

from sampan.testing.kit.expectations import NotAsExpected
from sampan.testing.kit.forked_function import ForkedFunction

if TYPE_CHECKING:
    from sampan.testing.kit.launcher import Control

Work = Sequence[str] | Callable[[str], object]
END_SECONDS = 10.0
OUTPUT_LINES = 15
LOOK_SECONDS = 0.02


class OperatorProcess:
    def __init__(
        self,
        work: Work,
        kubeconfig: str,
        output: IO[bytes],
        control: "Control",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._work, self._output, self._control = work, output, control
        self._environment = {**os.environ, **(environment or {}), "KUBECONFIG": kubeconfig}
        self._process = self._started()

    @property
    def pid(self) -> int:
        return self._process.pid

    def restart(self) -> None:
        self.kill()
        self._process = self._started()

    def check(self) -> None:
        """Raises NotAsExpected where it has ended."""
        if self._process.poll() is not None:
            raise NotAsExpected(
                f"expected that the operator goes on; it ended with {self._process.returncode}:\n"
                + self.last_words()
            )

    def await_watch(self, watches: Callable[[], int], before: int, seconds: float) -> None:
        """Until it has opened one. Raises NotAsExpected."""
        until = time.monotonic() + seconds
        while watches() <= before:
            self.check()
            if time.monotonic() >= until:
                raise NotAsExpected(
                    f"expected within {seconds:g} s: the operator watches something; "
                    f"its last words:\n{self.last_words()}"
                )
            time.sleep(LOOK_SECONDS)

    def kill(self) -> None:
        self._process.kill()
        self._ended()

    def end(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._ended()

    def log(self) -> str:
        """What it has printed so far."""
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def last_words(self) -> str:
        return "\n".join(f"  {line}" for line in self.log().splitlines()[-OUTPUT_LINES:])

    def _started(self) -> "subprocess.Popen[bytes] | ForkedFunction":
        if callable(self._work):
            started: subprocess.Popen[bytes] | ForkedFunction = ForkedFunction(
                self._work, self._environment["KUBECONFIG"], self._output
            )
        else:
            started = subprocess.Popen(
                self._work, env=self._environment, stdin=subprocess.DEVNULL, stdout=self._output,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
        self._control.ask("guard", pid=started.pid)
        return started

    def _ended(self) -> None:
        self._process.wait()
        self._control.ask("release", pid=self._process.pid)
