import random
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from sampan.api.errors import Forbidden, ServiceUnavailable, UnknownPath, conflict
from sampan.api.objects import copy_of
from sampan.api.resources import (
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESOURCE_CLAIMS,
    STORAGE_CLASSES,
)
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.scheduler.binding.api_call_limiter import MOST_CALLS
from sampan.scheduler.filters.rule import Filter, never_resolvable, one_reason
from sampan.scheduler.loop import Scheduler
from sampan.scheduler.model.rule_scope import Depends
from sampan.scheduler.profile import DEFAULT_PROFILE
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.small_api import SmallApi


class Api(SmallApi):
    """The small API, with bindings; they can be slow, or fail for some time."""

    def __init__(self, clock):
        super().__init__(clock)
        self.failures, self.bind_seconds = [], 0.0
        self.binding = self.most_binding = self.delete_failures = 0
        self.forgetful = False

    async def delete(self, resource, namespace, name, **options):
        if self.delete_failures:
            self.delete_failures -= 1
            raise ServiceUnavailable("not now")
        if resource is PODS and "grace_seconds" not in options:
            grace = self._object(PODS, namespace, name)["spec"].get("terminationGracePeriodSeconds")
            options["grace_seconds"] = 30 if grace is None else grace
        return await super().delete(resource, namespace, name, **options)

    async def create(self, resource, obj, namespace="", *, subresource="", name=""):
        if subresource != "binding":
            return await super().create(resource, obj, namespace)
        self.binding += 1
        self.most_binding = max(self.most_binding, self.binding)
        try:
            await self._clock.sleep(self.bind_seconds)
        finally:
            self.binding -= 1
        if self.failures:
            raise self.failures.pop(0)
        if self.forgetful:
            return {}  # says that it is done, and does nothing
        return await super().create(resource, obj, namespace, subresource=subresource, name=name)


class World:
    def __init__(self):
        self.clock = LoopClock()
        self.api = Api(self.clock)
        self.metrics = Metrics()
        self.scheduler = Scheduler(
            self.api, clock=self.clock, rng=random.Random(1), metrics=self.metrics
        )

    async def node(self, name="n", cpu="4", pods="110", **spec):
        status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": pods}}
        node = {"kind": "Node", "metadata": {"name": name}, "spec": spec, "status": status}
        return await self.api.create(NODES, node)

    async def pod(self, name="p", cpu=None, **spec):
        container = {"name": "c", "image": "web"}
        if cpu:
            container["resources"] = {"requests": {"cpu": cpu}}
        pod = {
            "kind": "Pod", "apiVersion": "v1", "metadata": {"name": name},
            "spec": {"containers": [container], **spec},
        }  # fmt: skip
        return await self.api.create(PODS, pod, "default")

    async def bind_claim(self, name, volume):
        """What the controller of volumes does."""
        spec, status = {"spec": {"volumeName": volume}}, {"status": {"phase": "Bound"}}
        of_claims = (PERSISTENT_VOLUME_CLAIMS, "default", name)
        await self.api.patch(*of_claims, spec, patch_type="merge")
        await self.api.patch(*of_claims, status, patch_type="merge", subresource="status")

    def node_of(self, name="p"):
        return self.api.find(PODS, "default", name)["spec"].get("nodeName")

    def condition(self, name="p"):
        conditions = self.api.find(PODS, "default", name)["status"].get("conditions") or []
        return next((one for one in conditions if one["type"] == "PodScheduled"), None)

    def events(self):
        return [(event["reason"], event["message"]) for event in self.api.objects(EVENTS)]

    def attempts(self, result):
        counter = self.metrics.counter("scheduler_schedule_attempts_total", "")
        return counter.value(result, "default-scheduler")


@asynccontextmanager
async def running(world):
    tasks = Tasks("test")
    tasks.start("scheduler", world.scheduler.run())
    try:
        yield
    finally:
        await tasks.stop()


def story(test):
    async def main():
        world = World()
        await test(world)

    virtual_time.run(main())


def test_a_pod_is_bound_and_an_event_says_so():
    """[S1] [S5] [S6]"""

    async def test(world):
        await world.node()
        async with running(world):
            await world.pod(cpu="1")
            await world.clock.sleep(1)
        assert world.node_of() == "n"
        assert world.events() == [("Scheduled", "Successfully assigned default/p to n")]
        assert world.attempts("scheduled") == 1

    story(test)


