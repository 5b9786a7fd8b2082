"""Static pods on a simulated node: manifests, mirrors, and a node without an API. Virtual time."""

import asyncio
import random
from dataclasses import replace
from functools import partial

import orjson
import pytest

from sampan.api.resources import PODS
from sampan.client.no_api_client import NoApiClient
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.context import NodeContext
from sampan.kubelet.eviction.eviction_rules import MEMORY, EvictionSettings, Threshold
from sampan.kubelet.images.image_gc import ImageGCPolicy
from sampan.kubelet.kubelet import Kubelet
from sampan.kubelet.settings import Capacity, KubeletSettings
from sampan.kubelet.simulated.runtime import SimulatedRuntime
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.simulated_node import SimulatedNode, pod_named

pytestmark = pytest.mark.slow

NAME = "web-node-1"


def write(directory, name="web", *, file="", **words):
    """A manifest, moved to its place whole."""
    hidden = directory / f".{name}"
    hidden.write_bytes(orjson.dumps(pod_named(name, **words)))
    hidden.rename(directory / (file or f"{name}.json"))


def test_a_manifest_runs_and_the_api_shows_it(tmp_path):
    """[N1] [N8] [N14] the status of the static pod is on its mirror"""

    async def story():
        write(tmp_path)
        async with SimulatedNode(manifests=str(tmp_path)) as node:
            await node.until(lambda: node.has(NAME))
            await node.until_phase("Running", NAME)
            mirror, [static] = node.pod(NAME), node.kubelet.pods()
            assert mirror["metadata"]["uid"] != static["metadata"]["uid"]
            notes = mirror["metadata"]["annotations"]
            assert notes["kubernetes.io/config.mirror"] == static["metadata"]["uid"]
            assert notes["kubernetes.io/config.source"] == "file"
            assert mirror["metadata"]["ownerReferences"][0]["uid"] == node.node()["metadata"]["uid"]
            assert (await node.observed(NAME)).uid == static["metadata"]["uid"]

    virtual_time.run(story())


def _is_back(node, old_uid):
    if not node.has(NAME) or node.pod(NAME)["metadata"]["uid"] == old_uid:
        return False
    return node.status(NAME).get("phase") == "Running"


def test_a_mirror_that_somebody_deletes_comes_back_and_nothing_restarts(tmp_path):
    """[N5] [N8]"""

    async def story():
        write(tmp_path)
        async with SimulatedNode(manifests=str(tmp_path)) as node:
            await node.until(lambda: node.has(NAME))
            await node.until_phase("Running", NAME)
            first = node.pod(NAME)["metadata"]["uid"]
            container = node.container(NAME)["containerID"]
            for grace_seconds in (None, 0):
                await node.delete(NAME, grace_seconds)
                await node.until(partial(_is_back, node, first))
                first = node.pod(NAME)["metadata"]["uid"]
            assert node.container(NAME)["containerID"] == container
            assert node.container(NAME)["restartCount"] == 0

    virtual_time.run(story())


def test_a_changed_manifest_replaces_the_pod_and_its_mirror(tmp_path):
    """[N7] never two pods of one name: the new one starts when the old one is gone"""

    async def story():
        write(tmp_path)
        async with SimulatedNode(manifests=str(tmp_path)) as node:
            await node.until(lambda: node.has(NAME))
            await node.until_phase("Running", NAME)
            first = node.pod(NAME)
            write(tmp_path, containers=[{"name": "main", "image": "app:2"}])
            await node.until(
                lambda: (
                    node.has(NAME)
                    and node.pod(NAME)["spec"]["containers"][0]["image"] == "app:2"
                    and node.status(NAME).get("phase") == "Running"
                )
            )
            notes = node.pod(NAME)["metadata"]["annotations"]
            assert (
                notes["kubernetes.io/config.mirror"]
                != (first["metadata"]["annotations"]["kubernetes.io/config.mirror"])
            )
            await node.settle()
            assert len(await node.runtime.pods()) == 1

    virtual_time.run(story())


def test_a_removed_manifest_ends_the_pod_and_then_its_mirror(tmp_path):
    async def story():
        write(tmp_path)
        async with SimulatedNode(manifests=str(tmp_path)) as node:
            await node.until(lambda: node.has(NAME))
            await node.until_phase("Running", NAME)
            (tmp_path / "web.json").unlink()
            await node.until(lambda: not node.has(NAME))
            assert await node.runtime.pods() == []

    virtual_time.run(story())


def test_a_restarted_agent_keeps_static_pods_and_their_mirrors(tmp_path):
    """[N3] [N21] whichever source speaks first"""

    async def story():
        write(tmp_path)
        async with SimulatedNode(manifests=str(tmp_path)) as node:
            await node.until(lambda: node.has(NAME))
            await node.until_phase("Running", NAME)
            mirror, container = node.pod(NAME)["metadata"]["uid"], node.container(NAME)
            await node.stop()
            await node.start()
            await asyncio.sleep(30)
            assert node.pod(NAME)["metadata"]["uid"] == mirror
            assert node.container(NAME) == container

    virtual_time.run(story())


