"""Pods through the real API server to their nodes: scheduler, bindings, conditions, events."""

import random
from contextlib import asynccontextmanager

from sampan.api.errors import ServiceUnavailable
from sampan.api.objects import key_of
from sampan.api.resources import (
    DEVICE_CLASSES,
    EVENTS,
    LEASES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
)
from sampan.api.rules.storage import LOCAL_PROVISIONER, LOCAL_ROOT
from sampan.client.leader_election import LeaderElector
from sampan.cmd.cluster.schedulers import lease_of
from sampan.controllers.catalog import ControllerSettings, all_controllers
from sampan.controllers.controller import selected_controllers
from sampan.core.http.messages import Request
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.scheduler.loop import Scheduler
from sampan.scheduler.settings import Election
from tests.support import virtual_time
from tests.support.generators.device_objects import (
    DRIVER,
    device,
    device_class,
    device_request,
    resource_slice,
)
from tests.support.worlds.control_plane import ControlPlane

UNSCHEDULED = "PodScheduled"


def node(name, cpu="4", labels=None, **spec):
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}}, "spec": spec,
        "status": {"capacity": amounts, "allocatable": amounts},
    }  # fmt: skip


def pod(name, cpu="100m", **spec):
    container = {"name": "c", "image": "web", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }  # fmt: skip


@asynccontextmanager
async def scheduling(*names):
    """`names`: of controllers that run beside the scheduler."""

    def controllers():
        return selected_controllers(all_controllers(ControllerSettings(root_ca="PEM")), names)

    async with ControlPlane(controllers) if names else ControlPlane() as plane:
        client = plane.as_user("system:kube-scheduler")
        scheduler = Scheduler(
            client, clock=plane.clock, rng=random.Random(1), metrics=plane.metrics
        )
        tasks = Tasks("test")
        tasks.start("scheduler", scheduler.run())
        try:
            yield plane
        finally:
            await tasks.stop()


async def ready_node(plane, made):
    await plane.client.create(NODES, made)
    # Admission taints a new node until it is ready.
    await plane.client.patch(
        NODES, "", made["metadata"]["name"], {"spec": {"taints": made["spec"].get("taints")}},
        patch_type="merge",
    )  # fmt: skip
    await plane.client.patch(
        NODES, "", made["metadata"]["name"], {"status": made["status"]},
        patch_type="merge", subresource="status",
    )  # fmt: skip


async def placed(plane):
    found = await plane.client.list(PODS)
    return {key_of(one): one["spec"].get("nodeName") for one in found.items}


def condition(made):
    return next(one for one in made["status"]["conditions"] if one["type"] == UNSCHEDULED)


def test_pods_get_nodes_and_the_api_says_so():
    """[S1] [S5] [S6] [A9]"""

    async def story():
        async with scheduling() as plane:
            await ready_node(plane, node("a"))
            await plane.client.create(PODS, pod("web"), "default")
            await plane.clock.sleep(1)
            made = await plane.client.get(PODS, "default", "web")
            assert made["spec"]["nodeName"] == "a"
            assert condition(made)["status"] == "True"
            events = (await plane.client.list(EVENTS)).items
            said = [(one["reason"], one["message"]) for one in events]
            assert said == [("Scheduled", "Successfully assigned default/web to a")]

    virtual_time.run(story())


def test_a_hundred_pods_fill_the_nodes_exactly_and_the_rest_are_told_why():
    """[S3] [S5]"""

    async def story():
        async with scheduling() as plane:
            for name in "abc":
                await ready_node(plane, node(name, cpu="2"))
            for number in range(100):
                await plane.client.create(PODS, pod(f"p{number}"), "default")
            await plane.clock.sleep(5)
            nodes = list((await placed(plane)).values())
            assert {name: nodes.count(name) for name in "abc"} == {"a": 20, "b": 20, "c": 20}
            waiting = [
                one for one in (await plane.client.list(PODS)).items
                if not one["spec"].get("nodeName")
            ]  # fmt: skip
            assert len(waiting) == 40
            assert {condition(one)["message"] for one in waiting} == {
                "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, "
                "preemption: 0/3 nodes are available: 3 No preemption victims found for incoming "
                "pod."
            }

    virtual_time.run(story())


