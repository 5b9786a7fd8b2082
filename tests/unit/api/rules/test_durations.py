"""Ages as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.rules.durations import human_duration

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
