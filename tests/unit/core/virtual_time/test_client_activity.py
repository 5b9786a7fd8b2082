"""When a client outside of virtual time is quiet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.core.virtual_time.client_activity import (
    FIRST_SECONDS,
    KNOWN,
    LATE_SECONDS,
    LEAST_SECONDS,
    MOST_SECONDS,
    REMEMBERED,
    ClientActivity,
)

REVISION = 7


def watching() -> ClientActivity:
    client = ClientActivity("kopf")
    client.follows()
    return client


def left(client: ClientActivity, now: float, revision: int = REVISION) -> float:
    return round(client.remaining(now, 0.0, revision), 6)


def wait_of(client: ClientActivity, *, told: float, asks: float | None) -> None:
    """One wait: it is told of something, asks for something (or not), and is quiet."""
    client.told(told)
    end = told
    if asks is not None:
        client.asked(end := told + asks)
        client.answered(end)
    client.waited(end + client.quiet_seconds - told, quiet=True)


def test_what_is_asked_as_it_starts_is_not_its_pace_yet():
    client = watching()
    for number in range(KNOWN):
        assert client.quiet_seconds == FIRST_SECONDS
        wait_of(client, told=10.0 * number, asks=0.01)
    assert client.quiet_seconds == pytest.approx(0.02 + LEAST_SECONDS)


def test_one_that_was_told_nothing_is_not_waited_for():
    assert not watching().concerns(10.0, REVISION)


def test_one_that_was_told_something_gets_a_while():
    client = watching()
    client.told(10.0)
    assert client.concerns(10.0, REVISION)
    assert left(client, 10.0) == FIRST_SECONDS
    assert left(client, 10.0 + FIRST_SECONDS) == 0.0


def test_a_request_under_way_is_waited_for():
    client = watching()
    client.asked(10.0)
    assert left(client, 15.0) > 0.0
    client.answered(15.0)
    assert left(client, 15.0) == client.quiet_seconds
    assert left(client, 15.0 + client.quiet_seconds) == 0.0


def test_one_that_only_asks_gets_less():
    client = ClientActivity("kubectl")
    client.asked(10.0)
    client.answered(10.0)
    assert left(client, 10.0) == LEAST_SECONDS


def test_its_pace_is_learned_from_its_reactions():
    client = watching()
    for moment in range(REMEMBERED):
        wait_of(client, told=10.0 * moment, asks=0.001)
    assert LEAST_SECONDS <= client.quiet_seconds < FIRST_SECONDS
    wait_of(client, told=1000.0, asks=0.2)
    assert client.quiet_seconds >= 0.4


def test_waits_without_a_reaction_do_not_forget_its_pace():
    client = watching()
    wait_of(client, told=1.0, asks=0.12)
    before = client.quiet_seconds
    for moment in range(3 * REMEMBERED):
        wait_of(client, told=10.0 * moment, asks=None)
    assert client.quiet_seconds == before


def test_one_that_never_reacts_costs_little_in_the_end():
    client = watching()
    for moment in range(REMEMBERED):
        wait_of(client, told=10.0 * moment, asks=None)
    assert client.quiet_seconds == LEAST_SECONDS


def test_a_reaction_that_came_too_late_makes_the_next_wait_longer():
    client = watching()
    wait_of(client, told=10.0, asks=None)
    client.asked(10.0 + 0.8)
    client.answered(10.9)
    assert client.quiet_seconds >= 1.6


def test_what_it_does_of_itself_long_after_is_no_reaction():
    client = watching()
    wait_of(client, told=10.0, asks=None)
    client.asked(10.0 + 2 * LATE_SECONDS)
    client.answered(12.0)
    assert client.quiet_seconds == FIRST_SECONDS


def test_one_that_is_never_quiet_costs_one_span_a_step_until_it_is():
    client = watching()
    client.told(10.0)
    client.asked(10.1)
    client.waited(5.0, quiet=False)
    assert client.restless
    assert client.remaining(20.0, 20.0, REVISION) == pytest.approx(client.quiet_seconds)
    assert client.remaining(20.0 + client.quiet_seconds, 20.0, REVISION) == 0.0
    client.answered(21.0)
    client.waited(1.0, quiet=client.is_silent(21.0 + MOST_SECONDS, REVISION))
    assert not client.restless


def test_a_poller_is_waited_for_until_it_has_read_what_happened():
    client = ClientActivity("poller")
    for number in range(4):
        if client.asked(10.0 + number * 0.5, read="/api/v1/pods?", revision=1):
            client.answered(10.0 + number * 0.5)
    client.waited(0.1, quiet=True)
    assert not client.concerns(11.6, 1), "its polling is no sign of life"
    assert client.concerns(11.6, 2)
    assert left(client, 11.6, revision=2) > 0.0
    assert client.asked(12.0, read="/api/v1/pods?", revision=2)
    client.answered(12.0)
    assert left(client, 12.0, revision=2) == client.quiet_seconds
    assert not client.asked(12.04, read="/api/v1/pods?", revision=2)
    assert left(client, 12.0 + client.quiet_seconds, revision=2) == 0.0


def test_one_that_stopped_polling_is_not_waited_for():
    client = ClientActivity("kubectl")
    for number in range(4):
        if client.asked(10.0 + number * 0.1, read="/api/v1/pods?", revision=1):
            client.answered(10.0 + number * 0.1)
    client.waited(0.1, quiet=True)
    assert not client.concerns(11.0, 2)


@given(st.lists(st.one_of(st.none(), st.floats(0.0, 5.0)), max_size=60))
def test_the_span_has_bounds(reactions):
    client = watching()
    for moment, asks in enumerate(reactions):
        wait_of(client, told=100.0 * moment, asks=asks)
        assert LEAST_SECONDS <= client.quiet_seconds <= MOST_SECONDS
