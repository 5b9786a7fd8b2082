"""Shims that containerd has forgotten: what a kill may leave in the middle of a pod's start.

Job: after each start (of sampan, or of a containerd that had died), find the shims of our
    containerd that it does not know, and remove them with their processes, mounts, network
    namespace and address; likewise networks that were made for a sandbox that never was.
Invariant: only shims that ran when we began, and that are unknown in two looks, one after the
    other: a sandbox that is being made right now is never touched.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.mounts import unmount_all, unmount_below
from sampan.kubelet.containerd.config import Layout
from sampan.kubelet.containerd.reset import network_results, shims
from sampan.kubelet.contracts.runtime import Runtime, RuntimeFailure
from sampan.runtime.programs import system_path

log = get_logger(__name__)

# containerd gives up a start whose caller is gone, and tidies up, within the first of these; a
# start that began right now is known to it long before. Of some it knows the sandbox, but not the
# shim: they are forgotten when their pod is removed, which may be later.
LOOKS_AFTER_SECONDS = (4.0, 4.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
_ASK_AGAIN_SECONDS = 0.2  # while containerd does not answer yet
_COMMAND_SECONDS = 30.0
_NAMESPACE = "k8s.io"


class SandboxNetworks(Protocol):
    """Who gives sandboxes their addresses."""

    def holders(self) -> set[str]:
        """The sandboxes that have some."""

    async def release(self, sandbox_id: str) -> None:
        """They are free again."""


class HostLocalAddresses:
    """The reference plugin keeps a file per address, with the sandbox's id in its first line."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def holders(self) -> set[str]:
        return {_holder(file) for file in self._files()}

    async def release(self, sandbox_id: str) -> None:
        for file in self._files():
            if _holder(file) == sandbox_id:
                file.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return [file for file in self._directory.rglob("*.*.*.*") if file.is_file()]


@dataclass(frozen=True, slots=True)
class Shim:
    pid: int
    id: str  # of the sandbox that it was started for


def strays(
    then: Collection[Shim], known_then: Collection[str],
    now: Collection[Shim], known_now: Collection[str],
) -> list[Shim]:  # fmt: skip
    """Unknown in both looks, and the same process in both."""
    return [
        shim
        for shim in then
        if shim.id not in known_then and shim in now and shim.id not in known_now
    ]


def suspects(shims_now: Collection[Shim], ready: Collection[str]) -> list[Shim]:
    """All but those of sandboxes that are ready: nothing is wrong with these."""
    return [shim for shim in shims_now if shim.id not in ready]


async def remove_strays(
    paths: Layout,
    networks: SandboxNetworks,
    runtime: Runtime,
    *,
    environment: Mapping[str, str],
    clock: Clock,
) -> None:
    seen, held = _running(paths), networks.holders()
    known, ready = await _known_ids(runtime, clock)
    seen = suspects(seen, ready)
    for seconds in LOOKS_AFTER_SECONDS:
        held -= known
        if not seen and not held:
            return
        await clock.sleep(seconds)
        now = _running(paths)
        known_now, ready = await _known_ids(runtime, clock)
        for shim in strays(seen, known, now, known_now):
            log.warning("removing a shim that containerd does not know", pid=shim.pid, id=shim.id)
            _remove(shim, paths, system_path(environment))
            remove_namespaces(shim.id, paths)
            await networks.release(shim.id)
            now.remove(shim)
            held.discard(shim.id)
        seen, known = suspects([shim for shim in seen if shim in now], ready), known_now
    # Killed between its network and its shim. Unknown in every look: no start takes that long.
    for sandbox_id in held - known:
        log.warning("removing the network of a sandbox that was never made", id=sandbox_id)
        remove_namespaces(sandbox_id, paths)
        await networks.release(sandbox_id)


def _running(paths: Layout) -> list[Shim]:
    found = []
    for pid in shims(paths):
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            found.append(Shim(pid, arguments[arguments.index(b"-id") + 1].decode()))
        except (OSError, ValueError, IndexError):
            continue  # it ended while we looked
    return found


async def _known_ids(runtime: Runtime, clock: Clock) -> tuple[set[str], set[str]]:
    """The ids that containerd knows, and those of them whose sandbox is ready."""
    while True:
        try:
            pods = await runtime.pods()
            break
        except RuntimeFailure:
            await clock.sleep(_ASK_AGAIN_SECONDS)
    sandboxes = [sandbox for pod in pods for sandbox in pod.sandboxes]
    containers = {container.id for pod in pods for container in pod.containers}
    return {sandbox.id for sandbox in sandboxes} | containers, {
        sandbox.id for sandbox in sandboxes if sandbox.ready
    }


def _remove(shim: Shim, paths: Layout, path: str) -> None:
    runc = shutil.which("runc", path=path)
    if runc is not None:
        root = str(paths.runtime_root / _NAMESPACE)
        subprocess.run(
            [runc, "--root", root, "delete", "--force", shim.id],
            timeout=_COMMAND_SECONDS, capture_output=True, check=False,
        )  # fmt: skip
    with contextlib.suppress(ProcessLookupError):
        os.kill(shim.pid, signal.SIGKILL)
    bundle = paths.state / "io.containerd.runtime.v2.task" / _NAMESPACE / shim.id
    unmount_below(str(bundle))
    shutil.rmtree(bundle, ignore_errors=True)


def remove_namespaces(
    sandbox_id: str, paths: Layout, results: Sequence[Path] | None = None
) -> None:
    """Its network namespace (and with it both ends of its veth), and what CNI remembers."""
    for result in network_results(sandbox_id) if results is None else results:
        for place in _namespaces(result):
            if place.startswith(f"{paths.state}/"):
                unmount_all(place)
                Path(place).unlink(missing_ok=True)
        result.unlink(missing_ok=True)


def _namespaces(result: Path) -> set[str]:
    try:
        found = json.loads(result.read_text()).get("result") or {}
        return {interface.get("sandbox") or "" for interface in found.get("interfaces") or ()}
    except (OSError, ValueError):
        return set()


def _holder(file: Path) -> str:
    try:
        return file.read_text().split("\n")[0].strip()
    except OSError:
        return ""  # freed meanwhile
