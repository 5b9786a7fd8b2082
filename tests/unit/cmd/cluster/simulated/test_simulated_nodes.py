"""Many simulated nodes: an agent is there for a node that has something to do."""

import asyncio
import io
import random
import ssl

import pytest

from sampan.api.resources import LEASES, NODES, PODS
from sampan.apiserver.authn.user import component
from sampan.client.inprocess import InProcessClient
from sampan.cmd.cluster.nodes import NodeIdentity, Together
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.simulated.simulated_nodes import SimulatedNodes
from sampan.cmd.settings import NodeChoices, UpSettings
from sampan.core.http.origin import Origin
from sampan.kubelet.simulated.idle_nodes import AGENTS_AT_ONCE
from tests.support.worlds.control_plane import story
from tests.support.worlds.simulated_node import pod_named

pytestmark = pytest.mark.slow
COUNT = 40
LIFECYCLE = ["node-lifecycle-controller"]


class Nodes:
    """`async with Nodes(plane) as nodes`: started, on the plane's API."""

    def __init__(self, plane, folder, register=None, clock="real", reports=True, **choices):
        self.plane = plane
        settings = UpSettings(
            data_dir=str(folder),
            runtime="simulated",
            nodes=COUNT,
            clock=clock,
            node=NodeChoices(**choices),
        )
        progress = Progress(io.StringIO(), plane.clock)
        identity = NodeIdentity("here", ("10.0.0.1",))
        self.nodes = SimulatedNodes(settings, identity, progress, plane.clock, random.Random(1))
        together = Together(
            plane.server.renew_leases,
            register or plane.server.register_nodes,
            plane.server.report_nodes if reports else None,
        )
        self.nodes.act_together(together)

    async def __aenter__(self):
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        await self.nodes.start(self._client_of, self.plane.metrics, tls)
        return self

    async def __aexit__(self, *_):
        await self.nodes.stop()

    def _client_of(self, user):
        return InProcessClient(self.plane.server.as_user(component(user)))

    @property
    def agents(self):
        return set(self.nodes.runtimes)

    @property
    def kept(self):
        return self.nodes._idle

    def agent(self, node):
        return self.nodes._kubelets[node]


async def bound_pod(plane, name, node):
    await plane.client.create(PODS, pod_named(name, node_name=node), "default")


async def ready(plane):
    found = set()
    for node in (await plane.client.list(NODES)).items:
        conditions = {each["type"]: each["status"] for each in node["status"]["conditions"]}
        if conditions["Ready"] == "True" and not node["spec"].get("taints"):
            found.add(node["metadata"]["name"])
    return found


@story(LIFECYCLE)
async def test_all_are_ready_and_two_have_agents_one_of_them_as_the_pattern(plane):
    async with Nodes(plane, "unused") as nodes:
        assert len(await ready(plane)) == COUNT
        assert nodes.agents == {"node-00", "node-01"}
        await plane.clock.sleep(600)
        assert len(await ready(plane)) == COUNT, "their leases are renewed"
        shown = await plane.client.get(NODES, "", "node-20")
        alive = shown["status"]["conditions"][-1]["lastHeartbeatTime"]
        assert alive > shown["metadata"]["creationTimestamp"], "their statuses are told again"
        assert nodes.agents == {"node-00", "node-01"}


@story(LIFECYCLE)
async def test_a_pod_brings_its_node_an_agent_which_runs_it(plane):
    async with Nodes(plane, "unused") as nodes:
        await bound_pod(plane, "web", "node-30")
        await plane.clock.sleep(5)
        pod = await plane.client.get(PODS, "default", "web")
        assert pod["status"]["phase"] == "Running"
        assert nodes.agents == {"node-00", "node-01", "node-30"}
        await plane.clock.sleep(300)
        assert "node-30" in await ready(plane)


