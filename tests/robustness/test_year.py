"""A month of a cluster's life on virtual time, in short; `make year` has twelve."""

import pytest

from tests.robustness.year import MONTH_DAYS, lived

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_in_a_month_everything_happens_at_its_time_and_nothing_is_left_that_ends(tmp_path):
    found = lived(tmp_path, 1)
    assert found.wrong == []
    assert found.jobs == 5 * MONTH_DAYS