def test_a_pod_of_thousands_of_terms_is_placed_and_told_as_any_other():
    """[S3] worked out beside the loop, in the order in which everything came"""

    async def story():
        async with scheduling() as plane:
            for name in "ab":
                await ready_node(plane, node(name, cpu="2", labels={"name": name}))
            wanted = [
                {"matchExpressions": [{"key": "name", "operator": "In", "values": [f"x{at}", "b"]}]}
                for at in range(1000)
            ]
            rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": wanted}}
            tolerations = [{"key": f"k{at}", "operator": "Exists"} for at in range(1000)]
            many = pod("many", affinity={"nodeAffinity": rule}, tolerations=tolerations)
            await plane.client.create(PODS, many, "default")
            await plane.client.create(
                PODS, pod("large", cpu="9", tolerations=tolerations), "default"
            )
            await plane.client.create(PODS, pod("web"), "default")
            await plane.clock.sleep(2)
            there = await placed(plane)
            assert there["default/many"] == "b"
            assert there["default/web"] in {"a", "b"}
            assert condition(await plane.client.get(PODS, "default", "large"))["message"] == (
                "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, "
                "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
            )
            await ready_node(plane, node("c", cpu="10"))
            await plane.clock.sleep(31)
            assert (await placed(plane))["default/large"] == "c"
            await plane.client.delete(PODS, "default", "many")
            await plane.client.create(PODS, pod("next", cpu="1900m", nodeName=""), "default")
            await plane.clock.sleep(2)
            assert (await placed(plane))["default/next"] is not None

    virtual_time.run(story())


def test_a_changed_node_takes_the_pods_that_waited_for_it():
    """[S2]"""

    async def story():
        async with scheduling() as plane:
            taint = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
            await ready_node(plane, node("a", taints=[taint]))
            await plane.client.create(PODS, pod("web"), "default")
            await plane.client.create(PODS, pod("ssd", nodeSelector={"disk": "ssd"}), "default")
            await plane.clock.sleep(60)
            made = await plane.client.get(PODS, "default", "web")
            assert condition(made)["message"].startswith(
                "0/1 nodes are available: 1 node(s) had untolerated taint(s). "
            )
            await plane.client.patch(NODES, "", "a", {"spec": {"taints": None}}, patch_type="merge")
            await plane.clock.sleep(0.1)
            assert await placed(plane) == {"default/web": "a", "default/ssd": None}
            await plane.client.patch(
                NODES, "", "a", {"metadata": {"labels": {"disk": "ssd"}}}, patch_type="merge"
            )
            await plane.clock.sleep(0.1)
            assert await placed(plane) == {"default/web": "a", "default/ssd": "a"}

    virtual_time.run(story())


def test_a_more_important_pod_makes_room_within_the_budgets():
    """[S5] Preemption through the real API: of two nodes, the one whose pod has no budget."""

    async def story():
        async with scheduling() as plane:
            high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000}
            await plane.client.create(PRIORITY_CLASSES, {**high, "metadata": {"name": "high"}})
            for name in "ab":
                await ready_node(plane, node(name, cpu="2"))
            for name, where in (("kept", "a"), ("lesser", "b")):
                made = pod(name, cpu="2", nodeName=where)
                made["metadata"]["labels"] = {"app": name}
                await plane.client.create(PODS, made, "default")
            budget = {
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": "b"},
                "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "kept"}}},
            }  # fmt: skip
            await plane.client.create(POD_DISRUPTION_BUDGETS, budget, "default")
            await plane.clock.sleep(1)
            important = pod("important", cpu="2", priorityClassName="high")
            await plane.client.create(PODS, important, "default")
            await plane.clock.sleep(1)
            made = await plane.client.get(PODS, "default", "important")
            assert made["status"]["nominatedNodeName"] == "b"
            victim = await plane.client.get(PODS, "default", "lesser")
            assert victim["metadata"]["deletionTimestamp"]
            [told] = [
                one for one in victim["status"]["conditions"] if one["type"] == "DisruptionTarget"
            ]
            assert told["reason"] == "PreemptionByScheduler"
            await plane.client.delete(PODS, "default", "lesser", grace_seconds=0)
            await plane.clock.sleep(5)
            assert (await placed(plane))["default/important"] == "b"
            assert (await placed(plane))["default/kept"] == "a"

    virtual_time.run(story())


