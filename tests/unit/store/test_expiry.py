from sampan.core.tasks import Tasks
from sampan.store.expiry import Expiry
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock


def on_expiry(story):
    async def main():
        clock, tasks, gone = LoopClock(), Tasks("test"), []
        expiry = Expiry(clock, tasks, lambda key, revision: gone.append((key, revision)))
        await story(expiry, clock, tasks, gone)
        await tasks.stop()

    virtual_time.run(main())


def test_keys_go_in_the_order_of_their_time_and_then_no_timer_is_left():
    async def story(expiry, clock, tasks, gone):
        start = clock.now()
        expiry.set("c", 4, start + 30)
        expiry.set("a", 2, start + 10)
        expiry.set("b", 3, start + 20)
        await clock.sleep(15)
        assert gone == [("a", 2)]
        await clock.sleep(20)
        assert gone == [("a", 2), ("b", 3), ("c", 4)]
        assert len(tasks) == 0

    on_expiry(story)


def test_a_time_in_the_past_is_now():
    async def story(expiry, clock, tasks, gone):
        expiry.set("a", 2, clock.now() - 100)
        await clock.sleep(0.001)
        assert gone == [("a", 2)]

    on_expiry(story)


def test_only_the_newest_time_of_a_key_counts():
    async def story(expiry, clock, tasks, gone):
        expiry.set("a", 2, clock.now() + 10)
        expiry.set("a", 3, clock.now() + 50)
        expiry.set("b", 4, clock.now() + 10)
        expiry.forget("b")
        await clock.sleep(40)
        assert gone == []
        await clock.sleep(20)
        assert gone == [("a", 3)]

    on_expiry(story)


def test_rewriting_one_key_for_ever_does_not_grow_the_heap():
    async def story(expiry, clock, tasks, gone):
        for revision in range(10_000):
            expiry.set("a", revision, clock.now() + 3600 + revision)
        assert len(expiry._heap) < 100

    on_expiry(story)
