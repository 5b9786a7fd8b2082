"""Processes of a test that must not outlive it.

Job: hold them by descriptors, which no later process of the same number takes over; kill them.
    Only Linux has such descriptors: elsewhere they are known by their numbers.
"""

import contextlib
import os
import signal

_HAS_DESCRIPTORS = hasattr(os, "pidfd_open")


class GuardedProcesses:
    def __init__(self) -> None:
        self._held: dict[int, int] = {}  # pid → descriptor, or the pid again

    def add(self, pid: int) -> None:
        """Of one that is gone already: nothing."""
        with contextlib.suppress(OSError):
            self._held[pid] = os.pidfd_open(pid) if _HAS_DESCRIPTORS else pid

    def remove(self, pid: int) -> None:
        if (held := self._held.pop(pid, None)) is not None and _HAS_DESCRIPTORS:
            os.close(held)

    def kill(self) -> None:
        send_signal = signal.pidfd_send_signal if _HAS_DESCRIPTORS else os.kill
        for held in self._held.values():
            with contextlib.suppress(OSError):  # it has ended by itself
                send_signal(held, signal.SIGKILL)
