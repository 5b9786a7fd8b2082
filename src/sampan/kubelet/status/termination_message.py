"""Termination messages: from the message file, or the end of the log.

Job: read the termination log of ended containers, or by policy the tail of their log.
Invariant: never more than the last 4096 bytes of the file, 2048 bytes or 80 lines of a log.
"""

import os
from dataclasses import replace
from pathlib import Path

from sampan.api.objects import Obj
from sampan.core.tasks import give_way
from sampan.kubelet.contracts import paths
from sampan.kubelet.contracts.runtime import ContainerState, ContainerStatus, ObservedPod
from sampan.kubelet.contracts.spec import find_container
from sampan.kubelet.settings import KubeletSettings

FILE_BYTES = 4096
TAIL_BYTES = 2048
TAIL_LINES = 80
READ_PER_TURN = 128  # of the loop


async def with_messages(pod: Obj, observed: ObservedPod, settings: KubeletSettings) -> ObservedPod:
    if not any(_has_ended(container) for container in observed.containers):
        return observed
    told: list[ContainerStatus] = []
    for container in observed.containers:
        if len(told) % READ_PER_TURN == READ_PER_TURN - 1:
            await give_way()
        told.append(_with_message(pod, container, settings))
    return replace(observed, containers=tuple(told))


async def awaits_log(pod: Obj, observed: ObservedPod, settings: KubeletSettings) -> bool:
    """Is a container's last word in a log that the runtime may not have written to its end?"""
    read = 0
    for container in observed.containers:
        if container.settled or not _has_ended(container):
            continue
        if not _speaks_by_log(pod, container):
            continue
        if not _last_word(pod, container, settings):
            return True
        read += 1
        if not read % READ_PER_TURN:
            await give_way()
    return False


def _speaks_by_log(pod: Obj, container: ContainerStatus) -> bool:
    found = find_container(pod, container.name)
    policy = found[1].get("terminationMessagePolicy") if found is not None else ""
    return policy == "FallbackToLogsOnError" and container.exit_code != 0


def _has_ended(container: ContainerStatus) -> bool:
    return container.state is ContainerState.EXITED


def _with_message(
    pod: Obj, container: ContainerStatus, settings: KubeletSettings
) -> ContainerStatus:
    found = find_container(pod, container.name)
    if found is None or not _has_ended(container):
        return container
    message = _last_word(pod, container, settings)
    if not message and _speaks_by_log(pod, container):
        message = log_tail(container.log_path)
    if not message:
        return container
    # What the runtime itself has to say goes first.
    told = f"{container.message}: {message}" if container.message else message
    return replace(container, message=told)


def _last_word(pod: Obj, container: ContainerStatus, settings: KubeletSettings) -> str:
    file = _termination_file(pod, container, settings)
    return _read_end(file, FILE_BYTES).decode(errors="replace")


def _termination_file(pod: Obj, container: ContainerStatus, settings: KubeletSettings) -> str:
    return paths.termination_log(
        pod, container.name, attempt=container.attempt, root_dir=settings.root_dir
    )


def _read_end(path: str, most_bytes: int) -> bytes:
    """Empty where there is none."""
    try:
        with Path(path).open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - most_bytes))
            return file.read(most_bytes)
    except OSError:
        return b""


def log_tail(path: str) -> str:
    """The last lines of a CRI log, without its prefixes."""
    raw = _read_end(path, 4 * TAIL_BYTES)
    shown = b"".join(_text(line) for line in raw.split(b"\n")[-TAIL_LINES - 1 :])
    return shown[-TAIL_BYTES:].decode(errors="replace")


def _text(line: bytes) -> bytes:
    """A partial line has no end: what was printed without a newline is told without one."""
    parts = line.split(b" ", 3)
    if len(parts) < 4:
        return b""
    return parts[3] if parts[2].split(b":")[0] == b"P" else parts[3] + b"\n"
