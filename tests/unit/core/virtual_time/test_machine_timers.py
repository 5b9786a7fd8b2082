"""Timers by the machine's time."""

from hypothesis import given
from hypothesis import strategies as st

from sampan.core.virtual_time.machine_timers import SPARED, MachineTimers


def test_they_are_due_in_their_order_and_once():
    timers = MachineTimers()
    for when in (3.0, 1.0, 2.0):
        timers.add(when, print, when)
    assert timers.next_when() == 1.0
    assert [timer.args for timer in timers.due(2.5)] == [(1.0,), (2.0,)]
    assert timers.due(2.5) == []
    assert timers.next_when() == 3.0


def test_a_cancelled_one_never_rings_and_holds_nothing():
    timers = MachineTimers()
    timer = timers.add(1.0, print, "something large")
    timer.cancel()
    timer.cancel()
    assert timer.args == ()
    assert timers.due(5.0) == []
    assert not timers


@given(st.lists(st.booleans(), max_size=400))
def test_cancelled_ones_do_not_pile_up(cancels):
    timers = MachineTimers()
    live = 0
    for number, cancel in enumerate(cancels):
        timer = timers.add(float(number), print)
        if cancel:
            timer.cancel()
        else:
            live += 1
        assert len(timers._heap) <= 2 * live + 2 * SPARED + 2
    assert len(timers.due(float(len(cancels)))) == live


def test_one_that_has_rung_may_still_be_cancelled():
    timers = MachineTimers()
    timer = timers.add(1.0, print)
    assert timers.due(1.0) == [timer]
    timer.cancel()
    assert not timers
