"""Whoever goes away in the middle of a request leaves nothing behind, wherever that was."""

import asyncio
import base64

import orjson
import pytest

from sampan.api.resources import CONFIG_MAPS, NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS, SERVICES
from sampan.apiserver.audit.sinks import AuditFile
from sampan.apiserver.authn.user import component
from sampan.apiserver.flow.in_flight import InFlight
from sampan.apiserver.registry import reads
from sampan.apiserver.registry.services.service_claims import IP_ADDRESSES, PORTS_KEY
from sampan.apiserver.settings import ApiServerSettings
from sampan.client.inprocess import InProcessClient
from sampan.core.clock import SystemClock
from sampan.core.http.messages import Response, Stream
from sampan.core.tasks import Tasks, all_of
from tests.support.generators.api_requests import MERGE, api_server, pod, request
from tests.support.parts.hesitant_store import HesitantStore
from tests.support.worlds.control_plane import published_schema

HOME = "/api/v1/namespaces/home"
BINDING = {
    "metadata": {"name": "developers"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                "name": "cluster-admin"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "dev"}],
}  # fmt: skip
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [{"level": "Metadata"}],
}
QUOTA = {"metadata": {"name": "all"}, "spec": {"hard": {"pods": "9", "services": "9"}}}


def service(name, port=80, kind="NodePort"):
    ports = [{"port": port}]
    return {"metadata": {"name": name}, "spec": {"type": kind, "ports": ports}}


class CancelledAt:
    """Runs work, and cancels it where it waits for the `step`th time."""

    def __init__(self, work, step):
        self._work, self._step, self.reached = work, step, False

    def __await__(self):
        steps, count = self._work.__await__(), 0
        give = steps.send, None
        while True:
            try:
                waiting = give[0](give[1])
            except StopIteration as end:
                return end.value
            count += 1
            if count == self._step:
                self.reached = True
                asyncio.current_task().cancel()
            try:
                yield waiting
            except BaseException as error:
                give = steps.throw, error
            else:
                give = steps.send, None


class World:
    def __init__(self, api, audit_log):
        self.api, self._audit_log = api, audit_log
        self.uncounted = False  # there were deletions, which a controller counts

    async def prepare(self):
        await self.api.made("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", BINDING)
        await self.api.made("/api/v1/namespaces", {"metadata": {"name": "home"}})
        await self.api.made(f"{HOME}/resourcequotas", QUOTA)
        await self.api.made(f"{HOME}/services", service("kept"))
        await self.api.made(f"{HOME}/pods", pod("kept"))

    async def answer(self, method, path, body=None, headers=None):
        """As a server does: a stream is read once, and closed whatever happens."""
        asked = request(method, path, body, "ann", "dev", headers)
        reply = await self.api.server.handle_http(asked)
        if isinstance(reply, Stream):
            try:
                await anext(reply.chunks, None)
            finally:
                await reply.chunks.aclose()
        elif isinstance(reply, Response) and reply.sent is not None:
            reply.sent()

    async def cancel_everywhere(self, prepare, method, path, body=None, headers=None):
        """How many places there were."""
        step = 0
        while True:
            step += 1
            await prepare()
            work = CancelledAt(self.answer(method, path, body, headers), step)
            task = asyncio.get_running_loop().create_task(_awaited(work))
            await asyncio.wait([task])
            if not work.reached:
                assert not task.cancelled()
                task.result()
                return step - 1
            assert task.cancelled(), f"step {step}: the cancellation was swallowed"
            await self.check(f"{method} {path} cancelled at step {step}")

    async def check(self, where):
        server = self.api.server
        registry, cache = server._registry, server._cache
        services, pods = (
            [one for one in registry.find_all(kind) if one["metadata"]["namespace"] == "home"]
            for kind in (SERVICES, PODS)
        )
        if self.uncounted:
            await self.recount()
        quota = (await self.api.get(f"{HOME}/resourcequotas/all")).obj["status"]["used"]
        assert quota == {"pods": str(len(pods)), "services": str(len(services))}, where
        everywhere = registry.find_all(SERVICES)
        addresses = {one["metadata"]["name"] for one in registry.find_all(IP_ADDRESSES)}
        assert addresses == {one["spec"]["clusterIP"] for one in everywhere}, where
        ports = {port["nodePort"] for one in services for port in one["spec"]["ports"]
                 if "nodePort" in port}  # fmt: skip
        record = await self.api.store.get(PORTS_KEY)
        taken = int.from_bytes(base64.b64decode(orjson.loads(record.value)["data"]))
        assert taken == sum(1 << (port - 30000) for port in ports), where
        assert cache._handed == {}, where
        assert cache._waiting == [], where
        assert self.watchers() == self.watchers_before, where
        limit = server._edge._limit
        if isinstance(limit, InFlight):
            assert limit.now == [0, 0], where
        else:
            assert {level.in_use + level.queued for level in limit._levels.values()} == {0}, where

    async def recount(self):
        """What deletions free is counted by a controller, later; here at once."""
        path = f"{HOME}/resourcequotas/all/status"
        counted = await self.api.send(
            "PATCH", path, {"status": {}}, user="system:kube-controller-manager",
            headers={"content-type": MERGE},
        )  # fmt: skip
        assert counted.status == 200

    def watchers(self):
        return sum(kind.watcher_count() for kind in self.api.server._cache._kinds.values())

    def stages(self):
        lines = self._audit_log.read_bytes().splitlines()
        found = {}
        for event in map(orjson.loads, lines):
            found.setdefault(event["auditID"], []).append(event)
        return found.values()


