"""Lists of processors as the kernel writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.kubelet.resource_managers.cpu_sets import cpus_text, parse_cpus


@given(st.frozensets(st.integers(0, 300)))
def test_what_is_written_is_read(cpus):
    assert parse_cpus(cpus_text(cpus)) == cpus


def test_ranges_and_single_ones():
    assert parse_cpus("0-3, 7,9-9") == {0, 1, 2, 3, 7, 9}
    assert cpus_text({7, 1, 0, 2, 9}) == "0-2,7,9"
    assert parse_cpus(" ") == frozenset()


@pytest.mark.parametrize("text", ["a", "1-", "-1", "3-1", "1,,2", "0-99999999999", "²"])
def test_what_is_no_list_is_refused(text):
    with pytest.raises(ValueError, match="is no"):
        parse_cpus(text)
