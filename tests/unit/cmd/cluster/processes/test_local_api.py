"""The API on a unix socket: who a request is from, and what nobody may claim."""

import asyncio
import random
from contextlib import asynccontextmanager

import pytest

from sampan.api.errors import Forbidden, ServiceUnavailable, Unauthorized
from sampan.api.resources import CONFIG_MAPS, LEASES, NODES, PODS, SECRETS
from sampan.client.rest import Caller, RestClient
from sampan.cmd.cluster.processes.identities import new_secrets
from sampan.cmd.cluster.processes.local_api import (
    SERVER,
    SOCKET,
    LocalApi,
    LocalEdge,
    _PartCredentials,
)
from sampan.cmd.cluster.processes.local_sockets import address_of, listening_socket
from sampan.core.clock import SystemClock
from sampan.core.http.client import HttpClient
from sampan.core.http.server import Server
from tests.support.worlds.control_plane import ControlPlane

pytestmark = pytest.mark.slow
SECRETS_OF_PARTS = new_secrets()


@asynccontextmanager
async def listening(directory):
    """A control plane whose API is on a socket in the directory."""
    async with ControlPlane() as plane:
        edge = LocalEdge(plane.server, plane.server.handle_http, SECRETS_OF_PARTS)
        server = Server(edge.reply, wants_body=edge.wants_body)
        await server.start_on(listening_socket(directory, SOCKET))
        try:
            yield plane
        finally:
            await server.stop(1.0)


def local(directory, part, secret=None):
    return LocalApi(directory, part, secret or SECRETS_OF_PARTS[part], SystemClock())


def run(story, directory):
    async def main():
        async with asyncio.timeout(60), listening(directory) as plane:
            await story(plane)

    asyncio.run(main())


def test_a_part_acts_as_itself_and_is_authorized_as_that(tmp_path):
    async def story(plane):
        scheduler = local(tmp_path, "scheduler")
        client = scheduler.client_of("system:kube-scheduler")
        assert (await client.list(PODS)).items == []
        with pytest.raises(Forbidden, match='User "system:kube-scheduler"'):
            await client.list(SECRETS)
        await scheduler.close()

    run(story, tmp_path)


@pytest.mark.parametrize(
    ("part", "user", "secret"),
    [
        ("scheduler", "system:kube-controller-manager", None),
        ("scheduler", "kubernetes-admin", None),
        ("nodes", "system:kube-scheduler", None),
        ("scheduler", "system:kube-scheduler", "guessed"),
        ("scheduler", "", None),
    ],
)
def test_whoever_claims_to_be_another_is_nobody(tmp_path, part, user, secret):
    async def story(plane):
        api = local(tmp_path, part, secret)
        with pytest.raises(Unauthorized):
            await api.client_of(user).list(PODS)
        large = {"metadata": {"name": "x"}, "data": {"a": "b" * 200_000}}
        with pytest.raises((Unauthorized, ServiceUnavailable)):
            await api.client_of(user).create(CONFIG_MAPS, large, "default")
        await api.close()

    run(story, tmp_path)


def test_a_header_makes_nobody_a_part_where_the_listener_does_not_ask(tmp_path):
    """The same words on the ordinary way in."""

    async def story(plane):
        server = Server(plane.server.handle_http)
        await server.start_on(listening_socket(tmp_path, "other.sock"))
        http = HttpClient(unix_path=address_of(tmp_path, "other.sock"))
        word = _PartCredentials(SECRETS_OF_PARTS["scheduler"], "system:kube-scheduler")
        client = RestClient(http, SERVER, Caller(word), clock=SystemClock(), rng=random.Random())
        with pytest.raises(Unauthorized):
            await client.list(PODS)
        await http.close()
        await server.stop(1.0)

    run(story, tmp_path)


def test_watches_and_writes_of_a_node(tmp_path):
    async def story(plane):
        api = local(tmp_path, "nodes")
        client = api.client_of("system:node:a")
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
        made = await client.create(NODES, node)
        watch = client.watch(NODES, revision=int(made["metadata"]["resourceVersion"]) - 1,
                             field_selector="metadata.name=a")  # fmt: skip
        event = await anext(watch)
        assert (event.type, event.object["metadata"]["uid"]) == ("ADDED", made["metadata"]["uid"])
        await watch.aclose()
        with pytest.raises(Forbidden):
            await client.create(NODES, {**node, "metadata": {"name": "b"}})
        await api.close()

    run(story, tmp_path)


def test_leases_are_renewed_together_for_nodes_only(tmp_path):
    async def story(plane):
        api = local(tmp_path, "nodes")
        assert set(await api.renew({"a": "2026-01-01T00:00:00.000000Z"})) == {"a"}, "it has none"
        other = local(tmp_path, "scheduler")
        client = other.client_of("system:kube-scheduler")
        with pytest.raises(Exception, match=r"could not find|forbidden|not allowed"):
            await client.post_path("/sampan/v1/lease-renewals", {"a": "x"})
        await api.close()
        await other.close()

    run(story, tmp_path)


def test_nodes_are_registered_together_for_nodes_only(tmp_path):
    async def story(plane):
        api = local(tmp_path, "nodes")
        client = api.client_of("system:node:a")
        meta, spec = {"name": "a"}, {"holderIdentity": "a", "leaseDurationSeconds": 40}
        await client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta}
        await client.create(LEASES, {**lease, "spec": spec}, "kube-node-lease")
        assert list(await api.register("a", {"b": ["10.0.0.2"]})) == []
        other = local(tmp_path, "scheduler")
        client = other.client_of("system:kube-scheduler")
        body = {"pattern": "a", "addresses": {"c": ["10.0.0.3"]}}
        with pytest.raises(Exception, match=r"could not find|forbidden|not allowed"):
            await client.post_path("/sampan/v1/nodes", body)
        names = [node["metadata"]["name"] for node in (await plane.client.list(NODES)).items]
        assert names == ["a", "b"]
        await api.close()
        await other.close()

    run(story, tmp_path)


def test_nodes_tell_together_that_they_are_well_and_nobody_else_does(tmp_path):
    async def story(plane):
        api = local(tmp_path, "nodes")
        meta = {"name": "a", "labels": {"disk": "ssd"}}
        status = {"conditions": [{"type": "Ready", "status": "True"}]}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}
        await api.client_of("system:node:a").create(NODES, node)
        images = [{"names": ["registry.example/app:1"], "sizeBytes": 1}]
        assert set(await api.report({"a": images, "gone": None})) == {"gone"}
        shown = await plane.client.get(NODES, "", "a")
        assert shown["status"]["images"] == images
        managers = {entry["manager"] for entry in shown["metadata"]["managedFields"]}
        assert managers == {"sampan-kubelet"}, "as its own writes"
        other = local(tmp_path, "scheduler")
        with pytest.raises(Exception, match=r"could not find|forbidden|not allowed"):
            await other.client_of("system:kube-scheduler").post_path(
                "/sampan/v1/node-reports", {"a": None}
            )
        await api.close()
        await other.close()

    run(story, tmp_path)


def test_leases_of_a_server_that_is_away_are_the_nodes_own_affair(tmp_path):
    async def story():
        api = local(tmp_path, "nodes")
        assert set(await api.renew({"a": "t", "b": "t"})) == {"a", "b"}
        await api.close()

    asyncio.run(story())
