"""No device is given twice, and no pod runs without what it claims, while all comes and goes.

Pods with claims from templates, with claims of their own and with shared ones; bindings and writes
of claims that fail or whose answer is lost; a scheduler that is stopped and started; pods and
slices that go. The history of claims and pods is recorded and checked afterwards, step by step.
"""

from contextlib import suppress

import pytest

from sampan.api.errors import AlreadyExists, NotFound, ServiceUnavailable
from sampan.api.objects import key_of, name_of, uid_of
from sampan.api.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from sampan.controllers.catalog import ControllerSettings, all_controllers
from sampan.controllers.controller import selected_controllers
from tests.support import virtual_time
from tests.support.generators.device_objects import (
    device,
    device_class,
    device_request,
    resource_claim,
    resource_slice,
)
from tests.support.seed import SEED, drawn
from tests.support.worlds.control_plane import ControlPlane
from tests.support.worlds.scheduler_world import SchedulerWorld

WAVES, NODES_AT_ALL, DEVICES_EACH = 12, 6, 4
SPEC = {"devices": {"requests": [{"name": "r", "exactly": device_request(count=1)}]}}


class Unreliable:
    """A client whose writes of bindings and claims fail now and then, before or after."""

    def __init__(self, client, rng):
        self._client, self._rng = client, rng

    def __getattr__(self, name):
        return getattr(self._client, name)

    async def create(self, resource, obj, namespace="", **asked):
        return await self._perhaps(self._client.create(resource, obj, namespace, **asked))

    async def patch(self, resource, *given, **asked):
        work = self._client.patch(resource, *given, **asked)
        return await (self._perhaps(work) if resource is RESOURCE_CLAIMS else work)

    async def _perhaps(self, work):
        dice = self._rng.random()
        if dice < 0.04:
            work.close()
            raise ServiceUnavailable("not now")
        made = await work
        if dice < 0.08:
            raise ServiceUnavailable("it was done, but nobody says so")
        return made


class World(SchedulerWorld):
    def __init__(self, plane, rng):
        super().__init__(plane, rng, Unreliable)
        self.pods = 0

    async def begin(self):
        await self.client.create(DEVICE_CLASSES, device_class())
        template = {
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
            "metadata": {"name": "t"}, "spec": {"spec": SPEC},
        }  # fmt: skip
        await self.client.create(RESOURCE_CLAIM_TEMPLATES, template, "default")
        for number in range(NODES_AT_ALL):
            name = f"n{number}"
            amounts = {"cpu": "64", "memory": "64Gi", "pods": "110"}
            made = {
                "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
                "status": {"capacity": amounts, "allocatable": amounts},
            }  # fmt: skip
            await self.client.create(NODES, made)
            await self.client.patch(NODES, "", name, {"spec": {"taints": None}}, patch_type="merge")
            await self.add_slice(number)

    async def add_slice(self, number):
        there = [device(f"d{at}") for at in range(DEVICES_EACH)]
        with suppress(AlreadyExists):
            await self.client.create(
                RESOURCE_SLICES, resource_slice(f"s{number}", there, nodeName=f"n{number}")
            )

    async def add_pod(self):
        name, self.pods = f"pod-{self.pods}", self.pods + 1
        entry = {"name": "gpu", "resourceClaimTemplateName": "t"}
        if (kind := self.rng.randrange(4)) < 2:
            claim = f"{name}-own" if kind else f"shared-{self.rng.randrange(5)}"
            made = resource_claim(claim, SPEC["devices"]["requests"])
            del made["metadata"]["uid"], made["metadata"]["namespace"], made["status"]
            with suppress(AlreadyExists):
                await self.client.create(RESOURCE_CLAIMS, made, "default")
            entry = {"name": "gpu", "resourceClaimName": claim}
        pod = {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {
                "containers": [{"name": "c", "image": "x"}], "resourceClaims": [entry],
                "terminationGracePeriodSeconds": 0,
            },
        }  # fmt: skip
        await self.client.create(PODS, pod, "default")

    async def remove_pods(self, share):
        for one in (await self.client.list(PODS)).items:
            if self.rng.random() < share:
                with suppress(NotFound):
                    await self.client.delete(PODS, "default", name_of(one), grace_seconds=0)

    async def churn(self):
        for _ in range(WAVES):
            for _ in range(self.rng.randrange(5, 30)):
                await self.add_pod()
            await self.plane.clock.sleep(self.rng.choice((0.0, 0.05, 1.0, 5.0)))
            if self.rng.random() < 0.3:
                await self.restart()
            if self.rng.random() < 0.3:
                number = self.rng.randrange(NODES_AT_ALL)
                with suppress(NotFound):
                    await self.client.delete(RESOURCE_SLICES, "", f"s{number}")
                await self.plane.clock.sleep(1)
                await self.add_slice(number)
            await self.remove_pods(self.rng.choice((0.2, 0.5, 0.8)))
            await self.plane.clock.sleep(self.rng.choice((0.0, 1.0, 20.0)))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_under_churn_no_device_is_given_twice_and_nobody_runs_without_one():
    """[S4] SAMPAN_SEED chooses another story."""
    print(f"seed {SEED}")

    def controllers():
        names = ("resourceclaim-controller", "garbagecollector")
        return selected_controllers(all_controllers(ControllerSettings(root_ca="PEM")), names)

    async def story():
        async with ControlPlane(controllers) as plane:
            world = World(plane, drawn())
            world.record(RESOURCE_CLAIMS, PODS)
            await plane.clock.sleep(0.1)
            try:
                await world.begin()
                await world.restart()
                await world.churn()
                await plane.clock.sleep(400)  # what was lost on the way is found again by then
                pods = (await plane.client.list(PODS)).items
                claims = (await plane.client.list(RESOURCE_CLAIMS)).items
            finally:
                await world.stop()
            return world.history, pods, claims

    history, pods, claims = virtual_time.run(story())
    bound = checked(sorted(history, key=lambda one: one[0]))
    print(f"{bound} bindings, {len(history)} changes")
    assert bound >= 50
    held = sum(len(results(one)) for one in claims)
    waiting = [one for one in pods if not one["spec"].get("nodeName")]
    if waiting:  # only because every device is in use
        assert held == NODES_AT_ALL * DEVICES_EACH
    for one in claims:  # nobody keeps devices for pods that are gone
        users = {used["uid"] for used in (one.get("status") or {}).get("reservedFor") or ()}
        assert users <= {uid_of(pod) for pod in pods}, name_of(one)
        assert not results(one) or users, name_of(one)


