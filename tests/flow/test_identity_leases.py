"""Leases of API servers that share a store. [E3]"""

import asyncio

from sampan.api import features
from sampan.api.features import Release
from sampan.api.resources import LEASES as LEASES_ROW
from sampan.apiserver.server import ApiServer
from sampan.apiserver.settings import ApiServerSettings
from sampan.apiserver.write.identity_lease import identity
from sampan.core.metrics import Metrics
from sampan.store.memory import MemoryStore
from tests.support import virtual_time
from tests.support.generators.api_requests import api_server
from tests.support.virtual_time import LoopClock
from tests.support.worlds.control_plane import published_schema

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class Shared(MemoryStore):
    shared = True


def run(story, hostname="vm", of=Shared):
    async def main():
        settings, clock = ApiServerSettings(hostname=hostname), LoopClock()
        store = of(clock)
        async with api_server(published_schema(), store, settings, clock) as api:
            keeping = asyncio.get_running_loop().create_task(api.server.keep_repaired())
            await story(api)
            keeping.cancel()

    virtual_time.run(main())


async def leases(api):
    return {item["metadata"]["name"]: item for item in (await api.get(LEASES)).obj["items"]}


def test_a_server_is_known_by_the_hash_of_its_machine():
    """As an original v1.35.8 on a machine of this name called itself."""
    assert identity("vm") == "apiserver-wlv32tlttr4jl3gtroqexyxapa"


def test_a_lease_says_who_it_is_and_is_renewed():
    async def story(api):
        (first,) = (await leases(api)).values()
        assert first["metadata"]["name"] == identity("vm")
        assert first["metadata"]["labels"] == {
            "apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": "vm"
        }  # fmt: skip
        assert first["spec"]["holderIdentity"].startswith(f"{identity('vm')}_")
        assert first["spec"]["leaseDurationSeconds"] == 3600
        assert {one["manager"] for one in first["metadata"]["managedFields"]} == {"kube-apiserver"}
        await asyncio.sleep(11)
        (second,) = (await leases(api)).values()
        assert second["spec"]["renewTime"] > first["spec"]["renewTime"]
        assert second["spec"]["holderIdentity"] == first["spec"]["holderIdentity"]
        await api.delete(f"{LEASES}/{identity('vm')}")
        await asyncio.sleep(11)
        assert list(await leases(api)) == [identity("vm")]

    run(story)


def test_leases_of_servers_that_have_ended_are_removed():
    async def story(api):
        now = (await leases(api))[identity("vm")]["spec"]["renewTime"]
        server = {"apiserver.kubernetes.io/identity": "kube-apiserver"}
        for name, labels, spec in (
            ("gone", server, {"renewTime": now, "leaseDurationSeconds": 60}),
            ("timeless", server, {}),
            ("there", server, {"renewTime": now, "leaseDurationSeconds": 7200}),
            ("another", {}, {"renewTime": now, "leaseDurationSeconds": 60}),
        ):
            await api.made(LEASES, {"metadata": {"name": name, "labels": labels}, "spec": spec})
        await asyncio.sleep(3601)
        assert set(await leases(api)) == {"another", "there", identity("vm")}

    run(story)


def test_without_the_gate_or_alone_there_is_none():
    async def story(api):
        assert await leases(api) == {}

    run(story, hostname="")
    with features.used(Release(gates={"APIServerIdentity": False})):
        run(story)
    run(story, of=MemoryStore)


def test_an_orderly_stop_takes_the_lease_away():
    async def main():
        clock = LoopClock()
        store = Shared(clock)
        settings = ApiServerSettings(hostname="vm")
        server = ApiServer(store, published_schema(), settings, clock, Metrics())
        await server.start()
        key = f"{LEASES_ROW.storage_prefix}kube-system/{identity('vm')}"
        assert await store.get(key) is not None
        await server.stop()
        assert await store.get(key) is None
        await store.close()

    virtual_time.run(main())
