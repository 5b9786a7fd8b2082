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


def test_tasks_of_the_loop_are_counted_when_somebody_asks():
    metrics = Metrics()

    async def story():
        LoopWatch(metrics)
        assert "sampan_event_loop_tasks 1" in metrics.render()
        other = asyncio.get_running_loop().create_task(asyncio.Event().wait())
        assert "sampan_event_loop_tasks 2" in metrics.render()
        other.cancel()

    asyncio.run(story())


def test_an_import_is_told_from_what_a_request_does(tmp_path, monkeypatch):
    """It happens once, and goes to the log, not to the terminal."""
    (tmp_path / "takes_long.py").write_text(
        "import sys\nfrom sampan.core.telemetry.loop_watch import place_of\n"
        "PLACE = place_of(sys._getframe())\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    ours = {"__name__": "sampan.part"}
    exec("def load():\n import takes_long\n return takes_long.PLACE", ours)
    assert ours["load"]() == "import by part.load:2"
