from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.controllers.jobs.cron_schedule import ScheduleError, next_after, parse

BERLIN, GREENWICH = ZoneInfo("Europe/Berlin"), ZoneInfo("Etc/UTC")


def following(text, moment, zone=GREENWICH):
    at = datetime.fromisoformat(moment).replace(tzinfo=zone).timestamp()
    found = next_after(parse(text), at, zone)
    return None if found is None else datetime.fromtimestamp(found, zone).isoformat()[:16]


@pytest.mark.parametrize(
    ("text", "moment", "expected"),
    [
        ("*/15 * * * *", "2026-01-01T00:00", "2026-01-01T00:15"),
        ("5/20 * * * *", "2026-01-01T00:30", "2026-01-01T00:45"),
        ("0 0 * * *", "2026-01-01T00:00", "2026-01-02T00:00"),
        ("@hourly", "2026-01-01T00:59", "2026-01-01T01:00"),
        ("@weekly", "2026-01-01T00:00", "2026-01-04T00:00"),  # a Sunday
        ("0 9 * * mon-fri", "2026-01-02T10:00", "2026-01-05T09:00"),
        ("0 0 29 feb *", "2026-01-01T00:00", "2028-02-29T00:00"),
        ("0 0 13 * 5", "2026-01-01T00:00", "2026-01-02T00:00"),  # the 13th, or a Friday
        ("0 0 */2 * 1", "2026-01-01T00:00", "2026-01-03T00:00"),  # a step is no star
        ("0 12 1,15 * *", "2026-01-02T00:00", "2026-01-15T12:00"),
        ("0 0 31 2 *", "2026-01-01T00:00", None),
    ],
)
def test_the_next_stroke(text, moment, expected):
    assert following(text, moment) == expected


def test_a_time_that_the_clocks_skip_does_not_strike():
    assert following("30 2 * * *", "2026-03-28T12:00", BERLIN) == "2026-03-30T02:30"


def test_a_time_that_the_clocks_repeat_strikes_once():
    first = following("30 2 * * *", "2026-10-24T12:00", BERLIN)
    assert first == "2026-10-25T02:30"
    assert following("30 2 * * *", "2026-10-25T02:30", BERLIN) == "2026-10-26T02:30"


def test_every_is_counted_from_the_moment_of_asking():
    assert next_after(parse("@every 1h30m"), 1000.0, GREENWICH) == 1000.0 + 5400


WRONG = """
* * * *
60 * * * *
* 24 * * *
* * 0 * *
* * * 13 *
* * * * 7
a * * * *
5-1 * * * *
*/0 * * * *
@sometimes
@every 5
@every x"""


@pytest.mark.parametrize("text", WRONG.split("\n"))
def test_what_is_no_schedule_is_refused(text):
    with pytest.raises(ScheduleError):
        parse(text)


@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),
    st.integers(0, 59),
    st.integers(0, 23),
)
def test_the_next_stroke_is_the_first_one(moment, minute, hour):
    at = moment.replace(tzinfo=UTC).timestamp()
    found = next_after(parse(f"{minute} {hour} * * *"), at, GREENWICH)
    local = datetime.fromtimestamp(found, UTC)
    assert (local.hour, local.minute, local.second) == (hour, minute, 0)
    assert timedelta(0) < local - moment.replace(tzinfo=UTC) <= timedelta(days=1)
