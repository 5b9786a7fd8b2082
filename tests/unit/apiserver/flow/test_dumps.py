"""What is shown of priority and fairness. [A10]"""

import asyncio

import pytest

from sampan.api.errors import TooManyRequests
from sampan.api.resources import PODS
from sampan.apiserver.authn.user import User
from sampan.apiserver.flow.control import FlowControl
from sampan.apiserver.flow.dumps import PREFIX, texts
from sampan.apiserver.flow.objects import LEVELS, SCHEMAS, flow_objects
from sampan.apiserver.http.request import RequestInfo
from sampan.core.metrics import Metrics
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock

OBJECTS = flow_objects(0.0)
BOB = User("bob", ("system:authenticated",))
ASKED = RequestInfo("get", "/api/v1/namespaces/n/pods/p", PODS, "n", "p", "")


def control(seats):
    schemas = [obj for row, obj in OBJECTS if row is SCHEMAS]
    levels = [obj for row, obj in OBJECTS if row is LEVELS]
    return FlowControl(seats, lambda: schemas, lambda: levels, lambda _: 0, LoopClock(), Metrics())


def shown(flow, name, query=""):
    return texts(flow.state)[f"{PREFIX}{name}"](query).splitlines()


def cells(line):
    return [cell.strip() for cell in line.split(",")]


def filled(flow):
    """All the seats that this user can have."""
    seats = []
    while (seat := flow.take(BOB, ASKED, ASKED.path, "get", 0.0)) is not None:
        seats.append(seat)
    return seats


def level(flow, name):
    return next(cells(line) for line in shown(flow, "dump_priority_levels") if name in line)


def test_levels_are_shown_in_columns_as_wide_as_the_original_makes_them():
    async def test():
        flow = control(24)
        seat = await flow.seat(BOB, ASKED, ASKED.path, "get")
        seat.leave(0.0)
        return shown(flow, "dump_priority_levels")

    heading, *rows = virtual_time.run(test())
    assert heading == (
        "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, "
        "DispatchedRequests, RejectedRequests, TimedoutRequests, CancelledRequests"
    )
    assert rows[0] == (
        "catch-all,         0,            true,   false,       0,               0,                 "
        "0,                  0,                0,                0"
    )
    assert [cells(row)[0] for row in rows] == sorted(cells(row)[0] for row in rows)


def test_whoever_is_served_and_whoever_waits_is_shown_until_it_is_over():
    async def test():
        flow = control(1)
        seats = filled(flow)
        late = asyncio.get_running_loop().create_task(flow.seat(BOB, ASKED, ASKED.path, "get"))
        await asyncio.sleep(1)
        many = str(len(seats))
        assert level(flow, "global-default")[1:7] == ["1", "false", "false", "1", many, many]
        served, *_, waiting = sorted(
            (cells(line) for line in shown(flow, "dump_requests", "includeRequestDetails=1")[1:]),
            key=lambda row: int(row[3]),
        )
        queue = served[2]
        assert served[:5] == ["global-default", "global-default", queue, "-1", "bob"]
        assert served[6:9] == ["1", "0", "0s"]
        assert served[5] == served[9]
        assert served[10:] == ["bob", "get", ASKED.path, "n", "p", "v1", "pods", ""]
        assert waiting[3] == "0"
        assert waiting[9] == "0001-01-01T00:00:00Z"
        rows = [cells(line) for line in shown(flow, "dump_queues")[1:]]
        busy = [row for row in rows if row[2:5] != ["0", "0", "0"]]
        assert [sum(int(row[at]) for row in busy) for at in (2, 3, 4)] == [1, *[len(seats)] * 2]
        assert {row[8] for row in busy if row[2] == "1"} == {"0.00300000ss"}
        for seat in seats:
            seat.leave(1.0)
        (await late).leave(1.0)
        total = str(len(seats) + 1)
        assert level(flow, "global-default")[1:7] == ["0", "true", "false", "0", "0", total]
        assert len(shown(flow, "dump_requests")) == 1

    virtual_time.run(test())


def test_who_waits_too_long_and_who_goes_away_are_counted_as_cancelled():
    async def test():
        flow = control(1)
        filled(flow)
        gone = asyncio.get_running_loop().create_task(flow.seat(BOB, ASKED, ASKED.path, "get"))
        await asyncio.sleep(1)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        with pytest.raises(TooManyRequests):
            await flow.seat(BOB, ASKED, ASKED.path, "get")
        assert level(flow, "global-default")[7:] == ["2", "0", "2"]

    virtual_time.run(test())
