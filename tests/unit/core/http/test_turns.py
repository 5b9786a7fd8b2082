"""Requests in turn: on a clock that every request moves by its cost."""

import asyncio

from sampan.core.http.turns import SLICE_SECONDS, STRANGERS_SECONDS, Turns
from sampan.core.tasks import Tasks, all_of


class Clock:
    at = 0.0

    def monotonic(self):
        return self.at


def story(test):
    clock = Clock()
    asyncio.run(test(clock, Turns(clock)))


async def request(clock, turns, who, cost, done, *, known=True):
    if not turns.is_free(known):
        await turns.mine(who, known=known)
    number = turns.number
    clock.at += cost
    turns.took(cost, known=known)
    done.append((who, number))


def per_turn(done):
    counts = {}
    for _, number in done:
        counts[number] = counts.get(number, 0) + 1
    return max(counts.values())


def test_who_is_among_few_never_waits():
    async def told(clock, turns):
        done = []
        for number in range(1000):
            await request(clock, turns, "a", 0.001, done)
            if number % 10 == 0:
                await asyncio.sleep(0)
        assert len(done) == 1000

    story(told)


def test_what_is_begun_in_one_turn_takes_about_a_slice():
    async def told(clock, turns):
        done, cost = [], 0.0005
        works = [request(clock, turns, f"u{number % 7}", cost, done) for number in range(2000)]
        await all_of(works)
        assert len(done) == 2000
        assert per_turn(done) <= SLICE_SECONDS / cost + 2

    story(told)


def test_a_user_does_not_wait_for_strangers():
    async def told(clock, turns):
        done, cost, tasks = [], 0.0002, Tasks("test")
        strangers = [
            tasks.start("x", request(clock, turns, "x", cost, done, known=False))
            for _ in range(5000)
        ]
        await asyncio.sleep(0)
        before = len(done)
        assert before <= STRANGERS_SECONDS / cost + 2
        await request(clock, turns, "me", cost, done)
        assert done[-1][0] == "me"
        assert len(done) - before <= STRANGERS_SECONDS / cost + 2
        await asyncio.wait(strangers)
        assert per_turn(done) <= STRANGERS_SECONDS / cost + 3

    story(told)


def test_every_group_has_its_turn():
    async def told(clock, turns):
        done, tasks = [], Tasks("test")
        begun = [
            tasks.start(who, request(clock, turns, who, 0.001, done))
            for who in (*["many"] * 500, "one")
        ]
        await asyncio.wait(begun)
        assert [who for who, _ in done].index("one") < 60

    story(told)


def test_who_gives_up_is_passed_over():
    async def told(clock, turns):
        done, tasks = [], Tasks("test")
        first = [tasks.start("a", request(clock, turns, "a", 0.01, done)) for _ in range(10)]
        await asyncio.sleep(0)
        first[5].cancel()
        await asyncio.wait(first)
        assert len(done) == 9

    story(told)
