"""kill -9 of the agent, and of the driver, at every step of a CSI volume's way.

Every function of the kubelet's CSI part that a volume's way enters is a fault point, by its name:
the agent is killed as it enters or leaves it. The driver is killed before or after it does what it
was asked for. Whatever was under way then, the next ones finish, and nothing is left: no mount, no
note, no loop device, no inline volume; nothing is mounted twice. [H1]
"""

import asyncio
import os
import random
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sampan.core.backoff import Backoff
from sampan.core.mounts import mounts_below, unmount_below
from sampan.drivers.csi.settings import NAME
from sampan.kubelet.contracts.volumes_hook import VolumeFailure
from sampan.kubelet.csi import csi_volumes
from sampan.kubelet.csi.csi_volume import CsiVolume, of_inline_volume
from tests.support.parts.csi_driver import CsiDriverProcess
from tests.support.parts.killed_lives import in_child, killed_at, noting, untouched
from tests.support.parts.processes import eventually
from tests.support.worlds.csi_node import NODE, CsiNode, make_pod, short_root

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.getuid() != 0, reason="mounting needs root"),
]
WATCHED = ("/sampan/kubelet/csi/", "/sampan/kubelet/plugin_manager/")
KILLS = 14
DISK = CsiVolume("pv-disk", NAME, "disk", access_modes=("ReadWriteOnce",))
RAW = CsiVolume("pv-raw", NAME, "raw", block=True, access_modes=("ReadWriteOnce",))


class Place:
    """A root, and a driver beside it that is a process of its own."""

    def __init__(self):
        self.root = short_root()
        kubelet = self.root / "kubelet"
        self.driver = CsiDriverProcess(kubelet, self.root)
        self.driver.start(NODE)
        assert in_child(self._make)[0] == 0

    def _make(self, _write):
        self.driver.make("disk", kind="loop")
        self.driver.make("raw", block=True)

    def world(self):
        return CsiNode(self.root)

    async def story(self, world):
        """The way of three volumes, up and down again."""
        await world.begin(podInfoOnMount=True)
        pod = make_pod("u1")
        inline = of_inline_volume({"name": "i", "csi": {"driver": NAME}}, pod)
        async with world.agent() as plugins:
            await world.until(plugins.driver_names)
            for volume in (DISK, RAW, inline):
                await patiently(lambda volume=volume: plugins.csi.mount(pod, volume))
            self.check_once()
            await patiently(lambda: plugins.csi.unmount_pod("u1"))
            await world.until(lambda: not world.left())

    async def clean(self, world):
        """What the kubelet does after a restart, about a pod that has gone meanwhile."""
        await world.begin(podInfoOnMount=True)
        async with world.agent() as plugins:
            await world.until(plugins.driver_names)
            await patiently(lambda: plugins.csi.unmount_pod("u1"))
            plugins.csi.sweep()
            await world.until(lambda: not world.left())

    def check_once(self):
        places = [place for place in mounts_below(str(self.root / "kubelet")) if "csi" in place]
        assert len(places) == len(set(places)), places

    def leaks(self):
        found = [place for place in mounts_below(str(self.root))
                 if place != str(self.root / "kubelet")]  # fmt: skip
        for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
            if str(self.root) in backing.read_text():
                found.append(str(backing))
        found += [str(path) for path in (self.root / "kubelet").rglob("vol_data.json")]
        found += [str(path) for path in (self.root / "volumes" / "volumes").glob("csi-*")]
        return found

    def live(self, hook):
        """An agent lives the story; how it ended, and what it wrote."""

        def life(write):
            csi_volumes.RETRY = Backoff(0.05, 0.2)
            hook(write)
            asyncio.run(self.story(self.world()))

        return in_child(life)

    def clean_up(self):
        def life(_write):
            csi_volumes.RETRY = Backoff(0.05, 0.2)
            asyncio.run(self.clean(self.world()))

        code, _ = in_child(life)
        assert code == 0


async def patiently(work):
    """As a pod's worker: again, until it works."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await work()
            except VolumeFailure:
                await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def place():
    made = Place()
    yield made
    made.driver.stop()
    unmount_below(str(made.root))
    shutil.rmtree(made.root)


def check_nothing_is_left(place, after):
    try:
        eventually(lambda: not place.leaks(), 20)
    except AssertionError:
        raise AssertionError(f"{after}, left: {place.leaks()}") from None


def test_nothing_is_left_wherever_the_agent_is_killed(place):
    code, points = place.live(noting(WATCHED))
    assert code == 0
    assert len(points) > 100
    assert place.leaks() == []
    for point in random.Random(7).sample(points, KILLS):
        code, _ = place.live(killed_at(WATCHED, point))
        assert code in (-signal.SIGKILL, 0), (point, code)
        place.check_once()
        place.clean_up()
        check_nothing_is_left(place, f"killed at {point}")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "method", ["NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"]
)
def test_nothing_is_left_wherever_the_driver_is_killed(place, method, when):
    place.driver.fail(**{method: {"die": when, "times": 1}})

    with ThreadPoolExecutor(1) as beside:
        living = beside.submit(place.live, untouched)
        assert place.driver.program is not None
        place.driver.program.process.wait(60)
        place.driver.fail()
        place.driver.start(NODE)
        code, said = living.result(120)
        assert code == 0, "\n".join(said)
    check_nothing_is_left(place, f"driver died {when} {method}")
