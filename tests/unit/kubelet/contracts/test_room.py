import pytest

from sampan.kubelet.contracts.room import Room


def test_what_is_too_much_in_sum_is_refused():
    room = Room(10, ValueError("no room"))
    room.take(4)
    room.take(6)
    with pytest.raises(ValueError, match="no room"):
        room.take(1)
