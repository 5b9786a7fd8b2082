"""Durations of settings, and as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.rules.durations import human_duration, long_seconds, parse_seconds, seconds_text
from sampan.core.durations import DurationError

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"), (-1.5, "0s"), (0, "0s"), (5.9, "5s"), (119, "119s"), (120, "2m"),
        (200, "3m20s"), (599, "9m59s"), (600, "10m"), (3 * HOUR - 1, "179m"), (3 * HOUR, "3h"),
        (4 * HOUR + 5 * MINUTE, "4h5m"), (8 * HOUR, "8h"), (2 * DAY - 1, "47h"), (2 * DAY, "2d"),
        (3 * DAY + 4 * HOUR, "3d4h"), (8 * DAY, "8d"), (2 * YEAR - 1, "729d"), (2 * YEAR, "2y"),
        (3 * YEAR + 33 * DAY, "3y33d"), (9 * YEAR + DAY, "9y"),
    ],
)  # fmt: skip
def test_durations_read_as_in_kubectl(seconds, text):
    assert human_duration(seconds) == text


@given(st.integers(0, 20 * YEAR))
def test_a_text_never_has_more_than_two_units(seconds):
    assert 1 <= sum(unit in human_duration(seconds) for unit in "smhdy") <= 2


@pytest.mark.parametrize("text", [None, 5, True, "-1s", "x"])
def test_settings_take_texts_that_are_not_negative(text):
    with pytest.raises(DurationError):
        parse_seconds(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"), (0.0004, "0s"), (0.85, "850ms"), (1.2049, "1.204s"), (2, "2s"),
        (63.5, "1m3.5s"), (3661, "1h1m1s"), (3605, "1h0m5s"),
    ],
)  # fmt: skip
def test_spans_of_time_are_printed_as_go_does(seconds, text):
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(5, 5), (0.5, 0.5), ("90s", 90), ("1h30m", 5400), ("2d", 172800), ("1.5w", 907200), ("0", 0)],
)
def test_longer_spans_have_days_and_weeks(text, seconds):
    assert long_seconds(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "soon", "5", "d", "-1h", -1, True, None, float("nan"), float("inf"), "9" * 30 + "w"],
)
def test_what_is_no_span_of_time_is_refused(text):
    with pytest.raises(DurationError):
        long_seconds(text)