@story(LIFECYCLE)
async def test_nodes_of_an_earlier_start_are_taken_as_they_are(plane):
    async with Nodes(plane, "unused"):
        await bound_pod(plane, "web", "node-30")
        await plane.clock.sleep(120)  # its image is in the node's status by then
    patch = {"metadata": {"labels": {"mine": "yes"}}}
    await plane.client.patch(NODES, "", "node-10", patch, patch_type="merge")
    wrong = {"metadata": {"labels": {"kubernetes.io/os": "plan9"}}}
    await plane.client.patch(NODES, "", "node-11", wrong, patch_type="merge")
    before = {each["metadata"]["name"]: each for each in (await plane.client.list(NODES)).items}
    async with Nodes(plane, "unused") as nodes:
        await plane.clock.sleep(5)
        assert nodes.agents == {"node-00", "node-01", "node-11"}, "whose pods go on needs none"
        after = {each["metadata"]["name"]: each for each in (await plane.client.list(NODES)).items}
        changed = {name for name in after if after[name] != before[name]}
        assert changed == {"node-11"}
        assert after["node-11"]["metadata"]["labels"]["kubernetes.io/os"] == "linux"


@story(LIFECYCLE)
async def test_pods_of_an_earlier_start_go_on_until_something_happens_on_their_node(plane):
    """with 150 000 of them nobody waits for thousands of agents"""
    async with Nodes(plane, "unused"):
        for name in ("stays", "goes"):
            await bound_pod(plane, name, "node-30")
        await plane.clock.sleep(120)
        before = await plane.client.get(PODS, "default", "stays")
        assert before["status"]["phase"] == "Running"
    async with Nodes(plane, "unused") as nodes:
        await plane.clock.sleep(600)
        assert "node-30" not in nodes.agents
        assert "node-30" in await ready(plane)
        assert await plane.client.get(PODS, "default", "stays") == before
        await plane.client.delete(PODS, "default", "goes")
        await bound_pod(plane, "comes", "node-30")
        await plane.clock.sleep(60)
        left = {each["metadata"]["name"]: each for each in (await plane.client.list(PODS)).items}
        assert left.keys() == {"stays", "comes"}
        assert left["stays"] == before, "its container is the same, and nothing was told of it"
        assert left["comes"]["status"]["phase"] == "Running"
        taken = {each["status"]["podIP"] for each in left.values()}
        assert len(taken) == 2, "an address of before is not given again"
        await plane.clock.sleep(1)
        assert "node-30" in nodes.agents


@story(LIFECYCLE)
async def test_pods_that_need_care_have_an_agent_from_the_start(plane):
    scripted = pod_named("ends", node_name="node-30")
    scripted["metadata"]["annotations"] = {"simulated.sampan.dev/exit-after-seconds": "900"}
    probed = pod_named("probed", node_name="node-31")
    probed["spec"]["containers"][0]["readinessProbe"] = {"exec": {"command": ["true"]}}
    async with Nodes(plane, "unused"):
        for pod in (scripted, probed):
            await plane.client.create(PODS, pod, "default")
        await plane.clock.sleep(120)
    async with Nodes(plane, "unused") as nodes:
        await plane.clock.sleep(1)
        assert nodes.agents >= {"node-30", "node-31"}
        await plane.clock.sleep(900)
        pod = await plane.client.get(PODS, "default", "ends")
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 1


@story(LIFECYCLE)
async def test_where_machines_go_down_in_order_each_with_pods_has_an_agent(plane):
    async with Nodes(plane, "unused"):
        await bound_pod(plane, "web", "node-30")
        await plane.clock.sleep(120)
    async with Nodes(plane, "unused", shutdown_seconds=30.0) as nodes:
        await plane.clock.sleep(1)
        assert "node-30" in nodes.agents


@story(LIFECYCLE)
async def test_thousands_that_need_an_agent_at_once_get_them_some_at_a_time(plane):
    async with Nodes(plane, "unused") as nodes:
        idle = sorted({f"node-{number:02d}" for number in range(COUNT)} - nodes.agents)
        for name in idle:
            nodes.kept.run_pods(name)
        seen, turns = len(nodes.agents), []
        while len(nodes.agents) < COUNT:
            await asyncio.sleep(0)
            turns.append(len(nodes.agents) - seen)
            seen = len(nodes.agents)
        assert max(turns) <= AGENTS_AT_ONCE


@story(LIFECYCLE)
async def test_what_others_write_into_its_status_is_answered(plane):
    async with Nodes(plane, "unused"):
        conditions = [{"type": "Ready", "status": "Unknown", "reason": "Rumour"}]
        patch = {"status": {"conditions": conditions}}
        await plane.client.patch(NODES, "", "node-20", patch, subresource="status")
        await plane.clock.sleep(30)
        assert "node-20" in await ready(plane)


