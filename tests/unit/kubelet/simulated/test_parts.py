import asyncio

import pytest

from sampan.kubelet.contracts.runtime import RuntimeEvent, RuntimeFailure
from sampan.kubelet.simulated.parts import EVENTS_BOUND, Addresses, Hearer, Listener, digits_of


def test_an_address_is_given_to_one_at_a_time_until_there_is_none():
    addresses = Addresses("10.1.2.0/29")
    given = [addresses.take() for _ in range(6)]
    assert len(set(given)) == 6
    assert all(one.startswith("10.1.2.") for one in given)
    with pytest.raises(RuntimeFailure, match="no free address"):
        addresses.take()
    addresses.give_back((given[2],))
    assert addresses.take() == given[2]


def test_ids_are_as_long_as_real_ones_and_the_same_for_the_same_seed():
    assert digits_of("a") == digits_of("a") != digits_of("b")
    assert len(digits_of("a")) == 64


def test_events_are_read_in_their_order_and_who_is_late_is_cut():
    async def story():
        listener, read = Listener(), []
        for number in range(5):
            listener.tell(number)
        read += [await listener.next(), await listener.next()]
        listener.tell(5)
        read += [await listener.next() for _ in range(4)]
        for number in range(EVENTS_BOUND):
            listener.tell(number)
        first = await listener.next()
        listener.tell(-1)
        listener.tell(-2)
        return read, first, await listener.next()

    assert asyncio.run(story()) == ([0, 1, 2, 3, 4, 5], 0, None)


def test_events_are_heard_in_their_order_and_not_before_what_tells_them_is_done():
    async def story():
        heard = []
        hearer = Hearer(heard.append)
        events = [RuntimeEvent("a"), RuntimeEvent("b"), None]
        for event in events:
            hearer.tell(event)
        assert heard == []
        await asyncio.sleep(0)
        assert heard == events
        hearer.tell(events[0])
        await asyncio.sleep(0)
        assert heard == [*events, events[0]]

    asyncio.run(story())
