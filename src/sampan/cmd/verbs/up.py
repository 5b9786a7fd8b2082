"""`sampan up`: the process around a cluster: settings in, signals, messages and exit code out.

Job: lock the data directory, start the parts, tell the user, wait for a signal, stop the parts.
Invariant: every failure that a user can cause ends as one sentence and exit code 1.
"""

import asyncio
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from sampan.api.errors import ApiError
from sampan.client.kubeconfig import KubeconfigError
from sampan.client.kubeconfig_file import default_path
from sampan.cmd.cluster import cluster_names
from sampan.cmd.cluster.all_in_one import AllInOne
from sampan.cmd.cluster.data_dir import DataDir, DataDirError, Lock, open_data_dir
from sampan.cmd.cluster.process import Parts, loop_factory, run_until_signal
from sampan.cmd.cluster.progress import Progress, has_colours, paint_marks
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import UpSettings
from sampan.core import log
from sampan.core.clock import Clock, SystemClock
from sampan.version import KUBERNETES_VERSION, VERSION

if TYPE_CHECKING:
    from sampan.cmd.cluster.start_manifests import StartManifests


def run(settings: UpSettings, *, detach: bool, ready_fd: int) -> int:
    try:
        data = open_data_dir(settings.data_dir)
        if detach:
            return _in_background(data)
        lock = Lock.take(data)
    except DataDirError as error:
        return _fail(str(error), ready_fd)
    try:
        return _in_foreground(settings, data, ready_fd)
    finally:
        lock.release()


def _in_foreground(settings: UpSettings, data: DataDir, ready_fd: int) -> int:
    log.set_up(settings.log_level)
    progress = Progress(sys.stdout, SystemClock())
    progress.say(f"sampan {VERSION} (Kubernetes {KUBERNETES_VERSION})")
    try:
        with asyncio.Runner(loop_factory=_loop_factory(settings)) as runner:
            runner.run(_serve(settings, data, progress, ready_fd))
    except (CannotStart, DataDirError, KubeconfigError) as error:
        return _fail(" ".join(str(error).split()), ready_fd)
    except ApiError as error:
        return _fail(f"the cluster's own objects cannot be stored: {error}", ready_fd)
    except FileNotFoundError as error:
        missing = error.filename or "a helper program"
        return _fail(f"{missing} was not found: `sampan doctor` says what to install", ready_fd)
    except OSError as error:
        return _fail((error.strerror or str(error)).lower(), ready_fd)
    return 0


async def _serve(settings: UpSettings, data: DataDir, progress: Progress, ready_fd: int) -> None:
    clock: Clock = SystemClock()
    if settings.clock == "virtual":
        cluster: Parts = _virtual_cluster(settings, data, progress)
    else:
        cluster = AllInOne(settings, data, progress, clock)
    if settings.manifests_to_apply:
        from sampan.cmd.cluster.start_manifests import StartManifests

        # Read before anything is started: a mistake in them is said at once.
        manifests = StartManifests(settings.manifests_to_apply, progress, clock)
        cluster = _Furnished(cluster, manifests, data.kubeconfig)
    await run_until_signal(cluster, progress, lambda: _announce(settings, data, progress, ready_fd))


def _loop_factory(settings: UpSettings) -> "Callable[[], asyncio.AbstractEventLoop] | None":
    if settings.clock == "real":
        return loop_factory()
    from sampan.core.virtual_time.loop import SteppedLoop

    return lambda: SteppedLoop(virtual=True)


def _virtual_cluster(settings: UpSettings, data: DataDir, progress: Progress) -> AllInOne:
    from sampan.cmd.simulation.virtual_time import VirtualTime
    from sampan.core.virtual_time.loop import SteppedLoop

    loop = asyncio.get_running_loop()
    assert isinstance(loop, SteppedLoop)
    time = VirtualTime(loop)
    return AllInOne(settings, data, progress, time.clock, surroundings=time)


class _Furnished:
    """A cluster that is ready when what was to be applied is, too."""

    def __init__(self, cluster: Parts, manifests: "StartManifests", kubeconfig: Path) -> None:
        self._cluster, self._manifests, self._kubeconfig = cluster, manifests, kubeconfig

    async def start(self) -> None:
        await self._cluster.start()
        await self._manifests.bring_up(self._kubeconfig)

    async def stop(self) -> None:
        await self._cluster.stop()

    def hurry(self) -> None:
        self._cluster.hurry()


def _announce(settings: UpSettings, data: DataDir, progress: Progress, ready_fd: int) -> None:
    kubeconfig = Path(settings.kubeconfig).absolute() if settings.kubeconfig else data.kubeconfig
    line = f"export KUBECONFIG={shlex.quote(str(kubeconfig))}"
    is_kubectls = kubeconfig == default_path(os.environ, str(Path.home()))
    next_line = "kubectl get nodes" if is_kubectls else line
    progress.say(f"ready in {progress.elapsed_seconds():.2f} s\n\n  {progress.bold(next_line)}\n")
    if settings.ready_file:
        Path(settings.ready_file).write_text(f"{line}\n")
    if ready_fd >= 0:
        os.write(ready_fd, b"ready\n")
        os.close(ready_fd)


def _in_background(data: DataDir) -> int:
    """Start ourselves again without --detach, and wait until that process says how it went."""
    read_end, write_end = os.pipe()
    command = [sys.executable, "-m", "sampan", *_without_detach(sys.argv[1:])]
    began = data.log_file.stat().st_size if data.log_file.exists() else 0
    with data.log_file.open("ab") as output:
        os.chmod(data.log_file, 0o600)
        subprocess.Popen(
            [*command, f"--ready-fd={write_end}"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(write_end,),
            start_new_session=True,
        )
    os.close(write_end)
    with os.fdopen(read_end) as answers:
        answer = answers.readline().strip()
    with data.log_file.open() as output:
        output.seek(began)
        printed = output.read().rstrip()
    if has_colours(sys.stdout):
        printed = paint_marks(printed)
    if answer == "ready":
        stop = " ".join(["sampan down", *_words_for(data.root)])
        print(f"{printed}\n\nin the background; `{stop}` stops it")
        return 0
    print(printed or f"sampan: it ended early; see {data.log_file}", file=sys.stderr)
    return 1


def _words_for(root: Path) -> list[str]:
    """How a verb is told which cluster is meant; none, where it finds it by itself."""
    if cluster_names.data_path("", "", os.environ, Path.cwd()) == root:
        return []
    name = cluster_names.name_of_directory(root, os.environ)
    return ["--name", name] if name else ["--data-dir", str(root)]


def _without_detach(arguments: list[str]) -> list[str]:
    return [argument for argument in arguments if argument != "--detach"]


def _fail(sentence: str, ready_fd: int, stream: TextIO = sys.stderr) -> int:
    print(f"sampan: {sentence}", file=stream, flush=True)
    if ready_fd >= 0:
        os.close(ready_fd)
    return 1
