"""System OOM kills, reported as events of the node.

Job: the kernel's log → an event about the node for each process that a *system* OOM killed. A
    container over its own limit is its pod's business, and shows in that container's status.
Invariant: only what the kernel says after the start counts; what programs write there does not.
Owner: Kubelet runs it; without the right to read the log it ends, saying so.
"""

import asyncio
import errno
import os
from collections.abc import Callable

from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.patterns import lazy_pattern

log = get_logger(__name__)

KERNEL_LOG = "/dev/kmsg"
_RECORD_BYTES = 8192  # as the kernel: a read gives one record, and none is longer
# oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),…,global_oom,task_memcg=/a,task=x,pid=1,uid=0
_VICTIM = lazy_pattern(r"^oom-kill:constraint=.*,global_oom,.*,task=(.*),pid=(\d+),uid=\d+$")


@dataclass(frozen=True, slots=True)
class Victim:
    name: str
    pid: int

    def message(self) -> str:
        return f"System OOM encountered, victim process: {self.name}, pid: {self.pid}"


def victim_of(record: bytes) -> Victim | None:
    """Of one record: `priority,number,time,flags;text`, and lines that do not concern us."""
    head, _, text = record.decode(errors="replace").partition(";")
    priority = head.partition(",")[0]
    if not is_digits(priority) or int(priority) >> 3:  # a facility: not the kernel itself
        return None
    found = _VICTIM.match(text.partition("\n")[0])
    return Victim(found[1], int(found[2])) if found else None


class SystemOom:
    def __init__(self, warn: Callable[[str, str], None], path: str = KERNEL_LOG) -> None:
        self._warn, self._path = warn, path

    async def run(self) -> None:
        """Until cancelled, or at once where the log cannot be read."""
        try:
            file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            log.info("system OOM kills are not watched", error=error)
            return
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        try:
            _skip_the_past(file)
            loop.add_reader(file, ready.set)
            while True:
                await ready.wait()
                ready.clear()
                self._read(file)
        finally:
            loop.remove_reader(file)
            os.close(file)

    def _read(self, file: int) -> None:
        while True:
            try:
                record = os.read(file, _RECORD_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.EPIPE:  # records were overwritten before we read them
                    raise
                continue
            if not record:
                return
            victim = victim_of(record)
            if victim is not None:
                self._warn("SystemOOM", victim.message())


def _skip_the_past(file: int) -> None:
    try:
        os.lseek(file, 0, os.SEEK_END)
    except OSError:
        return  # a pipe has none
