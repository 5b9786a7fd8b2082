"""The kernel's wait before a process goes to another cgroup, over before a container needs it.

Job: keep the kernel ready for such moves while a container is being made. Before the first one it
    waits until every processor was idle or switched tasks (5 to 20 ms), and for about as long after
    the last one no other has to wait. So our own process is moved, again and again for a moment.
Invariant: nobody is moved: this process goes to where it is.
Invariant: it ends by itself, even where nobody says that the container is there.
Owner: NativeRuntime.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sampan.runtime.spawn import CGROUPS

_PAUSE_SECONDS = 0.003  # shorter than what the kernel waits for
_ROUNDS = 40  # as long as a start may need on a machine that has time for it


class CgroupMoves:
    def __init__(self, cgroups: str = CGROUPS) -> None:
        self._cgroups = cgroups
        self._starts = 0
        self._over: threading.Event | None = None  # of the thread that is at it

    def expect(self) -> None:
        """A container will be started in a moment. Returns at once. Nothing is to be done while
        others are being started: their own moves have the kernel ready."""
        if not self._starts and (self._over is None or self._over.is_set()):
            self._over = threading.Event()
            work = (self._over,)
            threading.Thread(target=self._keep_ready, args=work, daemon=True).start()

    @contextmanager
    def start(self) -> Iterator[None]:
        """Around the start itself."""
        self.expect()
        self._starts += 1
        try:
            yield
        finally:
            self._starts -= 1
            if self._over is not None:
                self._over.set()

    def _keep_ready(self, over: threading.Event) -> None:
        try:
            for _ in range(_ROUNDS):
                _move_nowhere(self._cgroups)
                if over.wait(_PAUSE_SECONDS):
                    break
        except OSError:
            pass  # it may not: then the start itself waits
        finally:
            over.set()


def _move_nowhere(cgroups: str) -> None:
    place = own_place(Path("/proc/self/cgroup").read_text())
    file = os.open(f"{cgroups}{place}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, str(os.getpid()).encode())
    finally:
        os.close(file)


def own_place(text: str) -> str:
    """Where a process is in the tree of cgroups, by its /proc/PID/cgroup: in a hierarchy of
    version 1 that has a controller, else in that of version 2."""
    place = ""
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            place = place or path
        elif not controllers.startswith("name="):
            place = f"/{controllers}{path}"
    return place.rstrip("/")
