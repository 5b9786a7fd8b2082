"""A CSI driver that only pretends: what it answers, and when it does not."""

import pytest

from sampan.api.resources import CSI_DRIVERS
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.kubelet.simulated.pretence import PretendedDriver
from sampan.kubelet.simulated.pretended_csi import DriverFaults, PretendedCsi
from sampan.kubelet.simulated.script import PREFIX
from sampan.plugins.csi import messages
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.small_api import SmallApi

NAME, GI = "disk.example.com", 1 << 30
ZONE_A, ZONE_B = {"zone": "a"}, {"zone": "b"}


class World:
    def __init__(self, **settings):
        self.clock = LoopClock()
        self.api = SmallApi(self.clock)
        faults = DriverFaults(self.api, NAME, "n1", self.clock)
        self.driver = PretendedCsi(PretendedDriver(NAME, **settings), "n1", faults)

    async def say(self, **notes):
        written = {PREFIX + word: text for word, text in notes.items()}
        made = {"metadata": {"name": NAME, "annotations": written}, "spec": {}}
        await self.api.create(CSI_DRIVERS, made)

    async def create(self, name, size, segments=ZONE_A):
        request = messages.CreateVolumeRequest(name=name)
        request.capacity_range.required_bytes = size
        request.accessibility_requirements.preferred.add(segments=segments)
        return (await self.driver.controller("CreateVolume", request)).volume

    async def room(self, segments):
        request = messages.GetCapacityRequest()
        request.accessible_topology.segments.update(segments)
        return (await self.driver.controller("GetCapacity", request)).available_capacity

    async def stage(self):
        await self.driver.node("NodeStageVolume", messages.NodeStageVolumeRequest())


def told(story, **settings):
    async def run():
        await story(World(**settings))

    virtual_time.run(run())


def test_each_place_has_room_until_it_is_full():
    """[H7]"""

    async def story(world):
        made = await world.create("one", 4 * GI)
        assert (made.volume_id, made.capacity_bytes) == (f"{NAME}/one", 4 * GI)
        assert [dict(place.segments) for place in made.accessible_topology] == [ZONE_A]
        assert (await world.create("one", 4 * GI)).volume_id == made.volume_id
        assert (await world.room(ZONE_A), await world.room(ZONE_B)) == (6 * GI, 10 * GI)
        with pytest.raises(GrpcFailure) as full:
            await world.create("two", 7 * GI)
        assert full.value.code == "RESOURCE_EXHAUSTED"
        await world.create("two", 7 * GI, ZONE_B)
        gone = messages.DeleteVolumeRequest(volume_id=made.volume_id)
        await world.driver.controller("DeleteVolume", gone)
        await world.driver.controller("DeleteVolume", gone)
        assert await world.room(ZONE_A) == 10 * GI

    told(story, topology=ZONE_A, capacity_bytes=10 * GI)


def test_a_volume_grows():
    async def story(world):
        made = await world.create("one", GI)
        request = messages.ControllerExpandVolumeRequest(volume_id=made.volume_id)
        request.capacity_range.required_bytes = 3 * GI
        answer = await world.driver.controller("ControllerExpandVolume", request)
        assert (answer.capacity_bytes, answer.node_expansion_required) == (3 * GI, False)
        assert await world.room(ZONE_A) == 7 * GI

    told(story, topology=ZONE_A, capacity_bytes=10 * GI)


def test_it_fails_and_takes_its_time_as_its_object_says():
    async def story(world):
        await world.say(fail="NodeStageVolume@n1:1:not here", seconds="NodeStageVolume:7;x:y")
        began = world.clock.monotonic()
        with pytest.raises(GrpcFailure, match="code = Internal desc = not here"):
            await world.stage()
        await world.stage()
        assert world.clock.monotonic() - began == 14

    told(story)


def test_other_nodes_and_other_methods_are_spared():
    async def story(world):
        await world.say(fail="NodeStageVolume@n2::no;NodePublishVolume::no", seconds="odd")
        await world.stage()

    told(story)
