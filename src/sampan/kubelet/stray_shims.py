"""Shims that containerd has forgotten: what a kill may leave in the middle of a pod's start.

Job: after each start (of sampan, or of a containerd that had died), find the shims of our
    containerd that it does not know, and remove them with their processes, mounts, network
    namespace and address.
Invariant: only shims that ran when we began, and that are unknown in two looks, one after the
    other: a sandbox that is being made right now is never touched.
"""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path

from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.core.records import dataclass
from sampan.kubelet.containerd_config import Layout, search_path
from sampan.kubelet.containerd_reset import shims
from sampan.kubelet.runtime import Runtime, RuntimeFailure
from sampan.kubelet.volumes.mounts import unmount_all, unmount_below

log = get_logger(__name__)

# containerd gives up a start whose caller is gone, and tidies up, within the first of these; a
# start that began right now is known to it long before. Of some it knows the sandbox, but not the
# shim: they are forgotten when their pod is removed, which may be later.
LOOKS_AFTER_SECONDS = (4.0, 4.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
_ASK_AGAIN_SECONDS = 0.2  # while containerd does not answer yet
_COMMAND_SECONDS = 30.0
_NAMESPACE = "k8s.io"


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
    ipam_dir: Path,
    runtime: Runtime,
    *,
    environment: Mapping[str, str],
    clock: Clock,
) -> None:
    seen = _running(paths)
    known, ready = await _known(runtime, clock)
    seen = suspects(seen, ready)
    for seconds in LOOKS_AFTER_SECONDS:
        if not seen:
            return
        await clock.sleep(seconds)
        now = _running(paths)
        known_now, ready = await _known(runtime, clock)
        for shim in strays(seen, known, now, known_now):
            log.warning("removing a shim that containerd does not know", pid=shim.pid, id=shim.id)
            _remove(shim, paths, ipam_dir, search_path(environment))
            now.remove(shim)
        seen, known = suspects([shim for shim in seen if shim in now], ready), known_now


def _running(paths: Layout) -> list[Shim]:
    found = []
    for pid in shims(paths):
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            found.append(Shim(pid, arguments[arguments.index(b"-id") + 1].decode()))
        except (OSError, ValueError, IndexError):
            continue  # it ended while we looked
    return found


async def _known(runtime: Runtime, clock: Clock) -> tuple[set[str], set[str]]:
    """The ids that containerd knows, and those of them whose sandbox is ready."""
    while True:
        try:
            pods = await runtime.pods()
            break
        except RuntimeFailure:
            await clock.sleep(_ASK_AGAIN_SECONDS)
    sandboxes = [one for pod in pods for one in pod.sandboxes]
    containers = {one.id for pod in pods for one in pod.containers}
    return {one.id for one in sandboxes} | containers, {one.id for one in sandboxes if one.ready}


def _remove(shim: Shim, paths: Layout, ipam_dir: Path, path: str) -> None:
    networks = _networks_of(shim.pid)
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
    _remove_networks(paths.state / "netns", networks)
    _free_addresses(ipam_dir, shim.id)


def _networks_of(pid: int) -> set[int]:
    """The network namespaces that the shim's containers are in, by inode; not the machine's own."""
    found: set[int] = set()
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found.add(os.stat(f"/proc/{child}/ns/net").st_ino)
    except OSError:
        pass  # ended meanwhile: what is left of it goes with `sampan reset`
    return found - {os.stat("/proc/self/ns/net").st_ino}


def _remove_networks(directory: Path, inodes: set[int]) -> None:
    for place in directory.iterdir() if directory.is_dir() else ():
        if place.stat().st_ino in inodes:
            unmount_all(str(place))
            place.unlink(missing_ok=True)


def _free_addresses(ipam_dir: Path, sandbox_id: str) -> None:
    """host-local keeps a file per address, with the sandbox's id in its first line."""
    for file in ipam_dir.rglob("*.*.*.*"):
        if file.is_file() and file.read_text().split("\n")[0].strip() == sandbox_id:
            file.unlink(missing_ok=True)
