import pytest

from sampan.api.errors import TooManyRequests
from sampan.api.resources import PODS
from sampan.apiserver.authn.user import MASTERS, User
from sampan.apiserver.flow.in_flight import InFlight
from sampan.apiserver.http.request import RequestInfo

ANN, ADMIN = User("ann"), User("admin", groups=(MASTERS,))


def info(verb, subresource=""):
    return RequestInfo(verb, "/", PODS, "default", "a", subresource)


def test_reads_and_writes_have_room_of_their_own():
    room = InFlight(reads=1, writes=1)
    reading = room.enter(info("get"), ANN)
    writing = room.enter(info("create"), ANN)
    for verb in ("list", "patch"):
        with pytest.raises(TooManyRequests) as refused:
            room.enter(info(verb), ANN)
        assert refused.value.retry_after_seconds == 1
    room.leave(reading)
    room.leave(writing)
    assert room.enter(info("list"), ANN) == reading
    assert room.enter(info("delete"), ANN) == writing


@pytest.mark.parametrize("asked", [info("watch"), info("get", "log"), info("create", "exec")])
def test_what_lasts_takes_no_room(asked):
    room = InFlight(reads=0, writes=0)
    room.leave(room.enter(asked, ANN))


def test_administrators_are_never_refused():
    room = InFlight(reads=0, writes=0)
    room.leave(room.enter(info("get"), ADMIN))
