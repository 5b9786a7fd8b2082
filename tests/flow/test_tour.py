"""`sampan tour` walks through a cluster in this process, and leaves nothing there [X1]."""

import asyncio
import io

import pytest

from sampan.api.resources import PODS
from sampan.client import kubeconfig, rest
from sampan.cmd.cluster.all_in_one import AllInOne
from sampan.cmd.cluster.data_dir import open_data_dir
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.settings import UpSettings
from sampan.cmd.tour.lesson import lesson
from sampan.cmd.verbs import tour
from sampan.core.clock import SystemClock

pytestmark = pytest.mark.slow


def test_each_step_is_seen_as_it_happens_and_the_pod_goes_in_the_end(tmp_path, capsys):
    async def scenario():
        data, clock = open_data_dir(str(tmp_path)), SystemClock()
        settings = UpSettings(data_dir=str(tmp_path), port=0, runtime="simulated", nodes=1)
        cluster = AllInOne(settings, data, Progress(io.StringIO(), clock), clock)
        await cluster.start()
        asked = tour.Asked("default", str(data.kubeconfig), pause=False)
        client = rest.connect(kubeconfig.load(asked.kubeconfig, {}, "").connection(), clock=clock)
        try:
            assert await asyncio.to_thread(tour.run, asked) == 0
            served = await client.get_path("/sampan/v1/lesson")
            async with asyncio.timeout(60):
                while (await client.list(PODS, "default")).items:
                    await asyncio.sleep(0.05)
        finally:
            await client.close()
            await cluster.stop()
        return [step["title"] for step in served["steps"]]

    titles = asyncio.run(scenario())
    text = capsys.readouterr().out
    assert titles == [step.title for step in lesson()]
    heads = [f"{step.number}/{len(titles)}  {step.title}\n" for step in lesson()]
    assert all(head in text for head in heads)
    before, _, after = text.partition("The gate is open")
    assert "sampan.dev/tour" in before  # held back, and seen so
    assert "phase: Pending" in before
    assert "sampan.dev/tour" not in after
    assert "+ phase: Running" in after
    assert "did not come this far" not in text
