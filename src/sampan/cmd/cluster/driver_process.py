"""Drivers that `sampan up --with NAME` brings: each a process beside the node.

Job: start it when the cluster is there, wait until it has registered, start it again when it dies,
    stop it before the cluster.
Invariant: it ends with this process, however that ends.
Owner: `sampan up`.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import UpSettings
from sampan.core.backoff import Backoff
from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks

log = get_logger(__name__)

KNOWN = ("csi",)
READY_SECONDS, POLL_SECONDS, PATIENCE_SECONDS = 60.0, 0.02, 10.0
AGAIN = Backoff(first_seconds=0.2, cap_seconds=10.0)
CSI = "csi.sampan.dev"


def is_driver(word: str) -> bool:
    """What is after --with: a driver's name, unless there is a file of that name."""
    return word in KNOWN and not os.path.exists(word)


def refuse_without_node(settings: UpSettings) -> None:
    """Raises CannotStart."""
    if settings.runtime in ("simulated", "none"):
        raise CannotStart(f"--with csi needs a real node, not --runtime {settings.runtime}")
    if settings.rootless:
        raise CannotStart("--with csi needs root: it mounts volumes on the machine")


class DriverProcess:
    def __init__(self, data: DataDir, node_name: str, progress: Progress, clock: Clock) -> None:
        self._data, self._node_name = data, node_name
        self._progress, self._clock, self._tasks = progress, clock, Tasks("drivers")
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = False

    async def start(self) -> None:
        """Raises CannotStart."""
        with self._progress.step("driver") as step:
            ready = self._data.root / "csi.ready"
            ready.unlink(missing_ok=True)
            self._tasks.start("csi driver", self._keep(ready))
            deadline = self._clock.monotonic() + READY_SECONDS
            while not ready.exists():
                if self._clock.monotonic() > deadline:
                    raise CannotStart(f"--with csi: {CSI} is not ready after {READY_SECONDS:.0f} s")
                await self._clock.sleep(POLL_SECONDS)
            step.detail = f"{CSI}: storage classes csi and csi-loop"

    async def stop(self) -> None:
        self._stopping = True
        process = self._process
        if process is not None and process.returncode is None:
            process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await process.wait()
            except TimeoutError:
                process.kill()
        await self._tasks.stop()

    async def _keep(self, ready: Path) -> None:
        failures = 0
        while not self._stopping:
            self._process = await asyncio.create_subprocess_exec(
                *self._command(ready), stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            code = await self._process.wait()
            if not self._stopping:
                failures += 1
                log.warning("driver exited, restarting it", driver=CSI, code=code)
                await self._clock.sleep(AGAIN.delay(failures))

    def _command(self, ready: Path) -> Sequence[str]:
        kubelet = self._data.kubelet
        return [
            sys.executable, "-m", "sampan", "driver", "csi", "--with-parent",
            "--endpoint", f"{kubelet}/plugins/{CSI}/csi.sock",
            "--registration", f"{kubelet}/plugins_registry/{CSI}-reg.sock",
            "--node-id", self._node_name, "--root", str(self._data.csi),
            "--kubeconfig", str(self._data.kubeconfig), "--ready-file", str(ready),
        ]  # fmt: skip
