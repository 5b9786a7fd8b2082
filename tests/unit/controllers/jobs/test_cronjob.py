"""Strokes that were missed."""

import time
from zoneinfo import ZoneInfo

import pytest

from sampan.api.rules.cron import next_after, parse
from sampan.controllers.jobs.cronjob import MANY_MISSED, _missed

NOW = 1_800_000_000.0
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    "text",
    ["* * * * *", "*/7 * * * *", "0 0 1 1 *", "* * 1 1 *", "59 23 31 12 *", "0 0 29 2 1",
     "30 2 * * 0", "@every 90s", "0 12 * 1-3 *"],
)  # fmt: skip
@pytest.mark.parametrize("asleep_days", [0.01, 3, 400])
def test_the_last_stroke_is_the_one_before_now(text, asleep_days):
    schedule, earliest = parse(text), NOW - asleep_days * 86_400
    latest, count = _missed(schedule, earliest, NOW, BERLIN)
    if latest is None:
        first = next_after(schedule, earliest, BERLIN)
        assert count == 0
        assert first is None or first > NOW
        return
    assert earliest < latest <= NOW
    following = next_after(schedule, latest, BERLIN)
    assert following is not None
    assert following > NOW
    assert count <= MANY_MISSED + 1


@pytest.mark.slow
def test_an_age_of_sleep_costs_no_age():
    """An attack: lastScheduleTime of 1970, which took 16 s of everybody's time."""
    started = time.process_time()
    assert _missed(parse("* * 1 1 *"), 0.0, NOW, BERLIN) == (1798844340.0, MANY_MISSED + 1)
    assert time.process_time() - started < 0.5
