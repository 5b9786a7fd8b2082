"""A container's first process as the kernel shows it, and what the node lays out for it before.

Job: signals by name; whether a process is there and can hear SIGTERM; files that must exist before
    a container is created.
Invariant: a process that cannot be seen is taken for one that needs no waiting for.
"""

import os
import signal
from collections.abc import Callable

from sampan.core.clock import Clock
from sampan.core.digits import is_digits
from sampan.kubelet.contracts.runtime import ContainerSpec, RuntimeFailure

# How long after its start a container's program may need until it can hear SIGTERM.
DEAF_SECONDS, _DEAF_POLL_SECONDS = 0.25, 0.003


def is_there(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


def signal_number(name: str) -> int:
    """SIGUSR1, SIGRTMIN+3, SIGRTMAX-2. Raises RuntimeFailure for what the kernel does not have."""
    base, sign, offset = name.partition("+") if "+" in name else name.partition("-")
    found = getattr(signal, base, None)
    if not isinstance(found, signal.Signals) or not is_digits(offset or "0"):
        raise RuntimeFailure(f"unknown signal {name}")
    number = found + (int(offset or 0) if sign == "+" else -int(offset or 0))
    if not 0 < number < signal.NSIG:
        raise RuntimeFailure(f"unknown signal {name}")
    return number


def hears_sigterm(pid: int) -> bool:
    """The container's program catches SIGTERM, or sleeps: then it has made up its mind (in
    sigtimedwait the kernel does not show what it waits for). True when it cannot be seen."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            fields = dict(line.split(":", 1) for line in file)
    except (OSError, ValueError):
        return True
    if fields.get("Name", "").strip().startswith("runc:"):
        return False  # runc's own init, which will become the program
    catches = int(fields.get("SigCgt", "0"), 16) >> (signal.SIGTERM - 1) & 1
    return bool(catches) or fields.get("State", "").strip().startswith("S")


async def until_sigterm_is_heard(
    pid_of: Callable[[], int], started_seconds_ago: float, clock: Clock
) -> None:
    """The kernel drops a SIGTERM for a first process that does not catch it yet, and it is sent
    only once: right after its start the program is given the moment that it needs. `pid_of`: of the
    first process, 0 where it is over or cannot be known."""
    deadline = clock.monotonic() + DEAF_SECONDS - started_seconds_ago
    while clock.monotonic() < deadline:
        pid = pid_of()
        if not pid or hears_sigterm(pid):
            return
        await clock.sleep(_DEAF_POLL_SECONDS)


def prepare_host(container: ContainerSpec, log_directory: str) -> None:
    """The log's directory and the mounted files; microseconds, so no thread is worth it."""
    try:
        if container.log_path:
            directory = os.path.dirname(os.path.join(log_directory, container.log_path))
            os.makedirs(directory, mode=0o755, exist_ok=True)
        for file in container.host_files:
            os.makedirs(os.path.dirname(file.path), mode=0o750, exist_ok=True)
            with open(file.path, "w", encoding="utf-8") as opened:
                opened.write(file.content)
                os.fchmod(opened.fileno(), file.mode)
    except OSError as error:
        raise RuntimeFailure(f"cannot prepare the container's files: {error}") from error
