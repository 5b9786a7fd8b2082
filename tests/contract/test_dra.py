"""DRA on a node: a driver at a real socket, claims of an API in memory [H3, H4]."""

import asyncio
import json
import shutil
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.api.resources import RESOURCE_CLAIMS, RESOURCE_SLICES
from sampan.core.clock import SystemClock
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.mounts import unmount_below
from sampan.core.tasks import all_of
from sampan.drivers.dra.dra_driver import DraDriver
from sampan.drivers.dra.settings import NAME, DraSettings
from sampan.kubelet.contracts.resources_hook import ClaimFailure, GrantFailure
from sampan.kubelet.dra import dra_drivers
from tests.support.parts.pod_resources_client import PodResourcesClient
from tests.support.worlds.node_agent import NODE, Heard, node_agent
from tests.support.worlds.small_api import SmallApi

pytestmark = pytest.mark.slow


class World:
    def __init__(self, root):
        self.root, self.clock, self.heard = root, SystemClock(), Heard()
        self.api = SmallApi(self.clock)
        self.kubelet_root, self.cdi = root / "kubelet", root / "cdi"
        self.faults = root / "faults.json"
        self.plugins, self.pods = None, []

    @asynccontextmanager
    async def agent(self):
        root = str(self.kubelet_root)
        async with node_agent(self.api, root, self.clock, self.heard, lambda: self.pods) as plugins:
            self.plugins = plugins
            yield plugins

    @asynccontextmanager
    async def driver(self, place="one", **settings):
        settings = {"devices": 2, "faults": str(self.faults), **settings}
        driver = DraDriver(
            DraSettings(NODE, cdi_directory=str(self.cdi), **settings),
            lambda: self.api,
            str(self.kubelet_root / "plugins" / place / "dra.sock"),
            str(self.kubelet_root / "plugins_registry" / f"{place}.sock"),
            self.clock,
        )
        await driver.start()
        try:
            if self.plugins is not None:
                await until(lambda: NAME in self.plugins.dra_driver_names())
            yield driver
        finally:
            await driver.stop()

    async def claim(self, name, *devices, reserved=(), driver=NAME, **result):
        results = [
            {"driver": driver, "pool": NODE, "device": device, "request": "gpu", **result}
            for device in devices
        ]
        users = [{"resource": "pods", "name": uid, "uid": uid} for uid in reserved]
        status = {"allocation": {"devices": {"results": results}}, "reservedFor": users}
        made = {"metadata": {"name": name, "namespace": "shop"}, "spec": {}, "status": status}
        return await self.api.create(RESOURCE_CLAIMS, made, "shop")

    def specifications(self):
        return sorted(path.name for path in self.cdi.glob("*.json")) if self.cdi.exists() else []

    def checkpoint(self):
        written = json.loads((self.kubelet_root / "dra_manager_state").read_text())
        return json.loads(written["Data"])["ClaimInfoStateList"]

    def slices(self):
        return [item["spec"]["driver"] for item in self.api.objects(RESOURCE_SLICES)]


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


def pod(uid, *claims, requests=None):
    wanted = [{"name": name, **({"request": requests} if requests else {})} for name in claims]
    return {
        "metadata": {"name": uid, "namespace": "shop", "uid": uid},
        "spec": {
            "resourceClaims": [{"name": name, "resourceClaimName": name} for name in claims],
            "containers": [{"name": "c", "resources": {"claims": wanted}}, {"name": "other"}],
        },
    }


@pytest.fixture
def world():
    root = Path(tempfile.mkdtemp(prefix="sampan-dra-"))
    yield World(root)
    unmount_below(str(root))
    shutil.rmtree(root)


def told(world, story, **settings):
    async def run():
        await world.api.node(NODE)
        async with world.agent() as plugins, world.driver(**settings):
            await story(plugins)

    asyncio.run(run())


async def granted(plugins, pod, number=0):
    return (await plugins.resources.grants(pod, pod["spec"]["containers"][number])).cdi_devices


@pytest.mark.parametrize("version", ["v1.DRAPlugin", "v1beta1.DRAPlugin"])
def test_claims_are_prepared_given_and_unprepared(world, version):
    async def story(plugins):
        claim = await world.claim("one", "gpu-0", "gpu-1", reserved=["a"])
        uid, mine = claim["metadata"]["uid"], pod("a", "one")
        await plugins.resources.prepare(mine)
        names = [f"{NAME}/device={uid}-gpu-0", f"{NAME}/device={uid}-gpu-1"]
        assert list(await granted(plugins, mine)) == names
        assert await granted(plugins, mine, 1) == ()
        [said] = world.checkpoint()
        assert (said["ClaimName"], said["PodUIDs"]) == ("one", {"a": {}})
        assert said["DriverState"][NAME]["Devices"][0]["DeviceName"] == "gpu-0"
        assert world.specifications() == [f"{NAME}-{uid}.json"]
        await plugins.resources.unprepare("a")
        assert (world.specifications(), world.checkpoint()) == ([], [])

    told(world, story, versions=(version,))


