"""core/durations.py: durations as Go writes and reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.core.durations import NANO, DurationError, duration_text, parse_duration


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
        ("9999999h", "invalid duration"), ("9999999999h", "invalid duration"),
    ],
)  # fmt: skip
def test_what_is_no_duration_is_refused_in_go_s_words(text, why):
    with pytest.raises(DurationError, match=f"time: {why}"):
        parse_duration(text)


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_a_duration_printed_and_read_is_the_same(nanos):
    assert parse_duration(duration_text(nanos)) == nanos


def test_short_durations_have_small_units():
    assert [duration_text(nanos) for nanos in (1, 1500, 2_000_000)] == ["1ns", "1.5µs", "2ms"]


def test_the_longest_ones_are_go_s():
    assert parse_duration("9223372036854775807ns") == 2**63 - 1
    assert parse_duration("-9223372036854775808ns") == -(2**63)
    for text in ("9223372036854775808ns", "-9223372036854775809ns"):
        with pytest.raises(DurationError):
            parse_duration(text)
