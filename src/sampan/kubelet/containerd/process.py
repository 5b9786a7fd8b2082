"""A containerd of our own: started, found again, kept alive, stopped.

Job: one containerd process per data directory, and its socket.
Invariant: at most one containerd runs on a data directory; one that was left over by a killed
    sampan is taken over (same configuration) or replaced, and no container notices.
Invariant: a process is signalled only after its command line and start time were compared.
Owner: cmd; whoever wants containers gets the socket's path.
"""

import asyncio
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from sampan.core.backoff import Backoff
from sampan.core.clock import Clock
from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.kubelet.cgroups.names import CGROUPFS
from sampan.kubelet.containerd.config import (
    ContainerdError,
    Layout,
    config_toml,
    host_facts,
    layout,
)
from sampan.kubelet.contracts.runtime import HOST_PORTS_HANDLER, RuntimeFailure
from sampan.runtime.programs import system_path

log = get_logger(__name__)

_START_SECONDS = 30.0
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.003
_LOG_BYTES = 10 * 1024 * 1024
_RESTART = Backoff(first_seconds=0.05, cap_seconds=10.0)
_LIVED_LONG_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Process:
    """Enough to know a process again: pids are reused."""

    pid: int
    started: int  # in clock ticks since boot, field 22 of /proc/PID/stat
    config: str  # hash of the configuration that it was started with


