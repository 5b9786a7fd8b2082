"""Whether the creation of a container is stuck: its OCI runtime is gone.

Job: tell a runtime that was killed, but whose container is there already, from one that is slow.
    conmon waits for such a container's end, which never comes.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from sampan.core.digits import is_digits


def is_stuck(container: str, conmon: str) -> bool:
    """Of the processes with the container's id on their command lines, the runtime sees the files
    that conmon sees; the container's own does not, and waits with the runtime's words. Blocking."""
    found = list(_processes(container))
    outside = {files for program, files in found if program == conmon}
    others = {files for program, files in found if program != conmon}
    return bool(outside) and bool(others) and not outside & others


def _processes(container: str) -> Iterator[tuple[str, str]]:
    """The program of each, and which file systems it sees."""
    for name in os.listdir("/proc"):
        if not is_digits(name):
            continue
        try:
            command_line = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            if container.encode() in command_line:
                yield os.fsdecode(command_line[0]), os.readlink(f"/proc/{name}/ns/mnt")
        except OSError:
            continue
