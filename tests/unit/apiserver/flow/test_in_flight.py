import asyncio

import pytest

from sampan.api.errors import TooManyRequests
from sampan.api.resources import PODS
from sampan.apiserver.authn.user import MASTERS, User
from sampan.apiserver.flow.in_flight import InFlight
from sampan.apiserver.http.request import RequestInfo

ANN, ADMIN = User("ann"), User("admin", groups=(MASTERS,))


def info(verb, subresource=""):
    return RequestInfo(verb, "/", PODS, "default", "a", subresource)


def take(room, asked, user=ANN):
    return room.take(user, asked, "/", asked.verb, 0.0)


def test_reads_and_writes_have_room_of_their_own():
    room = InFlight(reads=1, writes=1)
    reading, writing = take(room, info("get")), take(room, info("create"))
    for verb in ("list", "patch"):
        assert take(room, info(verb)) is None
    for seat in (reading, writing):
        seat.leave(0.0)
        seat.leave(0.0)
    assert room.now == [0, 0]
    assert take(room, info("list"))
    assert take(room, info("delete"))
    assert room.now == [1, 1]


def test_whoever_finds_no_room_is_refused_and_told_when_to_come_back():
    room = InFlight(reads=0, writes=0)
    with pytest.raises(TooManyRequests) as refused:
        asyncio.run(room.wait(ANN, info("get"), "/", "get"))
    assert refused.value.retry_after_seconds == 1


@pytest.mark.parametrize("asked", [info("watch"), info("get", "log"), info("create", "exec")])
def test_what_lasts_takes_no_room(asked):
    room = InFlight(reads=0, writes=0)
    take(room, asked).leave(0.0)


def test_administrators_are_never_refused():
    room = InFlight(reads=0, writes=0)
    take(room, info("get"), ADMIN).leave(0.0)
