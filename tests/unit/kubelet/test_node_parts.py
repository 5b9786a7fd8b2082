import random

from sampan.client.events import EventRecorder
from sampan.client.no_api_client import NoApiClient
from sampan.core.metrics import Metrics
from sampan.kubelet.context import NodeContext
from sampan.kubelet.node_parts import api_side, facts_of, machine_side, sources_of
from sampan.kubelet.settings import Capacity, KubeletSettings
from sampan.kubelet.simulated.runtime import SimulatedRuntime
from sampan.kubelet.status.recorder import EventLog
from sampan.kubelet.volumes.tracked_objects import TrackedObjects
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock


def context_of(settings):
    clock = LoopClock()
    runtime = SimulatedRuntime(clock=clock)
    return NodeContext(settings, NoApiClient(), runtime, clock, Metrics(), random.Random(1))


def machine_of(settings):
    async def story():
        context = context_of(settings)
        objects = TrackedObjects(context.client, clock=context.clock, rng=context.rng)
        return machine_side(context, objects, lambda uid: None, lambda *told: None)

    return virtual_time.run(story())


def api_of(settings):
    async def story():
        return api_side(context_of(settings))

    return virtual_time.run(story())


def test_all_sources_that_there_are_must_have_spoken():
    """[N3]"""
    assert sources_of(KubeletSettings("n")) == ["api"]
    assert sources_of(KubeletSettings("n", manifests="/m", manifest_url="http://u")) == [
        "api",
        "file",
        "http",
    ]
    assert sources_of(KubeletSettings("n", standalone=True, manifests="/m")) == ["file"]


def test_a_simulated_node_shows_nothing_of_the_machine():
    settings = KubeletSettings(
        "n", simulated=True, cgroup_root="/x", capacity=Capacity(1500, 2**30)
    )
    side = machine_of(settings)
    assert side.machine.capacity.cpu_milli == 1500
    assert side.facts.allocatable["cpu"] == "1500m"
    assert side.cgroups is None
    assert not side.is_real


def test_a_real_node_s_capacity_is_the_machine_s(tmp_path):
    side = machine_of(KubeletSettings("n", root_dir=str(tmp_path)))
    assert side.is_real
    assert side.machine.capacity.memory_bytes > 0
    assert facts_of(KubeletSettings("n", hostname="h"), side.machine).hostname == "h"


def test_a_node_without_an_api_logs_its_events_and_follows_nothing():
    alone, connected = api_of(KubeletSettings("n", standalone=True)), api_of(KubeletSettings("n"))
    assert isinstance(alone.recorder, EventLog)
    assert (alone.loops, alone.is_there) == ((), False)
    assert type(connected.recorder) is EventRecorder
    assert [name for name, _ in connected.loops] == ["services"]
