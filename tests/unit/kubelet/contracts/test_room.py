import pytest

from sampan.kubelet.contracts.room import Room


def test_what_is_too_much_in_sum_is_refused():
    room = Room(10, lambda: ValueError("no room"))
    room.take(4)
    room.take(6)
    assert not room.is_full
    with pytest.raises(ValueError, match="no room"):
        room.take(1)
    assert room.is_full


def test_a_refusal_does_not_keep_what_earlier_ones_had_made():
    """An error that is raised again has the frames of every time before in its traceback."""
    room = Room(0, lambda: ValueError("no room"))
    with pytest.raises(ValueError, match="no room") as first:
        room.take(1)
    with pytest.raises(ValueError, match="no room") as second:
        room.take(1)
    assert first.value is not second.value
