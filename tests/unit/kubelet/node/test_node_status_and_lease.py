"""[N17] registration, status, lease."""

import asyncio
import random
from dataclasses import replace

import pytest

from sampan.api.resources import EVENTS, LEASES, NODES
from sampan.client.events import EventRecorder
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.context import NodeContext
from sampan.kubelet.node.machine import SIMULATED
from sampan.kubelet.node.node_status_and_lease import NodeStatusManager
from sampan.kubelet.node.shared_leases import SharedLeases
from sampan.kubelet.runtime.pleg import RuntimeHealth
from sampan.kubelet.settings import KubeletSettings
from sampan.kubelet.simulated.runtime import SimulatedRuntime
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.small_api import SmallApi

IMAGE = "registry.example/app:1"
UP = {"version": "1", "ready": True, "network_ready": True, "message": "", "answered": True}


class Stage:
    def __init__(self, **settings):
        self.clock = LoopClock()
        self.api = SmallApi(self.clock)
        self.health = RuntimeHealth(**UP)
        self.settings = replace(KubeletSettings("n"), **settings)
        self.tasks = Tasks("test")
        self.runtime = SimulatedRuntime(clock=self.clock)
        self.leases, self.machine = None, SIMULATED

    def start(self):
        self.recorder = EventRecorder(self.api, "kubelet", clock=self.clock)
        context = NodeContext(
            self.settings, self.api, self.runtime, self.clock, Metrics(), random.Random(1)
        )
        self.heartbeat = NodeStatusManager(
            context,
            machine=self.machine,
            health=self.health,
            recorder=self.recorder,
            leases=self.leases,
        )
        self.tasks.start("node", self.heartbeat.run())
        self.tasks.start("lease", self.heartbeat.keep_lease())
        self.heartbeat.poke()

    def node(self):
        return self.api.find(NODES, "", "n")


def told(story, **settings):
    async def run():
        stage = Stage(**settings)
        await story(stage)
        await stage.tasks.stop()

    virtual_time.run(run())


def test_a_new_node_is_ready_with_one_write():
    async def story(stage):
        stage.start()
        async with asyncio.timeout(0.1):
            await stage.heartbeat.node_ready.wait()
        assert stage.api.calls == ["create nodes", "create leases"]

    told(story)


def test_an_existing_node_keeps_what_others_wrote_and_gets_what_it_lacks():
    async def story(stage):
        old = {
            "metadata": {"name": "n", "labels": {"theirs": "1", "kubernetes.io/arch": "vax"}},
            "spec": {"unschedulable": True},
        }
        await stage.api.create(NODES, old)
        stage.start()
        await asyncio.sleep(1)
        assert stage.heartbeat.node_ready.is_set()
        labels = stage.node()["metadata"]["labels"]
        assert labels["theirs"] == "1"
        assert labels["kubernetes.io/arch"] == "amd64"
        assert stage.node()["spec"] == {"unschedulable": True}

    told(story)


@pytest.mark.parametrize(("before", "told_of"), [("b-0", 1), ("b-1", 0), ("", 0)])
def test_a_machine_that_has_begun_anew_is_told_of_once(before, told_of):
    async def story(stage):
        stage.machine = replace(SIMULATED, boot_id="b-1")
        node = {"metadata": {"name": "n"}, "status": {"nodeInfo": {"bootID": before}}}
        await stage.api.create(NODES, node)
        stage.start()
        stage.tasks.start("events", stage.recorder.run())
        await asyncio.sleep(1)
        stage.health.ready = False
        stage.heartbeat.poke()
        await asyncio.sleep(1)
        assert stage.node()["status"]["nodeInfo"]["bootID"] == "b-1"
        events = [one for one in stage.api.objects(EVENTS) if one["reason"] == "Rebooted"]
        assert [(one["type"], one["message"]) for one in events] == [
            ("Warning", "Node n has been rebooted, boot id: b-1")
        ] * told_of

    told(story)


@pytest.mark.parametrize("is_of_many", [True, False])
def test_of_many_nodes_an_agent_that_goes_on_tells_of_a_new_image_later(is_of_many):
    """A thousand nodes each get their first pod, and with it an image."""

    async def nobody(times):
        return ()

    async def story(stage):
        stage.leases = SharedLeases(nobody, stage.clock, 20.0) if is_of_many else None
        stage.start()
        await stage.heartbeat.node_ready.wait()
        await stage.tasks.stop()
        stage.tasks = Tasks("the next one")
        stage.api.calls.clear()
        await stage.runtime.pull_image(IMAGE, None)  # faster than the agent finds its node
        stage.start()
        stage.tasks.start("images", stage.heartbeat.watch_images())
        await stage.heartbeat.node_ready.wait()
        await asyncio.sleep(10)
        assert ("patch status nodes" not in stage.api.calls) == is_of_many
        await asyncio.sleep(60)
        assert IMAGE in stage.node()["status"]["images"][0]["names"]

    told(story)


def test_an_api_that_is_not_there_is_waited_for():
    async def story(stage):
        stage.api.go_down()
        stage.start()
        await asyncio.sleep(600)
        assert stage.node() is None
        stage.api.come_back()
        await asyncio.sleep(10)
        assert stage.heartbeat.node_ready.is_set()

    told(story)


def test_a_node_that_does_not_register_itself_waits_for_somebody_to_do_it():
    async def story(stage):
        stage.start()
        await asyncio.sleep(60)
        assert stage.node() is None
        await stage.api.create(NODES, {"metadata": {"name": "n"}})
        await asyncio.sleep(10)
        assert stage.heartbeat.node_ready.is_set()

    told(story, register_node=False)


def test_a_change_is_written_at_once_and_otherwise_every_five_minutes():
    async def story(stage):
        stage.start()
        await asyncio.sleep(1)
        stage.api.calls.clear()
        await asyncio.sleep(299.5)
        assert stage.api.calls.count("patch status nodes") == 1
        stage.health.ready, stage.health.message = False, "gone"
        stage.heartbeat.poke()
        await asyncio.sleep(0.01)
        assert stage.api.calls.count("patch status nodes") == 2
        assert not stage.heartbeat.node_ready.is_set()

    told(story)


def test_the_lease_is_renewed_every_ten_seconds_and_made_again_when_it_was_deleted():
    async def story(stage):
        stage.start()
        await asyncio.sleep(100)
        assert 9 <= stage.api.calls.count("patch leases") <= 10
        await stage.api.delete(LEASES, "kube-node-lease", "n")
        await asyncio.sleep(11)
        lease = stage.api.find(LEASES, "kube-node-lease", "n")
        assert lease["spec"]["leaseDurationSeconds"] == 40
        assert lease["metadata"]["ownerReferences"][0]["name"] == "n"

    told(story)
