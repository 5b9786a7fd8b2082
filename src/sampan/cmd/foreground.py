"""A cluster in this process: settings in, signals, messages and exit code out.

Job: start the parts, tell the user, wait for a signal, stop the parts.
Invariant: every failure that a user can cause ends as one sentence and exit code 1.
"""

import asyncio
import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from sampan.api import features
from sampan.client.kubeconfig_file import default_path
from sampan.cmd.background import own_log, say_ready
from sampan.cmd.cluster.all_in_one import AllInOne
from sampan.cmd.cluster.data_dir import DataDir, DataDirError, Lock
from sampan.cmd.cluster.node.runtime_choice import may_be_rootless
from sampan.cmd.cluster.nodes import Again, own_identity
from sampan.cmd.cluster.process import (
    STARTING_ERRORS,
    Parts,
    loop_factory,
    run_until_signal,
    why_not_started,
)
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.errors import CannotStart
from sampan.cmd.loading import all_is_loaded
from sampan.cmd.settings import UpSettings
from sampan.core import log
from sampan.core.clock import Clock, SystemClock
from sampan.core.fast_dataclass import dataclass
from sampan.version import VERSION

if TYPE_CHECKING:
    from sampan.cmd.cluster.driver_process import DriverProcess
    from sampan.cmd.cluster.start_manifests import StartManifests
    from sampan.cmd.rootless.outside import Outside


@dataclass(frozen=True, slots=True)
class Audience:
    """Whoever waits for a cluster, and what for."""

    progress: Progress
    descriptor: int = -1  # see background.say_ready
    only_for_api: bool = False  # does not wait for nodes


def run(settings: UpSettings, data: DataDir, audience: Audience) -> int:
    try:
        lock = Lock.take(data)
    except DataDirError as error:
        return _fail(str(error))
    try:
        return _serve_until_signal(settings, data, lock, audience)
    finally:
        lock.release()


def _serve_until_signal(settings: UpSettings, data: DataDir, lock: Lock, audience: Audience) -> int:
    log.set_up(settings.log_level, own_file=own_log())
    audience.progress.say(f"sampan {VERSION} (Kubernetes v{features.release().minor}.0)")
    try:
        with (
            _own_namespaces(settings, data, audience.progress) as (settings, outside),
            asyncio.Runner(loop_factory=_loop_factory(settings)) as runner,
        ):
            runner.run(_serve(settings, data, lock, audience, outside))
    except STARTING_ERRORS as error:
        return _fail(why_not_started(error))
    return 0


def refuse_without_root(settings: UpSettings) -> None:
    """What there is not in namespaces of one's own. Raises CannotStart."""
    if settings.processes:
        raise CannotStart(
            "--processes with real containers needs root: leave it out, or take --runtime simulated"
        )


@contextlib.contextmanager
def _own_namespaces(
    settings: UpSettings, data: DataDir, progress: Progress
) -> "Iterator[tuple[UpSettings, Outside | None]]":
    """Where real containers are wanted and we are not root. Before there is a loop: a process with
    threads cannot enter them. Raises CannotStart."""
    if not may_be_rootless(settings):
        yield settings, None
        return
    refuse_without_root(settings)
    from sampan.cmd.rootless.rootless import Rootless, take_cgroup

    before = str(data.record().get("cgroup_place") or "")
    place = take_cgroup(data.root, before, progress.warn)
    rootless, stopped = Rootless(data.root), False
    try:
        with progress.step("namespaces") as step:
            rootless.enter(progress.warn)
            step.detail = "of your own: no root"
        data.remember(cgroup_place=place or "")
        driver = "none" if place is None else "cgroupfs"
        yield (
            replace(
                settings, runtime="native", rootless=True, cgroup_place=place or "",
                node=replace(settings.node, cgroup_driver=driver),
            ),
            rootless.outside,
        )  # fmt: skip
        stopped = not settings.keep_pods
    finally:
        rootless.leave(stopped=stopped)


async def _serve(
    settings: UpSettings,
    data: DataDir,
    lock: Lock,
    audience: Audience,
    outside: "Outside | None",
) -> None:
    """`outside`: who listens where others find us, where we cannot."""
    clock: Clock = SystemClock()
    progress = audience.progress
    start_rest: Callable[[], Coroutine[None, None, None]] | None = None
    if settings.clock == "virtual":
        cluster: Parts = _virtual_cluster(settings, data, progress)
    elif settings.processes:
        from sampan.cmd.cluster.processes.part_process import same_command
        from sampan.cmd.cluster.processes.supervisor import ProcessCluster

        command = same_command(sys.argv[1:])
        cluster = ProcessCluster(settings, data, progress, clock, lock.descriptor, command)
    else:
        cluster = parts = AllInOne(settings, data, progress, clock)
        parts.start_others_by(Again(tuple(sys.argv[1:]), lock.descriptor))
        if outside is not None:
            parts.listen_by(outside)
        if not settings.manifests_to_apply:  # whose pods want a scheduler
            parts.waits = "for the API" if audience.only_for_api else "for nodes"
            start_rest = partial(_start_rest, parts)
    if settings.manifests_to_apply:
        cluster = _with(settings, data, cluster, progress, clock)
    announce = partial(_announce, settings, data, audience)
    await run_until_signal(cluster, progress, announce, start_rest)


def _with(
    settings: UpSettings, data: DataDir, cluster: Parts, progress: Progress, clock: Clock
) -> Parts:
    """Raises CannotStart."""
    from sampan.cmd.cluster.driver_process import DriverProcess, is_driver, refuse_without_node
    from sampan.cmd.cluster.start_manifests import StartManifests

    files = tuple(word for word in settings.manifests_to_apply if not is_driver(word))
    if len(files) < len(settings.manifests_to_apply):
        refuse_without_node(settings)
        name = own_identity(settings).name
        cluster = _Driven(cluster, DriverProcess(data, name, progress, clock))
    if files:
        # Read before anything is started: a mistake in them is said at once.
        manifests = StartManifests(files, progress, clock)
        cluster = _Furnished(cluster, manifests, data.kubeconfig)
    return cluster


async def _start_rest(parts: AllInOne) -> None:
    await parts.start_rest()
    await asyncio.to_thread(all_is_loaded)


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


class _Driven:
    """A cluster with a driver beside its node."""

    def __init__(self, cluster: Parts, driver: "DriverProcess") -> None:
        self._cluster, self._driver = cluster, driver

    async def start(self) -> None:
        await self._cluster.start()
        await self._driver.start()

    async def stop(self) -> None:
        # Its volumes are unmounted with the pods, which needs it.
        await self._cluster.stop()
        await self._driver.stop()

    def hurry(self) -> None:
        self._cluster.hurry()


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


def _announce(settings: UpSettings, data: DataDir, audience: Audience) -> None:
    progress = audience.progress
    kubeconfig = Path(settings.kubeconfig).absolute() if settings.kubeconfig else data.kubeconfig
    line = f"export KUBECONFIG={shlex.quote(str(kubeconfig))}"
    is_kubectls = kubeconfig == default_path(os.environ, str(Path.home()))
    next_line = "kubectl get nodes" if is_kubectls else line
    progress.say(f"ready in {progress.elapsed_seconds():.2f} s\n\n  {progress.bold(next_line)}\n")
    if settings.ready_file:
        Path(settings.ready_file).write_text(f"{line}\n")
    say_ready(audience.descriptor)


def _fail(sentence: str, stream: TextIO = sys.stderr) -> int:
    print(f"sampan: {sentence}", file=stream, flush=True)
    return 1