def test_pods_of_another_scheduler_or_with_a_node_are_left_alone():
    """[S1]"""

    async def test(world):
        await world.node()
        await world.pod("other", schedulerName="mine")
        await world.pod("placed", nodeName="n")
        async with running(world):
            await world.clock.sleep(10)
        assert world.node_of("other") is None
        assert world.api.bindings == []
        assert world.condition("other") is None

    story(test)


def test_a_pod_that_fits_nowhere_is_told_why_and_scheduled_when_a_node_comes():
    """[S5]"""

    async def test(world):
        await world.node("small", cpu="1")
        async with running(world):
            await world.pod(cpu="2")
            await world.clock.sleep(5)
            condition = world.condition()
            assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
            expected = (
                "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
                "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
            )
            assert condition["message"] == expected
            assert world.events() == [("FailedScheduling", expected)]
            assert world.attempts("unschedulable") == 1  # and not again and again
            await world.node("large")
            await world.clock.sleep(0.1)
            assert world.node_of() == "large"

    story(test)


def test_a_pod_created_before_any_node_does_not_wait_for_a_backoff():
    async def test(world):
        async with running(world):
            await world.pod()
            await world.clock.sleep(0.2)
            assert world.condition()["message"] == "no nodes available to schedule pods"
            await world.node()
            await world.clock.sleep(0.01)
            assert world.node_of() == "n"

    story(test)


def test_room_that_a_pod_leaves_goes_to_the_one_that_waits():
    async def test(world):
        await world.node(cpu="1")
        async with running(world):
            await world.pod("first", cpu="1")
            await world.clock.sleep(1)
            await world.pod("second", cpu="1")
            await world.clock.sleep(20)
            assert world.node_of("second") is None
            done = {"status": {"phase": "Succeeded"}}
            await world.api.patch(PODS, "default", "first", done, subresource="status")
            await world.clock.sleep(0.1)
            assert world.node_of("second") == "n"

    story(test)


def test_decisions_count_at_once_and_bindings_overlap():
    """[S3] Nothing is given away twice while bindings are slow."""

    async def test(world):
        world.api.bind_seconds = 1.0
        for number in range(10):
            await world.node(f"n{number}", cpu="1")
        for number in range(12):
            await world.pod(f"p{number}", cpu="1")
        async with running(world):
            await world.clock.sleep(1.5)
            assert len(world.api.bindings) == 10
            assert len({node for _, node in world.api.bindings}) == 10
            assert world.api.most_binding == 10

    story(test)


def test_calls_in_flight_are_bounded():
    async def test(world):
        world.api.bind_seconds = 1.0
        count = MOST_CALLS + 50
        await world.node(pods="1000")
        for number in range(count):
            await world.pod(f"p{number}")
        async with running(world):
            await world.clock.sleep(10)
        assert len(world.api.bindings) == count
        assert world.api.most_binding == MOST_CALLS

    story(test)


def test_a_binding_that_fails_gives_its_room_back_and_is_tried_again():
    async def test(world):
        await world.node(cpu="1")
        world.api.failures = [ServiceUnavailable("not now")]
        async with running(world):
            await world.pod(cpu="1")
            await world.clock.sleep(5)
        assert world.node_of() == "n"
        assert world.attempts("error") == 1
        assert (
            "FailedScheduling",
            'running Bind plugin "DefaultBinder": not now',
        ) in world.events()

    story(test)


def test_a_lost_race_is_no_drama():
    async def test(world):
        await world.node()
        world.api.failures = [conflict("pods/binding", "", "p", "somebody was faster")] * 2
        async with running(world):
            await world.pod()
            await world.clock.sleep(10)
        assert world.node_of() == "n"
        assert [reason for reason, _ in world.events()] == ["Scheduled"]

    story(test)


def test_a_pod_deleted_while_it_is_bound_leaves_its_room():
    async def test(world):
        await world.node(cpu="1")
        world.api.bind_seconds = 1.0
        async with running(world):
            await world.pod("gone", cpu="1")
            await world.clock.sleep(0.5)
            await world.api.delete(PODS, "default", "gone")
            await world.pod("next", cpu="1")
            await world.clock.sleep(5)
        assert world.node_of("next") == "n"

    story(test)


def test_a_pod_recreated_under_its_old_name_is_scheduled():
    async def test(world):
        await world.node()
        async with running(world):
            for _ in range(3):
                await world.pod()
                await world.clock.sleep(1)
                assert world.node_of() == "n"
                await world.api.delete(PODS, "default", "p", grace_seconds=0)

    story(test)