@story(LIFECYCLE)
async def test_one_that_somebody_deleted_registers_again(plane):
    async with Nodes(plane, "unused"):
        await plane.client.delete(NODES, "", "node-20")
        await plane.client.delete(LEASES, "kube-node-lease", "node-20")
        await plane.clock.sleep(400)
        assert "node-20" in await ready(plane)


@story(LIFECYCLE)
async def test_one_whose_machine_is_gone_says_nothing_more(plane):
    async with Nodes(plane, "unused") as nodes:
        await nodes.nodes.kill("node-20")
        await nodes.nodes.kill("node-00")
        await plane.clock.sleep(120)
        gone = {f"node-{number:02d}" for number in range(COUNT)} - await ready(plane)
        assert gone == {"node-00", "node-20"}


@story(LIFECYCLE)
async def test_those_that_cannot_register_together_do_so_by_themselves(plane):
    async def left(_pattern, addresses):
        return addresses.keys()

    async with Nodes(plane, "unused", left) as nodes:
        await plane.clock.sleep(5)
        assert len(await ready(plane)) == len(nodes.agents) == COUNT


@story(LIFECYCLE)
async def test_who_asks_an_idle_node_finds_an_agent_there(plane):
    async with Nodes(plane, "unused") as nodes:
        shown = await plane.client.get(NODES, "", "node-20")
        address = shown["status"]["addresses"][0]["address"]
        place = await nodes.nodes.place_of(Origin("https", address, 10250))
        assert place.host == "127.0.0.1"
        assert "node-20" in nodes.agents


async def renewals(plane):
    """By node: when its lease was renewed."""
    listed = (await plane.client.list(LEASES, "kube-node-lease")).items
    return {each["metadata"]["name"]: each["spec"]["renewTime"] for each in listed}


@story([])
async def test_where_time_is_virtual_leases_are_renewed_when_somebody_reads_them(plane):
    nodes = Nodes(plane, "unused", clock="virtual")
    leases = nodes.nodes.leases_on_demand()
    async with nodes:
        before = await renewals(plane)
        assert len(before) == COUNT
        await plane.clock.sleep(1000)
        assert await renewals(plane) == before, "nobody has read them"
        await leases.renew()
        after = await renewals(plane)
        assert {name for name in after if after[name] > before[name]} == set(before)
        assert nodes.agents == {"node-00", "node-01"}


@story([])
async def test_where_time_is_virtual_an_idle_node_counts_as_alive_until_it_is_killed(plane):
    nodes = Nodes(plane, "unused", clock="virtual")
    leases = nodes.nodes.leases_on_demand()
    async with nodes:
        assert nodes.nodes.attends("node-20")
        assert nodes.nodes.attends("node-00")
        await nodes.nodes.kill("node-20")
        assert not nodes.nodes.attends("node-20")
        last = (await renewals(plane))["node-20"]
        await plane.clock.sleep(100)
        await leases.renew()
        assert (await renewals(plane))["node-20"] == last


async def image_names(plane, node):
    shown = await plane.client.get(NODES, "", node)
    return [name for image in shown["status"].get("images") or () for name in image["names"]]


@story(LIFECYCLE)
async def test_one_with_pods_is_kept_with_the_idle_ones_and_tells_of_its_image(plane):
    async with Nodes(plane, "unused") as nodes:
        await bound_pod(plane, "web", "node-30")
        await plane.clock.sleep(5)
        assert len(nodes.agent("node-30")._tasks) == 0
        assert not await image_names(plane, "node-30")
        await plane.clock.sleep(120)
        assert "node-30" in nodes.kept
        assert any("app" in name for name in await image_names(plane, "node-30"))
        await plane.clock.sleep(600)
        assert "node-30" in nodes.kept, "what was told of it is nothing that others wrote"
        assert "node-30" in await ready(plane)


@story(LIFECYCLE)
async def test_where_they_cannot_tell_it_together_each_tells_of_itself_and_its_image(plane):
    async with Nodes(plane, "unused", reports=False) as nodes:
        await bound_pod(plane, "web", "node-30")
        await plane.clock.sleep(400)
        assert any("app" in name for name in await image_names(plane, "node-30"))
        for name in ("node-20", "node-30"):
            shown = await plane.client.get(NODES, "", name)
            alive = shown["status"]["conditions"][-1]["lastHeartbeatTime"]
            assert alive > shown["metadata"]["creationTimestamp"]
            assert name in nodes.kept


