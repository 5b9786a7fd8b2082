"""Changes in a directory, with the real inotify."""

import asyncio

from sampan.core.file_events import Change, FileEvents


def test_a_write_is_seen_with_its_file_and_its_end(tmp_path):
    async def story():
        events = FileEvents()
        with events.watch(tmp_path) as changes:
            with open(tmp_path / "a", "w") as file:
                file.write("x")
                file.flush()
                assert await changes.wait(5) == [Change("a")]
            assert Change("a", closed=True) in await changes.wait(5)
            assert await changes.wait(0.01) == []
        events.close()

    asyncio.run(story())


def test_what_happens_between_two_waits_is_not_lost(tmp_path):
    async def story():
        events = FileEvents()
        with events.watch(tmp_path) as changes:
            (tmp_path / "a").write_text("x")
            await asyncio.sleep(0.01)
            (tmp_path / "a").rename(tmp_path / "b")
            await asyncio.sleep(0.01)
            assert {change.name for change in await changes.wait(5)} == {"a", "b"}
        events.close()

    asyncio.run(story())


def test_two_watch_one_directory_and_one_stops(tmp_path):
    async def story():
        events = FileEvents()
        with events.watch(tmp_path) as first:
            with events.watch(tmp_path) as second:
                (tmp_path / "a").mkdir()
                assert await first.wait(5) == await second.wait(5) == [Change("a")]
            (tmp_path / "b").mkdir()
            assert await first.wait(5) == [Change("b")]
        events.close()

    asyncio.run(story())


def test_where_nothing_can_be_watched_a_waiter_looks_again_soon(tmp_path):
    async def story():
        events = FileEvents()
        with events.watch(tmp_path / "missing") as changes:
            assert await changes.wait(0.01) == [Change("")]
        events.close()

    asyncio.run(story())