def test_gated_pods_wait_and_say_so_until_the_gate_is_gone():
    """[S2]"""

    async def test(world):
        await world.node()
        async with running(world):
            pod = await world.pod(schedulingGates=[{"name": "example.com/wait"}])
            await world.clock.sleep(5)
            assert world.node_of() is None
            assert world.condition()["reason"] == "SchedulingGated"
            opened = copy_of(pod)
            del opened["metadata"]["resourceVersion"]  # its conditions have changed since
            opened["spec"]["schedulingGates"] = []
            await world.api.update(PODS, opened)
            await world.clock.sleep(0.1)
            assert world.node_of() == "n"

    story(test)


def test_a_pod_at_which_a_plugin_fails_keeps_no_other_from_its_node():
    def mask(pod, _nodes):
        return 1 // 0 if pod.selector else None

    broken = Filter("Broken", mask, one_reason(""), never_resolvable, Depends.NODES)
    profile = replace(DEFAULT_PROFILE, filters=(*DEFAULT_PROFILE.filters, broken))

    async def test(world):
        world.scheduler = Scheduler(
            world.api, clock=world.clock, rng=random.Random(1), metrics=world.metrics,
            profiles=[profile],
        )  # fmt: skip
        await world.node()
        async with running(world):
            await world.pod("odd", nodeSelector={"a": "b"})
            await world.pod("plain")
            await world.clock.sleep(600)
        assert (world.node_of("plain"), world.node_of("odd")) == ("n", None)
        assert world.condition("odd")["reason"] == "SchedulerError"
        assert (
            "FailedScheduling",
            "ZeroDivisionError: integer division or modulo by zero",
        ) in world.events()
        assert 5 < world.attempts("error") < 100

    story(test)


def test_a_pod_waits_in_silence_for_a_claim_to_devices_that_is_not_there():
    async def test(world):
        await world.node()
        async with running(world):
            await world.pod(resourceClaims=[{"name": "r", "resourceClaimName": "x"}])
            await world.clock.sleep(5)
            assert 'resourceclaim "x" not found' in str(world.scheduler.why("default", "p"))
            assert (world.node_of(), world.condition(), world.events()) == (None, None, [])
            made = {"kind": "ResourceClaim", "metadata": {"name": "x"}, "spec": {"devices": {}}}
            made["status"] = {"allocation": {"devices": {"results": []}}}
            await world.api.create(RESOURCE_CLAIMS, made, "default")
            await world.clock.sleep(5)
        assert world.node_of() == "n"

    story(test)


def claim(name="c", storage="fast"):
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {
            "storageClassName": storage, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    }  # fmt: skip


def storage_class(provisioner="example.com/disks"):
    return {
        "kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }  # fmt: skip


MOUNTED = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]


def test_a_pod_waits_for_its_claim_and_then_for_its_volume():
    """[S4] Provisioning for the first consumer: the node is told to the claim, then waited for."""

    async def test(world):
        await world.node()
        async with running(world):
            await world.pod(volumes=MOUNTED)
            await world.clock.sleep(1)
            assert world.condition()["message"].startswith(
                '0/1 nodes are available: persistentvolumeclaim "c" not found. '
            )
            await world.api.create(STORAGE_CLASSES, storage_class())
            await world.api.create(PERSISTENT_VOLUME_CLAIMS, claim(), "default")
            await world.clock.sleep(5)
            waiting = world.api.find(PERSISTENT_VOLUME_CLAIMS, "default", "c")
            assert waiting["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": "n"}
            assert world.node_of() is None
            await world.bind_claim("c", "pv")
            await world.clock.sleep(0.1)
            assert world.node_of() == "n"

    story(test)