async def _awaited(work):
    return await work


@pytest.fixture(params=["sqlite", "hesitant"])
def run(tmp_path, request):
    """On SQLite with priority and fairness, on the other store with the plain counters."""

    def _run(story):
        async def main():
            settings = ApiServerSettings(
                audit_policy=POLICY,
                request_seats=600 if request.param == "sqlite" else 0,
                audit_file=AuditFile(str(tmp_path / "audit.log")),
            )
            clock = SystemClock()
            store = f"sqlite:///{tmp_path / 'store'}"
            if request.param == "hesitant":
                store = HesitantStore(clock)
            async with api_server(published_schema(), store, settings, clock) as api:
                world = World(api, tmp_path / "audit.log")
                await world.prepare()
                await world.answer("GET", f"{HOME}/pods/kept")
                world.watchers_before = world.watchers()
                await story(world)
            for events in world.stages():
                assert [one["stage"] for one in events][-1] == "ResponseComplete", events

        asyncio.run(main())

    return _run


async def nothing():
    return None


def test_a_create_is_cancelled_at_every_await(run):
    async def story(world):
        async def gone():
            await world.api.delete(f"{HOME}/services/new")
            await world.api.delete(f"{HOME}/pods/new?gracePeriodSeconds=0")
            await world.recount()
            await world.check("prepared")

        assert await world.cancel_everywhere(gone, "POST", f"{HOME}/services", service("new")) > 3
        assert await world.cancel_everywhere(gone, "POST", f"{HOME}/pods", pod("new")) > 1

    run(story)


def test_a_namespace_has_what_comes_with_it_wherever_its_create_was_cancelled(run):
    async def story(world):
        async def check(_where):
            found = world.api.server._registry.find(NAMESPACES, "", "new")
            contents = [
                world.api.server._registry.find(kind, "new", name)
                for kind, name in ((SERVICE_ACCOUNTS, "default"), (CONFIG_MAPS, "kube-root-ca.crt"))
            ]
            assert [one is not None for one in contents] == [found is not None] * 2

        async def gone():
            for kind, name in (("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")):
                await world.api.delete(f"/api/v1/namespaces/new/{kind}/{name}")
            path = "/api/v1/namespaces/new"
            if (await world.api.delete(path)).status == 200:
                await world.api.put(f"{path}/finalize", {"metadata": {"name": "new"}, "spec": {}})
            assert (await world.api.get(path)).status == 404

        world.check = check
        body = {"metadata": {"name": "new"}}
        assert await world.cancel_everywhere(gone, "POST", "/api/v1/namespaces", body) > 1

    run(story)


