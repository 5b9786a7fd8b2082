import random

from sampan.api.errors import ServiceUnavailable
from sampan.api.resources import (
    DEVICE_CLASSES,
    EVENTS,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.scheduler.loop import Scheduler
from tests.support import virtual_time
from tests.support.generators.device_objects import (
    DRIVER,
    device,
    device_class,
    device_request,
    resource_claim,
    resource_slice,
)
from tests.support.virtual_time import LoopClock
from tests.support.worlds.small_api import SmallApi


class Api(SmallApi):
    """Whose next bindings may fail."""

    failures = 0

    async def create(self, resource, obj, namespace="", *, subresource="", name=""):
        if subresource == "binding" and self.failures:
            self.failures -= 1
            raise ServiceUnavailable("not now")
        return await super().create(resource, obj, namespace, subresource=subresource, name=name)

    async def offer(self, **nodes):
        """One device on each of the nodes, in a pool of its own."""
        for name, devices in nodes.items():
            made = resource_slice(f"s{name}", [device(one) for one in devices], nodeName=name)
            await self.create(RESOURCE_SLICES, made)
        await self.create(DEVICE_CLASSES, device_class())

    def claim(self):
        return self.find(RESOURCE_CLAIMS, "default", "c")


def story(test):
    async def main():
        clock = LoopClock()
        api = Api(clock)
        scheduler = Scheduler(api, clock=clock, rng=random.Random(1), metrics=Metrics())
        tasks = Tasks("test")
        tasks.start("scheduler", scheduler.run())
        try:
            await test(api, clock)
        finally:
            await tasks.stop()

    virtual_time.run(main())


ASKED = [{"name": "r", "exactly": device_request()}]
NAMED = [{"name": "gpu", "resourceClaimName": "c"}]


def test_a_pod_whose_claim_is_not_made_yet_is_not_even_tried():
    """[S2] As upstream's PreEnqueue: no event, no condition, until the claim is there."""

    async def test(api, clock):
        await api.node("n")
        await api.offer(n=["d0"])
        entry = {"name": "gpu", "resourceClaimTemplateName": "t"}
        made = await api.pod("p", resourceClaims=[entry])
        await clock.sleep(20)
        assert api.pod_scheduled("p") is None
        assert api.objects(EVENTS) == []
        claim = resource_claim("c", ASKED)
        owner = {"uid": made["metadata"]["uid"], "kind": "Pod", "controller": True}
        claim["metadata"]["ownerReferences"] = [owner]
        await api.create(RESOURCE_CLAIMS, claim, "default")
        named = {"resourceClaimStatuses": NAMED}
        await api.patch(PODS, "default", "p", {"status": named}, subresource="status")
        await clock.sleep(1)
        assert api.bindings == [("p", "n")]
        assert [one["name"] for one in api.claim()["status"]["reservedFor"]] == ["p"]

    story(test)


def test_devices_of_a_binding_that_fails_are_kept_by_the_claim_and_used_by_the_next_attempt():
    """[S3]"""

    async def test(api, clock):
        await api.node("n")
        await api.offer(n=["d0", "d1"])
        await api.create(RESOURCE_CLAIMS, resource_claim("c", ASKED), "default")
        api.failures = 1
        await api.pod("p", resourceClaims=NAMED)
        await clock.sleep(0.5)
        assert api.bindings == []
        [result] = api.claim()["status"]["allocation"]["devices"]["results"]
        await clock.sleep(10)
        assert api.bindings == [("p", "n")]
        assert api.claim()["status"]["allocation"]["devices"]["results"] == [result]

    story(test)


def test_two_pods_share_a_claim_one_after_the_other():
    """[S3] While the first one's devices are written, the second waits; then both use them."""

    async def test(api, clock):
        await api.node("n")
        await api.node("m")
        await api.offer(n=["d0"])
        await api.create(RESOURCE_CLAIMS, resource_claim("c", ASKED), "default")
        await api.pod("p", resourceClaims=NAMED)
        await api.pod("q", resourceClaims=NAMED)
        await clock.sleep(10)
        assert sorted(api.bindings) == [("p", "n"), ("q", "n")]

    story(test)


def test_a_claim_that_is_allocated_elsewhere_is_allocated_anew():
    """[S3] PostFilter: nobody else uses it, so it is given up."""

    async def test(api, clock):
        await api.node("a")
        await api.node("b", unschedulable=True)
        await api.offer(a=["d0"], b=["d0"])
        there = {"key": "metadata.name", "operator": "In", "values": ["b"]}
        allocation = {
            "devices": {
                "results": [{"request": "r", "driver": DRIVER, "pool": "sb", "device": "d0"}]
            },
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [there]}]},
        }
        claim = resource_claim("c", ASKED, allocation=allocation)
        await api.create(RESOURCE_CLAIMS, claim, "default")
        await api.pod("p", resourceClaims=NAMED)
        await clock.sleep(0.1)
        assert "deallocation of ResourceClaim completed" in api.pod_scheduled("p")["message"]
        await clock.sleep(10)
        assert api.bindings == [("p", "a")]

    story(test)
