"""Durations as Go and as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.rules.durations import (
    NANO,
    DurationError,
    duration_text,
    human_duration,
    long_seconds,
    parse_duration,
    parse_seconds,
    seconds_text,
)

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


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("0", 0), ("-0", 0), ("0s", 0), ("5s", 5 * NANO), ("1m30s", 90 * NANO), ("1h", 3600 * NANO),
        ("30s1m", 90 * NANO), ("1.5h", 5400 * NANO), (".5s", NANO // 2), ("1.s", NANO),
        ("500ms", NANO // 2), ("1us", 1000), ("1µs", 1000), ("1μs", 1000), ("2ns", 2),
        ("-1m", -60 * NANO), ("+1m", 60 * NANO), ("1.0000000019s", NANO + 1),
    ],
)  # fmt: skip
def test_durations_are_read_as_go_does(text, nanos):
    assert parse_duration(text) == nanos


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", 'invalid duration ""'), ("-", 'invalid duration "-"'), (".", 'invalid duration "."'),
        (".s", 'invalid duration ".s"'), ("s", 'invalid duration "s"'), ("3", "missing unit"),
        ("1m5", "missing unit"), ("1x", 'unknown unit "x"'), ("1d", 'unknown unit "d"'),
        ("1 s", 'unknown unit " s"'), ("--1s", "invalid duration"), ("１s", "invalid duration"),
        ("9999999h", "invalid duration"),
    ],
)  # fmt: skip
def test_what_is_no_duration_is_refused_in_go_s_words(text, why):
    with pytest.raises(DurationError, match=f"time: {why}"):
        parse_duration(text)


@pytest.mark.parametrize("text", [None, 5, True, "-1s", "x"])
def test_settings_take_texts_that_are_not_negative(text):
    with pytest.raises(DurationError):
        parse_seconds(text)


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_a_duration_printed_and_read_is_the_same(nanos):
    assert parse_duration(duration_text(nanos)) == nanos


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"), (0.0004, "0s"), (0.85, "850ms"), (1.2049, "1.204s"), (2, "2s"),
        (63.5, "1m3.5s"), (3661, "1h1m1s"), (3605, "1h0m5s"),
    ],
)  # fmt: skip
def test_spans_of_time_are_printed_as_go_does(seconds, text):
    assert seconds_text(seconds) == text


def test_short_durations_have_small_units():
    assert [duration_text(nanos) for nanos in (1, 1500, 2_000_000)] == ["1ns", "1.5µs", "2ms"]


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