def test_a_volume_that_exists_is_given_to_one_claim_only():
    async def test(world):
        for name in "ab":
            await world.node(name)
        await world.api.create(STORAGE_CLASSES, storage_class("kubernetes.io/no-provisioner"))
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
        volume = {
            "kind": "PersistentVolume", "metadata": {"name": "pv"},
            "spec": {
                "storageClassName": "fast", "capacity": {"storage": "2Gi"},
                "accessModes": ["ReadWriteOnce"],
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            },
            "status": {"phase": "Available"},
        }  # fmt: skip
        await world.api.create(PERSISTENT_VOLUMES, volume)
        await world.api.create(PERSISTENT_VOLUME_CLAIMS, claim(), "default")
        await world.api.create(PERSISTENT_VOLUME_CLAIMS, claim("d"), "default")
        async with running(world):
            await world.pod(volumes=MOUNTED)
            other = [{"name": "v", "persistentVolumeClaim": {"claimName": "d"}}]
            await world.pod("second", volumes=other)
            await world.clock.sleep(1)
            made = world.api.find(PERSISTENT_VOLUMES, "", "pv")
            assert made["spec"]["claimRef"]["name"] == "c"
            assert (
                "2 node(s) didn't find available persistent volumes to bind"
                in (world.condition("second")["message"])
            )
            await world.bind_claim("c", "pv")
            await world.clock.sleep(1)
            assert world.node_of() == "b"

    story(test)


def test_a_more_important_pod_takes_the_place_of_a_lesser_one():
    """[S5] The victim is told why, goes gracefully, and the room is kept for who made it."""

    async def test(world):
        await world.node(cpu="2")
        async with running(world):
            victim = await world.pod("low", cpu="2", priority=0, terminationGracePeriodSeconds=5)
            await world.clock.sleep(1)
            high = await world.pod("high", cpu="2", priority=10)
            await world.clock.sleep(1)
            made = world.api.find(PODS, "default", "high")
            assert made["status"]["nominatedNodeName"] == "n"
            assert world.condition("high")["message"] == (
                "0/1 nodes are available: 1 Insufficient cpu."
            )
            going = world.api.find(PODS, "default", "low")
            assert going["metadata"]["deletionTimestamp"]
            told = going["status"]["conditions"][-1]
            assert told["type"] == "DisruptionTarget"
            assert told["reason"] == "PreemptionByScheduler"
            assert told["message"] == (
                "default-scheduler: preempting to accommodate a higher priority pod"
            )
            uid = high["metadata"]["uid"]
            assert ("Preempted", f"Preempted by pod {uid} on node n") in world.events()
            await world.pod("late", cpu="2", priority=5)  # must not take the room
            await world.clock.sleep(2)
            await world.api.delete(PODS, "default", "low", grace_seconds=0)
            await world.clock.sleep(3)
            assert (world.node_of("high"), world.node_of("late")) == ("n", None)
            assert victim["metadata"]["uid"] not in [name for name, _ in world.api.bindings]

    story(test)


def test_a_nominated_pod_that_is_deleted_leaves_the_room_to_others():
    async def test(world):
        await world.node(cpu="2")
        async with running(world):
            await world.pod("low", cpu="2", priority=0)
            await world.clock.sleep(1)
            await world.pod("high", cpu="2", priority=10)
            await world.clock.sleep(1)
            await world.pod("middle", cpu="1", priority=5)
            await world.api.delete(PODS, "default", "low", grace_seconds=0)
            await world.api.delete(PODS, "default", "high", grace_seconds=0)
            await world.clock.sleep(5)
            assert world.node_of("middle") == "n"

    story(test)


def test_nobody_is_removed_while_the_api_does_not_show_budgets():
    """[S5] Who may not be removed is not known then."""

    async def test(world):
        await world.node(cpu="2")
        world.api.without["poddisruptionbudgets"] = Forbidden("not for you")
        async with running(world):
            await world.pod("low", cpu="2", priority=0)
            await world.clock.sleep(1)
            await world.pod("high", cpu="2", priority=10)
            await world.clock.sleep(60)
            low = world.api.find(PODS, "default", "low")
            assert low["metadata"].get("deletionTimestamp") is None
            assert "does not show PodDisruptionBudgets" in world.condition("high")["message"]
            world.api.without.clear()
            await world.clock.sleep(400)
            assert world.api.find(PODS, "default", "low")["metadata"]["deletionTimestamp"]

    story(test)


OPTIONAL = (
    "csidrivers", "csinodes", "csistoragecapacities", "deviceclasses", "persistentvolumeclaims",
    "persistentvolumes", "poddisruptionbudgets", "replicasets", "replicationcontrollers",
    "resourceclaims", "resourceslices", "services", "statefulsets", "storageclasses",
)  # fmt: skip


@pytest.mark.parametrize("error", [UnknownPath("no such kind"), Forbidden("not for you")], ids=str)
@pytest.mark.parametrize("plural", OPTIONAL)
def test_a_kind_that_the_api_lacks_or_refuses_holds_up_only_pods_that_use_it(plural, error):
    async def test(world):
        world.api.without[plural] = error
        await world.node()
        async with running(world):
            await world.pod("plain")
            await world.clock.sleep(1)
            assert world.node_of("plain") == "n"

    story(test)


