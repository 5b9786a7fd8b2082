"""A process that goes on in the background, forked before it has imported what a cluster needs.

Job: part it from whoever started it (session, terminal, files); let that one wait until it says
    that it is ready, and show what it printed until then.
Invariant: it forks with one thread, and nothing open but what both may have.
"""

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from sampan.core.fast_dataclass import dataclass

READY = b"ready\n"
LOG_FILE = "_SAMPAN_LOG_FILE"  # of this process and of those that it starts


@dataclass(frozen=True, slots=True)
class Started:
    """The side of whoever started it."""

    log_file: Path
    began: int  # the log's length before
    answers: int

    def wait(self) -> tuple[bool, str]:
        """Whether it became ready, and what it printed."""
        with os.fdopen(self.answers, "rb") as answers:
            is_ready = answers.readline() == READY
        with self.log_file.open() as output:
            output.seek(self.began)
            return is_ready, output.read().rstrip()


def go_to_background(log_file: Path, keep: Sequence[int] = ()) -> "Started | int":
    """Returns twice, as fork does: here Started; there a descriptor, for `say_ready`. What is open
    there beside standard output, which is the log, is what `keep` names."""
    began = log_file.stat().st_size if log_file.exists() else 0
    output = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.fchmod(output, 0o600)
    answers, ready = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    if os.fork():
        os.close(output)
        os.close(ready)
        return Started(log_file, began, answers)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, place in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, place)
    os.environ[LOG_FILE] = str(log_file)
    _close_all_but({*keep, ready})
    return ready


def own_log() -> str:
    """The file that standard error goes to, where this is a cluster in the background."""
    return os.environ.get(LOG_FILE, "")


def say_ready(descriptor: int) -> None:
    """Negative: nobody waits."""
    if descriptor >= 0:
        os.write(descriptor, READY)
        os.close(descriptor)


def _close_all_but(kept: set[int]) -> None:
    """Those that are open: by number there may be a milliard of them."""
    for name in os.listdir("/dev/fd"):
        if int(name) > 2 and int(name) not in kept:
            with contextlib.suppress(OSError):  # the listing's own is closed already
                os.close(int(name))
