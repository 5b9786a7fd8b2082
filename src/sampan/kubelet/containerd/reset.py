"""Reset of a private containerd: its pods, processes, mounts and directories are removed.

Job: remove all pods through the runtime while it answers; then sweep up what is left without it.
Invariant: only what belongs to the given data directory is touched: a process is known by the
    socket or directory on its command line, a mount by its place.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from sampan.core.digits import is_digits
from sampan.core.log import get_logger
from sampan.core.mounts import unmount_below
from sampan.core.tasks import all_of
from sampan.kubelet.containerd.config import Layout
from sampan.kubelet.contracts.runtime import ObservedPod, Runtime, RuntimeFailure

log = get_logger(__name__)

_GONE_SECONDS = 5.0
_COMMAND_SECONDS = 30.0
_POLL_SECONDS = 0.01
CNI_RESULTS = Path("/var/lib/cni/results")


async def remove_pods(
    runtime: Runtime, grace_seconds: float, uids: frozenset[str] | None = None
) -> None:
    """Stop and remove every pod, or only those; one that will not go is left for the sweep."""
    found = [pod for pod in await runtime.pods() if uids is None or pod.uid in uids]
    await all_of(_remove(runtime, pod, grace_seconds) for pod in found)


async def _remove(runtime: Runtime, pod: ObservedPod, grace_seconds: float) -> None:
    try:
        await all_of(runtime.stop_container(item.id, grace_seconds) for item in pod.containers)
        for container in pod.containers:
            await runtime.remove_container(container.id)
        for sandbox in pod.sandboxes:
            await runtime.stop_sandbox(sandbox.id)
            await runtime.remove_sandbox(sandbox.id)
    except RuntimeFailure as error:
        log.warning("pod could not be removed", pod=f"{pod.namespace}/{pod.name}", error=error)


def sweep(paths: Layout, search_path: str) -> None:
    """What containerd left, or could not remove: containers, shims, mounts, directories."""
    _delete_containers(paths, search_path)
    _kill(list(shims(paths)))
    for file in _files_elsewhere(paths):
        file.unlink(missing_ok=True)
    try:
        unmount_below(str(paths.home))
    except OSError as error:
        log.warning("something is still mounted, so nothing is removed", error=error)
        return
    if paths.socket_dir != paths.home:
        shutil.rmtree(paths.socket_dir, ignore_errors=True)
    shutil.rmtree(paths.home, ignore_errors=True)
    if paths.home.exists():
        log.warning("files left behind", directory=paths.home)


def _delete_containers(paths: Layout, search_path: str) -> None:
    for runtime, root in (("runc", paths.runtime_root), ("crun", paths.state / "crun")):
        program = shutil.which(runtime, path=search_path)
        namespaces = root.iterdir() if root.is_dir() else iter(())
        if program is None:
            continue
        for namespace in namespaces:
            for container in namespace.iterdir() if namespace.is_dir() else ():
                subprocess.run(
                    [program, "--root", str(namespace), "delete", "--force", container.name],
                    timeout=_COMMAND_SECONDS,
                    capture_output=True,
                    check=False,
                )


def _files_elsewhere(paths: Layout) -> Iterator[Path]:
    """What shims and CNI plugins keep outside of the data directory, known by our ids."""
    for address in paths.state.glob("io.containerd.runtime.v2.task/*/*/address"):
        yield Path(address.read_text().strip().removeprefix("unix://"))
    for sandbox_id in {_sandbox_of(file) for file in network_results() if _is_of(file, paths)}:
        yield from network_results(sandbox_id)


def network_results(sandbox_id: str = "*") -> list[Path]:
    """What CNI keeps of a sandbox's networks: one file for each."""
    return list(CNI_RESULTS.glob(f"*-{sandbox_id}-*"))


def _sandbox_of(result: Path) -> str:
    return result.name.split("-")[-2]  # <network>-<sandbox>-<interface>


def _is_of(result: Path, paths: Layout) -> bool:
    """It names the place of the sandbox's network namespace."""
    try:
        return f"{paths.state}/" in result.read_text()
    except OSError:
        return False  # it went away while we looked


def shims(paths: Layout) -> Iterator[int]:
    """Shims name the socket of the containerd that they belong to."""
    address = str(paths.socket).encode()
    for entry in os.listdir("/proc"):
        if not is_digits(entry):
            continue
        try:
            arguments = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"containerd-shim" in os.path.basename(arguments[0]) and address in arguments:
            yield int(entry)


def _kill(pids: Iterable[int]) -> None:
    left = set(pids)
    for pid in left:
        _signal(pid, signal.SIGKILL)
    deadline = time.monotonic() + _GONE_SECONDS
    while left and time.monotonic() < deadline:
        left = {pid for pid in left if _signal(pid, 0) and not _is_zombie(pid)}
        time.sleep(_POLL_SECONDS)


def _signal(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