def test_a_container_may_get_one_request_of_a_claim(world):
    async def story(plugins):
        await world.claim("one", "gpu-0", reserved=["a"])
        for request, count in (("gpu", 1), ("tpu", 0)):
            mine = pod("a", "one", requests=request)
            await plugins.resources.prepare(mine)
            assert len(await granted(plugins, mine)) == count

    told(world, story)


def test_pods_share_a_claim_and_the_last_one_gives_it_back(world):
    async def story(plugins):
        await world.claim("one", "gpu-0", reserved=["a", "b"])
        first, second = pod("a", "one"), pod("b", "one")
        await all_of(plugins.resources.prepare(each) for each in (first, second))
        assert await granted(plugins, first) == await granted(plugins, second)
        await plugins.resources.unprepare("a")
        assert len(world.specifications()) == 1
        assert world.checkpoint()[0]["PodUIDs"] == {"b": {}}
        await plugins.resources.unprepare("c")  # who never had it
        await plugins.resources.unprepare("b")
        assert world.specifications() == []

    told(world, story)


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        (None, 'fetch ResourceClaim one: resourceclaims.resource.k8s.io "one" not found'),
        ({"reserved": ["other"]}, "pod a (a) is not allowed to use ResourceClaim one ("),
        ({"reserved": ["a"], "driver": "other.example.com"},
         "DRA driver other.example.com is not registered"),
    ],
)  # fmt: skip
def test_what_cannot_be_prepared_is_said_in_upstreams_words(world, claim, why):
    async def story(plugins):
        if claim is not None:
            await world.claim("one", "gpu-0", **claim)
        with pytest.raises(ClaimFailure) as refused:
            await plugins.resources.prepare(pod("a", "one"))
        assert str(refused.value).startswith(f"prepare dynamic resources: {why}")
        assert world.specifications() == []

    told(world, story)


def test_a_claim_that_was_not_allocated_is_no_device(world):
    async def story(plugins):
        users = [{"resource": "pods", "name": "a", "uid": "a"}]
        made = {"metadata": {"name": "one", "namespace": "shop"}, "status": {"reservedFor": users}}
        await world.api.create(RESOURCE_CLAIMS, made, "shop")
        with pytest.raises(ClaimFailure, match="ResourceClaim one: not allocated"):
            await plugins.resources.prepare(pod("a", "one"))
        with pytest.raises(GrantFailure, match="unable to get claim info for ResourceClaim one"):
            await granted(plugins, pod("a", "one"))

    told(world, story)


def test_a_claim_made_for_another_pod_is_refused(world):
    async def story(plugins):
        await world.claim("one", "gpu-0", reserved=["a"])
        mine = pod("a", "one")
        mine["spec"]["resourceClaims"] = [{"name": "one", "resourceClaimTemplateName": "t"}]
        with pytest.raises(ClaimFailure, match='pod "shop/a": ResourceClaim not created yet'):
            await plugins.resources.prepare(mine)
        mine["status"] = {"resourceClaimStatuses": [{"name": "one", "resourceClaimName": "one"}]}
        with pytest.raises(
            ClaimFailure, match=r"was not created for pod shop/a \(pod is not owner"
        ):
            await plugins.resources.prepare(mine)
        mine["status"]["resourceClaimStatuses"] = [{"name": "one"}]  # none was needed
        await plugins.resources.prepare(mine)
        assert await granted(plugins, mine) == ()

    told(world, story)


def test_a_driver_that_fails_is_asked_again(world):
    async def story(plugins):
        await world.claim("one", "gpu-0", reserved=["a"])
        mine = pod("a", "one")
        fault = {"code": "INTERNAL", "message": "no power", "times": 1}
        for method in ("NodePrepareResources", "NodeUnprepareResources"):
            world.faults.write_text(json.dumps({method: fault}))
            work = (
                plugins.resources.prepare(mine)
                if "Prep" in method
                else (plugins.resources.unprepare("a"))
            )
            with pytest.raises(ClaimFailure, match=f"{method}.*no power"):
                await work
            if "NodePrep" in method:
                await plugins.resources.prepare(mine)
        await plugins.resources.unprepare("a")
        assert (world.specifications(), world.checkpoint()) == ([], [])

    told(world, story)


