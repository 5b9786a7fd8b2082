import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.rules.cron import ScheduleError, next_after, parse

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
        ("0 0 *,1 * 1", "2026-01-01T00:00", "2026-01-05T00:00"),  # a star among others is one
        ("0,,30 * * * *", "2026-01-01T00:10", "2026-01-01T00:30"),
    ],
)
def test_the_next_stroke(text, moment, expected):
    assert following(text, moment) == expected


def test_a_time_that_the_clocks_skip_does_not_strike():
    assert following("30 2 * * *", "2026-03-28T12:00", BERLIN) == "2026-03-30T02:30"


def test_a_time_that_the_clocks_repeat_strikes_twice():
    """As the original's library has it."""
    first = next_after(parse("30 2 * * *"), 1_792_836_000.0, BERLIN)
    assert datetime.fromtimestamp(first, BERLIN).isoformat() == "2026-10-25T02:30:00+02:00"
    second = next_after(parse("30 2 * * *"), first, BERLIN)
    assert datetime.fromtimestamp(second, BERLIN).isoformat() == "2026-10-25T02:30:00+01:00"


@pytest.mark.parametrize(
    ("every", "seconds"),
    [("1h30m", 5400), ("1.5h", 5400), ("30m1h", 5400), ("500ms", 1), ("2.9s", 2), ("0s", 1)],
)
def test_every_is_counted_from_the_moment_of_asking_in_whole_seconds(every, seconds):
    assert next_after(parse(f"@every {every}"), 1000.9, GREENWICH) == 1000.0 + seconds


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* 24 * * *", "end of range (24) above maximum (23): 24"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * 13 *", "end of range (13) above maximum (12): 13"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("*/2/3 * * * *", "too many slashes: */2/3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("@sometimes", "unrecognized descriptor: @sometimes"),
        ("@every", "unrecognized descriptor: @every"),
        (
            "@every 5",
            'failed to parse duration @every 5: time: missing unit in duration "5"',
        ),
        ("@every x", 'failed to parse duration @every x: time: invalid duration "x"'),
    ],
)
def test_what_is_no_schedule_is_refused_in_the_original_s_words(text, why):
    with pytest.raises(ScheduleError) as refused:
        parse(text)
    assert str(refused.value) == why


@given(st.text("@every 0123456789*/-,?.smhjan", max_size=20))
def test_what_is_accepted_can_be_run_and_nothing_else_is_raised(text):
    try:
        schedule = parse(text)
    except ScheduleError:
        return
    found = next_after(schedule, 1_700_000_000.0, GREENWICH)
    assert found is None or found > 1_700_000_000.0


@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),
    st.lists(st.integers(0, 59), min_size=1, max_size=4),
    st.lists(st.integers(0, 23), min_size=1, max_size=4),
)
def test_the_next_stroke_is_the_first_one(moment, minutes, hours):
    began = moment.replace(tzinfo=UTC)
    listed = [",".join(map(str, some)) for some in (minutes, hours)]
    found = next_after(parse(f"{listed[0]} {listed[1]} * * *"), began.timestamp(), GREENWICH)
    of_days = (
        datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC)
        for day in (began, began + timedelta(days=1))
        for hour in hours
        for minute in minutes
    )
    expected = min(stroke for stroke in of_days if stroke > began)
    assert datetime.fromtimestamp(found, UTC) == expected


@pytest.mark.parametrize("name", ["Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu"])
@given(st.integers(0, 365 * 24 * 60))
def test_every_minute_of_the_clock_strikes_wherever_the_clocks_change(name, minute):
    zone, at = ZoneInfo(name), 1_700_000_000.0 // 60 * 60 + 60 * minute
    assert next_after(parse("* * * * *"), at, zone) == at + 60


def recorded():
    """[schedule, zone, from, seconds between strokes or why there are none]."""
    text = gzip.decompress((Path(__file__).parent / "cron_strokes.jsonl.gz").read_bytes())
    return [orjson.loads(line) for line in text.splitlines()]


def strokes(text, zone, moment, count=8):
    try:
        schedule, found = parse(text), []
    except ScheduleError as error:
        return str(error)
    for _ in range(count):
        following = next_after(schedule, moment, zone)
        if following is None:
            break
        found.append(following - moment)
        moment = following
    return found


@pytest.mark.slow
def test_strokes_are_those_that_the_originals_library_gave():
    """In eleven zones, with clocks that change, at midnight, by half an hour, and over days."""
    wrong = [
        (text, zone, moment)
        for text, zone, moment, given in recorded()
        if strokes(text, ZoneInfo(zone or "Etc/UTC"), moment) != given
    ]
    assert wrong == []
