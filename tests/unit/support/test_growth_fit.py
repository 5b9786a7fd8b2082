"""tests/support/growth_fit.py: what grows is found, what only varies is not."""

import random

import pytest

from tests.support.growth_fit import fitted, svg, table

HOURS = [number / 100 for number in range(100)]


@pytest.mark.parametrize(
    ("values", "is_flat"),
    [
        ([100.0] * 100, True),
        ([100.0 + 10 * hour for hour in HOURS], False),
        ([100.0 - 10 * hour for hour in HOURS], True),
        ([100.0 + hour for hour in HOURS], True),  # a hundredth is no growth
        ([5.0] * 50 + [6.0] * 50, True),  # one more is none either
    ],
)
def test_growth_is_by_more_than_its_share(values, is_flat):
    assert fitted(HOURS, values).is_flat is is_flat


def test_noise_hides_no_growth_and_is_none():
    rng = random.Random(1)
    noise = [rng.gauss(100, 20) for _ in HOURS]
    assert fitted(HOURS, noise).is_flat
    grown = fitted(HOURS, [value + 60 * hour for value, hour in zip(noise, HOURS, strict=True)])
    assert not grown.is_flat
    assert grown.least < 60 < grown.most


def test_figures_are_shown():
    rows = {"tasks": [3.0] * 100}
    assert "| tasks | 3 | +0 | +0 to +0 | yes |" in table({"tasks": fitted(HOURS, rows["tasks"])})
    assert svg(HOURS, rows, 0.3).count("<polyline") == 2