def test_an_update_is_cancelled_at_every_await(run):
    async def story(world):
        async def one_port():
            reply = await world.api.put(f"{HOME}/services/kept", service("kept", kind="ClusterIP"))
            assert reply.status == 200
            await world.check("prepared")

        more = service("kept", port=81)
        more["spec"]["ports"] += [{"name": "b", "port": 82}, {"name": "c", "port": 83}]
        more["spec"]["ports"][0]["name"] = "a"
        path = f"{HOME}/services/kept"
        assert await world.cancel_everywhere(one_port, "PUT", path, more) > 1
        merge = {"content-type": MERGE}
        patch = {"spec": {"type": "NodePort"}}
        assert await world.cancel_everywhere(one_port, "PATCH", path, patch, merge) > 1
        apply = {"apiVersion": "v1", "kind": "Service", **service("applied")}
        headers = {"content-type": "application/apply-patch+yaml"}

        async def not_applied():
            await world.api.delete(f"{HOME}/services/applied")
            await world.recount()

        path = f"{HOME}/services/applied?fieldManager=me"
        assert await world.cancel_everywhere(not_applied, "PATCH", path, apply, headers) > 3

    run(story)


def test_a_delete_is_cancelled_at_every_await(run):
    async def story(world):
        async def there():
            await world.recount()
            await world.api.post(f"{HOME}/services", service("new"))
            await world.api.post(f"{HOME}/pods", pod("new"))
            await world.recount()
            world.uncounted = True

        for path in ("services/new", "pods/new?gracePeriodSeconds=0", "services"):
            assert await world.cancel_everywhere(there, "DELETE", f"{HOME}/{path}") > 0, path
            await world.api.post(f"{HOME}/services", service("kept"))

    run(story)


@pytest.mark.parametrize(
    "query",
    ["", "?resourceVersion=0", "?limit=1", "?resourceVersion=999999999", "?watch=1",
     "?watch=1&resourceVersion=0", "?watch=1&resourceVersion=999999999&timeoutSeconds=1",
     "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
     "?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=nobody"],
)  # fmt: skip
def test_a_list_and_a_watch_are_cancelled_at_every_await(run, query, monkeypatch):
    monkeypatch.setattr(reads, "FUTURE_WAIT_SECONDS", 0.05)

    async def story(world):
        async def behind():
            """A write is under way: whoever reads has to wait for it."""
            patch = {"metadata": {"labels": {"now": str(len(writes))}}}
            writes.append(tasks.start("write", world.api.patch(f"{HOME}/pods/kept", patch)))
            await asyncio.sleep(0)

        async def check(where):
            await all_of(_awaited(write) for write in writes)
            await World.check(world, where)

        writes, tasks, world.check = [], Tasks("test"), check
        await world.cancel_everywhere(behind, "GET", f"{HOME}/pods{query}")
        await check(query)

    run(story)


def test_calls_inside_the_process_are_noted_to_their_end_too(run):
    async def story(world):
        client = InProcessClient(world.api.server.as_user(component("system:node:n")))
        step = reached = True
        for step in range(1, 20):
            work = CancelledAt(client.create(NODES, {"metadata": {"name": "n"}}), step)
            task = asyncio.get_running_loop().create_task(_awaited(work))
            await asyncio.wait([task])
            reached = work.reached
            await world.api.delete("/api/v1/nodes/n")
            await world.check(f"step {step}")
            if not reached:
                break
        assert step > 1
        assert not reached

    run(story)