def test_a_mirror_whose_manifest_went_while_the_agent_was_down_is_removed(tmp_path):
    """[N3] [N21] the containers are, too"""

    async def story():
        write(tmp_path)
        async with SimulatedNode(manifests=str(tmp_path)) as node:
            await node.until(lambda: node.has(NAME))
            await node.until_phase("Running", NAME)
            await node.stop()
            (tmp_path / "web.json").unlink()
            await node.start()
            await node.until(lambda: not node.has(NAME))
            await node.settle()
            await asyncio.sleep(15)
            assert await node.runtime.pods() == []

    virtual_time.run(story())


def test_static_pods_run_while_the_api_is_away_and_are_shown_when_it_comes(tmp_path):
    """[N22]"""

    async def story():
        node = SimulatedNode(manifests=str(tmp_path))
        node.api.go_down()
        write(tmp_path)
        await node.start(wait=False)
        try:
            await asyncio.sleep(60)
            [pod] = node.kubelet.pods()
            assert pod["status"]["phase"] == "Running"
            node.api.come_back()
            await node.until(lambda: node.has(NAME))
            await node.until_phase("Running", NAME)
        finally:
            await node.__aexit__(None, None, None)

    virtual_time.run(story())


def test_a_node_without_any_api_runs_its_manifests(tmp_path):
    """[N22] and cleans up what they do not name"""

    async def story():
        clock = LoopClock()
        runtime = SimulatedRuntime(clock=clock, node_name="node-1")
        settings = KubeletSettings(
            "node-1", simulated=True, standalone=True, manifests=str(tmp_path / "m"),
            root_dir=str(tmp_path / "root"), log_dir=str(tmp_path / "logs"),
            capacity=Capacity(cpu_milli=1000, memory_bytes=2**30),
        )  # fmt: skip
        (tmp_path / "m").mkdir()
        write(tmp_path / "m")
        write(tmp_path / "m", "greedy", containers=[
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}},
        ])  # fmt: skip
        tasks = Tasks("test")
        kubelet = Kubelet(NodeContext(
            settings=settings, client=NoApiClient(), runtime=runtime, clock=clock,
            metrics=Metrics(), rng=random.Random(1),
        ))  # fmt: skip
        tasks.start("kubelet", kubelet.run())
        await asyncio.sleep(5)
        phases = {pod["metadata"]["name"]: pod["status"]["phase"] for pod in kubelet.pods()}
        assert phases == {"greedy-node-1": "Failed", "web-node-1": "Running"}
        (tmp_path / "m" / "web.json").unlink()
        await asyncio.sleep(5)
        assert [one.name for one in await runtime.pods()] == []
        await tasks.stop()

    virtual_time.run(story())


def test_a_node_without_an_api_keeps_house_all_the_same(tmp_path, caplog):
    """Unused images go, and what the node is short of is told."""

    async def story():
        clock = LoopClock()
        runtime = SimulatedRuntime(clock=clock, node_name="node-1")
        settings = KubeletSettings(
            "node-1", standalone=True, manifests=str(tmp_path / "m"),
            root_dir=str(tmp_path / "root"), log_dir=str(tmp_path / "logs"),
            capacity=Capacity(cpu_milli=1000, memory_bytes=2**30),
            image_garbage=ImageGCPolicy(max_age_seconds=60.0),
            eviction=EvictionSettings(thresholds=(Threshold(MEMORY, 1 << 60),)),
        )  # fmt: skip
        for name in ("m", "root", "logs"):
            (tmp_path / name).mkdir()
        write(tmp_path / "m", restartPolicy="Never")
        await runtime.pull_image("unused:1", None)
        tasks = Tasks("test")
        kubelet = Kubelet(NodeContext(
            settings=settings, client=NoApiClient(), runtime=runtime, clock=clock,
            metrics=Metrics(), rng=random.Random(1),
        ))  # fmt: skip
        tasks.start("kubelet", kubelet.run())
        await asyncio.sleep(700)
        assert "unused:1" not in {tag for one in await runtime.images() for tag in one.tags}
        await tasks.stop()

    virtual_time.run(story())
    assert "Attempting to reclaim memory" in caplog.text


def test_an_api_pod_that_says_it_came_from_a_file_did_not():
    """Nobody may take a pod out of the API's hands by an annotation."""

    async def story():
        async with SimulatedNode() as node:
            await node.make(annotations={"kubernetes.io/config.source": "file"})
            await node.until_phase("Running")
            await node.delete()
            await node.until(lambda: not node.has())

    virtual_time.run(story())


def test_two_sources_must_both_speak_before_anything_is_cleaned_up(tmp_path):
    """[N3]"""

    async def story():
        async with SimulatedNode(manifests=str(tmp_path)) as node:
            await node.make()
            await node.until_phase("Running")
            await node.stop()
            node.settings = replace(
                node.settings, manifests="", manifest_url="http://127.0.0.1:9/nobody"
            )
            await node.api.delete(PODS, "default", "web", grace_seconds=0)
            await node.start()
            await asyncio.sleep(60)
            assert len(await node.runtime.pods()) == 1, "the URL has not spoken"

    virtual_time.run(story())
