"""The kernel's own reader is tests/e2e/test_pod_interfaces.py."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from sampan.network.nftables.attributes import attributes
from sampan.network.pods.bandwidth import Limit, shaper

RATES = st.integers(1000, 10**15)  # what annotations may ask for: a kilobit to a petabit


def told(limit):
    """Interface, rate and burst in bytes, and the bytes that may wait, as the kernel reads them."""
    content = shaper(7, limit)
    said = attributes(content[20:])
    assert said[1] == b"tbf\0"
    options = attributes(said[2])
    rate = struct.unpack_from("=I", options[1], 8)[0]
    if 4 in options:
        rate = struct.unpack("=Q", options[4])[0]
    waiting = struct.unpack_from("=I", options[1], 24)[0]
    return (
        struct.unpack_from("=i", content, 4)[0],
        rate,
        struct.unpack("=I", options[6])[0],
        waiting,
    )


@given(RATES)
def test_any_rate_is_told_as_it_is_with_room_for_packets(rate):
    interface, said, burst, waiting = told(Limit(rate))
    assert (interface, said) == (7, rate // 8)
    assert burst >= 64 << 10
    assert waiting > burst or waiting == 0xFFFFFFFF


@given(RATES, st.integers(8, 2**31 - 2))
def test_a_burst_that_somebody_chose_is_kept(rate, burst):
    assert told(Limit(rate, burst))[2] == burst // 8


def test_a_burst_as_large_as_can_be_is_no_choice():
    chosen = told(Limit(13_000_000))
    assert told(Limit(13_000_000, 2**31 - 1)) == told(Limit(13_000_000, 2**32 - 1)) == chosen
