"""Priority and fairness. [A10]"""

import asyncio
import statistics

import pytest

from sampan.api.errors import TooManyRequests
from sampan.api.resources import LEASES, NODES, PODS
from sampan.apiserver.authn.user import User
from sampan.apiserver.flow.control import FlowControl, level_settings
from sampan.apiserver.flow.objects import LEVELS, SCHEMAS, flow_objects, reconcile
from sampan.apiserver.http.request import RequestInfo
from sampan.core.metrics import Metrics
from sampan.core.tasks import all_of
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock

OBJECTS = flow_objects(0.0)
SEATS = 24


def control(total=SEATS, count=lambda _info: 0):
    schemas = [obj for row, obj in OBJECTS if row is SCHEMAS]
    levels = [obj for row, obj in OBJECTS if row is LEVELS]
    return FlowControl(total, lambda: schemas, lambda: levels, count, LoopClock(), Metrics())


def info(resource=PODS, verb="list", namespace="default", subresource=""):
    return RequestInfo(verb, "/x", resource, namespace, "", subresource)


def user(name, *groups):
    return User(name, (*groups, "system:authenticated"))


@pytest.mark.parametrize(
    ("who", "asked", "level"),
    [
        (user("root", "system:masters"), info(), "exempt"),
        (user("system:node:n", "system:nodes"), info(NODES, "get", ""), "node-high"),
        (user("system:node:n", "system:nodes"), info(), "system"),
        (user("system:kube-scheduler"), info(LEASES, "get", "kube-system"), "leader-election"),
        (user("system:kube-scheduler"), info(), "workload-high"),
        (
            user("system:serviceaccount:kube-system:x", "system:serviceaccounts"),
            info(),
            "workload-high",
        ),
        (user("system:serviceaccount:a:x", "system:serviceaccounts"), info(), "workload-low"),
        (user("bob"), info(), "global-default"),
        (User("nobody"), info(), "catch-all"),
    ],
)
def test_a_request_finds_its_level(who, asked, level):
    async def test():
        seat = await control().seat(who, asked, "/x", asked.verb)
        assert seat.level.settings.name == level

    virtual_time.run(test())


def test_seats_are_shared_out_by_shares():
    levels = [obj for row, obj in OBJECTS if row is LEVELS]
    found = {one.name: one for one in level_settings(levels, 245)}
    assert {name: one.seats for name, one in found.items()} == {
        "system": 30, "node-high": 40, "leader-election": 10, "workload-high": 40,
        "workload-low": 100, "global-default": 20, "catch-all": 5, "exempt": 0,
    }  # fmt: skip
    assert found["workload-low"].lendable == 90


async def served(flow, who, seconds, latencies=None, asked=None):
    asked = asked or info(verb="get")
    clock = LoopClock()
    began = clock.monotonic()
    try:
        seat = await flow.seat(who, asked, "/x", asked.verb)
    except TooManyRequests:
        return 429
    await clock.sleep(seconds)
    seat.leave(clock.monotonic())
    if latencies is not None:
        latencies.append(clock.monotonic() - began)
    return 200


def test_a_flood_by_one_user_leaves_the_others_their_latency():
    """One user sends 50 times as much as the level can serve; the other does not notice much."""

    async def test():
        flow = control()
        flood = [served(flow, user("flood"), 0.01) for _ in range(450)]
        latencies: list[float] = []

        async def polite():
            for _ in range(20):
                await served(flow, user("polite"), 0.01, latencies)
                await LoopClock().sleep(0.01)

        results = await all_of([*flood, polite()])
        assert 429 in results  # the flood's queues are full
        alone: list[float] = []
        for _ in range(20):
            await served(flow, user("polite"), 0.01, alone)
        ratio = statistics.median(latencies) / statistics.median(alone)
        assert ratio <= 3, ratio

    virtual_time.run(test())


def test_who_waits_too_long_is_told_to_come_again():
    async def test():
        flow = control()
        tasks = [served(flow, user("a"), 60.0) for _ in range(60)]
        results = await all_of(tasks)
        assert results.count(429) > 0
        never = [flow.seat(user("a"), info(verb="get"), "/x", "get") for _ in range(400)]
        with pytest.raises(TooManyRequests) as refused:
            await asyncio.wait_for(all_of(never), 100)
        assert refused.value.retry_after_seconds == 1

    virtual_time.run(test())


def test_idle_seats_are_lent_and_masters_never_wait():
    async def test():
        flow = control()
        own = level_settings([obj for row, obj in OBJECTS if row is LEVELS], SEATS)
        default = next(one for one in own if one.name == "global-default")
        seats = [await flow.seat(user("a"), info(verb="get"), "/x", "get")
                 for _ in range(default.seats + 3)]  # fmt: skip
        assert seats[-1].level.in_use > default.seats
        for _ in range(100):
            await flow.seat(user("root", "system:masters"), info(), "/x", "list")

    virtual_time.run(test())


