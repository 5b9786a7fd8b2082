"""A process that runs until it is told to stop.

Job: start the parts, wait for SIGINT or SIGTERM, stop the parts; a second signal hurries.
Invariant: whatever was started is stopped, also when the start failed or was interrupted.
"""

import asyncio
import contextlib
import ctypes
import gc
import os
import platform
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Protocol

from sampan.api import features
from sampan.api.errors import ApiError
from sampan.api.feature_gates import ALL
from sampan.client.kubeconfig import KubeconfigError
from sampan.cmd.cluster.data_dir import DataDirError
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.service_manager import notify
from sampan.cmd.errors import CannotStart
from sampan.core.metrics import Metrics
from sampan.core.telemetry.process_metrics import add_process_metrics
from sampan.core.telemetry.traces import Traces

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
MANY_OBJECTS = 300_000  # a cluster of a few objects has some 200 000; more take 0.1 s and longer
# At so many objects more than before; a second time after four of these. Everybody waits for a
# look, for as long as there is something to look at: one large API object has 100 000 of them.
LOOKS = (10_000, 4, 4)
# After which a thread that works gives the interpreter to another that waits. Of an answer the loop
# lets go of it some five times, and gets it back from each who works beside it after so long: with
# four of them at 1 ms, one answer in a hundred took 50 ms; what they work takes as long at 0.2 ms.
TURN_SECONDS = 0.0002
_KEPT_BYTES = 32 * 1024 * 1024  # as much as malloc itself would come to at most
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Parts(Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def hurry(self) -> None:
        """The user asked twice: give containers no more time."""


def run_alone(
    parts: Parts, progress: Progress, ready_file: str, ready_sentence: Callable[[], str]
) -> int:
    """A component as a process of its own; the exit code. What keeps it from starting is one
    sentence on standard error."""

    def started() -> None:
        progress.say(ready_sentence())
        if ready_file:
            Path(ready_file).write_text("ready\n")

    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(run_until_signal(parts, progress, started))
    except STARTING_ERRORS as error:
        print(f"sampan: {why_not_started(error)}", file=sys.stderr, flush=True)
        return 1
    return 0


# What a user can cause; everything else is a bug.
STARTING_ERRORS = (CannotStart, DataDirError, KubeconfigError, ApiError, OSError)


def why_not_started(error: Exception) -> str:
    """One sentence, of one of STARTING_ERRORS."""
    match error:
        case CannotStart() | DataDirError() | KubeconfigError():
            return " ".join(str(error).split())
        case ApiError():
            return f"the cluster's own objects cannot be stored: {error}"
        case FileNotFoundError():
            missing = error.filename or "a helper program"
            return f"{missing} was not found: `sampan doctor` says what to install"
        case OSError():
            return (error.strerror or str(error)).lower()
    raise AssertionError(error)


async def run_until_signal(
    parts: Parts,
    progress: Progress,
    started: Callable[[], None],
    start_rest: Callable[[], Coroutine[None, None, None]] | None = None,
) -> None:
    """`start_rest`: what was not waited for before `started` was called."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        stopping = loop.create_task(stop.wait())  # the root of all tasks
        if not await _done_before(stopping, loop.create_task(parts.start())):
            return
        started()
        notify("READY=1", os.environ)
        if start_rest is not None:
            await _done_before(stopping, loop.create_task(start_rest()))
        settle_memory()
        sys.setswitchinterval(TURN_SECONDS)
        await stopping
        gc.disable()  # what is left goes with the process
        notify("STOPPING=1", os.environ)
        progress.say("\nstopping (once more to stop at once)")
        for number in SIGNALS:
            loop.add_signal_handler(number, parts.hurry)
    finally:
        stopping.cancel()
        await parts.stop()


async def _done_before(end: "asyncio.Task[bool]", work: "asyncio.Task[None]") -> bool:
    """False: the end came first, and the work was given up."""
    await asyncio.wait({end, work}, return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        await work
        return True
    work.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await work
    return False


def process_metrics(traces: Traces) -> Metrics:
    """Of this process, with what it costs and which version it is."""
    release = features.release()
    major, minor = release.minor.split(".")
    build = {"major": major, "minor": minor, "git_version": release.git_version,
             "compiler": platform.python_implementation().lower(),
             "go_version": f"none (python{platform.python_version()})",
             "platform": f"{platform.system().lower()}/{platform.machine()}"}  # fmt: skip
    metrics = Metrics(traces)
    add_process_metrics(metrics, build)
    metrics.gauge(
        "kubernetes_feature_enabled",
        "This metric records the data about the stage and enablement of a k8s feature.",
        ("name", "stage"),
    ).read_from(_features)
    return metrics


def _features() -> dict[tuple[str, ...], float]:
    """By name and stage; what is GA has none there."""
    shown = {
        (name, gate.stage.name.upper().removeprefix("GA")): float(features.enabled(name))
        for name, gate in features.known().items()
        if gate.stage is not None
    }
    given = features.release().gates
    for name, stage in ALL.items():
        shown[name, stage.upper()] = float(given.get(name, False))
    return dict(sorted(shown.items()))


def settle_memory() -> None:
    """What is there after the start stays for good, and a server makes thousands of dicts a second
    that are no garbage: looking at them after every 700 costs a sixth of a create.
    cmd/main.py put the collector off before the imports. Of a full store so much was read that
    looking through it holds everybody up for seconds, and finds nothing."""
    if gc.get_count()[0] < MANY_OBJECTS:
        gc.collect()
    gc.freeze()
    gc.set_threshold(*LOOKS)
    gc.callbacks.append(_look_once)
    gc.enable()
    _keep_large_blocks()


def _look_once(phase: str, about: dict[str, int]) -> None:
    """When a second look is due, so much has outlived the first that it is a cluster that grows,
    and no garbage. To look at it again and again would take a tenth of the time of its pods, and
    in the end hold everybody up for seconds. A cycle among it that nobody needs later on stays,
    too: connections, requests and pods leave none behind (tests see to that). What is there has
    been looked at once, as this is the end of a look."""
    if phase == "stop" and (about["generation"] or gc.get_count()[1] >= LOOKS[1]):
        gc.freeze()


def _keep_large_blocks() -> None:
    """The answer to a large LIST is several blocks of megabytes; giving each back to the kernel and
    asking for it again at the next LIST takes longer than encrypting it. glibc only."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def loop_factory() -> "type[asyncio.AbstractEventLoop] | None":
    try:
        import uvloop
    except ImportError:
        return None
    factory: type[asyncio.AbstractEventLoop] = uvloop.Loop
    return factory