@pytest.mark.parametrize("plural", ["namespaces", "nodes", "pods"])
def test_without_what_it_needs_the_scheduler_waits_and_says_so(plural, caplog):
    async def test(world):
        await world.node()
        await world.pod()
        world.api.without[plural] = Forbidden("not for you")
        async with running(world):
            await world.clock.sleep(100)
            assert world.api.bindings == []
            world.api.without.clear()
            await world.clock.sleep(100)
            assert world.node_of() == "n"

    story(test)
    waits = f"waiting for a required resource part=kube-scheduler kind={plural}"
    assert caplog.text.count(waits) == 1


def test_pods_that_never_preempt_wait():
    async def test(world):
        await world.node(cpu="2")
        async with running(world):
            await world.pod("low", cpu="2", priority=0)
            await world.clock.sleep(1)
            await world.pod("high", cpu="2", priority=10, preemptionPolicy="Never")
            await world.clock.sleep(5)
            assert (
                world.api.find(PODS, "default", "low")["metadata"].get("deletionTimestamp") is None
            )
            assert world.condition("high")["message"].endswith(
                "preemption: not eligible due to preemptionPolicy=Never."
            )

    story(test)


def test_a_victim_that_cannot_be_removed_now_is_removed_later():
    async def test(world):
        await world.node(cpu="2")
        async with running(world):
            await world.pod("low", cpu="2", priority=0, terminationGracePeriodSeconds=0)
            await world.clock.sleep(1)
            world.api.delete_failures = 2
            await world.pod("high", cpu="2", priority=10)
            await world.clock.sleep(30)
            assert world.node_of("high") == "n"

    story(test)


def test_a_bound_pod_that_is_never_seen_does_not_hold_its_room_for_ever():
    async def test(world):
        await world.node(cpu="1")
        world.api.forgetful = True
        async with running(world):
            await world.pod("lost", cpu="1")
            await world.clock.sleep(1)
            world.api.forgetful = False
            await world.pod("next", cpu="1")
            await world.clock.sleep(800)
            assert world.node_of("next") is None
            await world.clock.sleep(200)
            assert world.node_of("next") == "n"

    story(test)


def test_an_outage_of_the_api_is_survived():
    async def test(world):
        await world.node()
        async with running(world):
            await world.clock.sleep(1)
            await world.pod("before")
            world.api.go_down()
            await world.clock.sleep(60)
            world.api.come_back()
            await world.pod("after")
            await world.clock.sleep(60)
            assert (world.node_of("before"), world.node_of("after")) == ("n", "n")

    story(test)


def test_a_scheduler_that_runs_again_counts_what_it_placed_before():
    async def test(world):
        await world.node(cpu="2")
        async with running(world):
            await world.pod("a", cpu="1")
            await world.clock.sleep(1)
        async with running(world):
            await world.pod("b", cpu="1")
            await world.pod("c", cpu="1")
            await world.clock.sleep(1)
        assert [world.node_of(name) for name in "abc"].count("n") == 2

    story(test)


def test_a_cordoned_or_removed_node_takes_nobody():
    async def test(world):
        node = await world.node("gone")
        await world.node("cordoned", unschedulable=True)
        async with running(world):
            await world.clock.sleep(1)
            await world.api.delete(NODES, "", node["metadata"]["name"])
            await world.clock.sleep(1)
            await world.pod()
            await world.clock.sleep(1)
            assert world.node_of() is None
            assert "1 node(s) were unschedulable" in world.condition()["message"]

    story(test)


def test_an_idle_scheduler_does_nothing():
    async def test(world):
        await world.node()
        async with running(world):
            await world.pod()
            await world.clock.sleep(10)
            before = len(world.api.calls)
            await world.clock.sleep(1000)
            assert len(world.api.calls) == before

    story(test)


@pytest.mark.slow
def test_a_burst_of_pods_keeps_its_events():
    """[S5] More are bound at once than are told of."""

    async def test(world):
        for number in range(20):
            await world.node(f"n{number}", cpu="64")
        for number in range(1500):
            await world.pod(f"p{number}")
        async with running(world):
            await world.clock.sleep(60)
        assert len(world.api.bindings) == 1500
        assert [reason for reason, _ in world.events()].count("Scheduled") == 1500

    story(test)
