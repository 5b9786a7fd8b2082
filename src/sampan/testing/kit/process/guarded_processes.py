"""Processes of a test that must not outlive it.

Job: hold them by descriptors, which no later process of the same number takes over; kill them.
"""

import contextlib
import os
import signal


class GuardedProcesses:
    def __init__(self) -> None:
        self._held: dict[int, int] = {}  # pid → descriptor

    def add(self, pid: int) -> None:
        """Of one that is gone already: nothing."""
        with contextlib.suppress(OSError):
            self._held[pid] = os.pidfd_open(pid)

    def remove(self, pid: int) -> None:
        if (held := self._held.pop(pid, None)) is not None:
            os.close(held)

    def kill(self) -> None:
        for held in self._held.values():
            with contextlib.suppress(OSError):  # it has ended by itself
                signal.pidfd_send_signal(held, signal.SIGKILL)
