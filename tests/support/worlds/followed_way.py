"""Which files of sampan something passes on its way, and whether a document names them.

Job: a whole simulated cluster in this process, a profiler while a story runs in it, and the steps
    of a page of the documentation beside what was entered.
"""

import asyncio
import io
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType

import sampan
from sampan.client import kubeconfig, rest
from sampan.cmd.cluster.all_in_one import AllInOne
from sampan.cmd.cluster.data_dir import open_data_dir
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.settings import UpSettings
from sampan.core.clock import SystemClock

PACKAGE = f"{Path(sampan.__file__).parent}/"
QUIET_SECONDS, STORY_SECONDS = 0.3, 30
# No step of anything: what every step is made of.
EVERYWHERE = (
    "core/", "api/objects.py", "api/resources.py", "api/quantity.py", "api/calls.py", "api/rules/",
    "api/protobuf/message_table.py", "api/errors.py", "api/features.py",
)  # fmt: skip
# What looks after the loop, always.
BACKGROUND = {"core/telemetry/loop_watch.py"}

Entries = dict[str, int]  # file → when it was first entered
Steps = list[list[str]]
Story = Callable[[rest.RestClient], Awaitable[None]]


class Entered:
    """Which files of sampan were entered, in the order of the first time."""

    def __init__(self) -> None:
        self.files: Entries = {}

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(PACKAGE) and frame.f_code.co_name != "<module>":
            self.files.setdefault(path.removeprefix(PACKAGE), len(self.files))


def steps_in(text: str) -> Steps:
    """The files and folders of each numbered step, as a document has them."""
    parts = re.split(r"^ ?\d+\. ", text, flags=re.M)[1:]
    return [re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py)?)`", part) for part in parts]


async def settled() -> None:
    """Until nothing of the cluster ran for a while: what a start leaves to do is no step."""
    while True:
        entered = Entered()
        sys.setprofile(entered)
        await asyncio.sleep(QUIET_SECONDS)
        sys.setprofile(None)
        if not entered.files.keys() - BACKGROUND - {"core/metrics.py"}:  # where it counts
            return


async def followed(folder: Path, story: Story, before: Story | None = None) -> Entries:
    """What was entered while a story ran; `before`: what it needs, not followed."""
    data, clock = open_data_dir(str(folder)), SystemClock()
    settings = UpSettings(data_dir=str(folder), port=0, runtime="simulated", nodes=1)
    cluster, entered = AllInOne(settings, data, Progress(io.StringIO(), clock), clock), Entered()
    await cluster.start()
    connection = kubeconfig.load(str(data.kubeconfig), {}, "").connection()
    client = rest.connect(connection, clock=clock)
    try:
        if before is not None:
            await asyncio.wait_for(before(client), STORY_SECONDS)
        await asyncio.wait_for(settled(), STORY_SECONDS)
        sys.setprofile(entered)
        await asyncio.wait_for(story(client), STORY_SECONDS)
    finally:
        sys.setprofile(None)
        await client.close()
        await cluster.stop()
    return {path: at for path, at in entered.files.items() if path not in BACKGROUND}


def first(named: str, entered: Entries) -> int | None:
    found = [at for path, at in entered.items() if path == named or path.startswith(named)]
    return min(found, default=None)


def order_of_steps(steps: Steps, entered: Entries, elsewhere: set[str]) -> list[tuple[int, str]]:
    """When the first file that each names was entered; never, where it is missing."""
    heads = [next(named for named in step if named not in elsewhere) for step in steps]
    found = [(first(head, entered), head) for head in heads]
    return [(len(entered) if at is None else at, head) for at, head in found]


def missing(steps: Steps, entered: Entries, elsewhere: set[str]) -> list[str]:
    """Named, and not entered."""
    return [
        named
        for step in steps
        for named in step
        if named not in elsewhere and first(named, entered) is None
    ]


def left_out(steps: Steps, entered: Entries, *beside: str) -> list[str]:
    """Entered, and neither named nor `beside` the way."""
    named = (*EVERYWHERE, *beside, *(name for step in steps for name in step))
    return [path for path in entered if not path.startswith(named)]