@story(LIFECYCLE)
async def test_one_with_pods_sees_a_container_end_and_a_pod_deleted(plane):
    async with Nodes(plane, "unused") as nodes:
        await bound_pod(plane, "web", "node-30")
        await plane.clock.sleep(5)
        runtime = nodes.nodes.runtimes["node-30"]
        runtime.crash(next(iter(runtime.table.containers)))
        await plane.clock.sleep(60)
        pod = await plane.client.get(PODS, "default", "web")
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
        assert "running" in pod["status"]["containerStatuses"][0]["state"]
        await plane.client.delete(PODS, "default", "web")
        await plane.clock.sleep(60)
        assert not (await plane.client.list(PODS, "default")).items
        assert "node-30" in nodes.kept


@story(LIFECYCLE)
async def test_one_with_pods_answers_what_others_write_into_its_status(plane):
    async with Nodes(plane, "unused") as nodes:
        await bound_pod(plane, "web", "node-30")
        await plane.clock.sleep(5)
        conditions = [{"type": "Ready", "status": "Unknown", "reason": "Rumour"}]
        patch = {"status": {"conditions": conditions}}
        await plane.client.patch(NODES, "", "node-30", patch, subresource="status")
        await plane.clock.sleep(30)
        assert "node-30" in await ready(plane)
        assert "node-30" not in nodes.kept
        pod = await plane.client.get(PODS, "default", "web")
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


@story(LIFECYCLE)
async def test_one_with_pods_that_somebody_deleted_registers_again(plane):
    async with Nodes(plane, "unused"):
        await bound_pod(plane, "web", "node-30")
        await plane.clock.sleep(5)
        await plane.client.delete(NODES, "", "node-30")
        await plane.client.delete(LEASES, "kube-node-lease", "node-30")
        await plane.clock.sleep(400)
        assert "node-30" in await ready(plane)


@story(LIFECYCLE)
async def test_one_with_pods_whose_machine_is_gone_says_nothing_more(plane):
    async with Nodes(plane, "unused") as nodes:
        await bound_pod(plane, "web", "node-30")
        await plane.clock.sleep(5)
        await nodes.nodes.kill("node-30")
        await plane.clock.sleep(120)
        assert "node-30" not in await ready(plane)


@story(LIFECYCLE)
async def test_one_with_pods_whose_runtime_is_down_is_not_ready_until_it_is_back(plane):
    async with Nodes(plane, "unused") as nodes:
        await bound_pod(plane, "web", "node-30")
        await plane.clock.sleep(5)
        nodes.nodes.runtimes["node-30"].go_down("gone")
        await plane.clock.sleep(30)
        assert "node-30" not in await ready(plane)
        nodes.nodes.runtimes["node-30"].come_back()
        await plane.clock.sleep(60)
        assert "node-30" in await ready(plane)


@story(LIFECYCLE)
async def test_who_asks_a_node_with_pods_finds_the_agent_that_runs_them(plane):
    async with Nodes(plane, "unused") as nodes:
        await bound_pod(plane, "web", "node-30")
        await plane.clock.sleep(300)
        agent = nodes.agent("node-30")
        shown = await plane.client.get(NODES, "", "node-30")
        address = shown["status"]["addresses"][0]["address"]
        await nodes.nodes.place_of(Origin("https", address, 10250))
        await plane.clock.sleep(5)
        assert nodes.agent("node-30") is agent
        assert agent.healthy() == ""
        assert "node-30" in nodes.kept
        assert [pod["metadata"]["name"] for pod in agent.pods()] == ["web"]


@story(LIFECYCLE)
async def test_one_with_pods_says_that_it_shuts_down(plane):
    async with Nodes(plane, "unused", shutdown_seconds=10.0):
        await bound_pod(plane, "web", "node-30")
        await plane.clock.sleep(5)
    shown = await plane.client.get(NODES, "", "node-30")
    assert shown["status"]["conditions"][-1]["message"] == "node is shutting down"
    pod = await plane.client.get(PODS, "default", "web")
    assert pod["status"]["reason"] == "Terminated"
