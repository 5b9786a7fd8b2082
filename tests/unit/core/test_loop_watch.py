"""Whoever holds the loop is found out."""

import asyncio
import time

import pytest

from sampan.api.patch.json_patch import json_patch
from sampan.core.loop_watch import LoopWatch
from sampan.core.metrics import Metrics


@pytest.mark.slow
def test_a_hold_is_counted_with_its_place():
    metrics = Metrics()

    async def story():
        watch = LoopWatch(metrics)
        watch.start()
        for _ in range(8):
            await asyncio.sleep(0.03)
            until = time.monotonic() + 0.25
            while time.monotonic() < until:
                json_patch({"a": [1] * 1000}, [{"op": "test", "path": "/a/3", "value": 1}])
        watch.stop()

    asyncio.run(story())
    text = metrics.render()
    assert "sampan_event_loop_delay_seconds_count" in text
    assert 'sampan_event_loop_holds_total{place="api.' in text


@pytest.mark.slow
def test_a_free_loop_is_left_alone():
    metrics = Metrics()

    async def story():
        watch = LoopWatch(metrics)
        watch.start()
        await asyncio.sleep(0.35)
        watch.stop()

    asyncio.run(story())
    assert "sampan_event_loop_delay_seconds_count" in metrics.render()