def test_the_next_agent_gives_back_what_pods_had_that_are_gone(world):
    """A driver that comes later is waited for."""

    async def story():
        await world.api.node(NODE)
        async with world.agent() as plugins, world.driver():
            await world.claim("one", "gpu-0", reserved=["a"])
            await world.claim("two", "gpu-1", reserved=["b"])
            for mine in (pod("a", "one"), pod("b", "two")):
                await plugins.resources.prepare(mine)
        world.plugins = None
        async with world.agent() as plugins:
            plugins.resources.keep_only({"b"}.__contains__)
            assert len(await granted(plugins, pod("b", "two"))) == 1
            async with world.driver():
                await until(lambda: len(world.checkpoint()) == 1)
                assert len(world.specifications()) == 1

    asyncio.run(story())


def test_while_a_driver_is_updated_two_of_it_are_registered(world):
    async def story(plugins):
        await world.claim("one", "gpu-0", reserved=["a"])
        async with world.driver("two", writes_status=True):
            await until(lambda: plugins.dra_driver_names() == [NAME, NAME])
            await plugins.resources.prepare(pod("a", "one"))
        await until(lambda: plugins.dra_driver_names() == [NAME])
        claim = world.api.find(RESOURCE_CLAIMS, "shop", "one")
        assert claim["status"]["devices"][0]["conditions"][0]["type"] == "Ready"
        await plugins.resources.unprepare("a")  # the one that stayed does it
        assert world.specifications() == []

    told(world, story)


def test_slices_of_a_driver_that_is_away_are_deleted(world, monkeypatch):
    monkeypatch.setattr(dra_drivers, "WIPING_SECONDS", 0.3)

    async def story():
        await world.api.node(NODE)
        left = {"metadata": {"name": "old"}, "spec": {"nodeName": NODE, "driver": "gone.example"}}
        other = {"metadata": {"name": "far"}, "spec": {"nodeName": "n2", "driver": "gone.example"}}
        for item in (left, other):
            await world.api.create(RESOURCE_SLICES, item)
        async with world.agent():
            await until(lambda: world.slices() == ["gone.example"])  # at the start
            async with world.driver():
                await until(lambda: NAME in world.slices())
                await asyncio.sleep(0.5)
                assert NAME in world.slices()
            await until(lambda: NAME not in world.slices())
        assert world.slices() == ["gone.example"]  # another node's

    asyncio.run(story())


def test_who_asks_is_told_who_has_what(world):
    """[H4]"""

    async def story(plugins):
        await world.claim("one", "gpu-0", reserved=["a"])
        mine = pod("a", "one")
        world.pods = [mine]
        await plugins.resources.prepare(mine)
        client = PodResourcesClient(str(world.kubelet_root / "pod-resources" / "kubelet.sock"))
        [listed] = await client.pods()
        assert (listed.name, listed.namespace) == ("a", "shop")
        [claim] = listed.containers[0].dynamic_resources
        assert (claim.claim_name, claim.claim_namespace) == ("one", "shop")
        [device] = claim.claim_resources
        assert (device.driver_name, device.pool_name, device.device_name) == (NAME, NODE, "gpu-0")
        assert device.cdi_devices[0].name.startswith(f"{NAME}/device=")
        assert (await client.pod("shop", "a")).containers[1].name == "other"
        with pytest.raises(GrpcFailure, match="pod x in namespace shop not found"):
            await client.pod("shop", "x")
        assert list((await client.allocatable()).cpu_ids) == []
        with pytest.raises(GrpcFailure, match="rejected by rate limit"):
            await all_of(client.pods() for _ in range(60))
        await client.close()

    told(world, story)


def test_the_health_of_a_claim_s_devices_is_told_where_that_is_on(world):
    """[H3]"""
    health = world.root / "health.json"
    health.write_text("{}")

    async def story(plugins):
        await world.claim("made-for-a", "gpu-0", reserved=["a"])
        mine = pod("a", "made-for-a", requests="r")
        entries = [{"name": "made-for-a", "resourceClaimName": "made-for-a"}]
        mine["status"] = {"resourceClaimStatuses": entries}
        await plugins.resources.prepare(mine)

        def told_of(name):
            return [(item["name"], *(found["health"] for found in item["resources"]))
                    for item in plugins.resources.health(mine, name)]  # fmt: skip

        assert told_of("other") == []
        await until(lambda: told_of("c") == [("claim:made-for-a/r", "Healthy")])
        world.heard.woken_pods.clear()
        health.write_text(json.dumps({"gpu-0": "Unhealthy"}))
        await until(lambda: told_of("c") == [("claim:made-for-a/r", "Unhealthy")])
        assert world.heard.woken_pods == ["a"]
        mine["status"] = {}  # as upstream: only of claims that were made for the pod
        assert told_of("c") == []

    with features.used(Release(gates={"ResourceHealthStatus": True})):
        told(world, story, health=str(health))
