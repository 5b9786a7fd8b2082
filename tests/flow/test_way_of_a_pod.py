"""ARCHITECTURE.md's way of a pod, followed: the files it names are entered, in order, no others.

A pod is created over HTTPS on a cluster in this process; a profiler notes what is entered when.
"""

import asyncio
import io
import re
import sys
from pathlib import Path

import pytest

import sampan
from sampan.api.resources import PODS
from sampan.client import kubeconfig, rest
from sampan.cmd.cluster.all_in_one import AllInOne
from sampan.cmd.cluster.data_dir import open_data_dir
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.settings import UpSettings
from sampan.core.clock import SystemClock

pytestmark = pytest.mark.slow

QUIET_SECONDS = 0.3
JOURNEYS = 5
PACKAGE = f"{Path(sampan.__file__).parent}/"
DOCUMENT = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text()
# No step of a pod: what every step is made of, and what only a real or another node enters.
EVERYWHERE = ("core/", "api/objects.py", "api/resources.py", "api/quantity.py", "api/calls.py",
              "api/rules/", "api/protobuf/message_table.py", "api/errors.py")  # fmt: skip
ELSEWHERE = {
    "client/rest.py": "a part in another process, and this test's own client",
    "apiserver/inprocess_edge.py": "with the first write of a part",
    "scheduler/preemption/preemption.py": "no node is full",
    "kubelet/sources/files.py": "no static pods",
    "kubelet/sources/http.py": "no static pods",
    "kubelet/pods/mirror.py": "no static pods",
    "kubelet/runtime/cri_runtime.py": "containers are simulated",
    "cri/client.py": "containers are simulated",
    "network/cni.py": "containers are simulated",
    "network/pods/": "containers are simulated",
    "cri/events.py": "containers are simulated",
}


def steps() -> list[list[str]]:
    """The files and folders of each numbered step, as the document has them."""
    section = DOCUMENT.partition("## The way of a pod")[2].partition("\n`kubectl logs`")[0]
    texts = re.split(r"^ ?\d+\. ", section, flags=re.M)[1:]
    return [re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py)?)`", text) for text in texts]


class Entered:
    """Which files of sampan were entered, in the order of the first time."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}

    def __call__(self, frame, event, _argument) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(PACKAGE) and frame.f_code.co_name != "<module>":
            self.files.setdefault(path.removeprefix(PACKAGE), len(self.files))


# What looks after the loop, always: no step of anything.
BACKGROUND = {"core/telemetry/loop_watch.py"}


async def running_pod(client: rest.RestClient) -> None:
    spec = {"containers": [{"name": "c", "image": "nginx"}]}
    meta = {"name": "web", "namespace": "default"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    created = await client.create(PODS, pod)
    revision = int(created["metadata"]["resourceVersion"])
    async for event in client.watch(PODS, "default", revision=revision):
        if event.object.get("status", {}).get("phase") == "Running":
            return


async def settled() -> None:
    """Until nothing of the cluster ran for a while: what a start leaves to do is no step."""
    while True:
        entered = Entered()
        sys.setprofile(entered)
        await asyncio.sleep(QUIET_SECONDS)
        sys.setprofile(None)
        if not entered.files.keys() - BACKGROUND - {"core/metrics.py"}:  # where it counts
            return


async def journey(folder: Path) -> dict[str, int]:
    data, clock = open_data_dir(str(folder)), SystemClock()
    settings = UpSettings(data_dir=str(folder), port=0, runtime="simulated", nodes=1)
    cluster, entered = AllInOne(settings, data, Progress(io.StringIO(), clock), clock), Entered()
    await cluster.start()
    connection = kubeconfig.load(str(data.kubeconfig), {}, "").connection()
    client = rest.connect(connection, clock=clock)
    try:
        await asyncio.wait_for(settled(), 30)
        sys.setprofile(entered)
        await asyncio.wait_for(running_pod(client), 30)
    finally:
        sys.setprofile(None)
        await client.close()
        await cluster.stop()
    return {path: at for path, at in entered.files.items() if path not in BACKGROUND}


@pytest.fixture(scope="module")
def entered(tmp_path_factory) -> dict[str, int]:
    """A lease that is renewed, or what a busy machine leaves to do of the start, may come between
    the steps: then another pod is followed."""
    found: dict[str, int] = {}
    for _ in range(JOURNEYS):
        found = asyncio.run(journey(tmp_path_factory.mktemp("cluster")))
        if order_of_steps(found) == sorted(order_of_steps(found)) and not left_out(found):
            break
    return found


def first(named: str, entered: dict[str, int]) -> int | None:
    found = [at for path, at in entered.items() if path == named or path.startswith(named)]
    return min(found, default=None)


def order_of_steps(entered: dict[str, int]) -> list[tuple[int, str]]:
    """When the first file that each names was entered; never, where it is missing."""
    heads = [next(named for named in step if named not in ELSEWHERE) for step in steps()]
    found = [(first(head, entered), head) for head in heads]
    return [(len(entered) if at is None else at, head) for at, head in found]


def left_out(entered: dict[str, int]) -> list[str]:
    named = (*EVERYWHERE, *(name for step in steps() for name in step))
    return [path for path in entered if not path.startswith(named)]


def test_every_file_that_a_step_names_is_entered(entered):
    missing = [
        named
        for step in steps()
        for named in step
        if named not in ELSEWHERE and first(named, entered) is None
    ]
    assert missing == []


def test_the_steps_come_in_their_order(entered):
    """Of each step the first file that it names; others may have been entered by earlier steps."""
    order = order_of_steps(entered)
    assert order == sorted(order)


def test_no_file_on_the_way_is_left_out(entered):
    assert left_out(entered) == []
