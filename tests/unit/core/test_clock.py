"""core/clock.py: the machine's own time."""

from sampan.core.clock import SystemClock


def test_time_moves_forward():
    clock = SystemClock()
    assert clock.now() > 1_700_000_000
    assert clock.monotonic() <= clock.monotonic()