def results(claim):
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or []


def checked(history):
    """Replays the history; how many bindings there were."""
    claims, placed, bound = {}, set(), 0
    for _, kind, resource, obj in history:
        if resource is RESOURCE_CLAIMS:
            claims[key_of(obj)] = obj
            if kind == "DELETED":
                del claims[key_of(obj)]
            held = [
                (one["pool"], one["device"]) for claim in claims.values() for one in results(claim)
            ]
            assert len(held) == len(set(held)), f"a device twice: {sorted(held)}"
        elif kind != "DELETED" and obj["spec"].get("nodeName") and uid_of(obj) not in placed:
            placed.add(uid_of(obj))
            bound += 1
            check_pod(obj, claims)
    return bound


def check_pod(pod, claims):
    [entry] = pod["spec"]["resourceClaims"]
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or [{}]
    name = entry.get("resourceClaimName") or statuses[0].get("resourceClaimName")
    claim = claims.get(f"default/{name}")
    assert claim is not None, f"{name_of(pod)} is bound without its claim"
    users = {one["uid"] for one in claim["status"].get("reservedFor") or ()}
    assert uid_of(pod) in users, f"{name_of(pod)} is bound, but {name} is not reserved for it"
    [result] = results(claim)
    assert result["pool"] == f"s{pod['spec']['nodeName'][1:]}", f"{name_of(pod)} is elsewhere"


def test_the_checker_sees_what_it_is_for():
    """A checker that never complains proves nothing."""

    def claim(name, device_name, *users):
        found = {"pool": "s0", "device": device_name}
        reserved = [{"uid": one} for one in users]
        status = {"allocation": {"devices": {"results": [found]}}, "reservedFor": reserved}
        return (1, "MODIFIED", RESOURCE_CLAIMS, resource_claim(name, [], **status))

    def pod(node):
        entries = [{"name": "gpu", "resourceClaimName": "c"}]
        meta = {"name": "p", "uid": "p", "namespace": "default"}
        spec = {"nodeName": node, "resourceClaims": entries}
        return (2, "MODIFIED", PODS, {"metadata": meta, "spec": spec})

    assert checked([claim("c", "d0", "p"), pod("n0")]) == 1
    with pytest.raises(AssertionError, match="a device twice"):
        checked([claim("c", "d0"), claim("e", "d0")])
    with pytest.raises(AssertionError, match="without its claim"):
        checked([pod("n0")])
    with pytest.raises(AssertionError, match="not reserved"):
        checked([claim("c", "d0"), pod("n0")])
    with pytest.raises(AssertionError, match="elsewhere"):
        checked([claim("c", "d0", "p"), pod("n1")])
