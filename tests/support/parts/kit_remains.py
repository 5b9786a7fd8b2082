"""What the test kit has open: for tests that ask whether it leaves anything.

Job: count threads and descriptors of this process, and processes, descriptors and files of the kit.
"""

import os
import threading
from collections import Counter
from pathlib import Path

from sampan.testing.kit.launcher import launcher


def remains() -> Counter[str]:
    """Of whatever clusters there are now, and of what they are forked from."""
    base = launcher().base
    own = [process for process in Path("/proc").glob("[0-9]*") if _is_of(process, base)]
    return Counter(
        {
            "threads": threading.active_count(),
            "descriptors": len(os.listdir("/proc/self/fd")),
            "files": len(list(base.iterdir())),
            "processes of the kit": len(own),
            "descriptors of the kit": sum(map(_descriptors, own)),
        }
    )


def _is_of(process: Path, base: Path) -> bool:
    """A zombie has no command line any more."""
    try:
        return str(base).encode() in (process / "cmdline").read_bytes()
    except OSError:
        return False


def _descriptors(process: Path) -> int:
    try:
        return len(os.listdir(process / "fd"))
    except OSError:
        return 0  # it has ended meanwhile
