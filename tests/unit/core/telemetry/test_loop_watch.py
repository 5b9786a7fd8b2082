"""Whoever holds the loop is found out."""

import asyncio
import time

import pytest

from sampan.api.patch.json_patch import json_patch
from sampan.core.metrics import Metrics
from sampan.core.telemetry.loop_watch import LoopWatch


def held_by_a_request(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        json_patch({"a": [1] * 1000}, [{"op": "test", "path": "/a/3", "value": 1}])
    return "answer"


@pytest.mark.slow
def test_a_request_that_holds_an_idle_loop_is_counted_with_its_place():
    metrics = Metrics()
    counted = 'sampan_event_loop_holds_total{place="api.'

    async def story():
        watch = LoopWatch(metrics)
        watch.start()
        handler = watch.around(held_by_a_request)
        async with asyncio.timeout(60):
            while counted not in metrics.render():
                await asyncio.sleep(0.3)  # the watch sleeps, for ten seconds if nobody rouses it
                assert handler(0.2) == "answer"
        watch.stop()

    asyncio.run(story())
    assert "sampan_event_loop_delay_seconds_count" in metrics.render()


def test_an_idle_loop_is_not_asked():
    metrics = Metrics()

    async def story():
        watch = LoopWatch(metrics)
        watch.start()
        await asyncio.sleep(0.2)
        watch.stop()

    asyncio.run(story())
    assert "sampan_event_loop_delay_seconds_count" not in metrics.render()
