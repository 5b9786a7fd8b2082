"""The watch cache against a memory store."""

import asyncio
from itertools import pairwise

import pytest

from sampan.api.calls import Item
from sampan.api.errors import Expired, ServiceUnavailable
from sampan.apiserver.storage.stored_form import canonical, stored_bytes
from sampan.apiserver.watch.cache_watcher import STATE_PAGE, WOKEN_AT_ONCE, Record, Watcher
from sampan.apiserver.watch.watch_cache import (
    FORGOTTEN_AT_ONCE,
    LINES_BYTES,
    LINES_KEPT,
    WINDOW_LEAST,
    WINDOW_LEAST_BYTES,
    WINDOW_SECONDS,
    WINDOWS_BYTES,
    KindCache,
    WatchCache,
)
from sampan.store.memory import MemoryStore
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock

PREFIX = "/registry/pods/"


def value(name, **spec):
    return stored_bytes(
        canonical({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    )


def item(key, revision, **spec):
    return Item(key, revision, {"metadata": {"name": key}, "spec": spec}, b'{"metadata":{}}')


def large(key, revision, size=1_000_000):
    return Item(key, revision, {"metadata": {"name": key}}, bytes(size))


def name_getter(obj):
    return obj["metadata"]["name"]


def run(story):
    async def main():
        store = MemoryStore(LoopClock())
        cache = WatchCache(store, LoopClock())
        await store.create(PREFIX + "a/x", value("x"))
        await cache.start()
        await story(store, cache)
        await cache.stop()
        await store.close()

    virtual_time.run(main())


def test_what_was_there_and_what_comes_is_seen():
    async def story(store, cache):
        kind = cache.kind(PREFIX)
        assert kind.keys() == ["a/x"]
        revision = await store.create(PREFIX + "b/y", value("y"))
        await cache.reached(revision)
        assert kind.keys() == ["a/x", "b/y"]
        assert kind.keys("b") == ["b/y"]
        assert kind.items["b/y"].obj["metadata"]["resourceVersion"] == str(revision)
        await cache.reached(await store.delete(PREFIX + "b/y", revision))
        assert kind.keys() == ["a/x"]

    run(story)


def test_a_namespace_is_not_the_prefix_of_another():
    kind = KindCache(1)
    for number, key in enumerate(["a/x", "a-b/x", "ab/x"], start=2):
        kind.change(key, number, item(key, number), 0.0)
    assert kind.keys("a") == ["a/x"]
    assert kind.keys() == ["a-b/x", "a/x", "ab/x"]


def test_watchers_hear_in_the_order_in_which_they_came():
    heard = []

    class Listener(Watcher):
        def offer(self, record):
            heard.append(self)

    kind = KindCache(1)
    listeners = [Listener("", None, 1, 10) for _ in range(100)]
    for listener in listeners:
        kind.watch(listener, None, name_getter).commit()
    kind.change("a/x", 2, item("a/x", 2), 0.0)
    assert heard == listeners


def test_the_writers_object_is_not_parsed_again():
    async def story(store, cache):
        ordered = canonical({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "z"}})
        data = stored_bytes(ordered)
        with cache.hand_over(PREFIX + "a/z", data, ordered):
            await cache.reached(await store.create(PREFIX + "a/z", data))
        assert cache.kind(PREFIX).items["a/z"].obj is ordered

    run(story)


def test_an_event_is_shared_by_all_who_watch():
    async def story(store, cache):
        kind = cache.kind(PREFIX)
        watchers = [Watcher("", None, cache.revision, 10) for _ in range(2)]
        for watcher in watchers:
            kind.watch(watcher, None, name_getter)
        await cache.reached(await store.create(PREFIX + "a/y", value("y")))
        first, second = (watcher.take()[0] for watcher in watchers)
        assert first is second
        assert first.line.startswith(b'{"type":"ADDED","object":{"apiVersion":"v1"')
        assert first.line is second.line

    run(story)


def test_a_trigger_wakes_only_whom_it_concerns():
    kind = KindCache(1)
    mine, other = Watcher("", None, 1, 10), Watcher("", None, 1, 10)
    kind.watch(mine, ("metadata.name", "a/x"), name_getter)
    kind.watch(other, ("metadata.name", "a/y"), name_getter)
    kind.change("a/x", 2, item("a/x", 2), 0.0)
    assert len(mine.take()) == 1
    assert other.take() == []
    kind.forget(mine)
    assert kind.watcher_count() == 1


def test_a_watcher_that_does_not_read_is_cut_at_its_bound():
    kind = KindCache(1)
    watcher = Watcher("", None, 1, 3)
    kind.watch(watcher, None, name_getter)
    for number in range(2, 8):
        kind.change("a/x", number, item("a/x", number), 0.0)
    assert watcher.cut
    assert watcher.closed
    assert len(watcher.take()) == 3


def test_entering_and_leaving_a_selection():
    def matches(one):
        return one.obj["spec"].get("on", False)

    on, off = item("k", 1, on=True), item("k", 1)
    on.data = off.data = b'{"metadata":{"resourceVersion":"1","name":"k"}}'
    assert Record(2, on, None, 0.0).event(matches).type == "ADDED"
    assert Record(2, on, off, 0.0).event(matches).type == "ADDED"
    assert Record(2, on, on, 0.0).event(matches).type == "MODIFIED"
    left = Record(2, off, on, 0.0).event(matches)
    assert left.type == "DELETED"
    assert left.item.obj["spec"] == {"on": True}
    assert left.item.obj["metadata"]["resourceVersion"] == "2"
    assert Record(2, None, on, 0.0).event(matches).type == "DELETED"
    assert Record(2, off, off, 0.0).event(matches) is None
    assert Record(2, None, off, 0.0).event(matches) is None


def test_the_window_forgets_old_records_and_says_so():
    kind = KindCache(1)
    for number in range(2, 2 + WINDOW_LEAST + 10):
        kind.change("a/x", number, item("a/x", number), float(number))
    kind.change("a/x", 1000, item("a/x", 1000), 1e6)
    with pytest.raises(Expired, match=r"too old resource version: 5 \(\d+\)"):
        kind.replay(Watcher("", None, 5, 10**6), 5)
    recent = Watcher("", None, 130, 10**6)
    kind.replay(recent, 130)
    assert [event.item.revision for event in recent.take()] == [*range(131, 140), 1000]


def test_what_is_old_goes_though_nobody_writes_to_the_kind_any_more():
    """what thousands of pods have been would stay for as long as no other comes"""

    async def story(store, cache):
        kind, clock, other = cache.kind(PREFIX), LoopClock(), "/registry/configmaps/a/"
        pods = 2 * FORGOTTEN_AT_ONCE
        for number in range(pods):
            revision = await store.create(f"{PREFIX}a/p{number}", value("p"))
            await store.delete(f"{PREFIX}a/p{number}", revision)
        await cache.reached(store.revision)
        assert len(kind.window()) == 2 * pods
        for number in range(3):
            await clock.sleep(WINDOW_SECONDS)
            await cache.reached(await store.create(f"{other}{number}", value("c")))
        assert len(kind.window()) < 2 * pods - FORGOTTEN_AT_ONCE
        for number in range(3, 10):
            await clock.sleep(WINDOW_SECONDS)
            await cache.reached(await store.create(f"{other}{number}", value("c")))
        assert len(kind.window()) == WINDOW_LEAST
        with pytest.raises(Expired):
            kind.replay(Watcher("", None, 5, 10**6), 5)

    run(story)


def test_large_records_that_are_old_do_not_stay_because_they_are_few():
    kind = KindCache(1)
    for number in range(2, 22):
        kind.change("a/x", number, large("a/x", number), float(number))
    assert kind.past_bytes == 19_000_000
    kind.change("a/x", 30, item("a/x", 30), 1e6)
    assert len(kind.window()) < WINDOW_LEAST
    assert kind.past_bytes <= WINDOW_LEAST_BYTES
    assert kind.past_bytes == sum(record.before.size for record in kind.window())


def test_the_largest_window_gives_way_where_all_together_are_too_large():
    """whoever writes a megabyte again and again shortens what may be resumed of that kind only"""

    async def story(store, cache):
        other, size = "/registry/things/", 1_400_000
        written = await store.create(other + "a/x", value("x", text="y" * size))
        pod = await store.create(PREFIX + "a/p", value("p"))
        pod = await store.update(PREFIX + "a/p", value("p", number=0), pod)
        writes = 2 * WINDOWS_BYTES // size
        for number in range(writes):
            text = "y" * size + str(number)
            written = await store.update(other + "a/x", value("x", text=text), written)
        await cache.reached(written)
        large_kind, small_kind = cache.kind(other), cache.kind(PREFIX)
        assert WINDOWS_BYTES - 2 * size < large_kind.past_bytes <= WINDOWS_BYTES
        assert len(large_kind.window()) < writes
        assert small_kind.window()[-1].revision == pod
        assert len(small_kind.window()) == 2

    run(story)


def test_whoever_waits_when_the_cache_stops_is_told():
    async def story(store, cache):
        from sampan.core.tasks import Tasks

        tasks = Tasks("test")
        waiting = tasks.start("wait", cache.reached(10**6))
        await LoopClock().sleep(0)
        await cache.stop()
        with pytest.raises(ServiceUnavailable):
            await waiting

    run(story)


def test_falling_behind_compaction_reads_all_again():
    async def story(store, cache):
        kind = cache.kind(PREFIX)
        watcher = Watcher("", None, cache.revision, 10)
        kind.watch(watcher, None, name_getter)
        kind.load([item("a/x", 9)], 9)
        assert watcher.closed
        assert not watcher.cut
        with pytest.raises(Expired):
            kind.replay(Watcher("", None, 5, 10), 5)

    run(story)


def test_old_changes_keep_no_lines_and_are_told_all_the_same():
    """[E2] what a change costs in memory is what it changed"""
    kind = KindCache(0)
    watcher = Watcher("", None, 0, 10_000)
    kind.watch(watcher, None, name_getter)
    for revision in range(1, LINES_KEPT + 3):
        kind.change("a/x", revision, item("a/x", revision), 0.0)
        assert watcher._events[-1].line  # somebody sends it
    events = watcher.take()
    assert [one._line == b"" for one in events] == [True] * 2 + [False] * LINES_KEPT
    assert b'"type":"ADDED"' in events[0].line


def test_large_changes_keep_few_lines():
    kind = KindCache(0)
    watcher = Watcher("", None, 0, 10**9)
    kind.watch(watcher, None, name_getter)
    for revision in range(1, 11):
        kind.change("a/x", revision, large("a/x", revision), 0.0)
        assert watcher._events[-1].line
    kept = [one for one in watcher.take() if one._line]
    assert len(kept) == LINES_BYTES // 1_000_000


def test_the_initial_state_is_taken_in_parts_and_comes_before_all_else():
    kind, count = KindCache(1), 2 * STATE_PAGE + 5
    kind.load([item(f"ns/{number:05d}", number) for number in range(1, count + 1)], count)
    watcher = Watcher("ns", None, count, 10)
    watcher.begin_with(kind.select("ns", None))
    kind.watch(watcher, None, name_getter)
    kind.change("ns/new", count + 1, item("ns/new", count + 1), 0.0)
    virtual_time.run(watcher.wait())
    parts = [watcher.take() for _ in range(4)]
    assert [len(part) for part in parts] == [STATE_PAGE, STATE_PAGE, 5, 1]
    keys = [event.item.key for part in parts for event in part]
    assert keys == [f"ns/{number:05d}" for number in range(1, count + 1)] + ["ns/new"]
    assert watcher.take() == []


def test_thousands_of_watchers_are_woken_in_parts_and_others_have_a_turn_between():
    """one event for all of them would hold up everybody else for as long as they write it"""

    async def story():
        kind, count = KindCache(0), 4 * WOKEN_AT_ONCE + 1
        watchers = [Watcher("", None, 0, 10) for _ in range(count)]
        heard, at_a_turn = [], []

        async def hear(watcher):
            await watcher.wait()
            heard.append(watcher.take())

        async def look():
            while len(heard) < count:
                at_a_turn.append(len(heard))
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            for watcher in watchers:
                kind.watch(watcher, None, name_getter)
                group.create_task(hear(watcher))
            await asyncio.sleep(0)
            kind.change("a/x", 1, item("a/x", 1), 0.0)
            group.create_task(look())
        steps = [later - earlier for earlier, later in pairwise(at_a_turn)]
        assert max(steps) <= WOKEN_AT_ONCE
        assert [len(events) for events in heard] == [1] * count

    virtual_time.run(story())


def test_who_does_not_select_a_change_is_not_woken_for_it():
    async def story():
        kind = KindCache(0)
        watcher = Watcher("", lambda item: item.key != "a/x", 0, 10)
        kind.watch(watcher, None, name_getter)
        task = asyncio.get_running_loop().create_task(watcher.wait())
        await asyncio.sleep(0)
        kind.change("a/x", 1, item("a/x", 1), 0.0)
        await asyncio.sleep(1)
        assert not task.done()
        kind.change("a/y", 2, item("a/y", 2), 0.0)
        await task

    virtual_time.run(story())


def test_a_value_that_is_no_object_is_left_out_and_others_are_there():
    async def story(store, cache):
        for key in ("a/bad", "a/x/y/z", "b"):
            await store.create(PREFIX + key, b"k8s\0")
        await store.create("/registry/nobody", b"[]")
        written = await store.create("/registry/things/a/x", value("x"))
        await cache.reached(written)
        again = WatchCache(store, LoopClock())
        await again.start()
        for each in (cache, again):
            assert each.kind(PREFIX).keys() == ["a/x"]
            assert sorted(each.kind(PREFIX).unreadable) == ["a/bad", "a/x/y/z", "b"]
            assert each.kind("/registry/things/").keys() == ["a/x"]
        await again.stop()

    run(story)


def test_of_an_object_that_cannot_be_read_any_more_the_last_state_stays():
    async def story(store, cache):
        kind = cache.kind(PREFIX)
        before = kind.items["a/x"]
        bad = await store.update(PREFIX + "a/x", b"garbage", before.revision)
        await cache.reached(bad)
        assert kind.items["a/x"] is before
        assert list(kind.unreadable) == ["a/x"]
        assert len(kind.window()) == 0
        good = await store.update(PREFIX + "a/x", value("x", n=2), bad)
        await cache.reached(good)
        assert kind.items["a/x"].revision == good
        assert kind.unreadable == {}

    run(story)