def test_a_list_of_many_takes_several_seats():
    async def test():
        flow = control(600, lambda _info: 950)
        seat = await flow.seat(user("a"), info(), "/x", "list")
        assert seat.seats == 10

    virtual_time.run(test())


async def refused_after(flow, who):
    """Seats until the first refusal: catch-all refuses at once."""
    held = []
    while True:
        try:
            held.append(await flow.seat(who, info(), "/x", "get"))
        except TooManyRequests:
            return held


def test_a_caller_that_goes_away_leaves_no_hole():
    async def test():
        flow = control()
        nobody = User("nobody")
        held = [await flow.seat(nobody, info(), "/x", "get")]
        level = held[0].level
        held += [
            await flow.seat(nobody, info(), "/x", "get") for _ in range(level.settings.seats - 1)
        ]
        lent = await refused_after(flow, nobody)
        held += lent
        for one in held:
            one.leave(1.0)
        assert level.in_use == 0

    virtual_time.run(test())


def test_what_is_mandatory_is_put_right():
    [wanted] = [
        obj for row, obj in OBJECTS if row is LEVELS and obj["metadata"]["name"] == "exempt"
    ]
    changed = {**wanted, "spec": {"type": "Limited"}}
    assert reconcile(changed, wanted)["spec"] == wanted["spec"]
    assert reconcile(wanted, wanted) is None
    own = {**changed, "metadata": {"name": "system", "annotations": {
        "apf.kubernetes.io/autoupdate-spec": "false"}}}  # fmt: skip
    assert reconcile(own, wanted) is None


def test_between_two_wide_requests_whoever_came_meanwhile_goes_first():
    """Lists that never wait would all run in one turn of the loop, whatever their seats."""

    async def test():
        flow = control(600, lambda _info: 1000)
        order: list[str] = []

        async def asks(who, verb):
            seat = await flow.seat(user(who), info(verb=verb), "/x", verb)
            order.append(who)
            seat.leave(LoopClock().monotonic())

        async def polite():
            await asyncio.sleep(0)  # when the flood is there already
            await asks("polite", "get")

        await all_of([*(asks("flood", "list") for _ in range(50)), polite()])
        assert order.count("flood") == 50
        hand = 6  # of the flood's queues, each of which may go once before
        assert order.index("polite") <= hand + 2, order.index("polite")

    virtual_time.run(test())


def test_a_seat_is_left_once():
    async def test():
        flow = control(600, lambda _info: 1000)
        seat = await flow.seat(user("a"), info(verb="list"), "/x", "list")
        assert seat.level.in_use > 1
        for _ in range(2):
            seat.leave(1.0)
            assert seat.level.in_use == 0
            assert (flow._now(lambda now: len(now.served) + now.seats)).popitem()[1] == 0

    virtual_time.run(test())


def test_how_long_requests_waited_is_told_also_of_those_that_did_not():
    async def test():
        metrics = Metrics()
        schemas = [obj for row, obj in OBJECTS if row is SCHEMAS]
        levels = [obj for row, obj in OBJECTS if row is LEVELS]
        flow = FlowControl(1, lambda: schemas, lambda: levels, lambda _: 0, LoopClock(), metrics)
        who, asked = user("bob"), info(verb="get")
        seats = []
        while (seat := flow.take(who, asked, "/x", "get", LoopClock().monotonic())) is not None:
            seats.append(seat)

        async def leave():
            await asyncio.sleep(3)
            labels = 'flow_schema="global-default",priority_level="global-default"'
            now = metrics.render()
            for what, number in (
                ("executing_requests", len(seats)), ("executing_seats", len(seats)),
                ("inqueue_requests", 1),
            ):  # fmt: skip
                assert f"apiserver_flowcontrol_current_{what}{{{labels}}} {number}" in now
            seats[0].leave(LoopClock().monotonic())

        await all_of([flow.wait(who, asked, "/x", "get"), leave()])
        return metrics.render(), len(seats)

    text, at_once = virtual_time.run(test())
    start = "apiserver_flowcontrol_request_wait_duration_seconds"
    labels = 'execute="true",flow_schema="global-default",priority_level="global-default"'
    assert f'{start}_bucket{{{labels},le="0.0"}} {at_once}' in text
    assert f'{start}_bucket{{{labels},le="2.0"}} {at_once}' in text
    assert f'{start}_bucket{{{labels},le="5.0"}} {at_once + 1}' in text
    assert 'apiserver_flowcontrol_nominal_limit_seats{priority_level="global-default"} 1' in text
