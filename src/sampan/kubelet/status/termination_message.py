"""Termination messages: from the message file, or the end of the log.

Job: read the termination log of ended containers, or by policy the tail of their log.
Invariant: never more than the API takes: 4096 bytes of the file, 2048 bytes or 80 lines of a log.
"""

import os
from dataclasses import replace
from pathlib import Path

from sampan.api.objects import Obj
from sampan.kubelet.contracts import paths
from sampan.kubelet.contracts.runtime import ContainerState, ContainerStatus, ObservedPod
from sampan.kubelet.contracts.spec import find_container
from sampan.kubelet.settings import KubeletSettings

FILE_BYTES = 4096
TAIL_BYTES = 2048
TAIL_LINES = 80


def with_messages(pod: Obj, observed: ObservedPod, settings: KubeletSettings) -> ObservedPod:
    if not any(_needs_message(container) for container in observed.containers):
        return observed
    told = tuple(_with_message(pod, container, settings) for container in observed.containers)
    return replace(observed, containers=told)


def awaits_log(pod: Obj, observed: ObservedPod, settings: KubeletSettings) -> bool:
    """Is a container's last word in a log that the runtime may not have written to its end?"""
    return any(
        not container.settled
        and _needs_message(container)
        and _speaks_by_log(pod, container)
        and not _read_start(_termination_file(pod, container, settings))
        for container in observed.containers
    )


def _speaks_by_log(pod: Obj, container: ContainerStatus) -> bool:
    found = find_container(pod, container.name)
    policy = found[1].get("terminationMessagePolicy") if found is not None else ""
    return policy == "FallbackToLogsOnError" and container.exit_code != 0


def _needs_message(container: ContainerStatus) -> bool:
    return container.state is ContainerState.EXITED and not container.message


def _with_message(
    pod: Obj, container: ContainerStatus, settings: KubeletSettings
) -> ContainerStatus:
    found = find_container(pod, container.name)
    if found is None or not _needs_message(container):
        return container
    message = _read_start(_termination_file(pod, container, settings))
    if not message and _speaks_by_log(pod, container):
        message = log_tail(container.log_path)
    return replace(container, message=message) if message else container


def _termination_file(pod: Obj, container: ContainerStatus, settings: KubeletSettings) -> str:
    return paths.termination_log(
        pod, container.name, attempt=container.attempt, root_dir=settings.root_dir
    )


def _read_start(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return file.read(FILE_BYTES).decode(errors="replace")
    except OSError:
        return ""


def log_tail(path: str) -> str:
    """The last lines of a CRI log, without its prefixes."""
    try:
        with Path(path).open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 4 * TAIL_BYTES))
            raw = file.read()
    except OSError:
        return ""
    shown = b"".join(_text(line) for line in raw.split(b"\n")[-TAIL_LINES - 1 :])
    return shown[-TAIL_BYTES:].decode(errors="replace")


def _text(line: bytes) -> bytes:
    """A partial line has no end: what was printed without a newline is told without one."""
    parts = line.split(b" ", 3)
    if len(parts) < 4:
        return b""
    return parts[3] if parts[2].split(b":")[0] == b"P" else parts[3] + b"\n"