class PrivateContainerd:
    """`start`, use `socket_path`, `stop`. Dies with nobody: it outlives a killed sampan."""

    def __init__(
        self,
        data_dir: Path,
        *,
        cni_conf_dir: Path,
        cni_bin_dir: Path,
        environment: Mapping[str, str],
        clock: Clock,
        cgroup_driver: str = CGROUPFS,
        came_back: Callable[[], None] = lambda: None,
    ) -> None:
        """`came_back`: called when it had died and answers again."""
        self._came_back = came_back
        self._paths, self._cgroup_driver = layout(data_dir), cgroup_driver
        self._cni_conf_dir, self._cni_bin_dir = cni_conf_dir, cni_bin_dir
        self._environment = {**environment, "PATH": system_path(environment)}
        self._clock = clock
        self._tasks = Tasks("containerd")
        self._process: Process | None = None
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def socket_path(self) -> str:
        return str(self._paths.socket)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Returns when the socket takes connections. ContainerdError says why it does not."""
        config = self._prepare()
        running = find_running(self._paths)
        if running is not None and running.config != _hash(config):
            log.info("replacing a containerd with another configuration", pid=running.pid)
            await _terminate(running)
            running = None
        if running is not None:
            log.info("found the containerd of an earlier run", pid=running.pid)
            self._process = running
        else:
            self._spawn(config)
        answers = False
        try:
            # Its reader needs gRPC: importing that (70 ms) costs nothing while containerd starts.
            import sampan.kubelet.runtime.cri_runtime  # noqa: F401  # loaded while it starts

            await _wait_for_socket(self._paths, self._child, self._clock)
            answers = True
        finally:
            if not answers:
                await self.stop()
        self._tasks.start("keep-alive", self._keep_alive(config))

    async def stop(self) -> None:
        """Ends containerd itself. Containers go on; who wants them gone removes them before."""
        await self._tasks.stop()
        if self._process is not None:
            await _terminate(self._process, self._child)
        self._paths.record.unlink(missing_ok=True)
        self._process = None

    def _prepare(self) -> str:
        paths = self._paths
        facts = host_facts(self._environment["PATH"])
        config = config_toml(
            paths,
            facts,
            self._cni_conf_dir,
            self._cni_bin_dir,
            self._cgroup_driver,
            host_ports=(self._cni_conf_dir / HOST_PORTS_HANDLER).is_dir(),
        )
        paths.home.mkdir(parents=True, exist_ok=True)
        paths.home.chmod(0o711)
        (paths.home / "certs.d").mkdir(exist_ok=True)
        if paths.socket_dir != paths.home:
            paths.socket_dir.mkdir(mode=0o700, exist_ok=True)
            paths.socket_link.unlink(missing_ok=True)
            paths.socket_link.symlink_to(paths.socket_dir)
        if not paths.config.exists() or paths.config.read_text() != config:
            paths.config.write_text(config)
        if paths.log.exists() and paths.log.stat().st_size > _LOG_BYTES:
            paths.log.replace(paths.log.with_suffix(".log.1"))
        return config

    def _spawn(self, config: str) -> None:
        program = shutil.which("containerd", path=self._environment["PATH"])
        if program is None:
            raise ContainerdError("containerd is not installed (apt package containerd)")
        self._child, self._process = _launch(program, self._paths, self._environment, config)

    async def _keep_alive(self, config: str) -> None:
        failures = 0
        while True:
            assert self._process is not None
            since = self._clock.monotonic()
            await _wait_for_end(self._process)
            if self._child is not None:
                self._child.wait()
            long = self._clock.monotonic() - since > _LIVED_LONG_SECONDS
            failures = 1 if long else failures + 1
            log.error(
                "containerd died, starting it again",
                last_words=_last_words(self._paths),
                after_seconds=_RESTART.delay(failures),
            )
            await self._clock.sleep(_RESTART.delay(failures))
            try:
                self._spawn(config)
                await _wait_for_socket(self._paths, self._child, self._clock)
                self._came_back()
            except ContainerdError as error:
                log.error("containerd does not start", error=error)


async def reset(data_dir: Path, *, environment: Mapping[str, str], clock: Clock) -> None:
    """Remove every pod, container, mount and file of the data directory's containerd.

    The pod network goes after this (network.cni.tear_down): removing pods still needs it.
    """
    # gRPC costs 80 ms to import, and a machine without containerd may be reset too.
    from sampan.kubelet.cgroups.pod_cgroups import remove_root
    from sampan.kubelet.containerd.reset import remove_pods, sweep

    paths = layout(data_dir)
    running = find_running(paths)
    path = system_path(environment)
    child: subprocess.Popen[bytes] | None = None
    program = shutil.which("containerd", path=path)
    if running is None and program is not None and paths.config.exists() and paths.root.exists():
        child, running = _launch(program, paths, {**environment, "PATH": path}, config="reset")
    if running is not None:
        from sampan.kubelet.runtime.cri_runtime import CriRuntime

        runtime = CriRuntime(str(paths.socket), clock)
        try:
            await _wait_for_socket(paths, child, clock)
            await runtime.connect(_START_SECONDS)
            await remove_pods(runtime, grace_seconds=1.0)
        except (ContainerdError, RuntimeFailure) as error:
            log.warning("pods could not be removed through containerd", error=error)
        finally:
            await runtime.close()
            await _terminate(running, child)
    await asyncio.to_thread(sweep, paths, path)
    await asyncio.to_thread(remove_root, data_dir)


def find_running(paths: Layout) -> Process | None:
    """The containerd that runs on this data directory, whoever started it."""
    try:
        recorded = Process(**json.loads(paths.record.read_text()))
        if _is_ours(recorded.pid, paths) and _start_time(recorded.pid) == recorded.started:
            return recorded
    except (OSError, ValueError, TypeError):
        pass
    for entry in os.listdir("/proc"):
        if is_digits(entry) and _is_ours(int(entry), paths):
            try:
                return Process(int(entry), _start_time(int(entry)), config="unknown")
            except ProcessLookupError:
                continue
    return None


def _launch(
    program: str, paths: Layout, environment: Mapping[str, str], config: str
) -> "tuple[subprocess.Popen[bytes], Process]":
    with paths.log.open("ab") as output:
        child = subprocess.Popen(
            [program, "--config", str(paths.config)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(environment),
            # Ctrl-C is for sampan, which then decides what becomes of containerd.
            start_new_session=True,
        )
    process = Process(child.pid, _start_time(child.pid), _hash(config))
    paths.record.write_text(json.dumps(asdict(process)))
    return child, process


def _is_ours(pid: int, paths: Layout) -> bool:
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return (
        len(arguments) > 2
        and os.path.basename(arguments[0]) == b"containerd"
        and arguments[1] == b"--config"
        and arguments[2] == str(paths.config).encode()
    )


def _start_time(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError as error:
        raise ProcessLookupError(pid) from error
    # The program's name, in brackets, may have spaces: count from behind it.
    return int(stat.rpartition(")")[2].split()[19])


async def _wait_for_end(process: Process) -> None:
    """Returns when the process is gone; works for processes that are not our children."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    loop.add_reader(descriptor, gone.set)
    try:
        # A pid that was reused before we opened it belongs to somebody else.
        if _start_time_or_none(process.pid) == process.started:
            await gone.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def _terminate(process: Process, child: "subprocess.Popen[bytes] | None" = None) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if _start_time_or_none(process.pid) != process.started:
            break
        try:
            os.kill(process.pid, number)
            async with asyncio.timeout(_STOP_SECONDS):
                await _wait_for_end(process)
                break
        except ProcessLookupError:
            break
        except TimeoutError:
            log.warning("containerd does not stop, killing it", pid=process.pid)
    if child is not None:
        child.wait()


def _start_time_or_none(pid: int) -> int | None:
    try:
        return _start_time(pid)
    except ProcessLookupError:
        return None


async def _wait_for_socket(
    paths: Layout, child: "subprocess.Popen[bytes] | None", clock: Clock
) -> None:
    deadline = clock.monotonic() + _START_SECONDS
    while not _answers(str(paths.socket)):
        if child is not None and child.poll() is not None:
            raise ContainerdError(f"containerd ended while starting: {_last_words(paths)}")
        if clock.monotonic() > deadline:
            raise ContainerdError(
                f"containerd did not open its socket in {_START_SECONDS:.0f} s: "
                f"{_last_words(paths)}"
            )
        await clock.sleep(_POLL_SECONDS)


def _last_words(paths: Layout) -> str:
    try:
        lines = paths.log.read_bytes()[-4096:].decode(errors="replace").splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else f"it left no message in {paths.log}"


def _answers(socket_path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(socket_path)
        except OSError:
            return False
        return True


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
