"""Processes and cgroups that a container leaves behind: one that has ended, or whose creation was
interrupted.

Job: end conmon, the OCI runtime and the container's own processes, by its id and its cgroup; have
    the OCI runtime forget it; remove the cgroup.
Invariant: a process is ended only if the id is on its command line, or the cgroup is its own.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from sampan.core.digits import is_digits
from sampan.core.files.remove_tree import remove_tree
from sampan.runtime import monitor
from sampan.runtime.monitor import ContainerFailure
from sampan.runtime.programs import Programs
from sampan.runtime.spawn import CGROUPS, readable

_ROUNDS = 20  # each ends all that there is; one that is ended may have started another before
_END_SECONDS = 10.0


async def remove_stale(programs: Programs, container: str, bundle: Path) -> None:
    """Raises OSError where a cgroup is still in use."""
    for _ in range(_ROUNDS):
        found = await asyncio.to_thread(_processes_of, container, bundle)
        if not found:
            break
        await _end(found)
    with contextlib.suppress(ContainerFailure):  # it does not know it
        await monitor.call(programs, "delete", "--force", container)
    for directory in await asyncio.to_thread(_cgroups_of, bundle):
        with contextlib.suppress(FileNotFoundError):
            directory.rmdir()


def forget_ended(programs: Programs, container: str, bundle: Path) -> bool:
    """What `crun delete` does for a container without processes, without a program for it. False:
    something of it still runs, or another runtime has it. Blocking."""
    if programs.name != "crun":
        return False
    try:
        for directory in _cgroups_of(bundle):
            with contextlib.suppress(FileNotFoundError):  # its pod's took it along
                directory.rmdir()
        with contextlib.suppress(FileNotFoundError):
            remove_tree(Path(programs.state) / container)
    except OSError:
        return False
    return True


def monitors_below(home: Path) -> Iterator[int]:
    """Each conmon that lives, of the containers whose bundles are there."""
    inside = f"{home}/".encode()
    for pid in _pids():
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it ended while we looked
        if os.path.basename(command[0]) == b"conmon" and any(
            word.startswith(inside) for word in command
        ):
            yield pid


def _cgroups_of(bundle: Path) -> list[Path]:
    """One in each hierarchy that has it."""
    try:
        command_line = json.loads((bundle / "config.json").read_text())
        path = str(command_line["linux"]["cgroupsPath"]).strip("/")
    except (OSError, ValueError, KeyError, TypeError):
        return []
    places = [CGROUPS, *(f"{CGROUPS}/{name}" for name in os.listdir(CGROUPS))]
    return [Path(place, path) for place in places if path and os.path.isdir(f"{place}/{path}")]


def _processes_of(container: str, bundle: Path) -> list[int]:
    """A pidfd of each."""
    inside: set[int] = set()
    for directory in _cgroups_of(bundle):
        with contextlib.suppress(OSError):
            inside |= {int(pid) for pid in (directory / "cgroup.procs").read_text().split()}
    return [
        opened
        for pid in (*inside, *_pids())
        if (opened := _opened(pid, container, inside)) is not None
    ]


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if is_digits(name))


def _opened(pid: int, container: str, inside: set[int]) -> int | None:
    try:
        opened = os.pidfd_open(pid)
    except OSError:
        return None
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        command, state = b"", "X"
    if state not in "ZX" and (container.encode() in command.split(b"\0") or pid in inside):
        return opened
    os.close(opened)
    return None


async def _end(processes: list[int]) -> None:
    try:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                for process in processes:
                    await readable(process)
    finally:
        for process in processes:
            os.close(process)
