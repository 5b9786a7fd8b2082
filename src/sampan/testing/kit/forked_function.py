"""A function of a test in a process of its own, as subprocess.Popen has commands.

Job: fork, call the function there with the path of a kubeconfig; say how it ended.
Invariant: nothing of the test's process stays open there but its standard input: no cluster lives
    on because of it.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import IO

FIRST_INHERITED, LAST_INHERITED = 3, 65_536


class ForkedFunction:
    def __init__(
        self, function: Callable[[str], object], kubeconfig: str, output: IO[bytes]
    ) -> None:
        fork = multiprocessing.get_context("fork")
        self._process = fork.Process(
            target=_call, args=(function, kubeconfig, output.fileno()), daemon=True
        )
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None, "it was started"
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def send_signal(self, number: int) -> None:
        if self._process.exitcode is None:
            os.kill(self.pid, number)

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("function", timeout or 0.0)
        return code


def _call(function: Callable[[str], object], kubeconfig: str, output: int) -> None:
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.closerange(FIRST_INHERITED, LAST_INHERITED)
    sys.stdout = sys.stderr = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115  # for the life of the process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    function(kubeconfig)
