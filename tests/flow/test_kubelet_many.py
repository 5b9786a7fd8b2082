"""Many simulated nodes in one process, over one watch. [R3]"""

import asyncio
import random

import pytest

from sampan.api.resources import NODES, PODS
from sampan.client.informer import Informer
from sampan.client.reflector import Selection
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.context import NodeContext
from sampan.kubelet.kubelet import Kubelet, SharedSources
from sampan.kubelet.settings import KubeletSettings
from sampan.kubelet.simulated.runtime import SimulatedRuntime
from sampan.kubelet.sources.apiserver import ApiserverSource
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.simulated_node import pod_named
from tests.support.worlds.small_api import SmallApi

NODE_COUNT, PODS_PER_NODE = 20, 5


@pytest.mark.slow
def test_many_nodes_share_one_watch_and_pods_have_no_tasks():
    """[R3]"""

    async def story():
        clock = LoopClock()
        api, metrics, tasks = SmallApi(clock), Metrics(), Tasks("test")
        informer = Informer(api, Selection(PODS), clock=clock)
        source = ApiserverSource(informer)
        tasks.start("informer", informer.run())
        tasks.start("source", source.run())
        for number in range(NODE_COUNT):
            name = f"node-{number}"
            kubelet = Kubelet(
                NodeContext(
                    settings=KubeletSettings(name, simulated=True, root_dir="", log_dir=""),
                    client=api,
                    runtime=SimulatedRuntime(clock=clock, node_name=name),
                    clock=clock,
                    metrics=metrics,
                    rng=random.Random(number),
                ),
                SharedSources(pods=source),
            )
            tasks.start(name, kubelet.run())
        await asyncio.sleep(1)
        assert len(api.objects(NODES)) == NODE_COUNT
        before = len(asyncio.all_tasks())
        for number in range(NODE_COUNT * PODS_PER_NODE):
            pod = pod_named(f"pod-{number}", node_name=f"node-{number % NODE_COUNT}")
            await api.create(PODS, pod, "default")
        await asyncio.sleep(5)
        phases = [pod["status"]["phase"] for pod in api.objects(PODS)]
        assert phases == ["Running"] * NODE_COUNT * PODS_PER_NODE
        assert len(asyncio.all_tasks()) == before
        assert api.calls.count("watch pods") == 1
        await tasks.stop()

    virtual_time.run(story())