def test_a_claim_that_waits_for_its_pod_is_provisioned_on_the_pods_node():
    """[S4] [S6] Scheduler, volume controller and local provisioner, through the real API."""

    def controllers():
        names = ("persistentvolume-binder-controller", "local-provisioner")
        offered = all_controllers(ControllerSettings(root_ca="PEM"))
        return [one for one in offered if one.name in names]

    async def story():
        async with ControlPlane(controllers) as plane:
            client = plane.as_user("system:kube-scheduler")
            scheduler = Scheduler(
                client, clock=plane.clock, rng=random.Random(1), metrics=plane.metrics
            )
            tasks = Tasks("test")
            tasks.start("scheduler", scheduler.run())
            try:
                made = node("a")
                made["metadata"]["annotations"] = {LOCAL_ROOT: "/var/lib/volumes"}
                await ready_node(plane, made)
                storage = {
                    "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
                    "metadata": {"name": "local"}, "provisioner": LOCAL_PROVISIONER,
                    "volumeBindingMode": "WaitForFirstConsumer",
                }  # fmt: skip
                await plane.client.create(STORAGE_CLASSES, storage)
                mounted = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
                await plane.client.create(PODS, pod("web", volumes=mounted), "default")
                await plane.clock.sleep(1)
                said = condition(await plane.client.get(PODS, "default", "web"))["message"]
                assert said.startswith(
                    '0/1 nodes are available: persistentvolumeclaim "c" not found. '
                )
                claim = {
                    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"},
                    "spec": {
                        "storageClassName": "local", "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                }  # fmt: skip
                await plane.client.create(PERSISTENT_VOLUME_CLAIMS, claim, "default")
                await plane.clock.sleep(20)
                assert await placed(plane) == {"default/web": "a"}
                bound = await plane.client.get(PERSISTENT_VOLUME_CLAIMS, "default", "c")
                assert bound["status"]["phase"] == "Bound"
            finally:
                await tasks.stop()

    virtual_time.run(story())


def test_what_the_scheduler_remembers_is_not_for_strangers():
    """[X2]"""

    async def remembered(rest):
        return {"asked": rest}

    async def story():
        async with ControlPlane() as plane:
            plane.server.add_document("/sampan/v1/why/", remembered)
            reply = await plane.server.handle_http(Request("GET", "/sampan/v1/why/a/b", "", {}))
            assert reply.status in (401, 403)

    virtual_time.run(story())


def test_pods_take_turns_with_a_device():
    """[S4] Template, claim, allocation, reservation, binding; the next pod waits until the first
    is gone, and then has the device."""

    async def story():
        async with scheduling("resourceclaim-controller", "garbagecollector") as plane:
            create = plane.client.create
            await ready_node(plane, node("a"))
            await ready_node(plane, node("b"))
            there = [device("d0", model="x"), device("d1", model="y")]
            await create(RESOURCE_SLICES, resource_slice("s", there, nodeName="b"))
            await create(DEVICE_CLASSES, device_class("gpu", f'device.driver == "{DRIVER}"'))
            asked = device_request("", f'device.attributes["{DRIVER}"].model == "x"')
            spec = {"devices": {"requests": [{"name": "r", "exactly": asked}]}}
            template = {
                "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
                "metadata": {"name": "t"}, "spec": {"spec": spec},
            }  # fmt: skip
            await create(RESOURCE_CLAIM_TEMPLATES, template, "default")
            entries = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
            for name in ("one", "two"):
                made = pod(name, resourceClaims=entries, terminationGracePeriodSeconds=0)
                await create(PODS, made, "default")
                await plane.clock.sleep(5)
            assert await placed(plane) == {"default/one": "b", "default/two": None}
            claims = (await plane.client.list(RESOURCE_CLAIMS)).items
            [used] = [one for one in claims if (one.get("status") or {}).get("allocation")]
            [result] = used["status"]["allocation"]["devices"]["results"]
            assert (result["pool"], result["device"], result["request"]) == ("s", "d0", "r")
            assert [one["name"] for one in used["status"]["reservedFor"]] == ["one"]
            assert "resource.kubernetes.io/delete-protection" in used["metadata"]["finalizers"]
            waiting = await plane.client.get(PODS, "default", "two")
            assert "2 cannot allocate all claims" in condition(waiting)["message"]
            await plane.client.delete(PODS, "default", "one", grace_seconds=0)
            await plane.clock.sleep(20)
            assert await placed(plane) == {"default/two": "b"}
            [left] = (await plane.client.list(RESOURCE_CLAIMS)).items
            assert [one["name"] for one in left["status"]["reservedFor"]] == ["two"]

    virtual_time.run(story())


def test_of_two_schedulers_one_acts_and_the_other_takes_over():
    """[S1] [E3] By the lease of its configuration; the leader is lost without a word, and nobody
    binds until its lease is over."""

    class Cut:
        """A client that can lose its connection, and remembers who bound what and when."""

        def __init__(self, client, clock):
            self._client, self._clock, self.cut, self.bound = client, clock, False, []

        def __getattr__(self, name):
            if self.cut:
                raise ServiceUnavailable("the network is gone")
            return getattr(self._client, name)

        async def create(self, resource, obj, namespace="", **asked):
            if self.cut:
                raise ServiceUnavailable("the network is gone")
            if asked.get("subresource") == "binding":
                self.bound.append(self._clock.monotonic())
            return await self._client.create(resource, obj, namespace, **asked)

    async def story():
        async with ControlPlane() as plane:
            clients, tasks = {}, Tasks("test")
            for name in ("one", "two"):
                client = clients[name] = Cut(plane.as_user("system:kube-scheduler"), plane.clock)
                election = Election(lease_seconds=30.0, renew_seconds=20.0, retry_seconds=2.0)
                elector = LeaderElector(
                    client, lease_of(election, name), clock=plane.clock, rng=random.Random(1)
                )
                scheduler = Scheduler(
                    client, clock=plane.clock, rng=random.Random(1), metrics=Metrics()
                )
                tasks.start(name, elector.run(scheduler.run))
                await plane.clock.sleep(1)
            await ready_node(plane, node("a"))
            for number in range(5):
                await plane.client.create(PODS, pod(f"p{number}"), "default")
            await plane.clock.sleep(10)
            assert (len(clients["one"].bound), len(clients["two"].bound)) == (5, 0)
            lease = await plane.client.get(LEASES, "kube-system", "kube-scheduler")
            assert lease["spec"]["leaseDurationSeconds"] == 30
            clients["one"].cut = True
            lost = plane.clock.monotonic()
            await plane.client.create(PODS, pod("late"), "default")
            await plane.clock.sleep(60)
            assert set((await placed(plane)).values()) == {"a"}
            assert len(clients["one"].bound) == 5
            [taken_over] = clients["two"].bound
            assert taken_over >= lost + 20
            await tasks.stop()

    virtual_time.run(story())
